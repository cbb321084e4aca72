// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights against results that a script computed from the documents, without the
// library. Their sums are exact, so every implementation gives the same bits.
#include <functional>

#include "gtests/golden/case_files.hpp"
#include "gtests/golden/case_values.hpp"

namespace golden_backward_weights {

using api_test::dt;
using api_test::tag;
using golden::type_of;
using mxdnn::memory;
using backward_t = mxdnn::grouped_matmul_backward_weights;

namespace {

struct case_t : golden::with_arrays_t {
    std::map<std::string, std::string> words;
    const std::string &word(const char *key) const { return words.at(key); }
    memory::dim number(const char *key) const { return std::stoll(words.at(key)); }
};

std::vector<case_t> read_cases() {
    std::vector<case_t> cases;
    golden::read_case_files(
            "golden_backward_weights",
            [&](const std::string &, std::istringstream &in) {
                case_t c;
                in >> c.name;
                c.words = golden::read_options(in);
                cases.push_back(c);
            },
            [&](const std::string &what, const golden::array_t &a) { cases.back().arrays[what] = a; });
    return cases;
}

mxdnn::row_grouping grouping_of(const std::string &word) {
    return word == "ends"     ? mxdnn::row_grouping::ends
           : word == "starts" ? mxdnn::row_grouping::starts
                              : mxdnn::row_grouping::padded;
}

TEST(golden_backward_weights, every_implementation_gives_these_bits) {
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream stream(eng);
    for (case_t &c : read_cases()) {
        SCOPED_TRACE(c.name);
        const auto matrix = [&](const char *what, dt type) {
            golden::array_t &a = c.arrays.at(what);
            return memory(
                    memory::desc(a.dims, type, a.dims.size() == 1 ? tag::a : tag::ab), eng, a.bytes.data());
        };
        std::unordered_map<int, memory> args{{MXDNN_ARG_SRC, matrix("src", type_of(c.word("src")))},
                {MXDNN_ARG_DIFF_DST, matrix("diff_dst", type_of(c.word("diff_dst")))}};
        mxdnn::primitive_attr attr;
        if (c.has("src_scales")) {
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] = matrix("src_scales", dt::e8m0);
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DIFF_DST] = matrix("diff_dst_scales", dt::e8m0);
            attr.set_scales(MXDNN_ARG_SRC, 3, {32, 1}, dt::e8m0);
            attr.set_scales(MXDNN_ARG_DIFF_DST, 3, {32, 1}, dt::e8m0);
        }
        if (c.has("offsets")) args[MXDNN_ARG_GROUP_OFFSETS] = matrix("offsets", dt::s32);
        if (c.has("counts")) args[MXDNN_ARG_GROUP_COUNTS] = matrix("counts", dt::s32);
        attr.set_row_grouping(grouping_of(c.word("grouping")));
        if (c.has("old")) {
            mxdnn::post_ops ops;
            ops.append_sum(std::stof(c.word("sum")));
            attr.set_post_ops(ops);
        }
        std::vector<uint8_t> result;
        const memory::desc to(c["want"].dims, type_of(c.word("to")), tag::abc);
        backward_t::primitive_desc pd(
                eng, args.at(MXDNN_ARG_SRC).get_desc(), args.at(MXDNN_ARG_DIFF_DST).get_desc(), to, attr);
        do {
            SCOPED_TRACE(pd.impl_info_str());
            result = c.has("old") ? c.bytes("old") : std::vector<uint8_t>(c.bytes("want").size(), 0xa5);
            args[MXDNN_ARG_DIFF_WEIGHTS] = memory(to, eng, result.data());
            backward_t(pd).execute(stream, args);
            EXPECT_EQ(result, c.bytes("want"));
        } while (pd.next_impl());
    }
}

} // namespace

} // namespace golden_backward_weights

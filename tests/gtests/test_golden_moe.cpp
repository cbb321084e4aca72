// SPDX-License-Identifier: Apache-2.0
// moe_route, moe_permute and moe_unpermute against results that a script computed from the documents without
// the library. Only the public API is used here. Every implementation that takes a case is compared.
#include <cmath>
#include <functional>
#include <map>

#include "golden_moe/cases.hpp"
#include "gtests/golden/case_values.hpp"

namespace golden_moe {

using api_test::dt;
using api_test::tag;
using golden::type_of;
using golden::value_at;
using mxdnn::algorithm;
using mxdnn::memory;
using mxdnn::moe_permute;
using mxdnn::moe_route;
using mxdnn::moe_unpermute;

namespace {

using bytes_t = std::vector<uint8_t>;
using args_t = std::unordered_map<int, memory>;
constexpr uint8_t poisoned = 0xa5;

struct engine_t {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream stream{eng};
    memory of(const memory::dims &dims, dt type, bytes_t &bytes) const {
        return memory(memory::desc(dims, type, dims.size() == 1 ? tag::a : tag::ab), eng, bytes.data());
    }
};

// Buffers of outputs by argument, one byte longer than they should be.
struct outputs_t {
    const engine_t &e;
    std::map<int, bytes_t> buffers;
    void add(args_t &args, int arg, const memory::dims &dims, dt type) {
        const memory::desc md(dims, type, dims.size() == 1 ? tag::a : tag::ab);
        bytes_t &b = buffers[arg];
        b.assign(md.get_size() + 1, poisoned);
        args[arg] = memory(md, e.eng, b.data());
    }
    void poison() {
        for (auto &b : buffers) std::fill(b.second.begin(), b.second.end(), poisoned);
    }
    void expect_ends_untouched() const {
        for (const auto &b : buffers) EXPECT_EQ(b.second.back(), poisoned) << "after argument " << b.first;
    }
    template <typename T>
    std::vector<T> as(int arg) const {
        const bytes_t &b = buffers.at(arg);
        std::vector<T> v((b.size() - 1) / sizeof(T));
        if (!v.empty()) std::memcpy(v.data(), b.data(), v.size() * sizeof(T));
        return v;
    }
};

template <typename pd_t>
void for_each_impl(pd_t pd, const std::function<void(const pd_t &)> &body) {
    do {
        SCOPED_TRACE(pd.impl_info_str());
        body(pd);
    } while (pd.next_impl());
}

// ---- route ----

// f32 arithmetic as doc/concepts/accuracy.md bounds it, of values of at most `scale`.
void expect_weights(const std::vector<float> &got, const std::vector<float> &want, double scale) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(want[i])) {
            EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
            continue;
        }
        EXPECT_NEAR(got[i], want[i], (std::fabs(want[i]) + 1e-6 * scale) * 64. / (1 << 24)) << i;
    }
}

moe_route::primitive_desc route_desc(const engine_t &e, const case_t &c, bool starts, bool runtime_rows) {
    const std::string &scoring = c.word("scoring"), &flags = c.word("flags");
    const auto alg = scoring == "softmax_topk"   ? algorithm::route_softmax_topk
                     : scoring == "topk_softmax" ? algorithm::route_topk_softmax
                                                 : algorithm::route_sigmoid;
    unsigned bits = moe_route::none;
    if (flags.find("renormalize") != std::string::npos) bits |= moe_route::renormalize;
    if (flags.find("bias") != std::string::npos) bits |= moe_route::bias;
    if (flags.find("group_max") != std::string::npos) bits |= moe_route::group_max;
    mxdnn::primitive_attr attr;
    if (starts) attr.set_row_grouping(mxdnn::row_grouping::starts);
    const float factor = std::stof(c.word("factor"));
    if (factor != 1.f) {
        mxdnn::post_ops po;
        po.append_eltwise(algorithm::eltwise_linear, factor, 0.f);
        attr.set_post_ops(po);
    }
    const memory::dim T = runtime_rows ? MXDNN_RUNTIME_DIM_VAL : c.number("T");
    return moe_route::primitive_desc(e.eng,
            memory::desc({T, c.number("E")}, type_of(c.word("type")), tag::ab), c.number("k"), alg, bits,
            c.number("groups"), c.number("kept"), attr);
}

TEST(golden_moe, route) {
    const engine_t e;
    for (const case_t &c : cases()) {
        if (c.kind != "route") continue;
        SCOPED_TRACE(c.name);
        const memory::dim T = c.number("T"), E = c.number("E"), k = c.number("k");
        for (bool starts : {false, true})
            for (bool runtime_rows : {false, true}) {
                args_t args;
                bytes_t logits = c.bytes("logits"), bias;
                logits.resize(logits.size() + 1);
                args[MXDNN_ARG_SRC] = e.of({T, E}, type_of(c.word("type")), logits);
                if (c.has("bias")) {
                    bias = c.bytes("bias");
                    args[MXDNN_ARG_ROUTE_BIAS] = e.of({E}, dt::f32, bias);
                }
                outputs_t out{e, {}};
                out.add(args, MXDNN_ARG_TOPK_IDS, {T, k}, dt::s32);
                out.add(args, MXDNN_ARG_TOPK_WEIGHTS, {T, k}, dt::f32);
                out.add(args, MXDNN_ARG_GROUP_COUNTS, {E}, dt::s32);
                out.add(args, MXDNN_ARG_GROUP_OFFSETS, {E + starts}, dt::s32);
                out.add(args, MXDNN_ARG_ROW_ORDER, {T * k}, dt::s32);
                out.add(args, MXDNN_ARG_GATHER_IDX, {T * k}, dt::s32);
                out.add(args, MXDNN_ARG_ROW_WEIGHTS, {T * k}, dt::f32);
                for_each_impl<moe_route::primitive_desc>(
                        route_desc(e, c, starts, runtime_rows), [&](const moe_route::primitive_desc &pd) {
                            out.poison();
                            moe_route(pd).execute(e.stream, args);
                            out.expect_ends_untouched();
                            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_TOPK_IDS), c.as<int32_t>("ids"));
                            const double factor = std::stod(c.word("factor"));
                            expect_weights(
                                    out.as<float>(MXDNN_ARG_TOPK_WEIGHTS), c.as<float>("weights"), factor);
                            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_GROUP_COUNTS), c.as<int32_t>("counts"));
                            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_GROUP_OFFSETS),
                                    c.as<int32_t>(starts ? "starts" : "ends"));
                            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_ROW_ORDER), c.as<int32_t>("order"));
                            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_GATHER_IDX), c.as<int32_t>("tokens"));
                            expect_weights(
                                    out.as<float>(MXDNN_ARG_ROW_WEIGHTS), c.as<float>("row_weights"), factor);
                        });
            }
    }
}

// ---- permute, and back ----

struct moved_t {
    const case_t &c;
    dt type = type_of(c.word("type"));
    memory::dim D = c.number("D"), block = c.number("block");
    bool quantised() const { return block != 0; }
    size_t scale_width() const { return c.word("scale") == "f32" ? 4 : 1; }
    memory::dim blocks() const { return (D + block - 1) / block; }
    static memory::dim swizzled_size(memory::dim rows, memory::dim cols) {
        return (rows + 127) / 128 * ((cols + 3) / 4) * 512;
    }
    memory::dims scales_dims(memory::dim rows, bool swizzled) const {
        return swizzled ? memory::dims{1, swizzled_size(rows, blocks())} : memory::dims{rows, blocks()};
    }
    void describe(mxdnn::primitive_attr &a, int arg, bool swizzled) const {
        if (!quantised()) return;
        a.set_scales(arg, 3, {1, block}, type_of(c.word("scale")));
        if (swizzled) a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    }
    // Rows of bytes in a buffer; sub-byte rows start on a byte.
    memory::desc desc(memory::dim rows) const {
        const bool half = type == dt::f4_e2m1 && D % 2;
        return memory::desc({rows, D}, type, memory::dims{half ? D + 1 : D, 1});
    }
};

// Bytes of the first rows. The rest of the buffer must be poison.
void expect_rows(const bytes_t &got, const bytes_t &want, const char *what, bool odd_half, size_t row) {
    ASSERT_GE(got.size(), want.size()) << what;
    size_t wrong = 0;
    for (size_t i = 0; i < want.size(); i++) {
        const uint8_t mask =
                odd_half && (i + 1) % row == 0 ? 15 : 255; // the upper half of a row's last byte is unused
        if ((got[i] & mask) != (want[i] & mask) && wrong++ < 3)
            ADD_FAILURE() << what << " byte " << i << ": " << int(got[i]) << ", expected " << int(want[i]);
    }
    EXPECT_EQ(wrong, 0u) << what;
    for (size_t i = want.size(); i < got.size(); i++) ASSERT_EQ(got[i], poisoned) << what << " byte " << i;
}

// Values go through f32: a signalling NaN becomes a quiet one.
void expect_values(const bytes_t &got, const bytes_t &want, dt type) {
    const size_t width = type == dt::f32 ? 4 : 2;
    const uint32_t magnitude = type == dt::f32 ? 0x7fffffff : 0x7fff, inf = type == dt::f32    ? 0x7f800000
                                                                            : type == dt::bf16 ? 0x7f80
                                                                                               : 0x7c00;
    EXPECT_EQ(got.back(), poisoned);
    for (size_t i = 0; i + width <= want.size(); i += width) {
        uint32_t g = 0, w = 0;
        std::memcpy(&g, &got[i], width);
        std::memcpy(&w, &want[i], width);
        if ((w & magnitude) > inf)
            EXPECT_GT(g & magnitude, inf) << i;
        else
            EXPECT_EQ(g, w) << i;
    }
}

// A case with these orders of scales: rows become permuted, and come back with the orders exchanged.
struct permutation_t {
    const engine_t &e;
    const case_t &c;
    const bool src_swizzled, dst_swizzled;
    const bool runtime_rows; // rows are known in the execution alone; groups are told by their starts
    const bool grouped;      // the permuted rows are described as for grouped_matmul, not as a plain tensor
    const moved_t m{c};
    const memory::dim src_rows = c.number("src_rows"), dst_rows = c.number("dst_rows"),
                      ranks = c.number("ranks"), experts = c.number("experts");
    const bool odd_half = m.type == dt::f4_e2m1 && m.D % 2;
    const size_t row = src_rows ? c.bytes("src").size() / size_t(src_rows) : 1;
    bytes_t dst = bytes_t(m.desc(dst_rows).get_size() + 1), dst_scales = {};

    memory::dim described(memory::dim rows) const {
        return runtime_rows ? memory::dim(MXDNN_RUNTIME_DIM_VAL) : rows;
    }
    memory::desc permuted(memory::dim rows) const {
        return grouped ? memory::desc::grouped({rows, m.D}, m.type, 0, experts) : m.desc(rows);
    }
    memory scales_of(memory::dim rows, bool swizzled, bytes_t &bytes) const {
        const memory::dims dims = m.scales_dims(rows, swizzled);
        if (bytes.empty()) bytes.resize(size_t(dims[0] * dims[1]) * m.scale_width());
        return e.of(dims, type_of(c.word("scale")), bytes);
    }

    void there() {
        mxdnn::primitive_attr attr;
        m.describe(attr, MXDNN_ARG_SRC, src_swizzled);
        m.describe(attr, MXDNN_ARG_DST, dst_swizzled);
        attr.set_row_grouping(runtime_rows ? mxdnn::row_grouping::starts : mxdnn::row_grouping::ends);
        bytes_t src = c.bytes("src"), counts = c.bytes("counts"), scales;
        src.resize(src.size() + 1);
        args_t args = {{MXDNN_ARG_SRC, memory(m.desc(src_rows), e.eng, src.data())},
                {MXDNN_ARG_GROUP_COUNTS, e.of({ranks, experts}, dt::s32, counts)},
                {MXDNN_ARG_DST, memory(permuted(dst_rows), e.eng, dst.data())}};
        outputs_t out{e, {}};
        out.add(args, MXDNN_ARG_GROUP_OFFSETS, {experts + runtime_rows}, dt::s32);
        out.add(args, MXDNN_ARG_PERMUTED_IDX, {dst_rows}, dt::s32);
        if (m.quantised()) {
            scales = c.bytes(src_swizzled ? "scales_128x4" : "scales");
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] = scales_of(src_rows, src_swizzled, scales);
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] = scales_of(dst_rows, dst_swizzled, dst_scales);
        }
        const moe_permute::primitive_desc pd(e.eng, m.desc(described(src_rows)),
                permuted(described(dst_rows)), ranks, experts, c.number("align"), attr);
        for_each_impl<moe_permute::primitive_desc>(pd, [&](const moe_permute::primitive_desc &each) {
            out.poison();
            std::fill(dst.begin(), dst.end(), poisoned);
            std::fill(dst_scales.begin(), dst_scales.end(), poisoned);
            moe_permute(each).execute(e.stream, args);
            out.expect_ends_untouched();
            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_GROUP_OFFSETS),
                    c.as<int32_t>(runtime_rows ? "starts" : "ends"));
            EXPECT_EQ(out.as<int32_t>(MXDNN_ARG_PERMUTED_IDX), c.as<int32_t>("idx"));
            expect_rows(dst, c.bytes("dst"), "dst", odd_half, row);
            if (m.quantised())
                expect_rows(dst_scales, c.bytes(dst_swizzled ? "dst_scales_128x4" : "dst_scales"), "scales",
                        false, 1);
        });
    }

    void back() {
        mxdnn::primitive_attr attr;
        m.describe(attr, MXDNN_ARG_SRC, dst_swizzled);
        m.describe(attr, MXDNN_ARG_DST, src_swizzled);
        bytes_t idx = c.bytes("idx"), got(c.bytes("back").size() + 1), scales;
        args_t args = {{MXDNN_ARG_SRC, memory(permuted(dst_rows), e.eng, dst.data())},
                {MXDNN_ARG_PERMUTED_IDX, e.of({dst_rows}, dt::s32, idx)},
                {MXDNN_ARG_DST, memory(m.desc(src_rows), e.eng, got.data())}};
        if (m.quantised()) {
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] = scales_of(dst_rows, dst_swizzled, dst_scales);
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] = scales_of(src_rows, src_swizzled, scales);
        }
        const moe_unpermute::primitive_desc pd(
                e.eng, permuted(described(dst_rows)), m.desc(described(src_rows)), attr);
        for_each_impl<moe_unpermute::primitive_desc>(pd, [&](const moe_unpermute::primitive_desc &each) {
            std::fill(got.begin(), got.end(), poisoned);
            std::fill(scales.begin(), scales.end(), poisoned);
            moe_unpermute(each).execute(e.stream, args);
            if (!m.quantised()) return expect_values(got, c.bytes("back"), m.type);
            expect_rows(got, c.bytes("back"), "back", odd_half, row);
            expect_rows(scales, c.bytes(src_swizzled ? "back_scales_128x4" : "back_scales"), "scales back",
                    false, 1);
        });
    }
};

TEST(golden_moe, permute_and_back) {
    const engine_t e;
    for (const case_t &c : cases()) {
        if (c.kind != "permute") continue;
        SCOPED_TRACE(c.name);
        for (int form = 0; form < (moved_t{c}.quantised() ? 4 : 1); form++)
            for (const auto &[runtime_rows, grouped] :
                    {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
                const bool src_swizzled = form & 1, dst_swizzled = form & 2;
                if (src_swizzled && !c.has("scales_128x4")) continue;
                if (dst_swizzled && !c.has("dst_scales_128x4")) continue;
                SCOPED_TRACE("scales " + std::to_string(form));
                permutation_t p{e, c, src_swizzled, dst_swizzled, runtime_rows, grouped};
                p.there();
                p.back();
            }
    }
}

// ---- the weighted sum ----

TEST(golden_moe, combine) {
    const engine_t e;
    for (const case_t &c : cases()) {
        if (c.kind != "combine") continue;
        SCOPED_TRACE(c.name);
        const memory::dim T = c.number("T"), k = c.number("k"), D = c.number("D"), rows = c.number("rows");
        const dt src_type = type_of(c.word("src")), dst_type = type_of(c.word("dst"));
        bytes_t src = c.bytes("src"), idx = c.bytes("idx"), weights = c.bytes("weights");
        args_t args = {{MXDNN_ARG_SRC, e.of({rows, D}, src_type, src)},
                {MXDNN_ARG_PERMUTED_IDX, e.of({rows}, dt::s32, idx)}};
        if (c.number("weights")) args[MXDNN_ARG_TOPK_WEIGHTS] = e.of({T, k}, dt::f32, weights);
        outputs_t out{e, {}};
        out.add(args, MXDNN_ARG_DST, {T, D}, dst_type);
        const std::vector<float> want = c.as<float>("sum"), size = c.as<float>("size");
        const moe_unpermute::primitive_desc pd(
                e.eng, memory::desc({rows, D}, src_type, tag::ab), memory::desc({T, D}, dst_type, tag::ab));
        bytes_t first;
        for_each_impl<moe_unpermute::primitive_desc>(pd, [&](const moe_unpermute::primitive_desc &each) {
            out.poison();
            moe_unpermute(each).execute(e.stream, args);
            out.expect_ends_untouched();
            const bytes_t &got = out.buffers.at(MXDNN_ARG_DST);
            // Every implementation gives the same bits.
            if (first.empty()) first = got;
            EXPECT_EQ(got, first);
            const double u = dst_type == dt::f32    ? 1. / (1 << 24)
                             : dst_type == dt::bf16 ? 1. / (1 << 8)
                                                    : 1. / (1 << 11);
            for (size_t i = 0; i < want.size(); i++) {
                // k products and additions in f32, the rounding of the golden value, and that of the
                // destination.
                const double bound = size[i] * double(k + 2) / (1 << 24) + std::fabs(want[i]) * u + 1e-40;
                EXPECT_NEAR(value_at(got, dst_type, i), want[i], bound) << i;
            }
        });
    }
}

TEST(golden_moe, cases_of_every_kind_are_there) {
    std::map<std::string, int> of_kind;
    for (const case_t &c : cases()) of_kind[c.kind]++;
    EXPECT_GE(of_kind["route"], 25);
    EXPECT_GE(of_kind["permute"], 11);
    EXPECT_GE(of_kind["combine"], 8);
}

} // namespace

} // namespace golden_moe

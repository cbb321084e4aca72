// SPDX-License-Identifier: Apache-2.0
// Runs one moe_permute problem: every implementation must place every row, its scales and its padding.
#include <algorithm>

#include "benchdnn/common/driver.hpp"
#include "benchdnn/moe_permute/problem.hpp"
#include "benchdnn/moe_permute/rows.hpp"

namespace bench {
namespace moe_permute {

using namespace mxdnn::impl;
using pd_t = mxdnn::moe_permute::primitive_desc;

namespace {

// Rows of each (rank, expert): as many as there are rows, drawn by the routing.
std::vector<int32_t> draw_counts(const problem_t &p, rng_t &rng) {
    std::vector<int32_t> counts(size_t(p.ranks * p.experts), 0);
    std::vector<double> share(size_t(p.experts), 1.);
    for (size_t e = 0; e < share.size(); e++) {
        if (p.routing == "skewed") share[e] = 1. / double(e + 1);
        if (p.routing == "one") share[e] = e == share.size() / 2;
        if (p.routing == "empty") share[e] = e % 2 == 0;
    }
    std::discrete_distribution<size_t> expert(share.begin(), share.end());
    std::uniform_int_distribution<size_t> rank(0, size_t(p.ranks) - 1);
    for (int64_t i = 0; i < p.rows; i++) counts[rank(rng) * share.size() + expert(rng)]++;
    return counts;
}

struct expected_t {
    std::vector<int64_t> source; // of each destination row up to the last end; -1: padding
    std::vector<int64_t> ends;
};

expected_t expect(const problem_t &p, const std::vector<int32_t> &counts) {
    expected_t r;
    std::vector<std::vector<int64_t>> of_expert(size_t(p.experts), std::vector<int64_t>());
    int64_t row = 0;
    for (size_t i = 0; i < counts.size(); i++)
        for (int32_t n = 0; n < counts[i]; n++) of_expert[i % of_expert.size()].push_back(row++);
    for (auto &rows : of_expert) {
        rows.resize(size_t(std::max<int64_t>(1, div_up(int64_t(rows.size()), p.align)) * p.align), -1);
        r.source.insert(r.source.end(), rows.begin(), rows.end());
        r.ends.push_back(int64_t(r.source.size()));
    }
    return r;
}

} // namespace

void run(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const mxdnn::stream stream = stream_of(eng);
        rng_t rng(settings.seed);
        const std::vector<int32_t> drawn = draw_counts(p, rng);
        const expected_t want = expect(p, drawn);
        const int64_t used = want.ends.back(), dst_rows = used + p.spare;
        const rows_t src(p.type, p.rows + p.spare, p.cols, p.src_scales, p.row_pad),
                dst(p.type, dst_rows, p.cols, p.dst_scales, p.row_pad);
        src.fill(rng);
        const tensor_t counts({p.ranks, p.experts}, {p.experts, 1}, mxdnn_s32),
                offsets({p.experts + p.starts}, {1}, mxdnn_s32), idx({dst_rows}, {1}, mxdnn_s32);
        std::copy(drawn.begin(), drawn.end(), reinterpret_cast<int32_t *>(counts.bytes.data()));
        const auto at = [](const tensor_t &t, int64_t i) {
            return reinterpret_cast<const int32_t *>(t.bytes.data())[i];
        };

        mxdnn::primitive_attr attr;
        src.describe(attr, MXDNN_ARG_SRC);
        dst.describe(attr, MXDNN_ARG_DST);
        if (p.starts) attr.set_row_grouping(mxdnn::row_grouping::starts);
        const pd_t pd = create([&] {
            return pd_t(eng, src.desc(p.runtime_rows), dst.desc(p.runtime_rows), p.ranks, p.experts, p.align,
                    attr);
        });
        args_t args = {{MXDNN_ARG_GROUP_COUNTS, counts.memory(host_engine(eng))},
                {MXDNN_ARG_GROUP_OFFSETS, offsets.memory(host_engine(eng))},
                {MXDNN_ARG_PERMUTED_IDX, idx.memory(host_engine(eng))}};
        src.add_args(MXDNN_ARG_SRC, host_engine(eng), args);
        dst.add_args(MXDNN_ARG_DST, host_engine(eng), args);

        const auto compare = [&](const pd_t &each, mismatch_t &bad) {
            dst.poison();
            std::vector<uint32_t> poison; // of rows past the last end
            for (int64_t row = used; row < dst_rows; row++) poison.push_back(dst.code(row, 0));
            offsets.bytes.poison();
            idx.bytes.poison();
            execute(mxdnn::moe_permute(each), stream, args);
            if (settings.plant_fault) {
                const int64_t middle[2] = {used / 2, p.cols / 2};
                dst.codes().set_code(middle, dst.codes().code(middle) ^ 1);
            }
            for (int64_t row = 0; row < used; row++) {
                const int64_t from = want.source[size_t(row)];
                for (int64_t col = 0; col < p.cols; col++)
                    bad.same("element", {row, col}, from < 0 ? 0 : src.code(from, col), dst.code(row, col));
                for (int64_t b = 0; b < dst.blocks(); b++)
                    bad.same("scale", {row, b}, from < 0 ? 0 : src.scale(from, b), dst.scale(row, b));
            }
            for (int64_t row = used; row < dst_rows; row++)
                bad.same("row past the last end", {row}, poison[size_t(row - used)], dst.code(row, 0));
            for (int64_t row = 0; row < dst_rows; row++)
                bad.same("index", {row}, row < used ? want.source[size_t(row)] : -1, at(idx, row));
            for (int64_t e = 0; e < p.experts; e++)
                bad.same("end", {e}, want.ends[size_t(e)], at(offsets, e + p.starts));
            if (p.starts) bad.same("start", {0}, 0, at(offsets, 0));
        };
        std::string wrong;
        if (settings.correctness) wrong = check_each(pd, names, compare);
        if (wrong.empty())
            run_and_time<mxdnn::moe_permute>(
                    pd, stream, args, p.repro, src.tensor.size() + dst.tensor.size());
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace moe_permute
} // namespace bench

// SPDX-License-Identifier: Apache-2.0
// Every kernel that decodes and multiplies in one loop, with every format that it takes, for many rows,
// panels and lengths of K, against sums in double precision over the layout's map and the formats' traits.
//
// The bound. u is half an ulp of 1 in f32, and gamma(n) = n u / (1 - n u). A direct kernel rounds a
// product, the additions of a block's sum (at most `block`, then a few to join independent sums),
// the scaled sum, and one addition per block: no term passes through more than
// n = block + blocks + 8 roundings, so
//     |got - want| <= gamma(n) * sum |x| |code value| |scale|   (+ |x| |zero|)
// The error of the sum in double precision is negligible. A product may be subnormal before it is multiplied
// by a power of two of the format. It then loses up to 2^-136 (f32), and bf16 dot products treat numbers
// below 2^-126 as zero. This adds an absolute term: K times that loss times the largest scale.
#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/source_blocks.hpp"
#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

// Source and result in guarded memory.
struct problem_t {
    const kernel_row_t &row;
    const matrix_t &w;
    int rows, panels;
    std::vector<float> x; // [rows][K], values that the compute type has
    int64_t padded_k, blocks;
    guarded_t::place_t place = guarded_t::at_end;
    bool stream; // 32 values of each row, row after row

    problem_t(const kernel_row_t &row, const matrix_t &w, int rows, int panels)
        : row(row), w(w), rows(rows), panels(panels), x(size_t(rows * w.shape.K)),
          padded_k(round_up(w.shape.K, k_step)), blocks(div_up(w.shape.K, w.shape.block)),
          stream(row.on_tiles && rows > tile_source_rows) {}

    // The row as int8 kernels read it.
    void pack_int8(int64_t r, void *to) const {
        const int64_t K = w.shape.K, n = div_up(K, int8_row_t::block);
        std::vector<uint8_t> codes(static_cast<size_t>(K));
        for (int64_t k = 0; k < K; k++)
            codes[size_t(k)] = uint8_t(int8_t(src(r, k) / scale(r, k))); // exact: a power of two
        std::vector<float> s(static_cast<size_t>(n));
        for (int64_t b = 0; b < n; b++) s[size_t(b)] = scale(r, b * int8_row_t::block);
        pack_int8_row(codes.data(), s.data(), 0, K, K, int8_weights(w.format.dt, w.format.quant), to);
    }
    float scale(int64_t r, int64_t k) const {
        return scales.empty()
                       ? 1.f
                       : scales[size_t(r * div_up(w.shape.K, int8_row_t::block) + k / int8_row_t::block)];
    }

    float &src(int64_t r, int64_t k) { return x[size_t(r * w.shape.K + k)]; }
    float src(int64_t r, int64_t k) const { return x[size_t(r * w.shape.K + k)]; }

    // Of int8 rows: blocks of s8 have a power of two each, at most 1, as prepared rows have.
    std::vector<float> scales;

    void fill(rng_t &g, double magnitude = 1) {
        if (row.compute_dt == mxdnn_s8) {
            scales.resize(size_t(rows * div_up(w.shape.K, int8_row_t::block)));
            for (float &s : scales) s = float(std::exp2(-double(below(g, 12))));
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < w.shape.K; k++)
                src(r, k) = row.compute_dt == mxdnn_s8
                                    ? float(int(below(g, 256)) - 128) * scale(r, k)
                                    : decode(row.compute_dt,
                                            encode(row.compute_dt, uniform(g, -1, 1) * magnitude));
    }
};

// Results in bf16, which the next call of a tile kernel stores.
struct stored_t {
    int64_t columns = 0;
    bool alone = true; // true: that call only stores; false: it also computes everything again
    float scale = 1.f;
    std::vector<float> bias;
    std::vector<uint16_t> results; // [rows][columns + gap], as far as there is memory
    static constexpr int64_t gap = 3;
    static constexpr uint16_t poison = 0x7f81;
};

// A kernel that multiplies the first rows of K, whole tiles, before another one does the rest.
struct first_rows_t {
    const jit_kernel_t &kernel;
    int64_t k;
};

// Calls a direct kernel; results in [rows][panels * 16]. `kept`: for kernels that keep decoded panels.
std::vector<float> run_direct(const jit_kernel_t &kernel, const problem_t &p, stored_t *stored = nullptr,
        guarded_t *kept = nullptr, const first_rows_t *first = nullptr) {
    const int64_t size = bytes_of(p.row.compute_dt), columns = p.panels * panel_columns;
    // A gap between rows, which must stay untouched, and no gap after the last one.
    const bool int8 = p.row.compute_dt == mxdnn_s8;
    const int64_t row_bytes = int8 ? int8_row_t::bytes(p.w.shape.K) : p.padded_k * size;
    // Streams: a gap between steps, which more than two tiles of rows read as rows that are not there.
    const int64_t piece = k_step * size, step_rows = p.rows > 32 ? round_up(p.rows, 16) : p.rows;
    const int64_t src_stride = p.stream ? piece : row_bytes + (p.rows > 1 ? 64 : 0);
    const int64_t src_step = p.stream ? p.rows * piece + 64 : piece;
    // Whole tiles of more than two are stored, and stored results read 32 columns or 64.
    const int64_t acc_columns = stored ? round_up(columns, 2 * panel_columns) : columns,
                  acc_stride = acc_columns * 4 + 64, acc_rows = step_rows;
    const int64_t src_bytes = p.stream ? (p.padded_k / k_step - 1) * src_step + step_rows * piece
                                       : (p.rows - 1) * src_stride + row_bytes;
    const int64_t acc_bytes = (acc_rows - 1) * acc_stride + acc_columns * 4;
    const int64_t xsum_stride = p.blocks * 4 + 4;
    const bool has_xsum = is_added(p.w.format.quant.zp);

    guarded_t src(size_t(src_bytes), p.place), acc(size_t(acc_bytes), p.place);
    const size_t wei_bytes = size_t(p.panels * p.w.panel_bytes());
    guarded_t wei(wei_bytes, p.place);
    std::memcpy(wei.data(), p.w.bytes.data(), wei_bytes);
    guarded_t xsum(size_t(has_xsum ? (p.rows - 1) * xsum_stride + p.blocks * 4 : 4), p.place);

    std::memset(src.data(), 0xff, src.size()); // NaN between the rows
    for (int r = 0; r < p.rows; r++) {
        uint8_t *to = src.data() + r * src_stride;
        if (int8) {
            p.pack_int8(r, to);
            continue;
        }
        for (int64_t k = 0; k < p.padded_k; k++)
            store(p.row.compute_dt, to + k / k_step * src_step, k % k_step,
                    k < p.w.shape.K ? p.src(r, k) : 0.f);
        if (!has_xsum) continue;
        for (int64_t b = 0; b < p.blocks; b++) {
            double s = 0;
            for (int64_t k = b * p.w.shape.block; k < std::min((b + 1) * p.w.shape.block, p.w.shape.K); k++)
                s += p.src(r, k);
            store(mxdnn_f32, xsum.data() + r * xsum_stride, b, float(s));
        }
    }
    for (int64_t i = 0; i < acc_bytes / 4; i++) std::memcpy(acc.data() + i * 4, &poison, 4);
    const std::vector<uint8_t> src_before(src.data(), src.data() + src_bytes);

    direct_args_t args = {};
    args.src = src.data();
    args.src_stride = src_stride;
    args.src_step = src_step;
    args.wei = wei.data();
    args.wei_stride = p.w.panel_bytes();
    args.acc = acc.data<float>();
    args.acc_stride = acc_stride;
    args.xsum = has_xsum ? xsum.data<float>() : nullptr;
    args.xsum_stride = xsum_stride;
    args.rows = p.rows;
    if (kept) args.panels = kept->data();
    const int64_t dst_columns = stored ? stored->columns + stored_t::gap : 1;
    guarded_t dst(size_t((stored ? p.rows * dst_columns - stored_t::gap : 1) * 2), p.place);
    guarded_t bias(size_t(acc_columns * 4), p.place);
    for (size_t i = 0; i < dst.size(); i += 2) std::memcpy(dst.data() + i, &stored_t::poison, 2);
    if (stored) {
        std::memset(bias.data(), 0xff, bias.size());
        std::memcpy(bias.data(), stored->bias.data(), size_t(columns * 4));
        args.dst = dst.data();
        args.dst_stride = dst_columns * 2;
        args.scale = stored->scale;
    }
    if (first) {
        jit_call(first->kernel, args);
        args.begin = args.acc;
        args.src = src.data() + first->k / k_step * src_step;
        args.wei += n16_frame_t::tile(p.w.shape, first->k, 0) - n16_frame_t::prefix(p.w.shape);
    }
    jit_call(kernel, args);
    if (stored) {
        args.before = {p.rows, stored->columns, dst.data(), bias.data<float>()};
        if (stored->alone) args.rows = 0;
        jit_call(kernel, args);
    }

    EXPECT_TRUE(src.intact() && wei.intact() && acc.intact() && xsum.intact() && dst.intact())
            << "writes beside its buffers";
    if (stored) {
        stored->results.resize(dst.size() / 2);
        std::memcpy(stored->results.data(), dst.data(), dst.size());
    }
    EXPECT_EQ(std::memcmp(src_before.data(), src.data(), size_t(src_bytes)), 0) << "writes to its source";
    EXPECT_EQ(std::memcmp(p.w.bytes.data(), wei.data(), wei_bytes), 0) << "writes to its weights";
    std::vector<float> out(size_t(p.rows * columns));
    for (int r = 0; r < p.rows; r++) {
        const uint8_t *from = acc.data() + r * acc_stride;
        std::memcpy(&out[size_t(r * columns)], from, size_t(columns * 4));
        for (int64_t i = columns * 4; r + 1 < p.rows && i < acc_stride; i += 4)
            EXPECT_EQ(std::memcmp(from + i, &poison, 4), 0) << "writes between the rows of acc";
    }
    return out;
}

want_t want_direct(const problem_t &p, int64_t r, int64_t n) {
    if (p.row.on_tiles) return want_on_tiles(&p.x[size_t(r * p.w.shape.K)], p.w, n);
    want_t w;
    // Products with the scale and with the zero are summed separately, so Inf in one can meet -Inf in the
    // other.
    w.or_nan = is_added(p.w.format.quant.zp);
    double magnitude = 0, largest_scale = 0;
    for (int64_t k = 0; k < p.w.shape.K; k++) {
        const matrix_t::element_t &e = p.w.element(k, n);
        const double x = p.src(r, k), c = e.code, s = e.scale;
        const double z = w.or_nan ? e.zero : 0;
        w.value += x * (c * s + z);
        magnitude += std::fabs(x) * (std::fabs(c * s) + std::fabs(z));
        largest_scale = std::max(largest_scale, std::fabs(s));
    }
    const double roundings = double(std::min(p.w.shape.K, p.w.shape.block) + p.blocks + 8);
    const double tiny = std::exp2(p.row.compute_dt == mxdnn_bf16 ? -126 : -136);
    w.bound = gamma(roundings) * magnitude + double(p.padded_k) * tiny * std::max(1., largest_scale);
    return w;
}

// Checks all results and reports the first wrong one.
void check_direct(const problem_t &p, const std::vector<float> &got) {
    const int64_t columns = p.panels * panel_columns;
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t n = 0; n < columns; n++) {
            const auto ok = close(got[size_t(r * columns + n)], want_direct(p, r, n));
            if (!ok)
                FAIL() << where(p.row, p.w.format, p.w.shape.K, p.rows, p.panels) << " row " << r
                       << " column " << n << ": " << ok.message();
        }
}

class direct_kernels : public kernel_test_t {
protected:
    // All, or on tiles those around whole ones.
    std::vector<int> row_counts() const {
        std::vector<int> counts;
        for (int rows = 1; rows <= row().max_rows; rows++)
            if (!row().on_tiles || rows % 16 < 2 || rows % 16 == 15 || rows % 20 == 4) counts.push_back(rows);
        return counts;
    }
};

std::vector<const kernel_row_t *> rows_that_decode() {
    std::vector<const kernel_row_t *> rows = rows_of_kind(kernel_kind_t::direct);
    for (const kernel_row_t *many : rows_of_kind(kernel_kind_t::many)) rows.push_back(many);
    return rows;
}
INSTANTIATE_TEST_SUITE_P(list, direct_kernels, ::testing::ValuesIn(rows_that_decode()), row_name);

TEST_P(direct_kernels, sums) {
    rng_t g(seed());
    int turn = 0;
    for (const format_t &f : formats_of(row())) {
        // All rows and panels for one format of every element and scale type; the others, which
        // differ in how they load parameters, take turns.
        const bool thorough = !brief() && (f.quant.block <= 32 && f.quant.zp_dt != mxdnn_bf16);
        for (int64_t K : lengths()) {
            const std::vector<int> panels = panels_of(row()), counts = row_counts();
            const size_t cases = counts.size() * panels.size();
            // Long sums in double precision are slow.
            const bool all = thorough && K < 300;
            const size_t first = all ? 0 : size_t(turn) % cases, last = all ? cases - 1 : first;
            matrix_t w(f, K, (all ? panels.back() : panels[first % panels.size()]) * panel_columns);
            w.fill(g);
            for (size_t i = first; i <= last; i++) {
                const size_t c = i / panels.size(), n = i % panels.size();
                problem_t p(row(), w, counts[c], panels[n]);
                p.fill(g);
                p.place = places[turn % 3];
                if (row().on_tiles && (c + n) % 2) p.stream = true;
                const auto kernel = make(row(), f, K, counts[c], panels[n]);
                ASSERT_TRUE(kernel);
                check_direct(p, run_direct(*kernel, p));
                if (HasFailure()) return;
            }
            turn++;
        }
    }
}

// The number of panels per call must not change the results, because threads split N anywhere.
TEST_P(direct_kernels, panels_do_not_change_bits) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        const std::vector<int> panels = panels_of(row());
        matrix_t w(f, K, panels.back() * panel_columns);
        w.fill(g);
        for (int rows : {1, row().max_rows}) {
            problem_t p(row(), w, rows, panels.back());
            p.fill(g);
            const auto all = run_direct(*make(row(), f, K, rows, p.panels), p);
            p.panels = 1;
            const auto one = run_direct(*make(row(), f, K, rows, 1), p);
            for (int r = 0; r < rows; r++)
                ASSERT_EQ(std::memcmp(static_cast<const void *>(&one[size_t(r * panel_columns)]),
                                  static_cast<const void *>(&all[size_t(r * panels.back() * panel_columns)]),
                                  panel_columns * 4),
                        0)
                        << where(row(), f, K, rows, panels.back()) << " row " << r;
        }
    }
}

// Nor may the number of rows, their position, and the way to read them, where all rows have one kernel.
TEST_P(direct_kernels, rows_do_not_change_bits) {
    if (!row().on_tiles) GTEST_SKIP() << "sums of blocks may be joined differently";
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        const std::vector<int> panels = panels_of(row());
        matrix_t w(f, K, panels.back() * panel_columns);
        w.fill(g);
        problem_t p(row(), w, row().max_rows, panels.back());
        p.fill(g);
        const auto all = run_direct(*make(row(), f, K, p.rows, p.panels), p);
        for (int rows : {1, 7, 16, 20, 32, 41, 64}) {
            if (rows > p.rows) continue;
            problem_t some(row(), w, rows, panels.back());
            const int64_t first = below(g, uint32_t(p.rows - rows + 1));
            for (int64_t r = 0; r < rows; r++)
                for (int64_t k = 0; k < K; k++) some.src(r, k) = p.src(first + r, k);
            const auto got = run_direct(*make(row(), f, K, rows, some.panels), some);
            ASSERT_EQ(std::memcmp(&all[size_t(first * w.shape.N)], got.data(), got.size() * 4), 0)
                    << where(row(), f, K, rows, some.panels) << " rows from " << first;
        }
    }
}

// Nor may parts of K, the second of which begins with the sums of the first.
TEST_P(direct_kernels, parts_of_k_do_not_change_bits) {
    if (!row().on_tiles) GTEST_SKIP() << "multiplies all of K";
    rng_t g(seed());
    constexpr int64_t tails[] = {32, 133, 256};
    int turn = 0;
    for (const format_t &f : formats_of(row())) {
        const int64_t tail = tails[turn++ % 3];
        const int64_t first = 2 * std::max(f.quant.block, n16_frame_t::min_tile_rows), K = first + tail;
        for (int rows : {7, 20, 33, row().max_rows})
            for (int panels : panels_of(row())) {
                if (panels > call_panels(rows)) continue;
                matrix_t w(f, K, panels * panel_columns);
                w.fill(g);
                problem_t p(row(), w, rows, panels);
                p.fill(g);
                const auto part = [&](int64_t k_rows) {
                    return make(row(), f, K, rows, panels, decoded_t::dropped, mxdnn_data_type_undef, k_rows);
                };
                const auto before = part(first), rest = part(tail);
                ASSERT_TRUE(before && rest);
                const first_rows_t begin{*before, first};
                ASSERT_EQ(run_direct(*rest, p, nullptr, nullptr, &begin),
                        run_direct(*make(row(), f, K, rows, panels), p))
                        << where(row(), f, K, rows, panels);
            }
    }
}

// Nor may decoding panels once for several calls, by a call with the most rows for two panels. Also for tiles
// with scales that the slow decoder takes.
TEST_P(direct_kernels, decoding_once_does_not_change_bits) {
    if (!row().keeps) GTEST_SKIP() << "decodes panels for every call";
    rng_t g(seed());
    const int most = std::min(row().max_rows, 3 * tile_source_rows);
    int turn = 0;
    for (const format_t &f : formats_of(row()))
        for (int64_t K : {32, 96, 300, 389})
            for (int panels : {1, 2}) {
                matrix_t w(f, K, panels * panel_columns);
                w.fill(g);
                if (turn % 2)
                    for (int64_t k = 0; k < K; k += f.quant.block)
                        if (below(g, 3) == 0) w.view().set_scale(k, below(g, uint32_t(w.shape.N)), 0);
                guarded_t kept(size_t(panels * panel_columns * round_up(K, k_step) * 2), places[turn++ % 3]);
                for (int rows : {most, 32}) {
                    problem_t p(row(), w, rows, panels);
                    p.fill(g);
                    const auto want = run_direct(*make(row(), f, K, rows, panels), p);
                    std::memset(kept.data(), 0xff, kept.size());
                    const auto first = make(row(), f, K, rows, panels, decoded_t::kept);
                    ASSERT_TRUE(first);
                    ASSERT_EQ(run_direct(*first, p, nullptr, &kept), want)
                            << where(row(), f, K, rows, panels) << ", which keeps panels";
                    EXPECT_TRUE(kept.intact()) << "writes beside the panels";
                    for (int n : {1, 16, 25, 48}) {
                        if (n > most) continue;
                        problem_t other(row(), w, n, panels);
                        other.fill(g);
                        const auto found = make(row(), f, K, n, panels, decoded_t::found);
                        ASSERT_TRUE(found);
                        ASSERT_EQ(run_direct(*found, other, nullptr, &kept),
                                run_direct(*make(row(), f, K, n, panels), other))
                                << where(row(), f, K, n, panels) << ", which finds them";
                    }
                }
            }
}

// Results in bf16: of the sums that a call without a destination leaves in acc.
TEST_P(direct_kernels, stores_results) {
    if (!row().on_tiles) GTEST_SKIP() << "an epilogue stores results";
    rng_t g(seed());
    const format_t f = formats_of(row()).front();
    int turn = 0;
    for (int64_t K : {100, 300})
        for (int panels : panels_of(row()))
            for (int rows : row_counts()) {
                matrix_t w(f, K, panels * panel_columns);
                w.fill(g);
                problem_t p(row(), w, rows, panels);
                p.fill(g);
                p.place = places[turn % 3];
                const auto kernel = make(row(), f, K, rows, panels);
                const auto sums = run_direct(*kernel, p);
                stored_t s;
                s.columns = w.shape.N - turn++ % panel_columns;
                s.scale = float(uniform(g, -2, 2));
                for (int64_t n = 0; n < w.shape.N; n++) s.bias.push_back(float(uniform(g, -3, 3)));
                s.alone = turn % 2;
                ASSERT_EQ(run_direct(*kernel, p, &s), sums);
                const int64_t stride = s.columns + stored_t::gap;
                for (size_t i = 0; i < s.results.size(); i++) {
                    const int64_t r = int64_t(i) / stride, n = int64_t(i) % stride;
                    const uint32_t want =
                            n < s.columns ? encode(
                                    mxdnn_bf16, sums[size_t(r * w.shape.N + n)] * s.scale + s.bias[size_t(n)])
                                          : stored_t::poison;
                    ASSERT_EQ(s.results[i], want) << where(row(), f, K, rows, panels) << " row " << r
                                                  << " column " << n << " of " << s.columns;
                }
            }
}

// A NaN scale affects its own column only, also where all codes and sources are zero.
TEST_P(direct_kernels, nan_scale_stays_in_its_column) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        const int panels = panels_of(row()).back(), rows = row().max_rows;
        matrix_t w(f, K, panels * panel_columns);
        w.fill(g);
        const uint32_t nan = f.quant.scale_dt == mxdnn_f8_e4m3 && below(g, 2)
                                     ? 0xff
                                     : uint32_t(f.quant.scale_dt == mxdnn_e8m0      ? e8m0_t::nan_code
                                                : f.quant.scale_dt == mxdnn_f8_e4m3 ? f8_e4m3_t::nan_code
                                                : f.quant.scale_dt == mxdnn_bf16    ? bf16_t::nan_code
                                                : f.quant.scale_dt == mxdnn_f16     ? f16_t::nan_code
                                                                                    : f32_t::nan_code);
        const int64_t block = below(g, uint32_t(div_up(K, f.quant.block))),
                      column = below(g, uint32_t(w.shape.N));
        w.view().set_scale(block * f.quant.block, column, nan);
        for (bool zeros : {false, true}) {
            problem_t p(row(), w, rows, panels);
            if (!zeros) p.fill(g);
            const auto got = run_direct(*make(row(), f, K, rows, panels), p);
            for (int r = 0; r < rows; r++)
                for (int64_t n = 0; n < w.shape.N; n++)
                    ASSERT_EQ(std::isnan(got[size_t(r * w.shape.N + n)]), n == column)
                            << where(row(), f, K, rows, panels) << " row " << r << " column " << n
                            << ", NaN in block " << block << " of column " << column;
            check_direct(p, got);
        }
    }
}

// Codes and sources that are NaN or Inf, and scales at both ends of the range of f32.
TEST_P(direct_kernels, special_values) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 160;
        const int panels = panels_of(row()).back(), rows = row().max_rows;
        matrix_t w(f, K, panels * panel_columns);
        w.fill(g);
        const auto kernel = make(row(), f, K, rows, panels);
        const auto run = [&](const char *what, problem_t &p) {
            SCOPED_TRACE(what);
            check_direct(p, run_direct(*kernel, p));
        };
        problem_t p(row(), w, rows, panels);
        if (f.dt == mxdnn_f8_e4m3 || f.dt == mxdnn_f8_e5m2) {
            std::vector<uint32_t> specials = {0x7f, 0xff};
            if (f.dt == mxdnn_f8_e5m2) specials = {0x7c, 0xfc, 0x7d, 0x7e, 0x7f, 0xff};
            for (int64_t n = 0; n < w.shape.N; n++)
                if (n % 3) w.view().set_code(below(g, K), n, specials[below(g, uint32_t(specials.size()))]);
            p.fill(g);
            run("NaN and Inf codes", p);
            for (int64_t k = 0; k < K; k++) p.src(0, k) = 0; // Inf times zero
            run("NaN and Inf codes times zero", p);
            w.fill(g);
        }
        if (row().compute_dt == mxdnn_s8) continue; // has no such sources, and powers of two up to 1
        p.fill(g);
        const float inf = std::numeric_limits<float>::infinity();
        p.src(0, below(g, K)) = inf;
        p.src(rows - 1, below(g, K)) = std::nanf("");
        run("NaN and Inf sources", p);

        if (f.quant.scale_dt != mxdnn_e8m0) continue;
        for (uint32_t byte : {0u, 1u, 2u, 253u, 254u}) {
            for (int64_t n = 0; n < w.shape.N; n++)
                for (int64_t k = 0; k < K; k += f.quant.block) w.view().set_scale(k, n, byte);
            p.fill(g, std::exp2(byte < 3 ? 90. : -90.));
            run(byte < 3 ? "smallest scales" : "largest scales", p);
        }
    }
}

// Integers under scales that are powers of two: those of a tile, and of a block of the source, at both ends.
// Kernels may have a faster way for others.
TEST_P(direct_kernels, scales_of_both_sides_at_both_ends) {
    if (row().compute_dt != mxdnn_s8) GTEST_SKIP() << "not for integers";
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        if (f.quant.scale_dt != mxdnn_e8m0) continue;
        for (int64_t K : {128, 300, 680, 2048}) {
            const int panels = panels_of(row()).back(), rows = 1 + int(below(g, uint32_t(row().max_rows)));
            const auto kernel = make(row(), f, K, rows, panels);
            matrix_t w(f, K, panels * panel_columns);
            w.fill(g);
            for (uint32_t byte : {0u, 1u, 60u, 104u, 105u, 230u, 233u, 236u})
                for (int exponent : {0, -22, -60, -119, -120, -126}) {
                    const int64_t tile = below(g, uint32_t(div_up(K, int64_t(128)))) * 128;
                    for (int64_t k = tile; k < std::min(K, tile + 128); k += f.quant.block)
                        w.view().set_scale(k, below(g, uint32_t(w.shape.N)), byte);
                    problem_t p(row(), w, rows, panels);
                    p.fill(g);
                    const int64_t r = below(g, uint32_t(rows)),
                                  block = below(g, uint32_t(div_up(K, int8_row_t::block)));
                    float &scale = p.scales[size_t(r * div_up(K, int8_row_t::block) + block)];
                    scale = std::exp2(float(exponent));
                    for (int64_t k = block * 32; k < std::min(K, block * 32 + 32); k++)
                        p.src(r, k) = float(int(below(g, 256)) - 128) * scale;
                    check_direct(p, run_direct(*kernel, p));
                    if (HasFailure()) return;
                    w.fill(g);
                }
        }
    }
}

// Scales at both ends, which need the slow decoder, in one tile of one panel. So fast and slow decoding
// alternate.
TEST_P(direct_kernels, ways_of_decoding_alternate) {
    if (row().compute_dt == mxdnn_s8) GTEST_SKIP() << "integers are decoded in one way, whatever the scale";
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const bool powers = f.quant.scale_dt == mxdnn_e8m0;
        if (!powers && f.quant.scale_dt != mxdnn_bf16) continue;
        for (int64_t K : {128, 256, 500, 680})
            for (int panels : panels_of(row())) {
                const int rows = row().max_rows - int(below(g, uint32_t(row().max_rows)));
                matrix_t w(f, K, panels * panel_columns);
                w.fill(g);
                const int64_t tile = below(g, uint32_t(div_up(K, int64_t(128)))) * 128,
                              panel = below(g, uint32_t(panels)) * panel_columns;
                for (int64_t n = panel; n < panel + panel_columns; n++)
                    for (int64_t k = tile; k < std::min(K, tile + 128); k += f.quant.block)
                        w.view().set_scale(k, n, powers ? 254 : encode(mxdnn_bf16, -1.5));
                problem_t p(row(), w, rows, panels);
                p.fill(g, powers ? std::exp2(-90.) : 1.);
                check_direct(p, run_direct(*make(row(), f, K, rows, panels), p));
                if (HasFailure()) return;
            }
    }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

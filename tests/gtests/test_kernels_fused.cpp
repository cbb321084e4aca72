// SPDX-License-Identifier: Apache-2.0
// Kernels for many rows that decode and multiply, against sums in double precision: every format, numbers of
// rows near whole blocks, calls in sequence, and NaN around the source.
#include <cstring>
#include <limits>
#include <set>

#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/source_blocks.hpp"
#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

struct fused_problem_t {
    const kernel_row_t &row;
    const matrix_t &w;
    const int64_t rows;
    std::vector<float> x; // [rows][K], values that the kernel's type has
    guarded_t::place_t place = guarded_t::at_end;

    fused_problem_t(const kernel_row_t &row, const matrix_t &w, int64_t rows)
        : row(row), w(w), rows(rows), x(size_t(rows * w.shape.K)) {}
    bool integers() const { return row.compute_dt == mxdnn_s8; }
    float &src(int64_t r, int64_t k) { return x[size_t(r * w.shape.K + k)]; }
    float src(int64_t r, int64_t k) const { return x[size_t(r * w.shape.K + k)]; }
    void fill(rng_t &g, double magnitude = 1) {
        for (float &v : x)
            v = integers() ? float(int(below(g, 256)) - 128)
                           : decode(mxdnn_bf16, encode(mxdnn_bf16, uniform(g, -1, 1) * magnitude));
    }
    // The values of a step from k on, as the kernel reads them.
    void store_piece(int64_t r, int64_t k, int64_t step, uint8_t *to) const {
        const auto at = [&](int64_t i) { return k + i < w.shape.K ? src(r, k + i) : 0.f; };
        for (int64_t i = 0; i < step; i++)
            if (integers())
                to[i] = uint8_t(
                        int8_t(at(i / 8 * 8 + int8_weights(w.format.dt, w.format.quant).order[i % 8])));
            else
                store(mxdnn_bf16, to, i, at(i));
    }
};

constexpr int call_panels = 2, call_columns = call_panels * panel_columns;

struct how_t {
    int64_t first = 0, rows = -1; // of the problem's rows; -1: all
    // Columns of results that are stored as well; 0: none. Their factor and bias.
    int64_t store_columns = 0;
    float scale = 1.f;
    std::vector<float> bias = {}, row_scale = {};
};

constexpr int64_t stored_gap = 3; // columns between the rows of stored results
constexpr uint16_t poison_bf16 = 0x7f81;

// Runs the calls that a matrix of any number of panels takes, one after the other; results in
// [rows][w.N rounded up to 32].
std::vector<float> run_fused(const kernel_row_t &row, const fused_problem_t &p, const how_t &how,
        std::vector<uint16_t> *stored = nullptr) {
    const matrix_t &w = p.w;
    const auto kernel = make(row, w.format, w.shape.K, 1, call_panels);
    const int64_t rows = how.rows < 0 ? p.rows : how.rows;
    const int64_t all_panels = div_up(w.shape.N, panel_columns), calls = div_up(all_panels, call_panels);
    const source_blocks_t blocks = {
            w.shape.K, bytes_of(row.compute_dt), p.rows, source_blocks_t::fused_block_rows};
    const int64_t more = tile_source_rows - 1;

    guarded_t src(size_t((p.rows + more) * round_up(w.shape.K, blocks.step()) * blocks.value_bytes), p.place),
            wei(w.bytes.size(), p.place);
    std::memset(src.data(), 0xff, src.size()); // NaN beyond the rows
    for (int64_t r = 0; r < p.rows; r++)
        blocks.for_each_piece(
                r, [&](int64_t k, int64_t at) { p.store_piece(r, k, blocks.step(), src.data() + at); });
    std::memcpy(wei.data(), w.bytes.data(), w.bytes.size());
    const std::vector<uint8_t> src_before(src.data(), src.data() + src.size());

    const int64_t acc_stride = calls * call_columns * 4 + 64, acc_rows = round_up(rows, int64_t(32));
    guarded_t acc(size_t((acc_rows - 1) * acc_stride + calls * call_columns * 4), p.place);
    for (int64_t i = 0; i < int64_t(acc.size()) / 4; i++) std::memcpy(acc.data() + i * 4, &poison, 4);

    fused_args_t args = {};
    args.src = src.data() + blocks.first(how.first);
    args.rows = rows;
    args.acc_stride = acc_stride;
    const int64_t dst_columns = how.store_columns + stored_gap;
    guarded_t dst(size_t((rows * dst_columns - stored_gap) * 2), p.place);
    for (size_t i = 0; i < dst.size(); i += 2) std::memcpy(dst.data() + i, &poison_bf16, 2);
    args.scale = how.scale;
    args.row_scale = how.row_scale.data();
    args.dst_stride = dst_columns * 2;
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t i = 0; i < call_panels; i++)
            args.wei[i] = wei.data() + std::min(c * call_panels + i, all_panels - 1) * w.panel_bytes();
        args.acc = acc.data<float>() + c * call_columns;
        if (how.store_columns) {
            args.store_columns = std::min<int64_t>(call_columns, how.store_columns - c * call_columns);
            args.bias = how.bias.data() + c * call_columns;
            args.dst = dst.data() + c * call_columns * 2;
        }
        jit_call(*kernel, args);
    }
    if (stored) {
        stored->resize(dst.size() / 2);
        std::memcpy(stored->data(), dst.data(), dst.size());
    }
    EXPECT_TRUE(src.intact() && wei.intact() && acc.intact() && dst.intact()) << "writes beside its buffers";
    EXPECT_EQ(std::memcmp(src_before.data(), src.data(), src.size()), 0) << "writes to its source";
    EXPECT_EQ(std::memcmp(w.bytes.data(), wei.data(), wei.size()), 0) << "writes to its weights";
    std::vector<float> out(size_t(rows * calls * call_columns));
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *from = acc.data() + r * acc_stride;
        std::memcpy(&out[size_t(r * calls * call_columns)], from, size_t(calls * call_columns * 4));
        for (int64_t i = calls * call_columns * 4; r + 1 < rows && i < acc_stride; i += 4)
            EXPECT_EQ(std::memcmp(from + i, &poison, 4), 0) << "writes between the rows of acc";
    }
    return out;
}

// Scales from `least` within four powers of two, but for blocks of zeros.
void make_narrow(matrix_t &w, rng_t &g, uint32_t least) {
    packed_view_t v = w.view();
    for (int64_t n = 0; n < w.shape.N; n++)
        for (int64_t k = 0; k < w.shape.K; k += w.shape.block) {
            const bool zero = below(g, 8) == 0;
            v.set_scale(k, n, zero ? below(g, 255) : least + below(g, 4));
            for (int64_t i = k; zero && i < std::min(w.shape.K, k + w.shape.block); i++) v.set_code(i, n, 0);
        }
}

// Of integers. The sum of blocks whose exponents are within four of their column's largest is exact in 32
// bits, and so on below: each is rounded once, and once where it is added to those before.
want_t want_of_integers(const float *x, const matrix_t &w, int64_t n) {
    want_t want;
    double magnitude = 0;
    float least = e8m0_t::max, most = e8m0_t::decode(0);
    for (int64_t k = 0; k < w.shape.K; k++) {
        const double t = double(x[k]) * double(w.value(k, n));
        want.value += t;
        magnitude += std::fabs(t);
        least = std::fmin(least, w.element(k, n).scale);
        most = std::fmax(most, w.element(k, n).scale);
    }
    const int64_t sums = (std::ilogb(most) - std::ilogb(least)) / 4 + 1;
    want.bound = gamma(double(2 * sums - 1)) * magnitude; // there is nothing before the first one
    return want;
}

class fused_kernels : public kernel_test_t {
protected:
    bool integers() const { return row().compute_dt == mxdnn_s8; }

    want_t want_of(const fused_problem_t &p, int64_t r, int64_t n) const {
        const float *x = &p.x[size_t(r * p.w.shape.K)];
        if (!integers()) return want_on_tiles(x, p.w, n);
        return want_of_integers(x, p.w, n);
    }

    // Whole panels only: columns beyond N repeat the last panel.
    void check(const fused_problem_t &p, const std::vector<float> &got) const {
        const int64_t stride = round_up(p.w.shape.N, int64_t(call_columns));
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t n = 0; n < stride; n++) {
                const int64_t column = n < p.w.shape.N ? n : n - panel_columns;
                const auto ok = close(got[size_t(r * stride + n)], want_of(p, r, column));
                if (!ok)
                    FAIL() << where(
                            row(), p.w.format, p.w.shape.K, int(p.rows), int(p.w.shape.N / panel_columns))
                           << " row " << r << " column " << n << ": " << ok.message();
            }
    }
    void run_and_check(const fused_problem_t &p) const { check(p, run_fused(row(), p, {})); }
};

INSTANTIATE_TEST_SUITE_P(
        list, fused_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::fused)), row_name);

TEST_P(fused_kernels, sums) {
    rng_t g(seed());
    const int row_counts[] = {64, 33, 1, 16, 48, 70, 17, 31, 32, 96, 15, 100};
    const int n_counts = int(sizeof(row_counts) / sizeof(row_counts[0]));
    int turn = 0;
    for (const format_t &f : formats_of(row()))
        for (int64_t K : lengths())
            for (int panels : {1, 2, 5}) {
                if (panels == 5 && K > 300) continue; // double precision is slow
                matrix_t w(f, K, panels * panel_columns);
                w.fill(g);
                fused_problem_t p(row(), w, row_counts[turn % n_counts]);
                p.fill(g);
                p.place = places[turn % 3];
                run_and_check(p);
                if (HasFailure()) return;
                turn++;
            }
}

// The division of rows must not change the results.
TEST_P(fused_kernels, division_of_rows_does_not_change_bits) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        matrix_t w(f, 1100, 4 * panel_columns);
        w.fill(g);
        fused_problem_t p(row(), w, 100);
        p.fill(g);
        const auto all = run_fused(row(), p, {});
        // Parts of a stream's rows: whole blocks, and what is left.
        int64_t first = 0;
        for (int64_t n : {32, 64, 4}) {
            how_t how;
            how.first = first;
            how.rows = n;
            const auto some = run_fused(row(), p, how);
            ASSERT_EQ(std::memcmp(&all[size_t(first * w.shape.N)], some.data(), some.size() * 4), 0)
                    << f.str() << " rows from " << first;
            first += n;
        }
    }
}

// Results in bf16: of the sums that a call without a destination leaves in acc.
TEST_P(fused_kernels, stores_results) {
    rng_t g(seed());
    const format_t f = formats_of(row()).front();
    for (int64_t K : {100, 700})
        for (int64_t rows : {1, 32, 50, 97})
            for (int64_t missing : {0, 5, 17}) {
                matrix_t w(f, K, 4 * panel_columns);
                w.fill(g);
                if (integers() && missing) make_narrow(w, g, 120); // passes without anything
                fused_problem_t p(row(), w, rows);
                p.fill(g);
                p.place = places[rows % 3];
                const auto sums = run_fused(row(), p, {});
                how_t how;
                how.store_columns = w.shape.N - missing;
                how.scale = float(uniform(g, -2, 2));
                for (int64_t n = 0; n < w.shape.N; n++) how.bias.push_back(float(uniform(g, -3, 3)));
                for (int64_t r = 0; integers() && r < rows; r++)
                    how.row_scale.push_back(float(uniform(g, -2, 2)));
                std::vector<uint16_t> got;
                run_fused(row(), p, how, &got);
                const int64_t stride = how.store_columns + stored_gap;
                for (size_t i = 0; i < got.size(); i++) {
                    const int64_t r = int64_t(i) / stride, n = int64_t(i) % stride;
                    const float factor = integers() ? how.scale * how.row_scale[size_t(r)] : how.scale;
                    const uint32_t want =
                            n < how.store_columns ? encode(mxdnn_bf16,
                                    sums[size_t(r * w.shape.N + n)] * factor + how.bias[size_t(n)])
                                                  : poison_bf16;
                    ASSERT_EQ(got[i], want) << f.str() << " K " << K << " rows " << rows << " row " << r
                                            << " column " << n << " of " << how.store_columns;
                }
            }
}

TEST_P(fused_kernels, nan_scale_stays_in_its_column) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 700;
        matrix_t w(f, K, 4 * panel_columns);
        w.fill(g);
        const int64_t column = below(g, uint32_t(w.shape.N));
        w.view().set_scale(below(g, K), column, encode(f.quant.scale_dt, std::nan("")));
        fused_problem_t p(row(), w, 40);
        p.fill(g);
        const auto got = run_fused(row(), p, {});
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t n = 0; n < w.shape.N; n++)
                ASSERT_EQ(std::isnan(got[size_t(r * w.shape.N + n)]), n == column)
                        << f.str() << " row " << r << " column " << n << ", NaN in column " << column;
    }
}

// Scales at both ends, which need the slow decoder or further passes, and sources that are NaN or Inf.
TEST_P(fused_kernels, special_values) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        matrix_t w(f, K, 2 * panel_columns);
        w.fill(g);
        fused_problem_t p(row(), w, 35);
        p.fill(g);
        if (!integers()) {
            p.src(3, below(g, K)) = std::numeric_limits<float>::infinity();
            p.src(34, below(g, K)) = std::nanf("");
        }
        run_and_check(p);
        if (f.quant.scale_dt != mxdnn_e8m0) continue;
        for (uint32_t byte : {0u, 1u, 253u, 254u}) {
            if (integers() && byte > 2) byte -= 18; // which sources of integers leave room for
            // One tile of one panel: ways of decoding alternate.
            for (int64_t n = 0; n < panel_columns; n++)
                for (int64_t k = 128; k < 256; k += f.quant.block) w.view().set_scale(k, n, byte);
            p.fill(g, std::exp2(byte < 3 ? 90. : -90.));
            run_and_check(p);
        }
        if (HasFailure()) return;
    }
}

// Integers with scales that are close together are summed exactly, up to the precision of f32. Blocks of
// zeros may have any scale.
TEST_P(fused_kernels, integers_are_exact) {
    if (!integers()) GTEST_SKIP() << "a kernel that rounds every product";
    rng_t g(seed());
    for (const format_t &f : formats_of(row()))
        for (int64_t K : {64, 300, 640, 1152})
            for (uint32_t least : {0u, 1u, 120u, 230u}) {
                matrix_t w(f, K, 4 * panel_columns);
                w.fill(g);
                make_narrow(w, g, least);
                fused_problem_t p(row(), w, 40);
                p.fill(g);
                const auto got = run_fused(row(), p, {});
                for (int64_t r = 0; r < p.rows; r++)
                    for (int64_t n = 0; n < w.shape.N; n++)
                        ASSERT_EQ(double(got[size_t(r * w.shape.N + n)]),
                                want_of_integers(&p.x[size_t(r * K)], w, n).value)
                                << "K " << K << " scales from " << least << " row " << r << " column " << n;
            }
}

// The largest K that stays exact is the largest that a kernel is made for, and its sums are right.
TEST_P(fused_kernels, integers_refuse_sums_that_do_not_fit) {
    if (!integers()) GTEST_SKIP() << "a kernel without integers";
    const format_t f = formats_of(row()).front();
    kernel_params_t k;
    k.wei_dt = f.dt;
    k.quant = f.quant;
    k.panels = call_panels;
    for (k.K = exact_int8_rows - 2; k.K < exact_int8_rows + 3; k.K++) {
        std::unique_ptr<jit_kernel_t> kernel;
        const char *reason = nullptr;
        const bool fits = k.K * 128 * 96 <= std::numeric_limits<int32_t>::max();
        EXPECT_EQ(create_kernel(row(), k, &kernel, &reason), fits ? mxdnn_success : mxdnn_invalid_arguments)
                << "K " << k.K;
        EXPECT_EQ(reason == nullptr, fits);
    }
}

TEST(next_panel_lines, are_fetched_by_all_calls_together) {
    const int64_t mxfp8 = 8 * 64 + 32, mxfp4 = 2 * (4 * 64 + 16);
    EXPECT_EQ(next_panel_lines(mxfp8, 64, 1), 5) << "of 8.5";
    EXPECT_EQ(next_panel_lines(mxfp8, 48, 1), 0) << "one call for two panels";
    EXPECT_EQ(next_panel_lines(mxfp8, 64, 0), 0) << "any number of rows";
    EXPECT_EQ(next_panel_lines(mxfp4, 32, 2), 4) << "of 8.5";
    for (int64_t calls = 2; calls < 40; calls++)
        EXPECT_LE(next_panel_lines(mxfp4, 48, calls) * calls * 64, mxfp4 * 3 / 2) << calls;
}

TEST(source_blocks, every_value_has_a_place_of_its_own) {
    for (int64_t K : {1, 64, 300, 700})
        for (int64_t rows : {1, 16, 31, 32, 33, 48, 49, 100})
            for (int64_t value_bytes : {1, 2})
                for (int64_t block : {32, 48, 64, 96}) {
                    const source_blocks_t blocks = {
                            K, value_bytes, rows, block, block == 48 ? 16 : 0}; // a rest is joined or not
                    const int64_t step = 64 / value_bytes;
                    std::set<int64_t> seen;
                    int64_t last = 0;
                    for (int64_t r = 0; r < rows; r++) {
                        int64_t next = 0;
                        blocks.for_each_piece(r, [&](int64_t k, int64_t at) {
                            EXPECT_EQ(k, next);
                            next += step;
                            EXPECT_EQ(at % source_blocks_t::piece_bytes, 0);
                            EXPECT_TRUE(seen.insert(at).second) << "row " << r << " k " << k;
                            last = std::max(last, at);
                        });
                        EXPECT_GE(next, K);
                    }
                    EXPECT_EQ(last + source_blocks_t::piece_bytes, rows * round_up(K, step) * value_bytes)
                            << "no gaps";
                }
}

TEST(source_blocks, calls_have_rows_of_one_block) {
    for (int64_t rows = 1; rows < 400; rows++) {
        const source_blocks_t blocks = {64, 2, rows, 48, 16};
        int64_t r = 0, most = 0, least = rows, calls = 0;
        for (; r < rows; calls++) {
            const int64_t n = blocks.call_rows(r);
            ASSERT_GT(n, 0);
            EXPECT_EQ(blocks.stride(r), blocks.stride(r + n - 1)) << rows;
            EXPECT_EQ(blocks.first(r + n - 1), blocks.first(r) + (n - 1) * source_blocks_t::piece_bytes)
                    << rows;
            most = std::max(most, n);
            least = std::min(least, n);
            r += n;
        }
        EXPECT_EQ(r, rows);
        EXPECT_LE(most, 48);
        EXPECT_EQ(calls, div_up(rows, int64_t(48)));
        if (rows > 16) {
            EXPECT_GT(least, 16) << rows << ": no call of one tile";
        }
    }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Kernels that decode panels to integers, and those that multiply rows of integers with them, against sums in
// double precision.
#include <cmath>
#include <cstring>

#include "cpu/x64/int8_panel.hpp"
#include "cpu/x64/int8_row.hpp"
#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

constexpr int64_t tile_rows = n16_frame_t::min_tile_rows;

// Rows of codes, and the panels of a matrix.
struct int8_problem_t {
    const matrix_t &w;
    const int64_t rows;
    std::vector<int8_t> x; // [rows][K]
    guarded_t::place_t place = guarded_t::at_end;

    int8_problem_t(const matrix_t &w, int64_t rows, rng_t &g)
        : w(w), rows(rows), x(size_t(rows * w.shape.K)) {
        for (int8_t &v : x) v = int8_t(below(g, 256));
    }
    int64_t padded() const { return round_up(w.shape.K, int64_t(k_step)); }
    // As a kernel reads it.
    uint8_t code(int64_t r, int64_t k) const {
        const int64_t from = k / 8 * 8 + int8_weights(w.format.dt, w.format.quant).order[k % 8];
        return from < w.shape.K ? uint8_t(x[size_t(r * w.shape.K + from)] + int8_panel_t::source_offset) : 0;
    }
};

// Scales of each column of a tile within four powers of two, but for a tile of two.
void make_windows(matrix_t &w, rng_t &g, bool some_apart) {
    packed_view_t v = w.view();
    for (int64_t k0 = 0; k0 < w.shape.K; k0 += tile_rows) {
        const bool apart = some_apart && below(g, 2) == 0;
        for (int64_t n = 0; n < w.shape.N; n++) {
            const uint32_t least = 100 + below(g, 40);
            for (int64_t k = k0; k < std::min(k0 + tile_rows, w.shape.K); k += w.shape.block)
                v.set_scale(k, n, least + below(g, apart ? 20 : 4));
        }
    }
}

// Decodes the panels in one call or in one for each tile.
void decode_panels(const matrix_t &w, int panels, int64_t stride, bool in_parts, guarded_t &out) {
    const kernel_row_t *row =
            find_kernel(kernel_kind_t::decode_int8, best_isa(), w.format.dt, w.format.quant);
    const auto kernel = make(*row, w.format, w.shape.K, 1, 1);
    guarded_t wei(w.bytes.size(), guarded_t::at_end);
    std::memset(out.data(), 0xff, out.size());
    std::memcpy(wei.data(), w.bytes.data(), wei.size());
    const int64_t tiles = w.shape.K / tile_rows, each = in_parts ? 1 : std::max<int64_t>(tiles, 1);
    for (int p = 0; p < panels; p++)
        for (int64_t t = 0; t * tile_rows < w.shape.K; t += each) {
            decode_args_t a = {};
            a.tiles = std::min(each, tiles - t);
            a.tail = t + a.tiles == tiles && (a.tiles == 0 || !in_parts) ? w.shape.K % tile_rows : 0;
            a.wei = wei.data() + p * w.panel_bytes() + n16_frame_t::tile(w.shape, t * tile_rows, 0);
            a.dst = out.data() + p * stride + t * tile_rows / k_step * int8_panel_t::block_bytes;
            jit_call(*kernel, a);
        }
    EXPECT_TRUE(out.intact() && wei.intact()) << row->name << " writes beside its buffers";
    EXPECT_EQ(std::memcmp(w.bytes.data(), wei.data(), wei.size()), 0)
            << row->name << " writes to its weights";
}

class int8_panel_kernels : public kernel_test_t {
protected:
    int panels() const { return row().panels[0]; }

    // Sums in [rows][panels * 16]. In two calls, of which the second one adds, or one.
    std::vector<float> run(const int8_problem_t &p, bool in_parts) const {
        const matrix_t &w = p.w;
        const int64_t stride = round_up(int8_panel_t::bytes(w.shape.K), int64_t(64)) + 64;
        guarded_t wei(size_t(stride * (panels() - 1) + int8_panel_t::bytes(w.shape.K)), p.place);
        decode_panels(w, panels(), stride, in_parts, wei);
        const int64_t src_stride = p.padded() + 64, columns = panels() * panel_columns,
                      acc_stride = columns * 4 + 64;
        guarded_t src(size_t(src_stride * (p.rows - 1) + p.padded()), p.place),
                acc(size_t(acc_stride * (p.rows - 1) + columns * 4), p.place);
        for (int64_t i = 0; i < int64_t(acc.size()) / 4; i++) std::memcpy(acc.data() + i * 4, &poison, 4);
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t k = 0; k < p.padded(); k++) src.data()[r * src_stride + k] = p.code(r, k);
        const auto kernel = make(row(), w.format, w.shape.K, int(p.rows), panels());
        const int64_t first = in_parts ? std::min(p.padded(), tile_rows) : p.padded();
        for (int64_t k = 0, n = first; k < p.padded(); k += n, n = p.padded() - first) {
            gemm_args_t a = {};
            a.src = src.data() + k;
            a.src_stride = src_stride;
            a.wei = wei.data() + k / k_step * int8_panel_t::block_bytes;
            a.wei_stride = stride;
            a.k = n;
            a.acc = acc.data<float>();
            a.acc_stride = acc_stride;
            a.accumulate = k > 0;
            a.fetch = wei.data();
            jit_call(*kernel, a);
        }
        EXPECT_TRUE(src.intact() && wei.intact() && acc.intact())
                << row().name << " writes beside its buffers";
        std::vector<float> out(size_t(p.rows * columns));
        for (int64_t r = 0; r < p.rows; r++) {
            const uint8_t *from = acc.data() + r * acc_stride;
            std::memcpy(&out[size_t(r * columns)], from, size_t(columns * 4));
            for (int64_t i = columns * 4; r + 1 < p.rows && i < acc_stride; i += 4)
                EXPECT_EQ(std::memcmp(from + i, &poison, 4), 0) << "writes between the rows of acc";
        }
        return out;
    }

    // Whether the blocks of a tile of a panel are one window.
    static bool one_window(const matrix_t &w, int64_t k0, int64_t panel) {
        for (int64_t n = panel * panel_columns; n < (panel + 1) * panel_columns; n++) {
            float least = e8m0_t::max, most = 0;
            for (int64_t k = k0; k < std::min(k0 + tile_rows, w.shape.K); k++) {
                if (std::isnan(w.element(k, n).scale)) return false;
                least = std::fmin(least, w.element(k, n).scale);
                most = std::fmax(most, w.element(k, n).scale);
            }
            if (std::ilogb(most) - std::ilogb(least) > 3) return false;
        }
        return true;
    }

    // The sum of a window is exact. Each is rounded once, where it is added to those before.
    static want_t want_of(const int8_problem_t &p, int64_t r, int64_t n) {
        const matrix_t &w = p.w;
        want_t want;
        double magnitude = 0;
        int64_t windows = 0;
        for (int64_t k = 0; k < w.shape.K; k++) {
            const double t = p.x[size_t(r * w.shape.K + k)] * double(w.value(k, n));
            want.value += t;
            magnitude += std::fabs(t);
        }
        for (int64_t k = 0; k < w.shape.K; k += tile_rows)
            windows += one_window(w, k, n / panel_columns)
                               ? 1
                               : div_up(std::min(tile_rows, w.shape.K - k), int64_t(k_step));
        want.bound = gamma(double(windows)) * magnitude;
        return want;
    }

    void check(const int8_problem_t &p, const std::vector<float> &got) const {
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t n = 0; n < p.w.shape.N; n++) {
                const auto ok = close(got[size_t(r * p.w.shape.N + n)], want_of(p, r, n));
                if (!ok)
                    FAIL() << where(row(), p.w.format, p.w.shape.K, int(p.rows), panels()) << " row " << r
                           << " column " << n << ": " << ok.message();
            }
    }
    format_t mxfp4() const { return {mxdnn_f4_e2m1, mx_quant}; }
};

INSTANTIATE_TEST_SUITE_P(
        list, int8_panel_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::gemm_int8)), row_name);

TEST_P(int8_panel_kernels, sums) {
    rng_t g(seed());
    int turn = 0;
    for (int64_t K : lengths())
        for (int rows = 1; rows <= row().max_rows; rows++) {
            matrix_t w(mxfp4(), K, panels() * panel_columns);
            w.fill(g);
            if (turn % 3) make_windows(w, g, turn % 3 == 2);
            int8_problem_t p(w, rows, g);
            p.place = places[turn % 3];
            check(p, run(p, turn % 2));
            if (HasFailure()) return;
            turn++;
        }
}

// What a panel has no part in does not change its bits: the windows of other panels, other rows, and how K is
// divided.
TEST_P(int8_panel_kernels, results_do_not_depend_on_others) {
    rng_t g(seed());
    matrix_t w(mxfp4(), 700, panels() * panel_columns);
    make_windows(w, g, true);
    w.fill(g);
    make_windows(w, g, true);
    const int8_problem_t p(w, row().max_rows, g);
    const auto all = run(p, false), parts = run(p, true);
    EXPECT_EQ(std::memcmp(all.data(), parts.data(), all.size() * 4), 0);
    matrix_t other = w;
    for (int64_t n = panel_columns; n < w.shape.N; n++)
        for (int64_t k = 0; k < w.shape.K; k += w.shape.block)
            other.view().set_scale(k, n, below(g, 2) * 60 + 90);
    int8_problem_t q(other, 1, g);
    q.x.assign(p.x.begin(), p.x.begin() + int64_t(q.x.size()));
    const auto one = run(q, false);
    for (size_t n = 0; n < panel_columns; n++) EXPECT_EQ(bits_of(all[n]), bits_of(one[n])) << n;
}

// Codes and scales with the largest sums, which f32 still holds.
TEST_P(int8_panel_kernels, one_window_is_exact) {
    rng_t g(seed());
    for (uint32_t least : {0u, 1u, 120u, 230u})
        for (uint32_t code : {0x7u, 0xfu, 16u}) { // 6, -6, any
            matrix_t w(mxfp4(), tile_rows, panels() * panel_columns);
            w.fill(g);
            for (int64_t n = 0; n < w.shape.N; n++)
                for (int64_t k = 0; k < tile_rows; k++) {
                    if (k % w.shape.block == 0) w.view().set_scale(k, n, k == 0 ? least : least + 3);
                    if (code < 16) w.view().set_code(k, n, code);
                }
            int8_problem_t p(w, 2, g);
            for (int64_t k = 0; k < tile_rows; k++) p.x[size_t(k)] = -128;
            const auto got = run(p, false);
            for (int64_t r = 0; r < p.rows; r++)
                for (int64_t n = 0; n < w.shape.N; n++)
                    ASSERT_EQ(double(got[size_t(r * w.shape.N + n)]), want_of(p, r, n).value)
                            << "scales from " << least << " code " << code << " column " << n;
        }
}

TEST_P(int8_panel_kernels, nan_scale_stays_in_its_column) {
    rng_t g(seed());
    for (int64_t K : {33, 128, 700}) {
        matrix_t w(mxfp4(), K, panels() * panel_columns);
        w.fill(g);
        make_windows(w, g, false);
        const int64_t column = below(g, uint32_t(w.shape.N));
        w.view().set_scale(below(g, uint32_t(K)), column, e8m0_t::nan_code);
        const int8_problem_t p(w, row().max_rows, g);
        const auto got = run(p, false);
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t n = 0; n < w.shape.N; n++)
                ASSERT_EQ(std::isnan(got[size_t(r * w.shape.N + n)]), n == column)
                        << "K " << K << " row " << r << " column " << n << ", NaN in column " << column;
    }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Every decode kernel with every format that it takes. Decoding to f32 is exact: the format's rule gives the
// bits. Decoding to bf16 rounds once more, to nearest even, except below the smallest normal number.
#include <cstring>

#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

class decode_kernels : public kernel_test_t {};
INSTANTIATE_TEST_SUITE_P(
        list, decode_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::decode)), row_name);

::testing::AssertionResult same_value(const kernel_row_t &row, float got, float want) {
    if (std::isnan(got) && std::isnan(want)) return ::testing::AssertionSuccess();
    if (row.compute_dt == mxdnn_bf16) {
        const float rounded = decode(mxdnn_bf16, encode(mxdnn_bf16, want));
        const float smallest = exp2_f32(-126); // dot products treat smaller values as zero
        if (got == rounded || (std::fabs(want) < smallest && std::fabs(got) <= smallest))
            return ::testing::AssertionSuccess();
    } else if (bits_of(got) == bits_of(want)) {
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "got " << got << ", want " << want;
}

// Decodes `tiles` whole tiles from the first one on, and the tail; compares with the format's rule.
void check_decode(const kernel_row_t &row, const jit_kernel_t &kernel, const matrix_t &w, int64_t first_tile,
        int64_t tiles, bool tail, guarded_t::place_t place) {
    const int64_t tile_rows = n16_frame_t::tile_rows(w.shape);
    const int64_t first = first_tile * tile_rows,
                  rows = tiles * tile_rows + (tail ? w.shape.K % tile_rows : 0);
    const int64_t padded = round_up(rows, k_step);
    guarded_t wei(size_t(w.panel_bytes()), place),
            dst(size_t(padded * panel_columns * bytes_of(row.compute_dt)), place);
    std::memcpy(wei.data(), w.bytes.data(), wei.size());
    std::memset(dst.data(), 0xff, dst.size());
    decode_args_t args = {};
    args.wei = wei.data() + n16_frame_t::tile(w.shape, first, 0);
    args.tiles = tiles;
    args.tail = tail;
    args.dst = dst.data();
    jit_call(kernel, args);
    ASSERT_TRUE(wei.intact() && dst.intact()) << row.name << " writes beside its buffers";
    ASSERT_EQ(std::memcmp(w.bytes.data(), wei.data(), wei.size()), 0) << row.name << " writes to its weights";
    for (int64_t k = 0; k < padded; k++)
        for (int64_t n = 0; n < panel_columns; n++) {
            const float want = k < rows ? w.value(first + k, n) : 0.f;
            ASSERT_TRUE(same_value(row, decoded_at(row, dst.data(), k, n), want))
                    << where(row, w.format, w.shape.K, 1, 1) << " row " << first + k << " column " << n;
        }
}

TEST_P(decode_kernels, values) {
    rng_t g(seed());
    int turn = 0;
    for (const format_t &f : formats_of(row()))
        for (int64_t K : lengths()) {
            matrix_t w(f, K, panel_columns);
            w.fill(g);
            const auto kernel = make(row(), f, K, 1, 1);
            ASSERT_TRUE(kernel);
            const int64_t tiles = K / n16_frame_t::tile_rows(w.shape);
            const bool tail = K % n16_frame_t::tile_rows(w.shape) != 0;
            check_decode(row(), *kernel, w, 0, tiles, tail, places[turn++ % 3]);
            // Parts: a middle tile, and the tail alone.
            if (tiles > 1) check_decode(row(), *kernel, w, 1, 1, false, places[turn++ % 3]);
            if (tiles && tail) check_decode(row(), *kernel, w, tiles, 0, true, places[turn++ % 3]);
            if (HasFailure()) return;
        }
}

// Every code under every scale byte; under many scales of wider types, those that overflow or
// vanish among them.
TEST_P(decode_kernels, all_codes_under_all_scales) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        if (f.quant.block > 32) continue;
        const int codes = 1 << f.bits();
        const int64_t per_scale = div_up(codes, f.quant.block); // blocks that hold all codes
        const int64_t scales = data_type_info(f.quant.scale_dt)->bits == 8 && !brief() ? 256 : 64;
        const int64_t K = div_up(scales * per_scale, int64_t(panel_columns)) * f.quant.block;
        matrix_t w(f, K, panel_columns);
        w.fill(g);
        int64_t i = 0; // block in the order of columns, then rows
        for (int64_t k0 = 0; k0 < K; k0 += f.quant.block)
            for (int64_t n = 0; n < panel_columns; n++, i++) {
                const uint32_t s = uint32_t(i / per_scale % scales);
                uint32_t bits = s;
                if (scales != 256 || data_type_info(f.quant.scale_dt)->bits != 8)
                    bits = s < 2 ? s : uint32_t(g() >> (64 - data_type_info(f.quant.scale_dt)->bits));
                w.view().set_scale(k0, n, bits);
                for (int64_t k = 0; k < f.quant.block; k++)
                    w.view().set_code(k0 + k, n, uint32_t((i % per_scale * f.quant.block + k) % codes));
            }
        const auto kernel = make(row(), f, K, 1, 1);
        ASSERT_TRUE(kernel);
        const int64_t tile_rows = n16_frame_t::tile_rows(w.shape);
        check_decode(row(), *kernel, w, 0, K / tile_rows, K % tile_rows != 0, guarded_t::at_end);
        if (HasFailure()) return;
    }
}

// Every code in tiles with one scale each, because kernels choose how to decode a tile by all its scales.
TEST_P(decode_kernels, all_codes_in_tiles_of_one_scale) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const bool bytes = data_type_info(f.quant.scale_dt)->bits == 8;
        if (f.quant.block > 32 || (!bytes && f.quant.scale_dt != mxdnn_bf16)) continue;
        const int64_t tile_rows = n16_frame_t::tile_rows(matrix_t(f, 1, panel_columns).shape);
        std::vector<uint32_t> scales; // all, or those at the ends
        for (uint32_t s = 0; s < 256; s++) {
            if (brief() && s >= 32 && s < 224) continue;
            if (bytes) {
                scales.push_back(s);
                continue;
            }
            // Every exponent, some of them negative, and every mantissa, some with exponents at the ends.
            scales.push_back(s << 7 | below(g, 128) | below(g, 8) / 7 << 15);
            for (uint32_t exponent : {1u, 127u, 251u})
                if (s < 128 && (exponent == 127 || s % 8 == 7)) scales.push_back(exponent << 7 | s);
        }
        matrix_t w(f, int64_t(scales.size()) * tile_rows, panel_columns);
        w.fill(g);
        for (int64_t k = 0; k < w.shape.K; k++)
            for (int64_t n = 0; n < panel_columns; n++) {
                if (k % f.quant.block == 0) w.view().set_scale(k, n, scales[size_t(k / tile_rows)]);
                w.view().set_code(k, n, uint32_t(k * panel_columns + n) % (1u << f.bits()));
            }
        const auto kernel = make(row(), f, w.shape.K, 1, 1);
        ASSERT_TRUE(kernel);
        check_decode(row(), *kernel, w, 0, int64_t(scales.size()), false, guarded_t::at_end);
        if (HasFailure()) return;
    }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

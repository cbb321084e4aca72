// SPDX-License-Identifier: Apache-2.0
// The body of reorder_kernels_avx2.cpp and reorder_kernels_avx512.cpp.
#pragma once

#include "cpu/x64/reorder/body_dequantise.hpp"
#include "cpu/x64/reorder/body_n16_rows.hpp"
#include "cpu/x64/reorder/body_quantise.hpp"
#ifdef __AVX512BW__
#include "cpu/x64/reorder/body_dequantise_lines_avx512.hpp"
#include "cpu/x64/reorder/body_n16_tiles_avx512.hpp"
#include "cpu/x64/reorder/body_quantise_lines_avx512.hpp"
#endif

namespace mxdnn {
namespace impl {
namespace x64 {

extern const reorder_kernels_t MXDNN_REORDER_KERNELS;
const reorder_kernels_t MXDNN_REORDER_KERNELS = {quantise, quantise_rows, dequantise, fill_tables,
        dequantise_rows, finite_amax, transpose, unpack_row, pack_row,
#ifdef __AVX512BW__
        n16_pack_tiles, n16_unpack_tiles, n16_pack_rows, n16_unpack_rows, n16_pack_nibbles_tiles,
        n16_unpack_nibbles_tiles, write_some, write_later, finish, quantise_panels, quantise_code_lines,
        dequantise_panels, dequantise_code_lines
#else
        n16_pack, n16_unpack, n16_pack_rows, n16_unpack_rows, n16_pack_nibbles, n16_unpack_nibbles,
        write_some, write_later, finish, nullptr, nullptr, nullptr, nullptr
#endif
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Kernels for AMX tiles. They wait for decoding where there are few rows. A row or two of int4 or int8, and
// one of MXINT8, are faster by kernels that apply scales to sums: for tiles weights have to be rounded to
// bf16, which takes longer to decode. Those kernels multiply in f32, but a row or two of an expert of int4 or
// int8 in bf16. A format has as many rows as one call multiplies faster than two, which both decode; a call
// of more than 48 rows costs loads of the source. Formats that take longest to decode are decoded once for
// several calls.
#pragma once

#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

kernel_make_t make_avx512_core_amx_direct, make_avx512_core_amx_kept, make_avx512_core_amx_fused_int8;
kernel_make_t make_avx512_core_amx_gradient;

// clang-format off
inline constexpr kernel_row_t avx512_core_amx_rows[] = {
    on_tiles({"avx512_core_amx_direct_f4",        cpu_isa_t::avx512_core_amx, kernel_kind_t::direct, mxdnn_bf16, takes_f4,        48, {1, 2, 4}, make_avx512_core_amx_direct}),
    on_tiles({"avx512_core_amx_direct_f6",        cpu_isa_t::avx512_core_amx, kernel_kind_t::direct, mxdnn_bf16, takes_f6,        48, {1, 2, 4}, make_avx512_core_amx_direct}),
    on_tiles({"avx512_core_amx_direct_f8_e4m3",   cpu_isa_t::avx512_core_amx, kernel_kind_t::direct, mxdnn_bf16, takes_f8_e4m3,   48, {1, 2, 4}, make_avx512_core_amx_direct}),
    on_tiles(keeps({"avx512_core_amx_direct_f8",  cpu_isa_t::avx512_core_amx, kernel_kind_t::direct, mxdnn_bf16, takes_f8,        96, {1, 2, 4}, make_avx512_core_amx_direct})),
    from_rows(2, on_tiles({"avx512_core_amx_direct_s8", cpu_isa_t::avx512_core_amx, kernel_kind_t::direct, mxdnn_bf16, takes_mxint8,    48, {1, 2, 4}, make_avx512_core_amx_direct})),
    from_rows(3, on_tiles({"avx512_core_amx_many_int4_bf16", cpu_isa_t::avx512_core_amx, kernel_kind_t::many,   mxdnn_bf16, takes_int4_bf16, 64, {1, 2, 4}, make_avx512_core_amx_direct})),
    from_rows(3, on_tiles(keeps({"avx512_core_amx_many_int4", cpu_isa_t::avx512_core_amx, kernel_kind_t::many,   mxdnn_bf16, takes_int4,      96, {1, 2, 4}, make_avx512_core_amx_direct}))),
    from_rows(3, on_tiles(keeps({"avx512_core_amx_many_s8", cpu_isa_t::avx512_core_amx, kernel_kind_t::many,   mxdnn_bf16, takes_int8,      96, {1, 2, 4}, make_avx512_core_amx_direct}))),
    // The generated code is the same for any number of rows.
    on_tiles({"avx512_core_amx_fused_int8_f4",    cpu_isa_t::avx512_core_amx, kernel_kind_t::fused,  mxdnn_s8,   takes_mxfp4,     1,  {2},       make_avx512_core_amx_fused_int8}),
    {"avx512_core_amx_gradient",                  cpu_isa_t::avx512_core_amx, kernel_kind_t::gradient, mxdnn_bf16, takes_any,     64, {2},       make_avx512_core_amx_gradient},
};
// clang-format on

} // namespace x64
} // namespace impl
} // namespace mxdnn

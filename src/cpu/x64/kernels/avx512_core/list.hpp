// SPDX-License-Identifier: Apache-2.0
// Kernels for AVX-512 without BF16: everything in f32.
#pragma once

#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

kernel_make_t make_avx512_core_direct_4bit, make_avx512_core_direct_f6, make_avx512_core_direct_f8,
        make_avx512_core_direct_s8;
kernel_make_t make_avx512_core_decode_4bit, make_avx512_core_decode_f6, make_avx512_core_decode_f8,
        make_avx512_core_decode_s8;
kernel_make_t make_avx512_core_gemm, make_avx512_core_direct_int8;

// clang-format off
inline constexpr kernel_row_t avx512_core_rows[] = {
    // Zen reads one stream of weights faster than several, so a call has one panel.
    for_zen({"avx512_core_direct_4bit_zen", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_4bit, 8, {1}, make_avx512_core_direct_4bit}),
    for_zen({"avx512_core_direct_f6_zen",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_f6,   4, {1}, make_avx512_core_direct_f6}),
    for_zen({"avx512_core_direct_f8_zen",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_f8,   4, {1}, make_avx512_core_direct_f8}),
    for_zen({"avx512_core_direct_s8_zen",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_s8,   4, {1}, make_avx512_core_direct_s8}),
    for_zen({"avx512_core_direct_int8_f4_zen", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_s8, takes_mxfp4, 8, {1}, make_avx512_core_direct_int8}),
    for_zen({"avx512_core_direct_int8_int4_zen", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_s8, takes_int4, 8, {1}, make_avx512_core_direct_int8}),
    {"avx512_core_direct_4bit", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_4bit, 8, {1, 2, 4}, make_avx512_core_direct_4bit},
    {"avx512_core_direct_f6",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_f6,   4, {1, 2, 4}, make_avx512_core_direct_f6},
    {"avx512_core_direct_f8",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_f8,   4, {1, 2, 4}, make_avx512_core_direct_f8},
    {"avx512_core_direct_s8",   cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_f32, takes_s8,   4, {1, 2, 4}, make_avx512_core_direct_s8},
    {"avx512_core_decode_4bit", cpu_isa_t::avx512_core, kernel_kind_t::decode, mxdnn_f32, takes_4bit, 1, {1},       make_avx512_core_decode_4bit},
    {"avx512_core_decode_f6",   cpu_isa_t::avx512_core, kernel_kind_t::decode, mxdnn_f32, takes_f6,   1, {1},       make_avx512_core_decode_f6},
    {"avx512_core_decode_f8",   cpu_isa_t::avx512_core, kernel_kind_t::decode, mxdnn_f32, takes_f8,   1, {1},       make_avx512_core_decode_f8},
    {"avx512_core_decode_s8",   cpu_isa_t::avx512_core, kernel_kind_t::decode, mxdnn_f32, takes_s8,   1, {1},       make_avx512_core_decode_s8},
    {"avx512_core_gemm",        cpu_isa_t::avx512_core, kernel_kind_t::gemm,   mxdnn_f32, takes_any,  14, {1, 2},   make_avx512_core_gemm},
    {"avx512_core_direct_int8_f4", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_s8, takes_mxfp4, 8, {1, 2, 4}, make_avx512_core_direct_int8},
    {"avx512_core_direct_int8_int4", cpu_isa_t::avx512_core, kernel_kind_t::direct, mxdnn_s8, takes_int4, 8, {1, 2, 4}, make_avx512_core_direct_int8},
};
// clang-format on

} // namespace x64
} // namespace impl
} // namespace mxdnn

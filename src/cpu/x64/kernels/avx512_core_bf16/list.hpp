// SPDX-License-Identifier: Apache-2.0
// Kernels for AVX-512 with BF16 dot products and VBMI byte permutes.
#pragma once

#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

kernel_make_t make_avx512_core_bf16_direct, make_avx512_core_bf16_direct_one_stream;
kernel_make_t make_avx512_core_bf16_direct_int8, make_avx512_core_bf16_direct_int8_one_stream;
kernel_make_t make_avx512_core_bf16_direct_int8_by_exponent;
kernel_make_t make_avx512_core_bf16_decode_int8, make_avx512_core_bf16_gemm_int8;
kernel_make_t make_avx512_core_bf16_decode, make_avx512_core_bf16_gemm;
kernel_make_t make_avx512_core_bf16_direct_f6_f32, make_avx512_core_bf16_direct_f8_f32;
kernel_make_t make_avx512_core_bf16_decode_f6_f32, make_avx512_core_bf16_decode_f8_f32;

// clang-format off
inline constexpr kernel_row_t avx512_core_bf16_rows[] = {
    hides_decoding(best_up_to(192, for_zen({"avx512_core_bf16_direct_mxfp4_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_mxfp4, 12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream}))),
    best_up_to(96, for_zen({"avx512_core_bf16_direct_int4_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_int4_no_zeros, 12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream})),
    for_zen({"avx512_core_bf16_direct_f4_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_f4, 12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream}),
    hides_decoding(best_up_to(80, for_zen({"avx512_core_bf16_direct_f6_zen",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_f6,    12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream}))),
    for_zen({"avx512_core_bf16_direct_f8_zen",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_f8,    12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream}),
    best_up_to(12, for_zen({"avx512_core_bf16_direct_s8_zen",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_s8,    12, {1, 2, 4}, make_avx512_core_bf16_direct_one_stream})),
    {"avx512_core_bf16_direct_4bit", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_4bit,  12, {1, 2, 4}, make_avx512_core_bf16_direct},
    {"avx512_core_bf16_direct_s8",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_bf16, takes_s8,    12, {1, 2, 4}, make_avx512_core_bf16_direct},
    {"avx512_core_bf16_decode_4bit", cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_bf16, takes_4bit, 1,  {1},       make_avx512_core_bf16_decode},
    {"avx512_core_bf16_decode_f6",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_bf16, takes_f6,   1,  {1},       make_avx512_core_bf16_decode},
    {"avx512_core_bf16_decode_f8",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_bf16, takes_f8,   1,  {1},       make_avx512_core_bf16_decode},
    {"avx512_core_bf16_decode_s8",   cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_bf16, takes_s8,   1,  {1},       make_avx512_core_bf16_decode},
    {"avx512_core_bf16_gemm",        cpu_isa_t::avx512_core_bf16, kernel_kind_t::gemm,   mxdnn_bf16, takes_any,  14, {1, 2},    make_avx512_core_bf16_gemm},
    for_zen({"avx512_core_bf16_direct_int8_f4_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_mxfp4, 8, {1, 2, 4}, make_avx512_core_bf16_direct_int8_by_exponent}),
    for_zen({"avx512_core_bf16_direct_int8_mxint8_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_mxint8, 8, {1, 2, 4}, make_avx512_core_bf16_direct_int8_by_exponent}),
    for_zen({"avx512_core_bf16_direct_int8_int4_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_int4, 8, {1, 2, 4}, make_avx512_core_bf16_direct_int8_one_stream}),
    for_zen({"avx512_core_bf16_direct_int8_s8_zen", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_int8, 8, {1, 2, 4}, make_avx512_core_bf16_direct_int8_one_stream}),
    {"avx512_core_bf16_decode_int8_f4", cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode_int8, mxdnn_s8, takes_mxfp4, 1, {1}, make_avx512_core_bf16_decode_int8},
    {"avx512_core_bf16_gemm_int8", cpu_isa_t::avx512_core_bf16, kernel_kind_t::gemm_int8, mxdnn_s8, takes_any, 6, {4}, make_avx512_core_bf16_gemm_int8},
    best_up_to(15, {"avx512_core_bf16_direct_int8_f4", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_mxfp4, 12, {1, 2, 4}, make_avx512_core_bf16_direct_int8}),
    {"avx512_core_bf16_direct_int8_int4", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_int4, 12, {1, 2, 4}, make_avx512_core_bf16_direct_int8},
    {"avx512_core_bf16_direct_int8_s8", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_s8, takes_s8,    12, {1, 2, 4}, make_avx512_core_bf16_direct_int8},
    best_up_to(8, {"avx512_core_bf16_direct_f6_f32", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_f32, takes_f6, 8, {1, 2, 4}, make_avx512_core_bf16_direct_f6_f32}),
    best_up_to(8, {"avx512_core_bf16_direct_f8_f32", cpu_isa_t::avx512_core_bf16, kernel_kind_t::direct, mxdnn_f32, takes_f8, 8, {1, 2, 4}, make_avx512_core_bf16_direct_f8_f32}),
    {"avx512_core_bf16_decode_f6_f32", cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_f32, takes_f6, 1, {1},       make_avx512_core_bf16_decode_f6_f32},
    {"avx512_core_bf16_decode_f8_f32", cpu_isa_t::avx512_core_bf16, kernel_kind_t::decode, mxdnn_f32, takes_f8, 1, {1},       make_avx512_core_bf16_decode_f8_f32},
};
// clang-format on

} // namespace x64
} // namespace impl
} // namespace mxdnn

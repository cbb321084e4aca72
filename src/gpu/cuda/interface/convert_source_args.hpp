// SPDX-License-Identifier: Apache-2.0
// What device/kernels/convert_source.cu is told: rows of a matmul's source, in any form and gathered or
// not, that become neighbouring rows of bf16, or f16, with one factor each.
#pragma once

#include "common/formats/source_recipe.hpp"
#include "common/quant.hpp"
#include "common/row_groups.hpp"
#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The order of codes of f8_e4m3 along K: that of fp8_place() or of fp8_register_place(), or their own.
enum class fp8_order_t : int32_t { pairs, registers, plain };

struct convert_source_args_t {
    const uint8_t *elements = nullptr;
    int64_t row_step = 0, col_step = 0; // bytes; codes below a byte are neighbours in a row
    data_type_t dt = mxdnn_data_type_undef;
    int32_t bits = 0;
    mxdnn_element_packing_t packing = mxdnn_element_packing_bytes;

    quant_t quant; // scale_dt undef: the source has high precision
    const uint8_t *scales = nullptr;
    int64_t scale_row_step = 0, scale_col_step = 0; // bytes
    bool swizzled = false;
    int64_t swizzle_cols = 0;
    bool swizzled_by_group = false; // their tiles begin again with each group
    row_groups_t groups;
    source_recipe_t recipe;

    const int32_t *gather = nullptr;    // row of the source, or -1 for a row of zeros; null: row r is row r
    int64_t src_rows = 0;               // rows of the source
    int64_t first = 0, rows = 0, K = 0; // rows [first, first + rows) are prepared
    uint16_t *out = nullptr;            // [rows, stride]: values, and zeros beyond K
    int64_t stride = 0;                 // elements, a multiple of 8
    // If above 1: a value in high precision is the exact sum of so many bf16 values. They are in as many
    // parts of a row of `out`, the smallest one first.
    int32_t terms = 1;
    bool f16 = false;         // values of f16 remain f16
    float *factors = nullptr; // [rows]: the factors of the sums of rows
    // [rows, stride] instead of `out`: the codes of f8_e4m3 rows. stride is then a multiple of 64.
    uint8_t *codes = nullptr;
    fp8_order_t order = fp8_order_t::pairs;
    const int32_t *wanted = nullptr; // [wanted_count]: rows are prepared if one entry is not 0; null: always
    int32_t wanted_count = 0;
    bool in_pieces = false; // rows of 16-bit values in whole pieces of 16 bytes: copied, without factors
    bool early = false;     // as in launch_args_t
    // Codes of quantised rows are made by so many CTAs, while the matmul runs (matmul_args_t); 0: before.
    uint8_t makers = 0;
};

// Whether rows can be made while the matmul runs: neighbouring values of bf16 that are quantised.
inline bool may_come(const convert_source_args_t &a) {
    return a.recipe.kind == recipe_kind_t::row_fp8 && a.codes && a.order == fp8_order_t::plain
           && a.dt == mxdnn_bf16 && a.col_step == 2 && a.K % 8 == 0 && a.row_step % 16 == 0
           && reinterpret_cast<uintptr_t>(a.elements) % 16 == 0 && !a.wanted && a.terms == 1;
}

// The number of 8-bit terms that a value of such a type needs.
constexpr int source_terms_of(data_type_t dt) { return dt == mxdnn_f32 ? 3 : dt == mxdnn_f16 ? 2 : 1; }

// A row whose largest block scale times the largest code is at most 2^-48 is written 2^16 times larger, so
// that bf16 holds the smallest code of every format under the smallest scale. Its products with weights are
// then below 2^96, so no sum that f32 can hold is lost. In other rows, values below the smallest bf16,
// 2^-133, are rounded: less than 2^-85 of the row's largest block.
constexpr int small_row_exponent = -48, small_row_shift = 16;

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

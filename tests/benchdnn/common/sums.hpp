// SPDX-License-Identifier: Apache-2.0
// Sums of products in double, and how far a correct implementation may be from them;
// doc/concepts/accuracy.md.
#pragma once

#include <vector>

#include "benchdnn/common/interval.hpp"
#include "benchdnn/common/tensor.hpp"
#include "common/formats/source_recipe.hpp"

namespace bench {

// A matrix of values, and one of the magnitudes that rounding inside a product is relative to.
struct values_t {
    std::vector<double> value, magnitude;
};

// The values of the [K, N] matrix of `w` at the leading indices `idx` (the last two are overwritten).
values_t weights_of(const quantised_t &w, int64_t K, int64_t N, int64_t *idx);

// The arithmetic of an implementation, as far as its bound depends on it.
struct arithmetic_t {
    bool bf16_products = false; // operands rounded to bf16, subnormal operands and results count as zero
    bool fp8_sums = false;      // sums of 128 products are cut off 2^-13 below their largest addend
    bool kept_sums = false;     // or those of all products are, where sum_types_t::any
    bool bf16_values = false;   // what is below 2^-133 of a value of a block is lost
    bool f16_weights = false;   // int4 weights are rounded to f16
    bool rounded_int4 = false;  // int4 weights of many rows may be rounded to sum_types_t::int4_as
    bool bf16_rows = false;     // rows of f32 and f16 are rounded to bf16 where the fpmath mode allows it
};
arithmetic_t arithmetic_of(const std::string &impl_name);

// The format that a high-precision source is quantised to in execute.
void quantise_row(const mxdnn::impl::source_recipe_t &recipe, std::vector<double> &x);

// Types and length of the sums, for their bound.
struct sum_types_t {
    tensor_type_t src, wei;
    bool fpmath_bf16 = false;
    int64_t K = 0;
    mxdnn_data_type_t int4_as = mxdnn_data_type_undef; // undef: int4 weights are exact
    bool any = false;                                  // the accumulation mode
};

// sums[n] = sum over k of x[k] * w[k][n], within its bound. `scale`: the largest of the row of the source, by
// which sums may be multiplied; 1 where it has none.
void dot_row(const double *x, double scale, const values_t &w, const sum_types_t &t, const arithmetic_t &a,
        std::vector<interval_t> &sums);

} // namespace bench

// SPDX-License-Identifier: Apache-2.0
// Kernels for AVX2 with FMA and F16C.
#pragma once

#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx2_dense(
        const char *, const kernel_params_t &, std::unique_ptr<jit_kernel_t> *, const char **);

inline constexpr kernel_row_t avx2_rows[] = {
        {"avx2_dense", cpu_isa_t::avx2, kernel_kind_t::dense, mxdnn_f32, takes_any, 6, {1}, make_avx2_dense},
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

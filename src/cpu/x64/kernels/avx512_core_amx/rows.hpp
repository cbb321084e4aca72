// SPDX-License-Identifier: Apache-2.0
// Kernels for AMX tiles. What they multiply is decoded by the kernels of avx512_core_bf16, which
// also are the direct kernels of these machines.
#pragma once

#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx512_core_amx_dense(
        const char *, const kernel_params_t &, std::unique_ptr<jit_kernel_t> *, const char **);

// The code is the same for any number of rows; a call with many spreads the cost of configuring
// the tiles.
inline constexpr kernel_row_t avx512_core_amx_rows[] = {
        {"avx512_core_amx_dense", cpu_isa_t::avx512_core_amx, kernel_kind_t::dense, mxdnn_bf16, takes_any,
                128, {1, 2, 4}, make_avx512_core_amx_dense},
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

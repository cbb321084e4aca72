// SPDX-License-Identifier: Apache-2.0
// 14 x 32 sums: 28 registers, two for the weights, one for the source.
#include "cpu/x64/jit/f32_gemm.hpp"
#include "cpu/x64/kernels/avx512_core/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx512_core_gemm(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    static_assert(f32_gemm_t<avx512_vec_t>::max_rows(2) >= 14, "");
    return create_jit<f32_gemm_t<avx512_vec_t>>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// 6 x 16 sums: twelve registers, two for the weights, one for the source.
#include "cpu/x64/jit/f32_gemm.hpp"
#include "cpu/x64/kernels/avx2/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx2_gemm(const char *name, const kernel_params_t &p, std::unique_ptr<jit_kernel_t> *kernel,
        const char **reason) {
    static_assert(f32_gemm_t<avx2_vec_t>::max_rows(1) >= 6, "");
    return create_jit<f32_gemm_t<avx2_vec_t>>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// A few rows of int8 source times packed weights of 4 bits.
#include "cpu/x64/jit/int8_direct.hpp"
#include "cpu/x64/kernels/avx2/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx2_direct_int8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<int8_direct_t<avx2_vec_t>>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

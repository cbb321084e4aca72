// SPDX-License-Identifier: Apache-2.0
// Packed weights to f32 panels.
#include "cpu/x64/jit/f32_decode.hpp"
#include "cpu/x64/kernels/avx512_core/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx512_core_decode_4bit(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<codes4_avx512_t>(name, p, kernel, reason);
}
status_t make_avx512_core_decode_f6(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<codes_f6_t<avx512_vec_t>>(name, p, kernel, reason);
}
status_t make_avx512_core_decode_f8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<codes_f8_t<avx512_vec_t>>(name, p, kernel, reason);
}
status_t make_avx512_core_decode_s8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<codes_s8_t<avx512_vec_t>>(name, p, kernel, reason);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Packed weights to f32 panels by byte tables, before the gemm kernel of AVX-512 in f32.
#include "cpu/x64/jit/f32_decode.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/f32_byte_codes.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t make_avx512_core_bf16_decode_f6_f32(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<f32_byte_codes_t<6>>(name, p, kernel, reason);
}
status_t make_avx512_core_bf16_decode_f8_f32(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return make_f32_decode<f32_byte_codes_t<8>>(name, p, kernel, reason);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The kernel table's entry of sm80_gemm.
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace packed {

// Variants of the plan; null where there is none.
const built_t<matmul_args_t> *sm80_gemm_of_mx(format_t f, int v);
const built_t<matmul_args_t> *sm80_gemm_of_int4(int v, bool f16_rows);

} // namespace packed

namespace {

using namespace packed;

// Of int4 there is the one that looks at the types of scales and zeros.
template <bool f16_rows>
const built_t<matmul_args_t> *variant(format_t f, int v) {
    return f == format_t::int4_any ? sm80_gemm_of_int4(v, f16_rows) : sm80_gemm_of_mx(f, v);
}

} // namespace

const kernel_entry_t sm80_gemm_kernel = {kernel_id_t::sm80_gemm, sizeof(launch_args_t),
        [](const void *args) {
            const auto *a = static_cast<const launch_args_t *>(args);
            const bool both = !a, f16 = both || a->matmul.src_type == value_type_t::f16;
            cudaError_t e = cudaSuccess;
            if (both || !f16) e = prepare_built(variant<false>, a);
            return e == cudaSuccess && f16 ? prepare_built(variant<true>, a) : e;
        },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            const bool f16 = a.matmul.src_type == value_type_t::f16;
            return launch_built(
                    *(f16 ? variant<true> : variant<false>)(a.format, a.variant), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The kernel table's entry of sm80_gemm.
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/packed_variants.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace packed {

// Null if there is none.
const built_t<matmul_args_t> *sm80_gemm_of_mx(format_t f, int shape);
const built_t<matmul_args_t> *sm80_gemm_of_int4(int shape, bool f16_rows);

} // namespace packed

namespace {

using namespace packed;

const built_t<matmul_args_t> *variant(format_t f, int v) {
    using namespace sm80_gemm_variants;
    if (v >= kinds * shapes) return nullptr;
    return f == any_int4 ? sm80_gemm_of_int4(v % shapes, v / shapes == rows_t::f16)
                         : sm80_gemm_of_mx(f, v % shapes);
}

} // namespace

const kernel_entry_t sm80_gemm_kernel = {sizeof(launch_args_t),
        [](const void *args) { return prepare_built(variant, static_cast<const launch_args_t *>(args)); },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            return launch_built(*variant(a.format, a.variant), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

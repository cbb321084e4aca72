// SPDX-License-Identifier: Apache-2.0
// many_rows at the rate of FP8, for MXFP4 weights.
#include "gpu/cuda/device/kernels/sm90/many_rows.cuh"
#include "gpu/cuda/device/rows/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace rows {

const built_t<many_rows_args_t> *many_rows_of_fp8() {
    using shared_t = many_rows_shared_t<mxfp4_as_fp8_t, many_rows_fp8_width>;
    static const built_t<many_rows_args_t> built = {many_rows<mxfp4_as_fp8_t, many_rows_fp8_width>,
            shared_t::threads, shared_t::bytes, shared_t::pair};
    return &built;
}

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn

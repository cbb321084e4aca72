// SPDX-License-Identifier: Apache-2.0
// The variants of few_rows that plans choose from.
#include "gpu/cuda/device/kernels/sm90/few_rows.cuh"

#include "gpu/cuda/device/rows/variants.cuh"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace sm90;

struct few_rows_list_t {
    template <typename format>
    static constexpr bool takes = format::terms == 1;
    static constexpr size_t count = sizeof(few_rows_tiles) / sizeof(few_rows_tiles[0]);
    template <typename format, size_t i>
    static built_t<matmul_args_t> built() {
        using variant_t = few_rows_variant_t<format, few_rows_tiles[i]>;
        return {few_rows<variant_t>, few_rows_t::threads, variant_t::bytes};
    }
};

} // namespace

const kernel_entry_t sm90_few_rows_kernel = entry_of_variants<few_rows_list_t>(kernel_id_t::sm90_few_rows);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

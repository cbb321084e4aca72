// SPDX-License-Identifier: Apache-2.0
// The variants of dense_rows that plans choose from.
#include "gpu/cuda/device/kernels/sm90/dense_rows.cuh"

#include "gpu/cuda/device/rows/variants.cuh"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace sm90;

struct dense_rows_list_t {
    template <typename format>
    static constexpr bool takes = true;
    static constexpr size_t count = sizeof(dense_rows_variants) / sizeof(dense_rows_variants[0]);
    template <typename format, size_t i>
    static built_t<matmul_args_t> built() {
        using variant_t = dense_rows_variant_t<format, dense_rows_variants[i].row_tiles,
                dense_rows_variants[i].panels, dense_rows_variants[i].teams, dense_rows_variants[i].ctas>;
        return {dense_rows<variant_t>, variant_t::threads, variant_t::bytes};
    }
};

} // namespace

const kernel_entry_t sm90_dense_rows_kernel =
        entry_of_variants<dense_rows_list_t>(kernel_id_t::sm90_dense_rows);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

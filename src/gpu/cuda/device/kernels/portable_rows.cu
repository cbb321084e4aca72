// SPDX-License-Identifier: Apache-2.0
// The variants of portable_rows that plans choose from.
#include "gpu/cuda/device/kernels/portable_rows.cuh"

#include <type_traits>

#include "gpu/cuda/device/rows/variants.cuh"
#include "gpu/cuda/heuristics/rows_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace rows;

struct portable_rows_list_t {
    // Of int4 the one that has everything.
    template <typename format>
    static constexpr bool takes = !has_unscaled<format> || std::is_same_v<format, int4_t<int4_kind_t::any>>;
    static constexpr size_t count = sizeof(portable_rows_tiles) / sizeof(portable_rows_tiles[0]);
    template <typename format, size_t i>
    static built_t<matmul_args_t> built() {
        using variant_t = portable_rows_variant_t<format, portable_rows_tiles[i]>;
        return {portable_rows<variant_t>, portable_rows_t::threads, variant_t::bytes};
    }
};

} // namespace

const kernel_entry_t portable_rows_kernel =
        entry_of_variants<portable_rows_list_t>(kernel_id_t::portable_rows);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

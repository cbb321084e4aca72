// SPDX-License-Identifier: Apache-2.0
// The variants of portable_rows that plans choose from.
#include "gpu/cuda/device/kernels/portable_rows.cuh"

#include <type_traits>

#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
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
    // Those of the plan, and then, of int4, for rows of f16.
    static constexpr size_t planned = sizeof(portable_rows_tiles) / sizeof(portable_rows_tiles[0]),
                            count = 2 * planned;
    template <typename format_, size_t i>
    static built_t<matmul_args_t> built() {
        using format = std::conditional_t<(i >= planned), typename with_f16_source_t<format_>::type, format_>;
        using variant_t = portable_rows_variant_t<format, portable_rows_tiles[i % planned]>;
        return {portable_rows<variant_t>, portable_rows_t::threads, variant_t::bytes};
    }
};

// The first variant for such rows.
int first_variant(const matmul_args_t &a) {
    return a.src_type == value_type_t::f16 ? int(portable_rows_list_t::planned) : 0;
}

} // namespace

const kernel_entry_t portable_rows_kernel = {kernel_id_t::portable_rows, sizeof(launch_args_t),
        [](const void *args) {
            const auto *a = static_cast<const launch_args_t *>(args);
            return prepare_built(variant_of<portable_rows_list_t>, a, a ? first_variant(a->matmul) : 0,
                    int(portable_rows_list_t::planned));
        },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            const int v = a.variant + first_variant(a.matmul);
            return launch_built(*variant_of<portable_rows_list_t>(a.format, v), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

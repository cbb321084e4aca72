// SPDX-License-Identifier: Apache-2.0
// The variants of grouped_gemv that plans choose from.
#include "gpu/cuda/device/kernels/sm90/grouped_gemv.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/packed/variants.cuh"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

struct grouped_gemv_list_t {
    template <typename format>
    static constexpr bool takes = true;
    // Those of the plan, for rows of bf16, then for rows that are sums of several, and for rows of f16.
    static constexpr size_t planned = sizeof(grouped_gemv_tiles) / sizeof(grouped_gemv_tiles[0]),
                            count = 3 * planned;
    template <typename format_, size_t i>
    static built_t<matmul_args_t> built() {
        // Of int4 the kernel that looks at types is built for rows that may be sums, and has those of all
        // int4.
        using any_int4 = int4_t<int4_kind_t::any>;
        constexpr bool looks = has_unscaled<format_> && i / planned == 1, f16 = i / planned == 2;
        constexpr bool sums = i / planned == 1 || (std::is_same_v<format_, any_int4> && !f16);
        using format = std::conditional_t<looks, any_int4,
                std::conditional_t<f16, typename with_f16_source_t<format_>::type, format_>>;
        using variant_t = grouped_gemv_variant_t<format, grouped_gemv_tiles[i % planned], sums>;
        return {grouped_gemv<variant_t>, grouped_gemv_t::threads, variant_t::bytes};
    }
};

// The first variant for such rows.
int first_variant(const matmul_args_t &a) {
    const int rows = a.src_type == value_type_t::f16 ? 2 : a.src_terms > 1 ? 1 : 0;
    return rows * int(grouped_gemv_list_t::planned);
}

} // namespace

const kernel_entry_t sm90_grouped_gemv_kernel = {kernel_id_t::sm90_grouped_gemv, sizeof(launch_args_t),
        [](const void *args) {
            const auto *a = static_cast<const launch_args_t *>(args);
            return prepare_built(variant_of<grouped_gemv_list_t>, a, a ? first_variant(a->matmul) : 0,
                    int(grouped_gemv_list_t::planned));
        },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            const int v = a.variant + first_variant(a.matmul);
            return launch_built(*variant_of<grouped_gemv_list_t>(a.format, v), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The variants of grouped_gemv that plans choose from.
#include "gpu/cuda/device/kernels/sm90/grouped_gemv.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/packed/variants.cuh"
#include "gpu/cuda/heuristics/packed_variants.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

struct grouped_gemv_list_t {
    template <typename format>
    static constexpr bool takes = true;
    static constexpr size_t count = grouped_gemv_variants::kinds * grouped_gemv_variants::shapes;
    template <typename format_, size_t i>
    static built_t<matmul_args_t> built() {
        using namespace grouped_gemv_variants;
        constexpr int rows = i / shapes;
        // For int4 the kernel that reads the types is built for rows that may be sums. It serves such rows of
        // all int4 formats.
        using any_int4 = int4_t<int4_kind_t::any>;
        constexpr bool looks = has_unscaled<format_> && rows == rows_t::sums, of_f16 = rows == rows_t::f16;
        constexpr bool of_sums = rows == rows_t::sums || (std::is_same_v<format_, any_int4> && !of_f16);
        using format = std::conditional_t<looks, any_int4,
                std::conditional_t<of_f16, typename with_f16_source_t<format_>::type, format_>>;
        // Codes, scales and zero points of 16 rows do not fit in the registers, so int4 has blocks of eight,
        // also where a plan has 16: the kernel divides its work by itself.
        constexpr int tiles = has_unscaled<format_> ? 1 : grouped_gemv_tiles[i % shapes];
        using variant_t = grouped_gemv_variant_t<format, tiles, of_sums>;
        return {grouped_gemv<variant_t>, grouped_gemv_t::threads, variant_t::bytes};
    }
};

} // namespace

const kernel_entry_t sm90_grouped_gemv_kernel = {sizeof(launch_args_t),
        [](const void *args) {
            return prepare_built(variant_of<grouped_gemv_list_t>, static_cast<const launch_args_t *>(args));
        },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            return launch_built(*variant_of<grouped_gemv_list_t>(a.format, a.variant), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

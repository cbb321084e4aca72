// SPDX-License-Identifier: Apache-2.0
// The variants of few_rows that plans choose from.
#include "gpu/cuda/device/kernels/sm90/few_rows.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/rows/variants.cuh"
#include "gpu/cuda/heuristics/rows_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace rows;

struct few_rows_list_t {
    template <typename format>
    static constexpr bool takes = true;
    // Those of the plan, for rows of bf16, then for rows that are sums of several, and for rows of f16.
    static constexpr size_t planned = sizeof(few_rows_tiles) / sizeof(few_rows_tiles[0]), count = 3 * planned;
    template <typename format_, size_t i>
    static built_t<matmul_args_t> built() {
        using format =
                std::conditional_t<i / planned == 2, typename with_f16_source_t<format_>::type, format_>;
        using variant_t = few_rows_variant_t<format, few_rows_tiles[i % planned], i / planned == 1>;
        return {few_rows<variant_t>, few_rows_t::threads, variant_t::bytes};
    }
};

} // namespace

const kernel_entry_t sm90_few_rows_kernel = {kernel_id_t::sm90_few_rows, sizeof(launch_args_t),
        [] { return prepare_built(variant_of<few_rows_list_t>); },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            const int rows = a.matmul.src_type == value_type_t::f16 ? 2 : a.matmul.src_terms > 1 ? 1 : 0;
            const int v = a.variant + rows * int(few_rows_list_t::planned);
            return launch_built(*variant_of<few_rows_list_t>(a.format, v), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

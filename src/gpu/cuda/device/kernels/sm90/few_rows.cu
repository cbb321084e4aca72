// SPDX-License-Identifier: Apache-2.0
// The variants of few_rows that plans choose from.
#include "gpu/cuda/device/kernels/sm90/few_rows.cuh"

#include <utility>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/kernels/sm90/launch.cuh"
#include "gpu/cuda/device/mma/weight_formats.cuh"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace sm90;

template <typename format, size_t i>
using variant_t = few_rows_variant_t<format, few_rows_tiles[i]>;

template <typename format, size_t... i>
const built_t<matmul_args_t> *built(int v, std::index_sequence<i...>) {
    static const built_t<matmul_args_t> list[] = {
            {few_rows<variant_t<format, i>>, few_rows_t::threads, variant_t<format, i>::bytes}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}

const built_t<matmul_args_t> *variant(format_t f, int v) {
    return of_format(f, [v](auto format) {
        return built<decltype(format)>(
                v, std::make_index_sequence<sizeof(few_rows_tiles) / sizeof(few_rows_tiles[0])>());
    });
}

} // namespace

const kernel_entry_t sm90_few_rows_kernel = {kernel_id_t::sm90_few_rows, sizeof(launch_args_t),
        [] { return prepare_built(variant); },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            return launch_built(*variant(a.format, a.variant), at, a, a.matmul);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

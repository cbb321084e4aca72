// SPDX-License-Identifier: Apache-2.0
// The widths of many_rows that plans choose from.
#include "gpu/cuda/device/kernels/sm90/many_rows.cuh"

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/kernels/sm90/launch.cuh"
#include "gpu/cuda/device/kernels/sm90/tensor_map.cuh"
#include "gpu/cuda/device/mma/weight_formats.cuh"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace sm90;

template <typename format, size_t... i>
const built_t<many_rows_args_t> *built(int v, std::index_sequence<i...>) {
    static const built_t<many_rows_args_t> list[] = {
            {many_rows<format, many_rows_widths[i]>, many_rows_shared_t<format, many_rows_widths[i]>::threads,
                    many_rows_shared_t<format, many_rows_widths[i]>::bytes}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}

const built_t<many_rows_args_t> *variant(format_t f, int v) {
    return of_format(f, [v](auto format) {
        using format_t = decltype(format);
        constexpr int widths = std::is_same_v<format_t, mxfp4_t> ? many_rows_all : many_rows_common;
        return built<format_t>(v, std::make_index_sequence<widths>());
    });
}

} // namespace

const kernel_entry_t sm90_many_rows_kernel = {kernel_id_t::sm90_many_rows, sizeof(launch_args_t),
        [] { return prepare_built(variant); },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            many_rows_args_t m{};
            m.matmul = a.matmul;
            if (m.matmul.K > 0) {
                const cudaError_t e = make_row_map(m.source_map, m.matmul.src, m.matmul.K, m.matmul.M,
                        m.matmul.src_stride, many_rows_widths[a.variant]);
                if (e != cudaSuccess) return e;
            }
            return launch_built(*variant(a.format, a.variant), at, a, m);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Kernels that are built for every weight format in every shape that plans choose from. kernel_t says how
// many shapes there are (count) and what number i is of a format (built<format, i>()), and which formats it
// takes (takes<format>).
#pragma once

#include <utility>

#include "gpu/cuda/device/mma/weight_formats.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename kernel_t, typename format, typename args_t, size_t... i>
const built_t<args_t> *variant_of_format(int v, std::index_sequence<i...>) {
    if constexpr (kernel_t::template takes<format>) {
        static const built_t<args_t> list[] = {kernel_t::template built<format, i>()...};
        return v < int(sizeof...(i)) ? &list[v] : nullptr;
    } else {
        return nullptr;
    }
}

template <typename kernel_t, typename args_t = matmul_args_t>
const built_t<args_t> *variant_of(format_t f, int v) {
    return of_format(f, [v](auto format) {
        return variant_of_format<kernel_t, decltype(format), args_t>(
                v, std::make_index_sequence<kernel_t::count>());
    });
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

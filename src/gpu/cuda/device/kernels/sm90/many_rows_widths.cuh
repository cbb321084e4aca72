// SPDX-License-Identifier: Apache-2.0
// many_rows of one weight format, in the widths that plans choose from. Each family of formats has a file of
// its own that builds them, because they take the compiler long.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels/sm90/many_rows.cuh"
#include "gpu/cuda/device/rows/built.cuh"
#include "gpu/cuda/heuristics/rows_matmul_plan.hpp"

namespace mxdnn {
namespace impl {

struct mxfp4_t;

namespace cuda {
namespace rows {

template <typename format, size_t... i>
const built_t<many_rows_args_t> *many_rows_of(int v, std::index_sequence<i...>) {
    static const built_t<many_rows_args_t> list[] = {{many_rows<format, many_rows_widths[i]>,
            many_rows_shared_t<format, many_rows_widths[i]>::threads,
            many_rows_shared_t<format, many_rows_widths[i]>::bytes, many_rows_pair(many_rows_widths[i])}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}

// Null behind the last one.
template <typename format>
const built_t<many_rows_args_t> *many_rows_variant(int v) {
    constexpr int widths = std::is_same_v<format, mxfp4_t> ? many_rows_all : many_rows_common;
    return many_rows_of<format>(v, std::make_index_sequence<widths>());
}

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// portable_rows of one weight format, in the shapes that plans choose from. Its formats are in two files,
// since devices differ in which of them they need: portable_rows_mx.cu and portable_rows_int4.cu.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels/portable_rows.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/rows/built.cuh"
#include "gpu/cuda/heuristics/rows_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace rows {

// Those of the plan; null behind the last one.
template <typename format, size_t... i>
const built_t<matmul_args_t> *portable_rows_of(int v, std::index_sequence<i...>) {
    static const built_t<matmul_args_t> list[] = {
            {portable_rows<portable_rows_variant_t<format, portable_rows_tiles[i]>>, portable_rows_t::threads,
                    portable_rows_variant_t<format, portable_rows_tiles[i]>::bytes}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}
template <typename format>
const built_t<matmul_args_t> *portable_rows_shape(int v) {
    return portable_rows_of<format>(
            v, std::make_index_sequence<sizeof(portable_rows_tiles) / sizeof(portable_rows_tiles[0])>());
}

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// gemm of one weight format, in the widths that plans choose from. Each family of formats has a file of
// its own that builds them, because they take the compiler long.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/mma/decode_int4_rounded.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {

struct mxfp4_t;

namespace cuda {
namespace packed {

template <typename format, size_t... i>
const built_t<gemm_args_t> *gemm_of(int v, std::index_sequence<i...>) {
    static const built_t<gemm_args_t> list[] = {
            {gemm<format, gemm_widths[i]>, gemm_shared_t<format, gemm_widths[i]>::threads,
                    gemm_shared_t<format, gemm_widths[i]>::bytes, gemm_pair(gemm_widths[i])}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}

// Null after the last one.
template <typename format>
const built_t<gemm_args_t> *gemm_variant(int v) {
    constexpr int widths = std::is_same_v<format, mxfp4_t> ? gemm_all : gemm_common;
    return gemm_of<format>(v, std::make_index_sequence<widths>());
}

// The same of int4 weights of these types. Zeros of another type than the rows are left to other kernels.
template <gemm_variants::int4_t types>
const built_t<gemm_args_t> *gemm_of_int4(int4_kind_t kind, int v) {
    constexpr auto widths = std::make_index_sequence<gemm_common>();
    switch (kind) {
    case int4_kind_t::s4: return gemm_of<int4_rounded_t<int4_kind_t::s4, types>>(v, widths);
    case int4_kind_t::zero_points: return gemm_of<int4_rounded_t<int4_kind_t::zero_points, types>>(v, widths);
    default:
        if constexpr (types == gemm_variants::bf16_of_f16_scales)
            return nullptr;
        else
            return gemm_of<int4_rounded_t<int4_kind_t::zeros, types>>(v, widths);
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

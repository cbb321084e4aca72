// SPDX-License-Identifier: Apache-2.0
// The implementations of CUDA devices, best first. An entry says what it takes in its own pd_t::init.
#include "gpu/cuda/cuda_impl_lists.hpp"

#include "common/two_mx_reorders.hpp"
#include "gpu/cuda/impl/both_axes_mx_reorder.hpp"
#include "gpu/cuda/impl/copy_mx_reorder.hpp"
#include "gpu/cuda/impl/cublaslt_fp8_mx_matmul.hpp"
#include "gpu/cuda/impl/cublaslt_mx_matmul.hpp"
#include "gpu/cuda/impl/groups_mx_reorder.hpp"
#include "gpu/cuda/impl/mma_mx_matmul.hpp"
#include "gpu/cuda/impl/moe_primitives.hpp"
#include "gpu/cuda/impl/packed/packed_grouped_matmul.hpp"
#include "gpu/cuda/impl/packed/packed_mx_matmul.hpp"
#include "gpu/cuda/impl/ref/ref_grouped_backward_weights.hpp"
#include "gpu/cuda/impl/ref/ref_grouped_matmul.hpp"
#include "gpu/cuda/impl/ref/ref_grouped_mx_reorder.hpp"
#include "gpu/cuda/impl/ref/ref_moe.hpp"
#include "gpu/cuda/impl/ref/ref_mx_matmul.hpp"
#include "gpu/cuda/impl/ref/ref_mx_reorder.hpp"
#include "gpu/cuda/impl/sm90_grouped_backward_weights.hpp"
#include "gpu/cuda/impl/tiles_mx_reorder.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr impl_list_item_t mx_matmul_list[] = {
        impl_item<cuda::cublaslt_fp8_mx_matmul_t>(),
        impl_item<cuda::cublaslt_bf16_mx_matmul_t>(),
        impl_item<cuda::cublaslt_f16_mx_matmul_t>(),
        impl_item<cuda::sm90_mx_matmul_t>(),
        impl_item<cuda::sm80_mx_matmul_t>(),
        impl_item<cuda::mma_mx_matmul_t>(),
        impl_item<cuda::ref_mx_matmul_t>(),
};

constexpr impl_list_item_t mx_reorder_list[] = {
        impl_item<cuda::copy_mx_reorder_t>(),
        impl_item<cuda::tiles_mx_reorder_t>(),
        impl_item<cuda::ref_mx_reorder_t>(),
};

constexpr impl_list_item_t two_reorders_list[] = {
        impl_item<cuda::both_axes_mx_reorder_t>(),
        impl_item<cuda::groups_mx_reorder_t>(),
        impl_item<two_mx_reorders_t<false>>(),
        impl_item<two_mx_reorders_t<true>>(),
};

constexpr impl_list_item_t grouped_reorders_list[] = {
        impl_item<cuda::groups_mx_reorder_t>(),
        impl_item<cuda::ref_grouped_mx_reorder_t>(),
};

constexpr impl_list_item_t grouped_matmul_list[] = {
        impl_item<cuda::sm90_fp8_grouped_matmul_t>(),
        impl_item<cuda::sm90_grouped_matmul_t>(),
        impl_item<cuda::sm80_grouped_matmul_t>(),
        impl_item<cuda::ref_grouped_matmul_t>(),
};

constexpr impl_list_item_t grouped_backward_weights_list[] = {
        impl_item<cuda::sm90_grouped_backward_weights_t>(),
        impl_item<cuda::ref_grouped_backward_weights_t>(),
};

constexpr impl_list_item_t moe_route_list[] = {
        impl_item<cuda::moe_route_t>(),
        impl_item<cuda::ref_moe_route_t>(),
};

constexpr impl_list_item_t moe_permute_list[] = {
        impl_item<cuda::moe_permute_t>(),
        impl_item<cuda::ref_moe_permute_t>(),
};

constexpr impl_list_item_t moe_unpermute_list[] = {
        impl_item<cuda::moe_unpermute_t>(),
        impl_item<cuda::ref_moe_unpermute_t>(),
};

template <size_t n>
constexpr impl_list_t list(const impl_list_item_t (&items)[n]) {
    return {items, n};
}

} // namespace

impl_list_t cuda_impl_list(mxdnn_primitive_kind_t kind) {
    switch (kind) {
    case mxdnn_primitive_kind_mx_matmul: return list(mx_matmul_list);
    case mxdnn_primitive_kind_mx_reorder: return list(mx_reorder_list);
    case mxdnn_primitive_kind_grouped_matmul: return list(grouped_matmul_list);
    case mxdnn_primitive_kind_grouped_matmul_backward_weights: return list(grouped_backward_weights_list);
    case mxdnn_primitive_kind_moe_route: return list(moe_route_list);
    case mxdnn_primitive_kind_moe_permute: return list(moe_permute_list);
    case mxdnn_primitive_kind_moe_unpermute: return list(moe_unpermute_list);
    default: return {nullptr, 0};
    }
}

impl_list_t cuda_two_reorders_list() { return list(two_reorders_list); }
impl_list_t cuda_grouped_reorders_list() { return list(grouped_reorders_list); }

} // namespace impl
} // namespace mxdnn

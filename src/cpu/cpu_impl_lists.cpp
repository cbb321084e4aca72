// SPDX-License-Identifier: Apache-2.0
// The CPU's implementations, best first. An entry says what it takes in its own pd_t::init.
#include "cpu/cpu_impl_lists.hpp"

#include "common/grouped_mx_reorder.hpp"
#include "common/two_mx_reorders.hpp"
#include "cpu/ref/ref_grouped_backward_weights.hpp"
#include "cpu/ref/ref_grouped_matmul.hpp"
#include "cpu/ref/ref_moe_permute.hpp"
#include "cpu/ref/ref_moe_route.hpp"
#include "cpu/ref/ref_mx_matmul.hpp"
#include "cpu/ref/ref_mx_reorder.hpp"
#include "cpu/x64/gradient/jit_grouped_backward_weights.hpp"
#include "cpu/x64/jit_grouped_matmul.hpp"
#include "cpu/x64/jit_mx_matmul.hpp"
#include "cpu/x64/moe/simd_moe_permute.hpp"
#include "cpu/x64/simd_mx_reorder.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr impl_list_item_t mx_matmul_list[] = {
        impl_item<x64::jit_mx_matmul_t<x64::cpu_isa_t::avx512_core_amx>>(),
        impl_item<x64::jit_mx_matmul_t<x64::cpu_isa_t::avx512_core_bf16>>(),
        impl_item<x64::jit_mx_matmul_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::jit_mx_matmul_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_mx_matmul_t>(),
};

constexpr impl_list_item_t mx_reorder_list[] = {
        impl_item<x64::simd_mx_reorder_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::simd_mx_reorder_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_mx_reorder_t>(),
};

constexpr impl_list_item_t two_reorders_list[] = {
        impl_item<two_mx_reorders_t<false>>(),
        impl_item<two_mx_reorders_t<true>>(),
};

constexpr impl_list_item_t grouped_reorders_list[] = {
        impl_item<grouped_mx_reorder_t<false>>(),
        impl_item<grouped_mx_reorder_t<true>>(),
};

constexpr impl_list_item_t grouped_matmul_list[] = {
        impl_item<x64::jit_grouped_matmul_t<x64::cpu_isa_t::avx512_core_amx>>(),
        impl_item<x64::jit_grouped_matmul_t<x64::cpu_isa_t::avx512_core_bf16>>(),
        impl_item<x64::jit_grouped_matmul_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::jit_grouped_matmul_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_grouped_matmul_t>(),
};

constexpr impl_list_item_t grouped_backward_weights_list[] = {
        impl_item<x64::jit_grouped_backward_weights_t<x64::cpu_isa_t::avx512_core_amx>>(),
        impl_item<x64::jit_grouped_backward_weights_t<x64::cpu_isa_t::avx512_core_bf16>>(),
        impl_item<x64::jit_grouped_backward_weights_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::jit_grouped_backward_weights_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_grouped_backward_weights_t>(),
};

constexpr impl_list_item_t moe_route_list[] = {
        impl_item<x64::simd_moe_route_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::simd_moe_route_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_moe_route_t>(),
};

constexpr impl_list_item_t moe_permute_list[] = {
        impl_item<x64::rows_moe_permute_t>(),
        impl_item<ref_moe_permute_t>(),
};

constexpr impl_list_item_t moe_unpermute_list[] = {
        impl_item<x64::simd_moe_unpermute_t<x64::cpu_isa_t::avx512_core>>(),
        impl_item<x64::simd_moe_unpermute_t<x64::cpu_isa_t::avx2>>(),
        impl_item<ref_moe_unpermute_t>(),
};

template <size_t n>
constexpr impl_list_t list(const impl_list_item_t (&items)[n]) {
    return {items, n};
}

} // namespace

impl_list_t cpu_impl_list(mxdnn_primitive_kind_t kind) {
    switch (kind) {
    case mxdnn_primitive_kind_mx_matmul: return list(mx_matmul_list);
    case mxdnn_primitive_kind_grouped_matmul: return list(grouped_matmul_list);
    case mxdnn_primitive_kind_grouped_matmul_backward_weights: return list(grouped_backward_weights_list);
    case mxdnn_primitive_kind_mx_reorder: return list(mx_reorder_list);
    case mxdnn_primitive_kind_moe_route: return list(moe_route_list);
    case mxdnn_primitive_kind_moe_permute: return list(moe_permute_list);
    case mxdnn_primitive_kind_moe_unpermute: return list(moe_unpermute_list);
    default: return {nullptr, 0};
    }
}

impl_list_t cpu_two_reorders_list() { return list(two_reorders_list); }
impl_list_t cpu_grouped_reorders_list() { return list(grouped_reorders_list); }

} // namespace impl
} // namespace mxdnn

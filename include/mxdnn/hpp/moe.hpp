// SPDX-License-Identifier: Apache-2.0
/// @file
/// moe_route, moe_permute and moe_unpermute: which rows go to which expert, and the rows to experts and back
/// (doc/reference has a page for each).
#ifndef MXDNN_HPP_MOE_HPP
#define MXDNN_HPP_MOE_HPP

#include "mxdnn/hpp/primitive_desc.hpp"

namespace mxdnn {

/// Router logits to the top-k experts of each token.
struct moe_route : public primitive {
    /// Flags, which may be combined.
    enum flags : unsigned {
        none = mxdnn_route_flags_none,
        renormalize = mxdnn_route_renormalize,
        bias = mxdnn_route_bias,
        group_max = mxdnn_route_group_max,
    };

    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// Logits are {T, E}. `topk` experts are chosen for each token, from the best `topk_groups` of
        /// `expert_groups` groups (1: no groups). `route_flags` are moe_route::flags.
        primitive_desc(const engine &aengine, const memory::desc &logits_desc, memory::dim topk,
                algorithm scoring, unsigned route_flags, memory::dim expert_groups, memory::dim topk_groups,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_route_primitive_desc_create(&pd, aengine.get(),
                    logits_desc.get(), topk, static_cast<mxdnn_alg_kind_t>(scoring), route_flags,
                    expert_groups, topk_groups, attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_route");
        }
    };

    /// Empty.
    moe_route() = default;
    /// Generates the code, or takes it from the cache.
    explicit moe_route(const primitive_desc &pd) : primitive(pd) {}
};

/// Rows that are sorted by source rank and then by local expert become sorted by expert, with padding.
struct moe_permute : public primitive {
    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// Rows are {R, D}. Those of each expert are padded to a multiple of `alignment` rows.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &dst_desc,
                memory::dim source_ranks, memory::dim local_experts, memory::dim alignment,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_permute_primitive_desc_create(&pd, aengine.get(),
                    src_desc.get(), dst_desc.get(), source_ranks, local_experts, alignment, attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_permute");
        }
    };

    /// Empty.
    moe_permute() = default;
    /// Generates the code, or takes it from the cache.
    explicit moe_permute(const primitive_desc &pd) : primitive(pd) {}
};

/// Rows in the order of experts back to the tokens. Padding is dropped.
struct moe_unpermute : public primitive {
    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// Rows are {R, D} in the source and {T, D} in the destination. The rows of a token are summed by
        /// their weights.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &dst_desc,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_unpermute_primitive_desc_create(
                    &pd, aengine.get(), src_desc.get(), dst_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_unpermute");
        }
    };

    /// Empty.
    moe_unpermute() = default;
    /// Generates the code, or takes it from the cache.
    explicit moe_unpermute(const primitive_desc &pd) : primitive(pd) {}
};

} // namespace mxdnn

#endif

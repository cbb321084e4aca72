// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups: each group is a matrix of its own, whose blocks and tiles of scales begin
// anew.
#pragma once

#include <memory>

#include "common/group_scales.hpp"
#include "common/primitive.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {

// Whether the rows of the problem are in groups.
bool is_grouped_reorder(const problem_t &p);
// The reorder of one group, with any number of rows.
problem_t reorder_of_group(const problem_t &p);

// The scales of a side, and the groups of an execution.
group_scales_t group_scales(const memory_desc_t &md, const arg_attr_t &a);
row_groups_t groups_of_reorder(const exec_ctx_t &ctx);

status_t prepare_grouped_reorder(problem_t &p);
void list_args_grouped_reorder(pd_t &pd);
// Checks the rows, the scales and the contents of the offsets, before anything is written.
status_t check_grouped_reorder_exec(const problem_t &p, const exec_ctx_t &ctx);

// One group after the other, by the first implementation that takes such a matrix, or by the reference.
template <bool reference>
struct grouped_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = reference ? "ref:groups" : "groups:any";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::unique_ptr<impl::pd_t> group;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
    std::shared_ptr<primitive_impl_t> group;
};

extern template struct grouped_mx_reorder_t<false>;
extern template struct grouped_mx_reorder_t<true>;

} // namespace impl
} // namespace mxdnn

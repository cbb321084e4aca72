// SPDX-License-Identifier: Apache-2.0
// mx_reorder to two destinations by reorders to each: for what no implementation writes in one pass.
#pragma once

#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

// The arguments of an execution that belong to one of the destinations, in the form of a reorder to it alone.
class one_reorder_t {
public:
    // `pd` is that of the reorder to this destination.
    one_reorder_t(const exec_ctx_t &both, bool second, const pd_t &pd);
    one_reorder_t(const one_reorder_t &) = delete;
    one_reorder_t &operator=(const one_reorder_t &) = delete;

    exec_ctx_t ctx(exec_record_t *record) const {
        return {pd_, both_.stream, args_, nargs_, both_.nested(pd_).scratchpad, record};
    }

private:
    // src and dst with scales, zero points and global scale each, and a scratchpad.
    static constexpr int most = 9;
    const exec_ctx_t &both_;
    const pd_t &pd_;
    memory_t turned_; // the source as this reorder sees it, if that is another way
    mxdnn_exec_arg_t args_[most];
    int nargs_ = 0;
};

// Each reorder by the first implementation that takes it, or by the reference.
template <bool reference>
struct two_mx_reorders_t : primitive_impl_t {
    static constexpr const char *impl_name = reference ? "ref:two" : "two:any";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::unique_ptr<impl::pd_t> each[2];
    };

    status_t execute(const exec_ctx_t &ctx) const override;
    std::shared_ptr<primitive_impl_t> each[2];
};

extern template struct two_mx_reorders_t<false>;
extern template struct two_mx_reorders_t<true>;

} // namespace impl
} // namespace mxdnn

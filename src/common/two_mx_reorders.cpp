// SPDX-License-Identifier: Apache-2.0
#include "common/two_mx_reorders.hpp"

#include <algorithm>

#include "common/problem_reorder.hpp"

namespace mxdnn {
namespace impl {

one_reorder_t::one_reorder_t(const exec_ctx_t &both, bool second, const pd_t &pd) : both_(both), pd_(pd) {
    constexpr int parts = MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_ATTR_ZERO_POINTS | MXDNN_ARG_ATTR_GLOBAL_SCALE;
    const problem_t &p = both.pd.problem;
    const bool turned = second ? is_turned(p.dst_1, p.attr.dst_1) : is_turned(p.dst, p.attr.dst);
    if (turned) {
        // The transposed source is the same bytes.
        const memory_t &src = *both.memory(MXDNN_ARG_SRC);
        turned_.md = pd.problem.src;
        turned_.engine = src.engine;
        turned_.handle = src.handle;
    }
    for (int i = 0; i < both.nargs && nargs_ < most; i++) {
        const mxdnn_exec_arg_t &a = both.args[i];
        const bool first_dst = (a.arg & ~parts) == MXDNN_ARG_DST,
                   second_dst = (a.arg & ~parts) == MXDNN_ARG_DST_1;
        if (second ? first_dst : second_dst) continue;
        args_[nargs_++] = {second_dst ? (a.arg & parts) | MXDNN_ARG_DST : a.arg,
                turned && a.arg == MXDNN_ARG_SRC ? &turned_ : a.memory};
    }
}

template <bool reference>
reason_t two_mx_reorders_t<reference>::pd_t::init() {
    for (int i = 0; i < 2; i++) {
        const problem_t one = reorder_to(problem, i == 1);
        const impl_list_t list = impl_list(one);
        reason_t r = no("dst", "no implementation", "one");
        for (size_t j = reference ? list.size - 1 : 0; j < list.size; j++) {
            r = list.items[j].create(each[i], one);
            if (r.ok()) break;
        }
        if (!r.ok()) return r;
        primitive_kind(one.kind)->list_args(*each[i]);
    }
    // Executes one after the other.
    scratch.book(scratch_t::nested, std::max(each[0]->scratch.size(), each[1]->scratch.size()));
    return yes();
}

template <bool reference>
status_t two_mx_reorders_t<reference>::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    auto both = std::make_shared<two_mx_reorders_t>();
    for (int i = 0; i < 2; i++) MXDNN_CHECK(each[i]->create_primitive(both->each[i]));
    primitive = std::move(both);
    return mxdnn_success;
}

template <bool reference>
status_t two_mx_reorders_t<reference>::execute(const exec_ctx_t &ctx) const {
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    for (int i = 0; i < 2; i++) {
        exec_record_t record;
        MXDNN_CHECK(each[i]->execute(
                one_reorder_t(ctx, i == 1, *pd.each[i]).ctx(ctx.record ? &record : nullptr)));
        if (!ctx.record) continue;
        ctx.record->add_kernel(record.kernels.empty() ? pd.each[i]->name() : record.kernels);
        ctx.record->threads = std::max(ctx.record->threads, record.threads);
    }
    return mxdnn_success;
}

template struct two_mx_reorders_t<false>;
template struct two_mx_reorders_t<true>;

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "common/primitive_desc.hpp"

#include "common/backend.hpp"
#include "common/backward_weights_exec.hpp"
#include "common/grouped_exec.hpp"
#include "common/operands.hpp"
#include "common/problem_util.hpp"
#include "common/verbose.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr primitive_kind_t primitive_kinds[] = {
        {mxdnn_primitive_kind_mx_matmul, "mx_matmul", prepare_mx_matmul, list_args_plain,
                check_runtime_dims_plain},
        {mxdnn_primitive_kind_mx_reorder, "mx_reorder", prepare_mx_reorder, list_args_mx_reorder,
                check_runtime_dims_mx_reorder},
        {mxdnn_primitive_kind_grouped_matmul, "grouped_matmul", prepare_grouped_matmul,
                list_grouped_matmul_args, check_grouped_exec},
        {mxdnn_primitive_kind_grouped_matmul_backward_weights, "grouped_matmul_backward_weights",
                prepare_grouped_matmul_backward_weights, list_args_grouped_backward_weights,
                check_backward_weights_exec},
        {mxdnn_primitive_kind_moe_route, "moe_route", prepare_moe_route, list_args_moe_route,
                check_runtime_dims_moe_route},
        {mxdnn_primitive_kind_moe_permute, "moe_permute", prepare_moe_permute, list_args_moe_permute,
                check_runtime_dims_moe_permute},
        {mxdnn_primitive_kind_moe_unpermute, "moe_unpermute", prepare_moe_unpermute, list_args_moe_unpermute,
                check_runtime_dims_moe_unpermute},
};

// The arguments of this kind of primitive, and the scratchpad if the user passes it.
void list_args(pd_t &pd) {
    pd.args.clear();
    primitive_kind(pd.problem.kind)->list_args(pd);
    if (pd.problem.attr.scratchpad == mxdnn_scratchpad_mode_user && pd.scratch.size() > 0) {
        memory_desc_t s;
        const dim_t dims[1] = {pd.scratch.size()};
        init_strided(s, 1, dims, mxdnn_u8, nullptr);
        pd.args.push_back({MXDNN_ARG_SCRATCHPAD, arg_use_t::output, s, false});
    }
}

// Checks that each listed argument is possible: its size is within the limits, and a tensor that is written
// has a place for each element.
status_t check_listed(const pd_t &pd) {
    for (const arg_desc_t &a : pd.args) {
        if (is_zero(a.md))
            return fail(mxdnn_invalid_arguments,
                    "the size of %s is beyond 2^50; check the dimensions for a mistake", arg_name(a.arg));
        if (a.use == arg_use_t::output) MXDNN_CHECK(check_written(arg_name(a.arg), a.md));
    }
    return mxdnn_success;
}

} // namespace

const primitive_kind_t *primitive_kind(mxdnn_primitive_kind_t kind) {
    for (const primitive_kind_t &k : primitive_kinds)
        if (k.kind == kind) return &k;
    return nullptr;
}

const char *primitive_kind_name(mxdnn_primitive_kind_t kind) {
    const primitive_kind_t *k = primitive_kind(kind);
    return k ? k->name : "undef";
}

status_t create_primitive_desc(std::unique_ptr<primitive_desc_t> &result, problem_t &&problem) {
    const backend_t &backend = exec_backend(problem);
    backend.fix_settings();
    problem.max_concurrency = backend.max_concurrency();
    const double start = verbose(verbose_profile_create) ? now_ms() : 0;
    auto p = std::make_shared<problem_t>(std::move(problem));
    const primitive_kind_t *kind = primitive_kind(p->kind);
    if (!kind || !kind->prepare)
        return fail(mxdnn_unimplemented, "%s has no implementation for %s engines in this release",
                primitive_kind_name(p->kind), find_backend(p->engine->kind())->name());
    if (is_zero(p->dst_1) && !p->attr.dst_1.is_default())
        return fail(mxdnn_invalid_arguments, "there are attributes of dst_1, which this %s does not have",
                kind->name);
    if (is_zero(p->diff_dst) && !p->attr.diff_dst.is_default())
        return fail(mxdnn_invalid_arguments, "there are attributes of diff_dst, which %s does not have",
                kind->name);
    MXDNN_CHECK(kind->prepare(*p));
    auto pd = std::make_unique<primitive_desc_t>();
    pd->problem = p;
    pd->list = backend.impl_list(*p);
    const status_t status = pd->advance(0);
    if (status == mxdnn_last_impl_reached)
        return fail(mxdnn_unimplemented, "no implementation of %s takes %s; last refusal: %s",
                primitive_kind_name(p->kind), to_string(*p).c_str(), pd->last_refusal.c_str());
    MXDNN_CHECK(status);
    if (verbose(verbose_profile_create))
        verbose_line("primitive,create_pd,%s,%s,%s,%g", primitive_kind_name(p->kind), pd->pd->name(),
                to_string(*p).c_str(), now_ms() - start);
    result = std::move(pd);
    return mxdnn_success;
}

status_t query(const primitive_desc_t &pd, mxdnn_query_t what, int index, void *result) {
    const problem_t &p = pd.pd->problem;
    const auto count = [&](arg_use_t use) {
        int n = 0;
        int last = 0; // the forms of one argument follow each other
        for (const arg_desc_t &a : pd.pd->args) {
            n += a.use == use && a.arg != last;
            last = a.arg;
        }
        return n;
    };
    switch (what) {
    case mxdnn_query_engine:
    case mxdnn_query_scratchpad_engine:
    case mxdnn_query_reorder_dst_engine:
        *static_cast<mxdnn_engine_t *>(result) = const_cast<engine_t *>(p.engine);
        return mxdnn_success;
    case mxdnn_query_reorder_src_engine:
        if (!p.src_engine)
            return fail(mxdnn_invalid_arguments, "%s has one engine; ask with query_engine",
                    primitive_kind_name(p.kind));
        *static_cast<mxdnn_engine_t *>(result) = const_cast<engine_t *>(p.src_engine);
        return mxdnn_success;
    case mxdnn_query_primitive_kind:
        *static_cast<mxdnn_primitive_kind_t *>(result) = p.kind;
        return mxdnn_success;
    case mxdnn_query_num_of_inputs_s32:
        *static_cast<int *>(result) = count(arg_use_t::input);
        return mxdnn_success;
    case mxdnn_query_num_of_outputs_s32:
        *static_cast<int *>(result) = count(arg_use_t::output);
        return mxdnn_success;
    case mxdnn_query_memory_consumption_s64:
        *static_cast<int64_t *>(result) =
                p.attr.scratchpad == mxdnn_scratchpad_mode_library ? pd.pd->scratch.size() : 0;
        return mxdnn_success;
    case mxdnn_query_impl_info_str: *static_cast<const char **>(result) = pd.pd->name(); return mxdnn_success;
    default: break;
    }
    if (const memory_desc_t *md = query_md(pd, what, index)) {
        *static_cast<const_mxdnn_memory_desc_t *>(result) = md;
        return mxdnn_success;
    }
    return fail(mxdnn_invalid_arguments, "query %d with index %d has no answer for %s", int(what), index,
            primitive_kind_name(p.kind));
}

const memory_desc_t *query_md(const primitive_desc_t &pd, mxdnn_query_t what, int index) {
    const problem_t &p = pd.pd->problem;
    const auto present = [](const memory_desc_t &md) { return is_zero(md) ? nullptr : &md; };
    for (const operand_t &o : operands)
        if (o.query == what && o.query_index == index) return present(p.*o.md);
    switch (what) {
    case mxdnn_query_scratchpad_md: return present(pd.scratchpad_md);
    case mxdnn_query_exec_arg_md:
        for (const arg_desc_t &a : pd.pd->args)
            if (a.arg == index) return &a.md;
        return nullptr;
    default: return nullptr;
    }
}

} // namespace impl
} // namespace mxdnn

mxdnn_status_t mxdnn_primitive_desc::advance(size_t from) {
    using namespace mxdnn::impl;
    for (size_t i = from; i < list.size; i++) {
        std::unique_ptr<pd_t> candidate;
        reason_t r = list.items[i].create(candidate, *problem);
        if (r.ok() && candidate->scratch.size() > max_dim)
            r = refuse(mxdnn_unimplemented, "its scratchpad would be %lld bytes, beyond 2^40",
                    (long long)candidate->scratch.size());
        if (!r.ok()) {
            if (verbose(verbose_dispatch))
                verbose_line("primitive,create:dispatch,%s,%s,%s", primitive_kind_name(problem->kind),
                        list.items[i].name, r.text);
            if (r.status != mxdnn_unimplemented) return fail(r.status, "%s", r.text);
            last_refusal = std::string(list.items[i].name) + ": " + r.text;
            continue;
        }
        list_args(*candidate);
        MXDNN_CHECK(check_listed(*candidate));
        index = i;
        scratchpad_md = mxdnn_memory_desc();
        if (candidate->problem.attr.scratchpad == mxdnn_scratchpad_mode_user
                && candidate->scratch.size() > 0) {
            const dim_t dims[1] = {candidate->scratch.size()};
            MXDNN_CHECK(init_strided(scratchpad_md, 1, dims, mxdnn_u8, nullptr));
        }
        pd = std::move(candidate);
        return mxdnn_success;
    }
    return mxdnn_last_impl_reached;
}

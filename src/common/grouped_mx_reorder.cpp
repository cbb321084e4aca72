// SPDX-License-Identifier: Apache-2.0
#include "common/grouped_mx_reorder.hpp"

#include <algorithm>

#include "common/formats/plain_bits.hpp"
#include "common/operands.hpp"
#include "common/primitive.hpp"
#include "common/problem_util.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {

namespace {

bool is_grouped(const memory_desc_t &md) { return md.kind == mxdnn_format_kind_grouped; }

// The scales of a group of a memory, from `first` on.
void bind(const group_scales_t &s, memory_t &part, const memory_t &all, int64_t first, int64_t rows) {
    dim_t dims[2] = {s.length(rows), s.of_rows ? s.columns : div_up(s.columns, s.block)};
    dim_t strides[2] = {all.md.strides[0], all.md.strides[1]};
    if (s.swizzled) dims[0] = 1, dims[1] = strides[0] = s.length(rows), strides[1] = 1;
    (void)init_strided(part.md, 2, dims, all.md.dt, strides);
    const int64_t at = first * (s.swizzled ? 1 : strides[0]) * data_type_info(all.md.dt)->bits / 8;
    part.engine = all.engine;
    part.handle = static_cast<char *>(all.handle) + at;
}

constexpr int sides[] = {MXDNN_ARG_SRC, MXDNN_ARG_DST, MXDNN_ARG_DST_1};

const memory_desc_t &side_md(const problem_t &p, int arg) {
    return arg == MXDNN_ARG_SRC ? p.src : arg == MXDNN_ARG_DST ? p.dst : p.dst_1;
}

} // namespace

group_scales_t group_scales(const memory_desc_t &md, const arg_attr_t &a) {
    group_scales_t s;
    s.columns = md.dims[1];
    if (!a.scales.set) return s;
    s.of_rows = a.scales.groups[0] > 1;
    s.block = a.scales.groups[s.of_rows ? 0 : 1];
    s.swizzled = a.layout == mxdnn_scales_swizzle_128x4;
    return s;
}

row_groups_t groups_of_reorder(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    row_groups_t g;
    g.grouping = p.attr.row_grouping;
    g.groups = g.ids = g.experts = p.src.grouped.group_count;
    g.rows = ctx.memory(MXDNN_ARG_SRC)->md.dims[0];
    g.bounds = ctx.data<const int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    return g;
}

bool is_grouped_reorder(const problem_t &p) {
    return p.kind == mxdnn_primitive_kind_mx_reorder
           && (is_grouped(p.src) || is_grouped(p.dst) || is_grouped(p.dst_1));
}

problem_t reorder_of_group(const problem_t &p) {
    problem_t one = p;
    for (memory_desc_t *md : {&one.src, &one.dst}) {
        const dim_t dims[2] = {runtime_dim, md->dims[1]};
        memory_desc_t plain;
        // The layout of grouped rows, which a grouped descriptor of the same dims has passed.
        (void)init_strided(plain, 2, dims, md->dt, nullptr);
        *md = plain;
    }
    return one;
}

status_t prepare_grouped_reorder(problem_t &p) {
    for (const int arg : sides) {
        const memory_desc_t &md = side_md(p, arg);
        if (is_zero(md) && arg == MXDNN_ARG_DST_1) continue;
        if (!is_grouped(md))
            return fail(mxdnn_invalid_arguments,
                    "%s is %s, but another side has rows in groups; all sides are grouped descriptors then",
                    arg_name(arg), to_string(md).c_str());
        if (md.grouped.group_count != p.src.grouped.group_count || md.dims[1] != p.src.dims[1]
                || !dims_agree(md.dims[0], p.src.dims[0]))
            return fail(mxdnn_invalid_shape,
                    "src is %s and %s is %s; both have the same groups, rows and columns",
                    to_string(p.src).c_str(), arg_name(arg), to_string(md).c_str());
        const arg_attr_t &a = *p.attr.arg(arg);
        if (a.scales.set && (a.scales.dt != mxdnn_e8m0 || a.zero_points.set || a.global))
            return fail(mxdnn_unimplemented,
                    "%s has %s scales; rows in groups are f32, bf16, f16 or of an MX format (e8m0 scales)",
                    arg_name(arg), data_type_name(a.scales.dt));
    }
    const mxdnn_row_grouping_t grouping = p.attr.row_grouping;
    if (grouping != mxdnn_row_grouping_ends && grouping != mxdnn_row_grouping_starts)
        return fail(mxdnn_invalid_arguments,
                "the row grouping is %d; a reorder of rows in groups takes GROUP_OFFSETS, which are ends (0) or "
                "starts (1)",
                int(grouping));
    if (p.src.dims[1] == runtime_dim)
        return fail(mxdnn_unimplemented, "the columns of src are a runtime dim; only rows may be");
    for (const bool second : {false, true}) {
        if (second && is_zero(p.dst_1)) continue;
        problem_t one = reorder_of_group(reorder_to(p, second));
        MXDNN_CHECK(prepare_mx_reorder(one));
        p.attr.src = one.attr.src;
        (second ? p.attr.dst_1 : p.attr.dst) = one.attr.dst;
    }
    return mxdnn_success;
}

void list_args_grouped_reorder(pd_t &pd) {
    const problem_t &p = pd.problem;
    const auto plain = [](data_type_t dt, std::initializer_list<dim_t> dims) {
        memory_desc_t md;
        init_strided(md, int(dims.size()), dims.begin(), dt, nullptr);
        return md;
    };
    for (const int arg : sides) {
        const memory_desc_t &md = side_md(p, arg);
        if (is_zero(md)) continue;
        const arg_attr_t &a = *p.attr.arg(arg);
        const arg_use_t use = arg == MXDNN_ARG_SRC ? arg_use_t::input : arg_use_t::output;
        pd.args.push_back({arg, use, md, false, false, a.packing});
        const size_t before = pd.args.size();
        list_quant_args(pd, arg, md, a, use);
        const group_scales_t scales = group_scales(md, a);
        // How long scales are depends on the groups.
        for (size_t i = before; i < pd.args.size(); i++) {
            arg_desc_t &d = pd.args[i];
            if (scales.swizzled)
                d.md = plain(d.md.dt, {1, runtime_dim});
            else
                d.md = plain(d.md.dt, {runtime_dim, d.md.dims[1]});
        }
    }
    // A runtime dim, so that the contents are always checked.
    pd.args.push_back({MXDNN_ARG_GROUP_OFFSETS, arg_use_t::input, plain(mxdnn_s32, {runtime_dim}), false});
}

status_t check_grouped_reorder_exec(const problem_t &p, const exec_ctx_t &ctx) {
    const dim_t want = p.src.grouped.group_count + (p.attr.row_grouping == mxdnn_row_grouping_starts);
    if (const dim_t n = ctx.memory(MXDNN_ARG_GROUP_OFFSETS)->md.dims[0]; n != want)
        return fail(mxdnn_invalid_arguments, "GROUP_OFFSETS has %lld entries; %lld groups have %lld",
                (long long)n, (long long)p.src.grouped.group_count, (long long)want);
    const row_groups_t groups = groups_of_reorder(ctx);
    // A device's offsets are not read here. Its kernels write no group whose scales end after the memory
    // does.
    const bool on_host = !exec_engine(p).device;
    if (on_host) MXDNN_CHECK(groups.check());
    for (const int arg : sides) {
        const memory_t *m = ctx.memory(arg);
        if (!m) continue;
        if (m->md.dims[0] != groups.rows)
            return fail(mxdnn_invalid_arguments, "%s has %lld rows and src %lld; they have the same rows",
                    arg_name(arg), (long long)m->md.dims[0], (long long)groups.rows);
        const group_scales_t scales = group_scales(m->md, *p.attr.arg(arg));
        const memory_t *s = ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
        if (!s || !on_host) continue;
        int64_t need = 0;
        for (int64_t g = 0; g < groups.groups; g++) {
            const row_group_t rows = groups.group(g);
            // Groups may begin after the first row. Scales that are where their rows are begin there, too.
            if (scales.follows_rows() && rows.count > 0) need = rows.first;
            need += scales.length(rows.count);
        }
        const int dim = scales.swizzled ? 1 : 0;
        if (s->md.dims[dim] < need)
            return fail(mxdnn_invalid_arguments, "dim %d of %s is %lld; these groups need %lld", dim,
                    arg_name(MXDNN_ARG_ATTR_SCALES | arg), (long long)s->md.dims[dim], (long long)need);
    }
    return mxdnn_success;
}

template <bool reference>
reason_t grouped_mx_reorder_t<reference>::pd_t::init() {
    const problem_t one = reorder_of_group(problem);
    const impl_list_t list = impl_list(one);
    reason_t r = no("rows", "no implementation", "one");
    for (size_t i = reference ? list.size - 1 : 0; i < list.size; i++) {
        r = list.items[i].create(group, one);
        if (r.ok()) break;
    }
    if (!r.ok()) return r;
    primitive_kind(one.kind)->list_args(*group);
    scratch.book(scratch_t::nested, group->scratch.size());
    return yes();
}

template <bool reference>
status_t grouped_mx_reorder_t<reference>::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    auto made = std::make_shared<grouped_mx_reorder_t>();
    MXDNN_CHECK(group->create_primitive(made->group));
    primitive = std::move(made);
    return mxdnn_success;
}

template <bool reference>
status_t grouped_mx_reorder_t<reference>::execute(const exec_ctx_t &ctx) const {
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    const problem_t &p = pd.problem;
    const row_groups_t groups = groups_of_reorder(ctx);
    constexpr int both[] = {MXDNN_ARG_SRC, MXDNN_ARG_DST};
    int64_t first_scale[2] = {0, 0};
    for (int64_t g = 0; g < groups.groups; g++) {
        const row_group_t rows = groups.group(g);
        memory_t parts[4]; // rows and scales of both sides
        mxdnn_exec_arg_t args[4];
        int n = 0;
        for (int side = 0; side < 2; side++) {
            const memory_t &all = *ctx.memory(both[side]);
            const arg_attr_t &a = *p.attr.arg(both[side]);
            const int64_t row_bytes =
                    plain_row_bytes(all.md.dims[1], data_type_info(all.md.dt)->bits, a.packing);
            const dim_t dims[2] = {rows.count, all.md.dims[1]};
            (void)init_strided(parts[n].md, 2, dims, all.md.dt, nullptr);
            parts[n].engine = all.engine;
            parts[n].handle = static_cast<char *>(all.handle) + rows.first * row_bytes;
            args[n] = {both[side], &parts[n]};
            n++;
            const memory_t *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | both[side]);
            if (!scales) continue;
            const group_scales_t s = group_scales(all.md, a);
            bind(s, parts[n], *scales, s.follows_rows() ? rows.first : first_scale[side], rows.count);
            first_scale[side] += s.length(rows.count);
            args[n] = {MXDNN_ARG_ATTR_SCALES | both[side], &parts[n]};
            n++;
        }
        if (rows.count == 0) continue;
        exec_ctx_t nested = ctx.nested(*pd.group);
        nested.args = args;
        nested.nargs = n;
        MXDNN_CHECK(group->execute(nested));
    }
    if (ctx.record && ctx.record->kernels.empty()) ctx.record->add_kernel(pd.group->name());
    return mxdnn_success;
}

template struct grouped_mx_reorder_t<false>;
template struct grouped_mx_reorder_t<true>;

} // namespace impl
} // namespace mxdnn

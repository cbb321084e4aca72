// SPDX-License-Identifier: Apache-2.0
#include "common/primitive.hpp"

#include "common/operands.hpp"
#include "common/overlap.hpp"
#include "common/primitive_cache.hpp"
#include "common/scratchpad.hpp"
#include "common/verbose.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Whether a memory fits what the descriptor says about its argument.
status_t check_memory(const problem_t &p, const arg_desc_t &want, const memory_t &got) {
    const memory_desc_t &w = want.md, &g = got.md;
    // Only the source of a reorder may belong to another engine. Engines on the host share memory.
    const bool of_src =
            (want.arg & ~(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_ATTR_ZERO_POINTS | MXDNN_ARG_ATTR_GLOBAL_SCALE))
            == MXDNN_ARG_SRC;
    const engine_t &engine = of_src && p.src_engine ? *p.src_engine : *p.engine;
    const bool wrong_kind = got.engine->kind() != engine.kind()
                            && !(p.kind == mxdnn_primitive_kind_mx_reorder && !is_packed(w));
    if (wrong_kind || got.engine->device != engine.device)
        return fail(mxdnn_invalid_arguments, "the memory of %s belongs to engine %s, the primitive to %s",
                arg_name(want.arg), got.engine->target->name, engine.target->name);
    if (w.dt != g.dt)
        return fail(mxdnn_invalid_arguments, "%s is %s, but the primitive was created for %s",
                arg_name(want.arg), to_string(g).c_str(), to_string(w).c_str());
    if (w.kind != g.kind || w.ndims != g.ndims)
        return fail(mxdnn_invalid_arguments, "%s is %s, but the primitive was created for %s",
                arg_name(want.arg), to_string(g).c_str(), to_string(w).c_str());
    if (is_packed(w)) {
        if (!equal(w, g))
            return fail(mxdnn_invalid_arguments, "%s is %s, but the primitive was created for %s",
                    arg_name(want.arg), to_string(g).c_str(), to_string(w).c_str());
        if (reinterpret_cast<uintptr_t>(got.handle) % 16)
            return fail(mxdnn_invalid_arguments, "%s are at address %p; packed bytes need 16-byte alignment",
                    arg_name(want.arg), got.handle);
    } else {
        if (w.kind == mxdnn_format_kind_grouped && w.grouped.group_count != g.grouped.group_count)
            return fail(mxdnn_invalid_arguments, "%s has %lld groups, but the primitive was created for %lld",
                    arg_name(want.arg), (long long)g.grouped.group_count, (long long)w.grouped.group_count);
        for (int i = 0; i < w.ndims; i++) {
            if (g.dims[i] == runtime_dim || g.strides[i] == runtime_dim)
                return fail(mxdnn_invalid_arguments,
                        "dim %d of %s is a runtime value (%s); an execution takes memory of a descriptor with "
                        "its actual dims and strides",
                        i, arg_name(want.arg), to_string(g).c_str());
            if (w.dims[i] != runtime_dim && w.dims[i] != g.dims[i])
                return fail(mxdnn_invalid_arguments,
                        "dim %d of %s is %lld, but the primitive was created for %lld", i, arg_name(want.arg),
                        (long long)g.dims[i], (long long)w.dims[i]);
        }
        // Values of several bytes are read and written by ordinary loads and stores.
        const auto *type = data_type_info(g.dt);
        const int bytes = type && type->bits > 8 ? type->bits / 8 : 1;
        if (reinterpret_cast<uintptr_t>(got.handle) % unsigned(bytes) && size_of(g) > 0)
            return fail(mxdnn_invalid_arguments,
                    "%s is at address %p; %s values need an address that is a multiple of %d",
                    arg_name(want.arg), got.handle, data_type_name(g.dt), bytes);
        // The stride of a dim of one element has no meaning.
        for (int i = 0; i < w.ndims && !want.any_strides; i++)
            if (g.dims[i] > 1 && w.strides[i] != runtime_dim && w.strides[i] != g.strides[i])
                return fail(mxdnn_invalid_arguments,
                        "stride %d of %s is %lld, but the primitive was created for %lld", i,
                        arg_name(want.arg), (long long)g.strides[i], (long long)w.strides[i]);
    }
    if (want.use == arg_use_t::output) MXDNN_CHECK(check_written(arg_name(want.arg), g));
    if (want.packing == mxdnn_element_packing_dense) MXDNN_CHECK(check_stored_dense(arg_name(want.arg), g));
    if (!got.handle && size_of(g) > 0)
        return fail(mxdnn_invalid_arguments, "the memory of %s has no data (a null handle) for %lld bytes",
                arg_name(want.arg), (long long)size_of(g));
    return mxdnn_success;
}

// Whether one of them ends before the other begins: a quick answer for almost all of them.
bool apart(const memory_t &a, const memory_t &b) {
    const char *const x = static_cast<const char *>(a.handle), *const y = static_cast<const char *>(b.handle);
    return a.bytes >= 0 && b.bytes >= 0 && (x + a.bytes <= y || y + b.bytes <= x);
}

status_t check_overlap(const exec_ctx_t &ctx) {
    for (const arg_desc_t &a : ctx.pd.args) {
        if (a.use != arg_use_t::output) continue;
        const memory_t *out = ctx.memory(a.arg);
        if (!out) continue; // optional, not passed
        for (const arg_desc_t &b : ctx.pd.args) {
            if (a.arg == b.arg) continue;
            const memory_t *other = ctx.memory(b.arg);
            if (!other || apart(*out, *other)) continue;
            if (overlap({&out->md, static_cast<const char *>(out->handle), a.packing},
                        {&other->md, static_cast<const char *>(other->handle), b.packing}))
                return fail(mxdnn_invalid_arguments,
                        "%s (written) overlaps %s in memory; give each its own bytes", arg_name(a.arg),
                        arg_name(b.arg));
        }
    }
    return mxdnn_success;
}

// The memory of an argument, or null. Passing it twice is an error.
status_t find_arg(const exec_ctx_t &ctx, int arg, const memory_t *&m) {
    m = nullptr;
    for (int i = 0; i < ctx.nargs; i++) {
        if (ctx.args[i].arg != arg) continue;
        if (m)
            return fail(mxdnn_invalid_arguments, "argument %d (%s) is passed twice; once is enough", arg,
                    arg_name(arg));
        m = ctx.args[i].memory;
        if (!m) return fail(mxdnn_invalid_arguments, "argument %d (%s) is a null memory", arg, arg_name(arg));
    }
    return mxdnn_success;
}

status_t check_args(const exec_ctx_t &ctx) {
    const std::vector<arg_desc_t> &args = ctx.pd.args;
    bool runtime = false, writes = false;
    for (size_t i = 0, next = 0; i < args.size(); i = next) {
        const arg_desc_t *form = &args[i];
        const memory_t *m = nullptr;
        MXDNN_CHECK(find_arg(ctx, form->arg, m));
        if (!m && !form->optional)
            return fail(mxdnn_invalid_arguments, "argument %d (%s, %s) is missing", form->arg,
                    arg_name(form->arg), to_string(form->md).c_str());
        // If an argument has several forms: the one with the type and the number of dims of the memory.
        const auto alike = [&](const arg_desc_t &a) {
            return a.md.dt == m->md.dt && a.md.ndims == m->md.ndims;
        };
        runtime = runtime || has_runtime_dims(args[i].md);
        for (next = i + 1; next < args.size() && args[next].arg == args[i].arg; next++)
            if (m && !alike(*form) && alike(args[next])) form = &args[next];
        if (m) MXDNN_CHECK(check_memory(ctx.pd.problem, *form, *m));
        writes = writes || (m && form->use == arg_use_t::output && form->arg != MXDNN_ARG_SCRATCHPAD);
    }
    if (!writes)
        return fail(mxdnn_invalid_arguments, "no output was passed; pass at least one output of %s",
                primitive_kind_name(ctx.pd.problem.kind));
    for (int i = 0; i < ctx.nargs; i++) {
        bool known = ctx.args[i].arg == MXDNN_ARG_SCRATCHPAD;
        for (const arg_desc_t &a : args) known = known || a.arg == ctx.args[i].arg;
        if (!known) {
            const bool in_packed = ctx.args[i].arg < 1 << 22
                                   && (ctx.args[i].arg
                                           & (MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_ATTR_ZERO_POINTS
                                                   | MXDNN_ARG_ATTR_GLOBAL_SCALE));
            return fail(mxdnn_invalid_arguments,
                    "argument %d (%s) was passed, but the primitive has no such argument%s", ctx.args[i].arg,
                    arg_name(ctx.args[i].arg),
                    in_packed ? " (packed bytes hold their scales, zero points and global scale)" : "");
        }
    }
    if (runtime) MXDNN_CHECK(primitive_kind(ctx.pd.problem.kind)->check_runtime_dims(ctx.pd.problem, ctx));
    return check_overlap(ctx);
}

// The problem of this execution: with actual values instead of runtime dims.
problem_t executed_problem(const exec_ctx_t &ctx) {
    problem_t p = ctx.pd.problem;
    for (const operand_t &o : operands) {
        const memory_t *m = ctx.memory(o.arg);
        if (m && has_runtime_dims(p.*o.md)) p.*o.md = m->md;
    }
    return p;
}

// For primitives that move rows by index: the optional index tensors and weights of rows that were passed.
std::string passed_words(const exec_ctx_t &ctx) {
    constexpr int first_of_rows = MXDNN_ARG_GROUP_OFFSETS;
    std::string words;
    for (const arg_desc_t &a : ctx.pd.args) {
        const memory_t *m = a.arg >= first_of_rows ? ctx.memory(a.arg) : nullptr;
        if (!m) continue;
        words += (words.empty() ? " args:" : "+") + std::string(arg_name(a.arg)) + ":" + to_string(m->md);
    }
    return words;
}

// What ran, in words: "kernel:A+B threads:4 ...". On a device there is no number of threads.
std::string words_of(const exec_record_t &r, const exec_ctx_t &ctx) {
    std::string text = "kernel:" + (r.kernels.empty() ? std::string(ctx.pd.name()) : r.kernels);
    if (!ctx.stream.device) text += " threads:" + std::to_string(r.threads);
    const std::string division = r.division.empty() ? ctx.pd.plan_text() : r.division;
    return division.empty() ? text : text + " " + division;
}

} // namespace

void exec_record_t::add_kernel(const std::string &name) {
    if (("+" + kernels + "+").find("+" + name + "+") != std::string::npos) return;
    kernels += kernels.empty() ? name : "+" + name;
}

status_t create_primitive(std::unique_ptr<primitive_t> &primitive, const primitive_desc_t &pd) {
    const problem_t &p = *pd.problem;
    const bool can_pack = p.kind == mxdnn_primitive_kind_mx_reorder;
    if (!p.engine->executes && !can_pack)
        return fail(mxdnn_device_unavailable,
                "target %s is described here but cannot execute; pack with mx_reorder, and create the %s on a machine that has the target",
                p.engine->target->name, primitive_kind_name(p.kind));
    const double start = verbose(verbose_profile_create) ? now_ms() : 0;
    auto result = std::make_unique<primitive_t>();
    result->desc = pd;
    bool hit = false;
    MXDNN_CHECK(get_or_create_primitive(result->impl, pd, hit));
    if (p.attr.scratchpad == mxdnn_scratchpad_mode_library && pd.pd->scratch.size() > 0) {
        if (const device_t *device = exec_engine(p).device)
            MXDNN_CHECK(device->reserve_scratchpad(pd.pd->scratch.size()));
        else if (!reserve_scratchpad(pd.pd->scratch.size()))
            return fail(mxdnn_out_of_memory, "no memory for a scratchpad of %lld bytes",
                    (long long)pd.pd->scratch.size());
    }
    if (verbose(verbose_profile_create))
        verbose_line("primitive,create:%s,%s,%s,%s,%g", hit ? "cache_hit" : "cache_miss",
                primitive_kind_name(p.kind), pd.pd->name(), to_string(p).c_str(), now_ms() - start);
    primitive = std::move(result);
    return mxdnn_success;
}

status_t execute(
        const primitive_t &primitive, const stream_t &stream, int nargs, const mxdnn_exec_arg_t *args) {
    const pd_t &pd = *primitive.desc.pd;
    exec_ctx_t ctx{pd, stream, args, nargs, nullptr};
    scratchpad_t library_scratchpad;
    const engine_t &engine = exec_engine(pd.problem);
    if (!(*stream.engine == engine))
        return fail(mxdnn_invalid_arguments, "the stream belongs to engine %s%s, the primitive to %s%s",
                stream.engine->target->name, stream.engine->device ? " (a device)" : "", engine.target->name,
                engine.device ? " (a device)" : "");
    MXDNN_CHECK(check_args(ctx));
    if (pd.scratch.size() > 0) {
        ctx.scratchpad = pd.problem.attr.scratchpad == mxdnn_scratchpad_mode_user
                                 ? ctx.data<char>(MXDNN_ARG_SCRATCHPAD)
                         : stream.device ? stream.device->scratchpad(pd.scratch.size())
                                         : library_scratchpad.take(pd.scratch.size());
        if (!ctx.scratchpad)
            return fail(mxdnn_out_of_memory, "no memory for a scratchpad of %lld bytes",
                    (long long)pd.scratch.size());
        if (reinterpret_cast<uintptr_t>(ctx.scratchpad) % 64)
            return fail(mxdnn_invalid_arguments,
                    "the scratchpad is at address %p; it needs 64-byte alignment",
                    static_cast<void *>(ctx.scratchpad));
    }
    if (!verbose(verbose_profile_exec)) return primitive.impl->execute(ctx);
    exec_record_t record;
    ctx.record = &record;
    const double start = now_ms();
    const status_t status = primitive.impl->execute(ctx);
    // On a device the time is that of the work, if its stream may be waited for.
    if (stream.device && !stream.device->is_capturing()) (void)stream.device->wait();
    const double ms = now_ms() - start;
    verbose_line("primitive,exec,%s,%s,%s,%s,%g", primitive_kind_name(pd.problem.kind), pd.name(),
            (to_string(executed_problem(ctx)) + passed_words(ctx)).c_str(), words_of(record, ctx).c_str(),
            ms);
    return status;
}

} // namespace impl
} // namespace mxdnn

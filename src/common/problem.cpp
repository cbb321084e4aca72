// SPDX-License-Identifier: Apache-2.0
// What mx_matmul accepts; and the arguments, runtime dims and words of both mx_matmul and mx_reorder.
#include "common/problem.hpp"

#include "common/error.hpp"
#include "common/operands.hpp"
#include "common/primitive.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

status_t check_post_ops(const problem_t &p, const dim_t *pre_gate, const dim_t *dst_dims) {
    bool gated_ahead = p.attr.gated() != nullptr;
    for (const post_op_t &o : p.attr.post_ops.ops) {
        if (o.kind == mxdnn_gated) gated_ahead = false;
        if (o.kind == mxdnn_binary)
            MXDNN_CHECK(check_broadcast("the operand of a binary post-op", o.src1, p.dst.ndims,
                    gated_ahead ? pre_gate : dst_dims));
        if (o.kind == mxdnn_sum) MXDNN_CHECK(check_sum("dst", p.dst, o));
    }
    return mxdnn_success;
}

} // namespace

status_t prepare_mx_matmul(problem_t &p) {
    memory_desc_t &src = p.src, &wei = p.weights, &dst = p.dst;
    MXDNN_CHECK(check_plain("src", src));
    MXDNN_CHECK(check_plain("dst", dst));
    if (src.ndims < 2 || wei.ndims != src.ndims || dst.ndims != src.ndims)
        return fail(mxdnn_invalid_shape,
                "src, weights and dst have %d, %d and %d dims; all need the same number, at least 2",
                src.ndims, wei.ndims, dst.ndims);
    const int nd = src.ndims;
    const dim_t M = src.dims[nd - 2], K = src.dims[nd - 1], N = wei.dims[nd - 1];
    if (has_runtime_dims(wei))
        return fail(mxdnn_unimplemented,
                "weights have runtime dims (%s); only rows of src and dst, and their batch, may",
                dims_text(wei).c_str());
    if (K != wei.dims[nd - 2])
        return fail(mxdnn_invalid_shape, "src is %s and weights are %s: K is %s in src and %lld in weights%s",
                dims_text(src).c_str(), dims_text(wei).c_str(), dim_text(K).c_str(),
                (long long)wei.dims[nd - 2], hint_of_k_and_n(K, wei));

    // The destination before and after a gated post-op.
    const post_op_t *gated = p.attr.gated();
    if (gated && N % 2)
        return fail(mxdnn_invalid_shape, "a gated activation halves N, but N is %lld; it has to be even",
                (long long)N);
    const dim_t dst_n = gated ? N / 2 : N;
    if (!dims_agree(M, dst.dims[nd - 2]) || dst.dims[nd - 1] != dst_n)
        return fail(mxdnn_invalid_shape, "src is %s and weights are %s%s, so dst ends in %sx%lld; it is %s",
                dims_text(src).c_str(), dims_text(wei).c_str(), gated ? " with a gated activation" : "",
                dim_text(M).c_str(), (long long)dst_n, dims_text(dst).c_str());
    dim_t pre_gate[max_ndims], dst_dims[max_ndims];
    for (int i = 0; i < nd - 2; i++) {
        const dim_t s = src.dims[i], w = wei.dims[i], d = dst.dims[i];
        if (!broadcasts_to(s, d) || !broadcasts_to(w, d)
                || (s != runtime_dim && d != runtime_dim && d != s && d != w))
            return fail(mxdnn_invalid_shape,
                    "batch dim %d is inconsistent in src, weights and dst (%s, %s, %s); those of src and "
                    "weights are dst's, or 1",
                    i, dims_text(src).c_str(), dims_text(wei).c_str(), dims_text(dst).c_str());
        pre_gate[i] = dst_dims[i] = d;
    }
    pre_gate[nd - 2] = dst_dims[nd - 2] = dst.dims[nd - 2];
    pre_gate[nd - 1] = N;
    dst_dims[nd - 1] = dst_n;

    if (!is_zero(p.bias)) {
        MXDNN_CHECK(check_plain("bias", p.bias));
        if (!is_high_precision(p.bias.dt))
            return fail(mxdnn_invalid_data_type, "bias is %s; possible are f32 bf16 f16",
                    data_type_name(p.bias.dt));
        MXDNN_CHECK(check_broadcast("bias", p.bias, nd, pre_gate));
    }

    MXDNN_CHECK(resolve_weights(p));
    MXDNN_CHECK(check_src(p));
    MXDNN_CHECK(check_global_scale("src", src, p.attr.src));
    MXDNN_CHECK(check_dst(p));
    MXDNN_CHECK(check_global_scale("dst", dst, p.attr.dst));
    return check_post_ops(p, pre_gate, dst_dims);
}

void list_args_plain(pd_t &pd) {
    const problem_t &p = pd.problem;
    for (const operand_t &o : operands) {
        const memory_desc_t &md = p.*o.md;
        if (is_zero(md)) continue;
        const arg_use_t use = o.is_output ? arg_use_t::output : arg_use_t::input;
        if (!o.attr) {
            pd.args.push_back({o.arg, use, md, false});
            continue;
        }
        const arg_attr_t &attr = p.attr.*o.attr;
        pd.args.push_back({o.arg, use, md, false, false, attr.packing});
        list_quant_args(pd, o.arg, md, attr, use);
        // The caller may give the global scale of a packed destination.
        if (o.is_output && is_packed(md) && md.packed.quant.global != global_scale_kind_t::none
                && attr.global == mxdnn_quantization_mode_static_sazp) {
            memory_desc_t g;
            const dim_t dims[1] = {md.packed.quant.global == global_scale_kind_t::one ? 1 : batch_of(md)};
            init_strided(g, 1, dims, mxdnn_f32, nullptr);
            pd.args.push_back({MXDNN_ARG_ATTR_GLOBAL_SCALE | o.arg, arg_use_t::input, g, false});
        }
    }
    int index = 0;
    for (const post_op_t &o : p.attr.post_ops.ops) {
        if (o.kind == mxdnn_binary)
            pd.args.push_back({MXDNN_ARG_ATTR_MULTIPLE_POST_OP(index) | MXDNN_ARG_SRC_1, arg_use_t::input,
                    o.src1, false});
        index++;
    }
}

status_t check_runtime_dims_plain(const problem_t &p, const exec_ctx_t &ctx) {
    const memory_desc_t &src = ctx.memory(MXDNN_ARG_SRC)->md, &dst = ctx.memory(MXDNN_ARG_DST)->md;
    const bool matmul = !is_zero(p.weights);
    for (int i = 0; i < dst.ndims - (matmul ? 1 : 0); i++) {
        const bool broadcast = matmul && i < dst.ndims - 2 && src.dims[i] == 1;
        if (src.dims[i] != dst.dims[i] && !broadcast)
            return fail(mxdnn_invalid_arguments, "dim %d is %lld in src and %lld in dst; they have to agree",
                    i, (long long)src.dims[i], (long long)dst.dims[i]);
        if (matmul && i < dst.ndims - 2) {
            const dim_t w = p.weights.dims[i];
            if (w != 1 && w != dst.dims[i])
                return fail(mxdnn_invalid_arguments, "batch dim %d is %lld in weights and %lld in dst", i,
                        (long long)w, (long long)dst.dims[i]);
        }
    }
    // Operands with the same rows: block scales, and operands of binary post-ops (dims equal or 1).
    for (const arg_desc_t &a : ctx.pd.args) {
        if (!has_runtime_dims(a.md) || a.arg == MXDNN_ARG_SRC || a.arg == MXDNN_ARG_DST) continue;
        const memory_t *m = ctx.memory(a.arg);
        const bool of_src = a.arg == (MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC)
                            || a.arg == (MXDNN_ARG_ATTR_ZERO_POINTS | MXDNN_ARG_SRC)
                            || a.arg == (MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC);
        const memory_desc_t &rows = of_src ? src : dst;
        if (a.arg & (MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_ATTR_ZERO_POINTS)) {
            MXDNN_CHECK(check_params_follow(a.arg, m->md, rows, of_src ? p.attr.src : p.attr.dst));
            continue;
        }
        for (int i = 1; i <= a.md.ndims && i <= rows.ndims; i++) {
            if (a.md.dims[a.md.ndims - i] != runtime_dim) continue;
            const dim_t d = m->md.dims[m->md.ndims - i], want = rows.dims[rows.ndims - i];
            if (d != want && d != 1)
                return fail(mxdnn_invalid_arguments,
                        "dim %d of %s is %lld; it follows the rows, which are %lld", a.md.ndims - i,
                        arg_name(a.arg), (long long)d, (long long)want);
        }
    }
    return mxdnn_success;
}

std::string to_string(const problem_t &p) {
    std::string s;
    for (const operand_t &o : operands)
        if (!is_zero(p.*o.md)) s += std::string(s.empty() ? "" : " ") + o.word + ":" + to_string(p.*o.md);
    s += moe_words(p);
    const std::string attr = to_string(p.attr);
    return attr.empty() ? s : s + " " + attr;
}

} // namespace impl
} // namespace mxdnn

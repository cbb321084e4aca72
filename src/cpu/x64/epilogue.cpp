// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/epilogue.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/x64/matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
// Pieces are at most this long; gated ones come from twice as many sums.
constexpr int64_t most_columns = 2 * max_plan_columns;
} // namespace

const char *check_epilogue(const problem_t &p, int64_t columns) {
    if (!p.attr.dst.scales.set) return nullptr;
    quant_t q;
    int axis = 0;
    if (quant_of("dst", p.dst, p.attr.dst, q, &axis) != mxdnn_success) return "a quantised dst of a known format";
    return q.block <= columns ? nullptr : "dst groups of at most 64 columns";
}

epilogue_t::epilogue_t(const exec_ctx_t &ctx)
    : ctx_(ctx), p_(ctx.pd.problem), rk_(row_kernels()), nd_(p_.dst.ndims),
      dst_view_(ctx, MXDNN_ARG_DST, p_.dst, p_.attr.dst) {}

epilogue_t::operand_t epilogue_t::bind(const memory_t &m, const dim_t *idx) const {
    operand_t o;
    const memory_desc_t &md = m.md;
    o.dt = md.dt;
    int64_t offset = 0;
    for (int i = 0; i < md.ndims; i++) {
        const int at = nd_ - md.ndims + i; // dim of the destination
        const int64_t stride = md.dims[i] == 1 ? 0 : md.strides[i];
        if (at < nd_ - 2) offset += idx[at] * stride;
        if (at == nd_ - 2) o.row_stride = stride;
        if (at == nd_ - 1) o.col_stride = stride;
    }
    o.matrix = static_cast<const uint8_t *>(m.handle) + offset * data_type_info(o.dt)->bits / 8;
    return o;
}

void epilogue_t::set_batch(const dim_t *idx) {
    if (const memory_t *m = ctx_.memory(MXDNN_ARG_BIAS)) bias_ = bind(*m, idx);
    dst_ = bind(*ctx_.memory(MXDNN_ARG_DST), idx);
    // A destination is no broadcast operand: a dim of 1 has index 0 all the same.
    dst_view_.set_batch(idx);
    int i = 0;
    for (const post_op_t &o : p_.attr.post_ops.ops) {
        if (o.kind == mxdnn_binary)
            binary_[i] = bind(*ctx_.memory(MXDNN_ARG_ATTR_MULTIPLE_POST_OP(i) | MXDNN_ARG_SRC_1), idx);
        i++;
    }
}

void epilogue_t::load(const operand_t &o, int64_t m, int64_t first, int64_t n, float *out) const {
    const int64_t bytes = data_type_info(o.dt)->bits / 8;
    const uint8_t *row = o.matrix + (m * o.row_stride + first * o.col_stride) * bytes;
    if (o.col_stride != 0) return rk_.to_f32(o.dt, row, o.col_stride, out, n);
    rk_.to_f32(o.dt, row, 1, out, 1);
    std::fill(out + 1, out + n, out[0]);
}

void epilogue_t::apply(int64_t m, int64_t first, int64_t n, float *x, const float *up, float scale) const {
    float operand[most_columns];
    const post_op_t *gated = p_.attr.gated();
    const bool interleaved = gated && gated->gated_layout == mxdnn_gated_interleaved;
    // Before the gate there are one or two runs of the weights' columns.
    struct run_t {
        float *x;
        int64_t first, n;
    } runs[2] = {{x, interleaved ? 2 * first : first, interleaved ? 2 * n : n}, {nullptr, 0, 0}};
    const int n_runs = gated && !interleaved ? 2 : 1;
    if (n_runs == 2) runs[1] = {const_cast<float *>(up), first + dim_from_end(p_.weights, 1) / 2, n};

    bool before_gate = gated != nullptr;
    const auto each_run = [&](auto &&body) {
        for (int r = 0; r < (before_gate ? n_runs : 1); r++) body(runs[r]);
    };
    if (scale != 1.f) each_run([&](const run_t &r) { rk_.scale(r.x, scale, r.n); });
    if (bias_.matrix)
        each_run([&](const run_t &r) {
            load(bias_, m, r.first, r.n, operand);
            rk_.binary(mxdnn_binary_add, r.x, operand, r.n);
        });
    int index = 0;
    for (const post_op_t &o : p_.attr.post_ops.ops) {
        switch (o.kind) {
        case mxdnn_gated:
            if (interleaved)
                rk_.gated(o.alg, x, x + 1, 2, x, o.alpha, o.beta, n);
            else
                rk_.gated(o.alg, x, up, 1, x, o.alpha, o.beta, n);
            before_gate = false;
            runs[0] = {x, first, n};
            break;
        case mxdnn_eltwise: each_run([&](const run_t &r) { rk_.eltwise(o.alg, r.x, o.alpha, o.beta, r.n); }); break;
        case mxdnn_binary:
            each_run([&](const run_t &r) {
                load(binary_[index], m, r.first, r.n, operand);
                rk_.binary(o.alg, r.x, operand, r.n);
            });
            break;
        case mxdnn_sum: {
            operand_t old = dst_;
            if (o.dt != mxdnn_data_type_undef) old.dt = o.dt;
            load(old, m, first, n, operand);
            rk_.add_scaled(x, operand, o.scale, float(o.zero_point), n);
            break;
        }
        default: break;
        }
        index++;
    }
}

void epilogue_t::quantise(int64_t m, int64_t first, int64_t n, const float *x) const {
    const quant_t &q = dst_view_.quant();
    const arg_attr_t &a = p_.attr.dst;
    for (int64_t i = 0; i < n; i += q.block) {
        const int count = int(std::min(q.block, n - i));
        uint8_t codes[256];
        if (a.is_dynamic()) {
            dst_view_.set_params(m, first + i,
                    quantize_block(p_.dst.dt, q, a.rounding, dst_view_.global(), x + i, count, codes));
        } else {
            const block_params_t params = dst_view_.params(m, first + i);
            for (int j = 0; j < count; j++)
                codes[j] = uint8_t(quantize_element(p_.dst.dt, q, params, dst_view_.global(), x[i + j]));
        }
        for (int j = 0; j < count; j++) dst_view_.set_code(m, first + i + j, codes[j]);
    }
}

void epilogue_t::finish_row(int64_t m, int64_t first, int64_t n, float *x, const float *up, float scale) const {
    apply(m, first, n, x, up, scale);
    if (dst_view_.quantised()) return quantise(m, first, n, x);
    const int64_t bytes = data_type_info(dst_.dt)->bits / 8;
    uint8_t *row = const_cast<uint8_t *>(dst_.matrix) + (m * dst_.row_stride + first * dst_.col_stride) * bytes;
    rk_.from_f32(dst_.dt, x, row, dst_.col_stride, n);
}

float epilogue_t::amax_row(int64_t m, int64_t first, int64_t n, float *x, const float *up, float scale) const {
    apply(m, first, n, x, up, scale);
    float amax = 0;
    for (int64_t i = 0; i < n; i++) amax = nvfp4_global_amax(amax, x[i]);
    return amax;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

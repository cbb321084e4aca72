// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/epilogue.hpp"

#include <algorithm>

#include "cpu/x64/matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
// The largest piece. A gated piece comes from twice as many sums.
constexpr int64_t most_columns = 2 * max_plan_columns;
} // namespace

const char *check_epilogue(const problem_t &p, int64_t columns) {
    if (!p.attr.dst.scales.set) return nullptr;
    quant_t q;
    int axis = 0;
    if (quant_of("dst", p.dst, p.attr.dst, q, &axis) != mxdnn_success)
        return "a quantised dst of a known format";
    return q.block <= columns ? nullptr : "dst groups of at most 64 columns";
}

epilogue_t::epilogue_t(const exec_ctx_t &ctx)
    : ctx_(ctx), p_(ctx.pd.problem), rk_(row_kernels()), nd_(p_.dst.ndims) {
    if (p_.attr.dst.scales.set) dst_view_.emplace(ctx, MXDNN_ARG_DST, p_.dst, p_.attr.dst);
}

epilogue_t::operand_t epilogue_t::bind(const memory_t &m, const dim_t *idx) const {
    operand_t o;
    const memory_desc_t &md = m.md;
    o.dt = md.dt;
    int64_t offset = 0;
    for (int i = 0; i < md.ndims; i++) {
        const int at = nd_ - md.ndims + i; // the dim of the destination
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
    // The destination is not broadcast. Index 0 of a dim of 1 is right in any case.
    if (dst_view_) dst_view_->set_batch(idx);
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

namespace {
struct no_bias_t {
    float values[epilogue_t::most_biases];
    constexpr no_bias_t() : values() {
        for (float &v : values) v = -0.f;
    }
};
constexpr no_bias_t no_bias;
static_assert(epilogue_t::most_biases >= max_plan_columns + 2 * panel_columns);
} // namespace

const float *epilogue_t::bias_of(
        int64_t bias_row, int64_t first, int64_t n, float (&room)[most_biases]) const {
    if (!bias_.matrix) return no_bias.values;
    load(bias_, bias_row, first, n, room);
    std::fill(room + n, room + most_biases, 0.f);
    return room;
}

void epilogue_t::add_old(const post_op_t &sum, int64_t m, int64_t first, int64_t n, float *x) const {
    float operand[most_columns];
    operand_t old = dst_;
    if (sum.dt != mxdnn_data_type_undef) old.dt = sum.dt;
    load(old, m, first, n, operand);
    rk_.add_scaled(x, operand, sum.scale, float(sum.zero_point), n);
}

void epilogue_t::apply(const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const {
    float operand[most_columns];
    const post_op_t *gated = p_.attr.gated();
    const bool interleaved = gated && gated->gated_layout == mxdnn_gated_interleaved;
    // Before the gate there are one or two runs of columns of the weights.
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
    if (row.scale != 1.f) each_run([&](const run_t &r) { rk_.scale(r.x, row.scale, r.n); });
    if (bias_.matrix)
        each_run([&](const run_t &r) {
            load(bias_, row.bias_row, r.first, r.n, operand);
            rk_.binary(mxdnn_binary_add, r.x, operand, r.n);
        });
    bool weighed = row.weight == 1.f;
    const auto weigh = [&] {
        if (!weighed) rk_.scale(x, row.weight, n);
        weighed = true;
    };
    int index = 0;
    for (const post_op_t &o : p_.attr.post_ops.ops) {
        switch (o.kind) {
        case mxdnn_gated: {
            const gate_params_t g = row.gate ? *row.gate : gate_params_t{o.alpha, 1.f, o.beta};
            rk_.gated(
                    o.alg, x, interleaved ? x + 1 : up, interleaved ? 2 : 1, x, g.alpha, g.beta, g.limit, n);
            before_gate = false;
            runs[0] = {x, first, n};
            break;
        }
        case mxdnn_eltwise:
            each_run([&](const run_t &r) { rk_.eltwise(o.alg, r.x, o.alpha, o.beta, r.n); });
            break;
        case mxdnn_binary:
            each_run([&](const run_t &r) {
                load(binary_[index], row.m, r.first, r.n, operand);
                rk_.binary(o.alg, r.x, operand, r.n);
            });
            break;
        case mxdnn_sum:
            // If several rows are added to one destination row, store_sums() adds it once.
            if (row.keep) break;
            weigh();
            add_old(o, row.m, first, n, x);
            break;
        default: break;
        }
        index++;
    }
    weigh();
}

void epilogue_t::quantise(int64_t m, int64_t first, int64_t n, const float *x) const {
    const quant_t &q = dst_view_->quant();
    const arg_attr_t &a = p_.attr.dst;
    for (int64_t i = 0; i < n; i += q.block) {
        const int count = int(std::min(q.block, n - i));
        uint8_t codes[256];
        if (a.is_dynamic()) {
            dst_view_->set_params(m, first + i,
                    quantize_block(p_.dst.dt, q, a.rounding, dst_view_->global(), x + i, count, codes));
        } else {
            const block_params_t params = dst_view_->params(m, first + i);
            for (int j = 0; j < count; j++)
                codes[j] = uint8_t(quantize_element(p_.dst.dt, q, params, dst_view_->global(), x[i + j]));
        }
        for (int j = 0; j < count; j++) dst_view_->set_code(m, first + i + j, codes[j]);
    }
}

void epilogue_t::store(int64_t m, int64_t first, int64_t n, const float *x) const {
    if (dst_view_) return quantise(m, first, n, x);
    const int64_t bytes = data_type_info(dst_.dt)->bits / 8;
    uint8_t *row =
            const_cast<uint8_t *>(dst_.matrix) + (m * dst_.row_stride + first * dst_.col_stride) * bytes;
    rk_.from_f32(dst_.dt, x, row, dst_.col_stride, n);
}

float epilogue_t::amax(const float *x, int64_t n) const {
    float amax = 0;
    for (int64_t i = 0; i < n; i++) amax = nvfp4_global_amax(amax, x[i]);
    return amax;
}

void epilogue_t::finish_row(
        const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const {
    apply(row, first, n, x, up);
    if (row.keep)
        std::copy(x, x + n, row.keep);
    else
        store(row.m, first, n, x);
}

float epilogue_t::amax_row(
        const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const {
    apply(row, first, n, x, up);
    return amax(x, n);
}

void epilogue_t::add_old_last(int64_t m, int64_t first, int64_t n, float *x) const {
    const auto &ops = p_.attr.post_ops.ops;
    if (!ops.empty() && ops.back().kind == mxdnn_sum) add_old(ops.back(), m, first, n, x);
}

void epilogue_t::store_sums(int64_t m, int64_t first, int64_t n, float *x) const {
    add_old_last(m, first, n, x);
    store(m, first, n, x);
}

float epilogue_t::amax_sums(int64_t m, int64_t first, int64_t n, float *x) const {
    add_old_last(m, first, n, x);
    return amax(x, n);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// A primitive for each layer, made for any number of rows; bias, activation and sum are fused.
#include "packed.hpp"

#include <unordered_map>

#include "routing.hpp"

namespace llm {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr memory::dim any_rows = MXDNN_RUNTIME_DIM_VAL;

memory::desc rows_of(memory::dim rows, memory::dim columns, dt type, memory::dim stride) {
    return memory::desc({rows, columns}, type, memory::dims{stride, 1});
}

primitive_attr attributes(const linear_spec_t &s) {
    post_ops ops;
    using then_t = linear_spec_t::then_t;
    switch (s.then) {
    case then_t::store: break;
    case then_t::add: ops.append_sum(); break;
    case then_t::gated_silu: ops.append_gated(algorithm::gated_silu, 0.f, 0.f, gated_layout::halves); break;
    case then_t::silu: ops.append_eltwise(algorithm::eltwise_swish, 1.f, 0.f); break;
    case then_t::multiply:
        ops.append_binary(algorithm::binary_mul, rows_of(any_rows, s.columns(), dt::f32, s.y_stride()));
        break;
    }
    primitive_attr attr;
    attr.set_post_ops(ops);
    attr.set_constant_weights(true);
    return attr;
}

memory at(const memory::desc &md, const engine_t &e, const void *bytes) {
    return memory(md, e.engine(), const_cast<void *>(bytes));
}

class packed_linear_t : public linear_t {
public:
    packed_linear_t(engine_t &engine, const linear_spec_t &spec, const packed_t &weights)
        : engine_(engine), spec_(spec), bytes_(weights.bytes),
          weights_(at(weights.desc, engine, weights.bytes.as<void>())) {
        const memory::desc bias_md =
                spec.bias ? memory::desc({1, spec.out}, dt::f32, tag::ab) : memory::desc();
        const mx_matmul::primitive_desc pd(engine.engine(),
                memory::desc({any_rows, spec.in}, engine.activation(), tag::ab), weights.desc, bias_md,
                rows_of(any_rows, spec.columns(), spec.result, spec.y_stride()), attributes(spec));
        if (spec.bias) bias_ = at(bias_md, engine, spec.bias);
        implementation_ = pd.impl_info_str();
        matmul_ = mx_matmul(pd);
    }

    void run(int64_t rows, const void *x, void *y, const float *factor) override {
        if (rows != rows_) {
            x_ = memory(
                    {{rows, spec_.in}, engine_.activation(), tag::ab}, engine_.engine(), MXDNN_MEMORY_NONE);
            const auto result = [&](dt type) {
                return rows_of(rows, spec_.columns(), type, spec_.y_stride());
            };
            y_ = memory(result(spec_.result), engine_.engine(), MXDNN_MEMORY_NONE);
            factor_ = memory(result(dt::f32), engine_.engine(), MXDNN_MEMORY_NONE);
            args_ = {{MXDNN_ARG_SRC, x_}, {MXDNN_ARG_WEIGHTS, weights_}, {MXDNN_ARG_DST, y_}};
            if (bias_) args_[MXDNN_ARG_BIAS] = bias_;
            if (spec_.then == linear_spec_t::then_t::multiply)
                args_[MXDNN_ARG_ATTR_MULTIPLE_POST_OP(0) | MXDNN_ARG_SRC_1] = factor_;
            rows_ = rows;
        }
        x_.set_data_handle(const_cast<void *>(x));
        y_.set_data_handle(y);
        factor_.set_data_handle(const_cast<float *>(factor));
        matmul_.execute(engine_.stream(), args_);
    }
    std::string implementation() const override { return implementation_; }
    size_t bytes() const override { return bytes_.size; }

private:
    engine_t &engine_;
    const linear_spec_t spec_;
    const buffer_t bytes_;
    const memory weights_;
    mx_matmul matmul_;
    std::string implementation_;
    memory bias_, x_, y_, factor_;
    std::unordered_map<int, memory> args_; // for `rows_` rows; their buffers change
    int64_t rows_ = -1;
};

class packed_experts_t : public experts_t {
public:
    packed_experts_t(
            engine_t &engine, const experts_spec_t &spec, const packed_t &gate_up, const packed_t &down)
        : engine_(engine), spec_(spec), gate_up_bytes_(gate_up.bytes), down_bytes_(down.bytes),
          gate_up_weights_(at(gate_up.desc, engine, gate_up.bytes.as<void>())),
          down_weights_(at(down.desc, engine, down.bytes.as<void>())) {
        const memory::dim E = spec.experts, H = spec.hidden, I = spec.intermediate;
        const dt type = engine.activation();
        primitive_attr gated, summed;
        post_ops swiglu, sum;
        swiglu.append_gated(algorithm::gated_swiglu_oai, spec.alpha, spec.limit,
                spec.is_interleaved ? gated_layout::interleaved : gated_layout::halves);
        gated.set_post_ops(swiglu);
        gated.set_constant_weights(true);
        gated.set_max_rows_hint(spec.routing->max_rows());
        sum.append_sum(); // the rows of a token are added to what is there
        summed.set_post_ops(sum);
        summed.set_constant_weights(true);
        summed.set_max_rows_hint(spec.routing->max_rows());
        const memory::desc gate_up_bias({E, 2 * I}, dt::f32, tag::ab), down_bias({E, H}, dt::f32, tag::ab);
        gate_up_bias_ = at(gate_up_bias, engine, spec.gate_up_bias);
        down_bias_ = at(down_bias, engine, spec.down_bias);
        const grouped_matmul::primitive_desc gate_up_pd(engine.engine(),
                memory::desc({any_rows, H}, type, tag::ab), gate_up.desc, gate_up_bias,
                memory::desc::grouped({any_rows, I}, type, 0, E), gated);
        const grouped_matmul::primitive_desc down_pd(engine.engine(),
                memory::desc::grouped({any_rows, I}, type, 0, E), down.desc, down_bias,
                memory::desc({any_rows, H}, dt::f32, tag::ab), summed);
        implementation_ = gate_up_pd.impl_info_str();
        if (const std::string other = down_pd.impl_info_str(); other != implementation_)
            implementation_ += " + " + other;
        gate_up_ = grouped_matmul(gate_up_pd);
        down_ = grouped_matmul(down_pd);
    }

    void run(int64_t rows, const void *h, const float *logits, float *y) override {
        routing_t &r = *spec_.routing;
        r.run(rows, logits);
        if (rows != rows_) {
            const engine &e = engine_.engine();
            h_ = memory({{rows, spec_.hidden}, engine_.activation(), tag::ab}, e, MXDNN_MEMORY_NONE);
            hidden_ = memory(memory::desc::grouped({rows * spec_.topk, spec_.intermediate},
                                     engine_.activation(), 0, spec_.experts),
                    e, r.hidden());
            y_ = memory({{rows, spec_.hidden}, dt::f32, tag::ab}, e, MXDNN_MEMORY_NONE);
            rows_ = rows;
        }
        h_.set_data_handle(const_cast<void *>(h));
        y_.set_data_handle(y);
        gate_up_.execute(
                engine_.stream(), {{MXDNN_ARG_SRC, h_}, {MXDNN_ARG_WEIGHTS, gate_up_weights_},
                                          {MXDNN_ARG_BIAS, gate_up_bias_}, {MXDNN_ARG_GROUP_OFFSETS, r.ends},
                                          {MXDNN_ARG_GATHER_IDX, r.token_of_row}, {MXDNN_ARG_DST, hidden_}});
        down_.execute(engine_.stream(),
                {{MXDNN_ARG_SRC, hidden_}, {MXDNN_ARG_WEIGHTS, down_weights_}, {MXDNN_ARG_BIAS, down_bias_},
                        {MXDNN_ARG_GROUP_OFFSETS, r.ends}, {MXDNN_ARG_SCATTER_IDX, r.token_of_row},
                        {MXDNN_ARG_TOPK_WEIGHTS, r.weight_of_row}, {MXDNN_ARG_DST, y_}});
    }
    std::string implementation() const override { return implementation_; }
    size_t bytes() const override { return gate_up_bytes_.size + down_bytes_.size; }
    size_t bytes_of_expert() const override { return bytes() / size_t(spec_.experts); }
    int64_t chosen() const override { return spec_.routing->chosen(); }

private:
    engine_t &engine_;
    const experts_spec_t spec_;
    const buffer_t gate_up_bytes_, down_bytes_;
    const memory gate_up_weights_, down_weights_;
    grouped_matmul gate_up_, down_;
    std::string implementation_;
    memory gate_up_bias_, down_bias_, h_, hidden_, y_;
    int64_t rows_ = -1;
};

} // namespace

std::unique_ptr<linear_t> packed_linear(
        engine_t &engine, const linear_spec_t &spec, const packed_t &weights) {
    return std::make_unique<packed_linear_t>(engine, spec, weights);
}

std::unique_ptr<experts_t> packed_experts(
        engine_t &engine, const experts_spec_t &spec, const packed_t &gate_up, const packed_t &down) {
    return std::make_unique<packed_experts_t>(engine, spec, gate_up, down);
}

} // namespace llm

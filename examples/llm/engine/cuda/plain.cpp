// SPDX-License-Identifier: Apache-2.0
#include "plain.hpp"

#include <algorithm>

#include "check.hpp"
#include "common/in_order.hpp"
#include "engine/cpu/loops.hpp"
#include "engine/routing.hpp"

namespace llm::cuda {

namespace {

std::string name_of(data_type_t type) { return type == data_type_t::bf16 ? "plain bf16" : "plain f32"; }

class plain_linear_t : public linear_t {
public:
    plain_linear_t(engine_t &engine, shared_t &shared, const linear_spec_t &spec, const source_t &weights,
            data_type_t type, int64_t max_rows)
        : engine_(engine), shared_(shared), spec_(spec), type_(type), adds_(spec.then == then_t::add),
          is_direct_(spec.result == data_type_t::f32 && (adds_ || spec.then == then_t::store)),
          weights_(upload(engine, weights, type)),
          matmul_(shared.lt, {spec.in, spec.out, is_direct_ ? spec.y_stride() : spec.out, type_of(type),
                                     is_direct_ ? spec.bias : nullptr, adds_ && is_direct_}) {
        const size_t size = size_t(max_rows * spec.out) * 4;
        // Sums that a kernel finishes afterwards.
        if (!is_direct_ && shared.sums.size < size) shared.sums = engine.allocate(size);
    }

    void run(int64_t rows, const void *x, void *y, const float *factor) override {
        if (is_few(rows))
            return multiply_few(
                    shared_.stream, {rows, spec_.in, spec_.out, spec_.y_stride(), adds_, x,
                                            weights_.as<void>(), spec_.bias, static_cast<float *>(y)});
        float *const sums = is_direct_ ? static_cast<float *>(y) : shared_.sums.as<float>();
        matmul_.run(shared_.stream, rows, x, weights_.as<void>(), sums);
        if (is_direct_) return;
        finish(shared_.stream,
                {rows, spec_.columns(), spec_.out, spec_.y_stride(), cuda::then_t(int(spec_.then)),
                        type_of(spec_.result), spec_.bias},
                sums, factor, y);
    }
    bool run_with_norm(int64_t rows, const norm_t &n, void *h, void *y) override {
        if (!is_few(rows) || !can_norm_few(rows, spec_.in, spec_.out)) return false;
        multiply_few(shared_.stream,
                {rows, spec_.in, spec_.out, spec_.y_stride(), adds_, nullptr, weights_.as<void>(), spec_.bias,
                        static_cast<float *>(y), {n.x, n.weight, n.eps, h}});
        return true;
    }
    std::string implementation() const override { return name_of(type_); }
    size_t bytes() const override { return weights_.size; }

private:
    using then_t = linear_spec_t::then_t;

    engine_t &engine_;
    shared_t &shared_;
    const linear_spec_t spec_;
    const data_type_t type_;
    const bool adds_, is_direct_; // the matmul does all
    const buffer_t weights_;
    lt_matmul_t matmul_;

    bool is_few(int64_t rows) const {
        return is_direct_ && type_ == data_type_t::bf16 && engine_.activation() == type_
               && can_multiply_few(rows, spec_.in, spec_.out);
    }

    static_assert(int(linear_spec_t::then_t::store) == int(cuda::then_t::store)
                          && int(linear_spec_t::then_t::add) == int(cuda::then_t::add)
                          && int(linear_spec_t::then_t::gated_silu) == int(cuda::then_t::gated_silu)
                          && int(linear_spec_t::then_t::silu) == int(cuda::then_t::silu)
                          && int(linear_spec_t::then_t::multiply) == int(cuda::then_t::multiply),
            "both have the same order");
};

class plain_experts_t : public llm::experts_t {
public:
    plain_experts_t(engine_t &engine, shared_t &shared, const experts_spec_t &spec, const source_t &gate_up,
            const source_t &down, data_type_t type)
        : engine_(engine), shared_(shared), spec_(spec), type_(type), gate_up_(upload(engine, gate_up, type)),
          down_(upload(engine, down, type)) {}

    void run(int64_t rows, const void *h, const float *logits, float *y) override {
        routing_t &r = *spec_.routing;
        r.run(rows, logits);
        const cuda::experts_t e = {rows * spec_.topk, spec_.experts, spec_.hidden, spec_.intermediate,
                spec_.is_interleaved, spec_.alpha, spec_.limit, type_of(engine_.activation()), type_of(type_),
                static_cast<const int32_t *>(r.ends.get_data_handle()),
                static_cast<const int32_t *>(r.token_of_row.get_data_handle()),
                static_cast<const float *>(r.weight_of_row.get_data_handle()), spec_.gate_up_bias,
                spec_.down_bias};
        cuda::gate_up(shared_.stream, e, h, gate_up_.as<void>(), r.hidden());
        cuda::down(shared_.stream, e, r.hidden(), down_.as<void>(), y);
    }
    std::string implementation() const override { return name_of(type_); }
    size_t bytes() const override { return gate_up_.size + down_.size; }
    size_t bytes_of_expert() const override { return bytes() / size_t(spec_.experts); }
    int64_t chosen() const override { return spec_.routing->chosen(); }

private:
    engine_t &engine_;
    shared_t &shared_;
    const experts_spec_t spec_;
    const data_type_t type_;
    const buffer_t gate_up_, down_;
};

} // namespace

type_t type_of(data_type_t type) { return type == data_type_t::bf16 ? type_t::bf16 : type_t::f32; }

buffer_t upload(engine_t &engine, const source_t &weights, data_type_t type) {
    const int64_t in = weights.shape.in, out = weights.shape.out, matrices = weights.shape.matrices();
    const size_t size = type == data_type_t::bf16 ? 2 : 4;
    const buffer_t all = engine.allocate(size_t(matrices * out * in) * size);
    // Some MB at a time.
    const int64_t rows = std::max<int64_t>(1, (int64_t(1) << 20) / in), parts = (out + rows - 1) / rows;
    in_order::run(size_t(matrices * parts), unsigned(mxdnn::get_max_concurrency()),
            [&](size_t part, const in_order::turn_t &wait_for_turn) {
                const int64_t matrix = int64_t(part) / parts, first = int64_t(part) % parts * rows;
                const int64_t count = std::min(rows, out - first);
                std::vector<float> values;
                std::vector<uint16_t> halves;
                read_f32(weights, {matrix, first, count}, values);
                if (type == data_type_t::bf16) {
                    halves.resize(values.size());
                    loops().to_bf16(int64_t(values.size()), values.data(), halves.data());
                }
                wait_for_turn();
                engine.write(all.as<uint8_t>() + size_t((matrix * out + first) * in) * size,
                        halves.empty() ? static_cast<const void *>(values.data()) : halves.data(),
                        values.size() * size);
            });
    return all;
}

std::unique_ptr<linear_t> plain_linear(engine_t &engine, shared_t &shared, const linear_spec_t &spec,
        const source_t &weights, int64_t max_rows) {
    return std::make_unique<plain_linear_t>(engine, shared, spec, weights, engine.activation(), max_rows);
}

std::unique_ptr<llm::experts_t> plain_experts(engine_t &engine, shared_t &shared, const experts_spec_t &spec,
        const source_t &gate_up, const source_t &down, data_type_t type) {
    return std::make_unique<plain_experts_t>(engine, shared, spec, gate_up, down, type);
}

} // namespace llm::cuda

// SPDX-License-Identifier: Apache-2.0
#include "plain.hpp"

#include <algorithm>
#include <cmath>

#include "engine/routing.hpp"
#include "loops.hpp"
#include "panels.hpp"
#include "parallel.hpp"

namespace llm {

namespace {

constexpr int64_t rows_at_once = 96;

std::string name_of(data_type_t type) { return type == data_type_t::bf16 ? "plain bf16" : "plain f32"; }

// Rows of the activation type as f32.
class floats_t {
public:
    const float *of(const engine_t &engine, int64_t n, const void *x) {
        if (engine.activation() == data_type_t::f32) return static_cast<const float *>(x);
        if (room_.size() < size_t(n)) room_.resize(size_t(n));
        loops().from_bf16(n, static_cast<const uint16_t *>(x), room_.data());
        return room_.data();
    }

private:
    std::vector<float> room_;
};

void write(data_type_t type, int64_t n, const float *x, void *y, int64_t at) {
    if (type == data_type_t::f32)
        std::copy_n(x, n, static_cast<float *>(y) + at);
    else
        loops().to_bf16(n, x, static_cast<uint16_t *>(y) + at);
}
float read(data_type_t type, const void *y, int64_t at) {
    if (type == data_type_t::f32) return static_cast<const float *>(y)[at];
    float f;
    loops().from_bf16(1, static_cast<const uint16_t *>(y) + at, &f);
    return f;
}

class plain_linear_t : public linear_t {
public:
    plain_linear_t(engine_t &engine, const linear_spec_t &spec, const source_t &weights, data_type_t type)
        : engine_(engine), spec_(spec), type_(type),
          is_gated_(spec.then == linear_spec_t::then_t::gated_silu),
          panels_(engine, weights, 0, type,
                  is_gated_ ? panels_t::order_t::halves : panels_t::order_t::straight) {}

    void run(int64_t rows, const void *x, void *y, const float *factor) override {
        const float *values = floats_.of(engine_, rows * spec_.in, x);
        const int64_t chunks = (rows + rows_at_once - 1) / rows_at_once;
        // A task has 64 KB of weights or more.
        const int64_t grain = rows == 1 ? std::max<int64_t>(1, 2048 / spec_.in) : 1;
        parallel(panels_.panels() * chunks, grain, [&](int64_t begin, int64_t end) {
            float sums[rows_at_once * 2 * panel];
            for (int64_t i = begin; i < end; i++) {
                const int64_t index = i / chunks, first = i % chunks * rows_at_once;
                const int64_t count = std::min(rows_at_once, rows - first);
                panels_.multiply(index, count, values + first * spec_.in, spec_.in, sums);
                for (int64_t r = 0; r < count; r++)
                    finish(first + r, index * panel, sums + r * panel * (is_gated_ ? 2 : 1), y, factor);
            }
        });
    }
    std::string implementation() const override { return name_of(type_); }
    size_t bytes() const override { return panels_.bytes(); }

private:
    engine_t &engine_;
    const linear_spec_t spec_;
    const data_type_t type_;
    const bool is_gated_;
    const panels_t panels_;
    floats_t floats_;

    // A row of a panel.
    void finish(int64_t row, int64_t column, float *sums, void *y, const float *factor) const {
        const int64_t n = std::min(panel, spec_.columns() - column), at = row * spec_.y_stride() + column;
        if (spec_.bias)
            for (int64_t i = 0; i < n; i++) {
                sums[i] += spec_.bias[column + i];
                if (is_gated_) sums[panel + i] += spec_.bias[spec_.columns() + column + i];
            }
        using then_t = linear_spec_t::then_t;
        switch (spec_.then) {
        case then_t::store: break;
        case then_t::add:
            for (int64_t i = 0; i < n; i++) sums[i] += read(spec_.result, y, at + i);
            break;
        case then_t::gated_silu: loops().silu(n, sums, sums + panel, sums); break;
        case then_t::silu: {
            float ones[panel];
            std::fill_n(ones, panel, 1.f);
            loops().silu(n, sums, ones, sums);
            break;
        }
        case then_t::multiply:
            for (int64_t i = 0; i < n; i++) sums[i] *= factor[at + i];
            break;
        }
        write(spec_.result, n, sums, y, at);
    }
};

class plain_experts_t : public experts_t {
public:
    plain_experts_t(engine_t &engine, const experts_spec_t &spec, const source_t &gate_up,
            const source_t &down, data_type_t type)
        : engine_(engine), spec_(spec), type_(type) {
        using order_t = panels_t::order_t;
        for (int64_t e = 0; e < spec.experts; e++) {
            gate_up_.emplace_back(
                    engine, gate_up, e, type, spec.is_interleaved ? order_t::straight : order_t::halves);
            down_.emplace_back(engine, down, e, type, order_t::straight);
        }
    }

    void run(int64_t rows, const void *h, const float *logits, float *y) override {
        routing_t &r = *spec_.routing;
        r.run(rows, logits);
        const float *x = floats_.of(engine_, rows * spec_.hidden, h);
        const auto *ends = static_cast<const int32_t *>(r.ends.get_data_handle());
        const auto *tokens = static_cast<const int32_t *>(r.token_of_row.get_data_handle());
        const auto *weights = static_cast<const float *>(r.weight_of_row.get_data_handle());
        for (int64_t e = 0; e < spec_.experts; e++) {
            const int64_t begin = e ? ends[e - 1] : 0;
            if (ends[e] > begin) run_expert(e, ends[e] - begin, tokens + begin, weights + begin, x, y);
        }
    }
    std::string implementation() const override { return name_of(type_); }
    size_t bytes() const override { return bytes_of_expert() * size_t(spec_.experts); }
    size_t bytes_of_expert() const override { return gate_up_[0].bytes() + down_[0].bytes(); }
    int64_t chosen() const override { return spec_.routing->chosen(); }

private:
    engine_t &engine_;
    const experts_spec_t spec_;
    const data_type_t type_;
    std::vector<panels_t> gate_up_, down_;
    floats_t floats_;
    std::vector<float> in_, hidden_;

    void run_expert(
            int64_t e, int64_t rows, const int32_t *tokens, const float *weights, const float *x, float *y) {
        const int64_t H = spec_.hidden, I = spec_.intermediate;
        in_.resize(size_t(rows * H));
        hidden_.resize(size_t(rows * I));
        for (int64_t r = 0; r < rows; r++) std::copy_n(x + tokens[r] * H, H, in_.data() + r * H);
        const panels_t &up = gate_up_[size_t(e)], &down = down_[size_t(e)];
        parallel(up.panels(), 1, [&](int64_t begin, int64_t end) {
            std::vector<float> sums(size_t(rows * 2 * panel));
            for (int64_t i = begin; i < end; i++) {
                up.multiply(i, rows, in_.data(), H, sums.data());
                for (int64_t r = 0; r < rows; r++) activate(e, i, r, sums.data());
            }
        });
        parallel(down.panels(), 1, [&](int64_t begin, int64_t end) {
            std::vector<float> sums(size_t(rows * panel));
            for (int64_t i = begin; i < end; i++) {
                down.multiply(i, rows, hidden_.data(), I, sums.data());
                const int64_t n = std::min(panel, H - i * panel);
                const float *bias = spec_.down_bias + e * H + i * panel;
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < n; c++)
                        y[tokens[r] * H + i * panel + c] +=
                                (sums[size_t(r * panel + c)] + bias[c]) * weights[r];
            }
        });
    }

    // Of row r: the hidden columns that panel i, or a pair of panels, has gate and up of.
    void activate(int64_t e, int64_t i, int64_t r, const float *sums) {
        const int64_t I = spec_.intermediate, per_panel = spec_.is_interleaved ? panel / 2 : panel;
        const int64_t first = i * per_panel, n = std::min(per_panel, I - first);
        const float *bias = spec_.gate_up_bias + e * 2 * I;
        for (int64_t c = 0; c < n; c++) {
            const bool two = spec_.is_interleaved;
            float g = two ? sums[r * panel + 2 * c] : sums[r * 2 * panel + c];
            float u = two ? sums[r * panel + 2 * c + 1] : sums[r * 2 * panel + panel + c];
            g += bias[two ? 2 * (first + c) : first + c];
            u += bias[two ? 2 * (first + c) + 1 : I + first + c];
            g = std::min(g, spec_.limit);
            u = std::clamp(u, -spec_.limit, spec_.limit);
            hidden_[size_t(r * I + first + c)] = g / (1.f + std::exp(-spec_.alpha * g)) * (u + 1.f);
        }
    }
};

} // namespace

std::unique_ptr<linear_t> cpu_plain_linear(
        engine_t &engine, const linear_spec_t &spec, const source_t &weights, data_type_t type) {
    return std::make_unique<plain_linear_t>(engine, spec, weights, type);
}

std::unique_ptr<experts_t> cpu_plain_experts(engine_t &engine, const experts_spec_t &spec,
        const source_t &gate_up, const source_t &down, data_type_t type) {
    return std::make_unique<plain_experts_t>(engine, spec, gate_up, down, type);
}

} // namespace llm

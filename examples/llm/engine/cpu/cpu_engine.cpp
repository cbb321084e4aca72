// SPDX-License-Identifier: Apache-2.0
#include "cpu_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu_attention.hpp"
#include "engine/stopwatch.hpp"
#include "loops.hpp"
#include "parallel.hpp"
#include "plain.hpp"

namespace llm {

using dt = data_type_t;

const loops_t &loops() {
    static const loops_t &best = __builtin_cpu_supports("avx512f") ? loops_avx512
                                 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                         ? loops_avx2
                                         : loops_any;
    return best;
}

namespace {

dt activation_of(precision_t precision) {
    const mxdnn::cpu_isa isa = mxdnn::get_effective_cpu_isa();
    const bool has_bf16 = isa == mxdnn::cpu_isa::avx512_core_bf16 || isa == mxdnn::cpu_isa::avx512_core_amx;
    return precision == precision_t::native && has_bf16 ? dt::bf16 : dt::f32;
}

// The first of the largest.
int64_t largest_of(const float *x, int64_t n) {
    if (!loops().is_finite(n, x)) return -1;
    const int64_t whole = n / panel * panel;
    float top = whole ? loops().largest(whole, x) : x[0];
    for (int64_t i = whole; i < n; i++) top = std::max(top, x[i]);
    return std::find(x, x + n, top) - x;
}

// The embedding where it is in the file: rows are read as they are needed.
class cpu_table_t : public table_t {
public:
    explicit cpu_table_t(const source_t &source) : source_(source) {}

    void look_up(const batch_t &batch, float *x) override {
        const int64_t n = source_.shape.in;
        parallel(batch.rows, 16, [&](int64_t begin, int64_t end) {
            std::vector<float> row;
            for (int64_t r = begin; r < end; r++) {
                read_f32(source_, {0, std::max(batch.tokens[r], 0), 1}, row);
                std::copy_n(row.data(), n, x + r * n);
            }
        });
    }
    size_t bytes() const override { return 0; }

private:
    const source_t source_;
};

class cpu_engine_t : public engine_t {
public:
    explicit cpu_engine_t(precision_t precision)
        : cpu_engine_t(precision, mxdnn::engine(mxdnn::engine::kind::cpu, 0)) {}

    buffer_t allocate(size_t size) override {
        // The library's memory has large pages.
        using mxdnn::memory;
        const memory m({{memory::dim(std::max<size_t>(size, 1))}, dt::u8, memory::format_tag::a}, engine());
        return {std::shared_ptr<void>(m.get_data_handle(), [m](void *) {}), size};
    }
    void write(void *to, const void *host, size_t size) override {
        if (size) memcpy(to, host, size);
    }
    void read(void *host, const void *from, size_t size) override {
        if (size) memcpy(host, from, size);
    }

    void copy(void *to, const void *from, size_t size) override {
        if (size) memcpy(to, from, size);
    }
    double bandwidth(bool is_cpu_time) override;

    std::unique_ptr<table_t> table(const source_t &source) override {
        return std::make_unique<cpu_table_t>(source);
    }
    std::unique_ptr<attention_t> attention(
            const config_t &config, int64_t sequences, int64_t context, int64_t max_rows) override {
        return cpu_attention(*this, config, sequences, context, max_rows);
    }

    void rms_norm(int64_t rows, int64_t n, const norm_t &norm, void *y) override {
        parallel(rows, 8, [&](int64_t begin, int64_t end) {
            std::vector<float> room(activation() == dt::f32 ? 0 : size_t(n));
            for (int64_t r = begin; r < end; r++) {
                float *to = room.empty() ? static_cast<float *>(y) + r * n : room.data();
                loops().rms_norm(n, norm.x + r * n, norm.weight, norm.eps, to);
                if (!room.empty()) loops().to_bf16(n, to, static_cast<uint16_t *>(y) + r * n);
            }
        });
    }
    void take_rows(int64_t rows, int64_t n, const float *x, const int32_t *index, float *y) override {
        for (int64_t r = 0; r < rows; r++) std::copy_n(x + index[r] * n, n, y + r * n);
    }
    void largest(int64_t rows, int64_t n, const float *x, int32_t *index) override {
        for (int64_t r = 0; r < rows; r++) index[r] = int32_t(largest_of(x + r * n, n));
    }
    void increment(int64_t n, int32_t *values) override {
        for (int64_t i = 0; i < n; i++) values[i]++;
    }

    std::unique_ptr<linear_t> plain(
            const linear_spec_t &spec, const source_t &weights, dt type, int64_t) override {
        return cpu_plain_linear(*this, spec, weights, type);
    }
    std::unique_ptr<experts_t> plain(
            const experts_spec_t &spec, const source_t &gate_up, const source_t &down, dt type) override {
        return cpu_plain_experts(*this, spec, gate_up, down, type);
    }

private:
    cpu_engine_t(precision_t precision, const mxdnn::engine &e)
        : engine_t(e, mxdnn::stream(e), precision, activation_of(precision)) {}
};

// The best of some passes over more memory than caches hold.
double cpu_engine_t::bandwidth(bool is_cpu_time) {
    const int64_t n = int64_t(1) << 26, piece = int64_t(1) << 16;
    const buffer_t bytes = allocate(size_t(n) * sizeof(float));
    float *const values = bytes.as<float>();
    std::fill_n(values, n, 1.f);
    double best = 0;
    for (int pass = 0; pass < 8; pass++) {
        const stopwatch_t watch(is_cpu_time);
        std::atomic<float> top = 0;
        parallel(n / piece, 1, [&](int64_t begin, int64_t end) {
            const float t = loops().largest((end - begin) * piece, values + begin * piece);
            top.store(t, std::memory_order_relaxed);
        });
        const double seconds = watch.seconds();
        if (top.load() == 1.f) best = std::max(best, double(n) * 4 / seconds);
    }
    return best;
}

} // namespace

std::unique_ptr<engine_t> make_cpu_engine(precision_t precision) {
    return std::make_unique<cpu_engine_t>(precision);
}

} // namespace llm

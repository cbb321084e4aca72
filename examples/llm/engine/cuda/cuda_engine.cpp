// SPDX-License-Identifier: Apache-2.0
#include "cuda_engine.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <cublas_v2.h>
#include <mxdnn/mxdnn_cuda.hpp>

#include "attention.hpp"
#include "check.hpp"
#include "kernels.hpp"
#include "lt_matmul.hpp"
#include "model/rope.hpp"
#include "plain.hpp"

namespace llm {

using namespace cuda;
using dt = data_type_t;

namespace {

// The CUDA stream and what else a device lends; before the engine and after it.
struct device_t {
    stream_t stream = nullptr;
    std::unique_ptr<const lt_t> lt;

    explicit device_t(size_t index) {
        check(cudaSetDevice(int(index)), "use the device");
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
        lt = std::make_unique<const lt_t>();
    }
    ~device_t() {
        (void)cudaStreamSynchronize(stream);
        lt.reset();
        (void)cudaStreamDestroy(stream);
    }
    device_t(const device_t &) = delete;
    device_t &operator=(const device_t &) = delete;
};

class cuda_table_t : public table_t {
public:
    cuda_table_t(engine_t &engine, stream_t stream, const source_t &source)
        : stream_(stream), columns_(source.shape.in),
          type_(engine.precision() == precision_t::f32 ? dt::f32 : dt::bf16),
          rows_(upload(engine, source, type_)) {}

    void look_up(const batch_t &batch, float *x) override {
        cuda::look_up(stream_, batch.rows, columns_, batch.tokens, type_of(type_), rows_.as<void>(), x);
    }
    size_t bytes() const override { return rows_.size; }

private:
    const stream_t stream_;
    const int64_t columns_;
    const dt type_;
    const buffer_t rows_;
};

class cuda_attention_t : public llm::attention_t {
public:
    cuda_attention_t(engine_t &engine, stream_t stream, const config_t &c, int64_t sequences, int64_t context,
            int64_t max_rows)
        : stream_(stream), frequencies_(engine.put(frequencies(c.rope, c.head_size))) {
        const bool is_f32 = engine.precision() == precision_t::f32;
        size_t room = 0;
        for (const config_t::layer_t &l : c.layers) {
            const int64_t seen = l.window ? std::min(context, l.window - 1 + max_rows) : context;
            cuda::attention_t a = {};
            a.heads = c.heads;
            a.kv_heads = c.kv_heads;
            a.head_size = c.head_size;
            a.capacity = (seen + 15) / 16 * 16;
            a.window = l.window;
            a.is_interleaved = c.rope.is_interleaved;
            a.scale = 1.f / std::sqrt(float(c.head_size));
            a.turn_factor = float(c.rope.attention_factor);
            a.frequencies = frequencies_.as<float>();
            a.cache = is_f32 ? type_t::f32 : type_t::bf16;
            a.result = type_of(engine.activation());
            const size_t size = size_t(sequences * c.kv_heads * a.capacity * c.head_size) * (is_f32 ? 4 : 2);
            caches_.push_back(engine.allocate(size));
            a.keys = caches_.back().as<void>();
            caches_.push_back(engine.allocate(size));
            a.values = caches_.back().as<void>();
            layers_.push_back(a);
            room = std::max(room, attend_rows_room(a));
        }
        room_ = engine.allocate(room);
    }

    size_t bytes() const override {
        size_t n = 0;
        for (const buffer_t &b : caches_) n += b.size;
        return n;
    }
    size_t bytes_for_row(int64_t length) const override {
        size_t n = 0;
        for (const cuda::attention_t &a : layers_)
            n += size_t((a.window ? std::min(length, a.window) : length) * a.kv_heads * a.head_size * 2)
                 * (a.cache == type_t::f32 ? 4 : 2);
        return n;
    }

    void run(size_t layer, const batch_t &b, float *qkv, const float *sinks, void *y) override {
        cuda::attention_t a = layers_[layer];
        a.sinks = sinks;
        const bool is_decode =
                std::all_of(b.spans.begin(), b.spans.end(), [](const auto &s) { return s.rows == 1; });
        if (is_decode && can_attend_rows(a))
            return attend_rows(stream_, a, b.rows, b.sequences, b.positions, qkv, room_.as<void>(), y);
        if (!can_attend_span(a)) {
            rotate_and_store(stream_, a, b.rows, b.sequences, b.positions, qkv);
            return attend_plainly(stream_, a, b.rows, b.sequences, b.positions, qkv, y);
        }
        prepare_spans(stream_, a, b.rows, b.sequences, b.positions, qkv, y);
        const size_t size = a.result == type_t::bf16 ? 2 : 4;
        for (const batch_t::span_t &s : b.spans)
            attend_span(stream_, a, s.sequence, s.rows, s.position,
                    static_cast<char *>(y) + size_t(s.row * a.heads * a.head_size) * size);
    }

private:
    const stream_t stream_;
    const buffer_t frequencies_;
    std::vector<cuda::attention_t> layers_;
    std::vector<buffer_t> caches_;
    buffer_t room_;
};

class cuda_engine_t : public engine_t {
public:
    cuda_engine_t(const std::shared_ptr<device_t> &device, const mxdnn::engine &engine, precision_t precision)
        : engine_t(engine, mxdnn::cuda_interop::make_stream(engine, device->stream), precision,
                precision == precision_t::f32 ? dt::f32 : dt::bf16, device),
          device_(device), shared_{device_->stream, *device_->lt, {}} {}

    buffer_t allocate(size_t size) override {
        void *p = nullptr;
        const size_t at_least = std::max<size_t>(size, 256);
        const cudaError_t e = cudaMalloc(&p, at_least);
        if (e != cudaSuccess)
            throw std::runtime_error("the device has no memory for another " + std::to_string(size)
                                     + " bytes: " + cudaGetErrorString(e));
        check(cudaMemsetAsync(p, 0, at_least, device_->stream), "clear memory");
        return {std::shared_ptr<void>(p, [device = device_](void *q) { (void)cudaFree(q); }), size};
    }
    void write(void *to, const void *host, size_t size) override {
        check(cudaMemcpyAsync(to, host, size, cudaMemcpyHostToDevice, device_->stream), "copy to the device");
        wait(); // `host` may go away
    }
    void read(void *host, const void *from, size_t size) override {
        check(cudaMemcpyAsync(host, from, size, cudaMemcpyDeviceToHost, device_->stream),
                "copy from the device");
        wait();
    }
    void copy(void *to, const void *from, size_t size) override {
        check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, device_->stream),
                "copy on the device");
    }
    void wait() override { check(cudaStreamSynchronize(device_->stream), "finish work on the device"); }
    size_t device_bytes() const override {
        size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "ask the device for its memory");
        return total - free;
    }
    double bandwidth(bool) override;
    double matmul_rate() override;

    std::unique_ptr<table_t> table(const source_t &source) override {
        return std::make_unique<cuda_table_t>(*this, device_->stream, source);
    }
    std::unique_ptr<llm::attention_t> attention(
            const config_t &config, int64_t sequences, int64_t context, int64_t max_rows) override {
        return std::make_unique<cuda_attention_t>(
                *this, device_->stream, config, sequences, context, max_rows);
    }
    void rms_norm(int64_t rows, int64_t n, const norm_t &norm, void *y) override {
        cuda::rms_norm(device_->stream, rows, n, norm.x, norm.weight, norm.eps, type_of(activation()), y);
    }
    void take_rows(int64_t rows, int64_t n, const float *x, const int32_t *index, float *y) override {
        cuda::take_rows(device_->stream, rows, n, x, index, y);
    }
    void largest(int64_t rows, int64_t n, const float *x, int32_t *index) override {
        const size_t room = largest_room(rows);
        if (largest_room_.size < room) largest_room_ = allocate(room);
        cuda::largest(device_->stream, rows, n, x, largest_room_.as<void>(), index);
    }
    void increment(int64_t n, int32_t *values) override { cuda::increment(device_->stream, n, values); }

    std::function<void()> recorded(const std::function<void()> &work) override;

    std::unique_ptr<linear_t> plain(
            const linear_spec_t &spec, const source_t &weights, dt, int64_t max_rows) override {
        return plain_linear(*this, shared_, spec, weights, max_rows);
    }
    std::unique_ptr<llm::experts_t> plain(
            const experts_spec_t &spec, const source_t &gate_up, const source_t &down, dt type) override {
        return plain_experts(*this, shared_, spec, gate_up, down, type);
    }

private:
    const std::shared_ptr<device_t> device_;
    shared_t shared_;
    buffer_t largest_room_;

    double fastest(const std::function<void()> &work);
};

// Done once as it is, captured when it is done again, and replayed from then on.
std::function<void()> cuda_engine_t::recorded(const std::function<void()> &work) {
    struct graph_t {
        cudaGraphExec_t exec = nullptr;
        bool was_done = false;
        ~graph_t() {
            if (exec) (void)cudaGraphExecDestroy(exec);
        }
    };
    const auto graph = std::make_shared<graph_t>();
    return [graph, work, device = device_] {
        if (!graph->was_done) {
            graph->was_done = true;
            return work();
        }
        if (!graph->exec) {
            cudaGraph_t captured = nullptr;
            check(cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal),
                    "capture a graph");
            try {
                work();
            } catch (...) {
                (void)cudaStreamEndCapture(device->stream, &captured);
                throw;
            }
            check(cudaStreamEndCapture(device->stream, &captured), "capture a graph");
            const cudaError_t e = cudaGraphInstantiate(&graph->exec, captured, 0);
            (void)cudaGraphDestroy(captured);
            check(e, "instantiate a graph");
        }
        check(cudaGraphLaunch(graph->exec, device->stream), "launch a graph");
    };
}

// Seconds of the fastest of some runs.
double cuda_engine_t::fastest(const std::function<void()> &work) {
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "create an event");
    check(cudaEventCreate(&end), "create an event");
    float best = 1e30f;
    for (int pass = 0; pass < 5; pass++) {
        float ms = 0;
        check(cudaEventRecord(begin, device_->stream), "record an event");
        work();
        check(cudaEventRecord(end, device_->stream), "record an event");
        wait();
        check(cudaEventElapsedTime(&ms, begin, end), "measure");
        best = std::min(best, ms);
    }
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
    return double(best) * 1e-3;
}

double cuda_engine_t::bandwidth(bool) {
    const buffer_t bytes = allocate(size_t(1) << 30), sum = allocate(4);
    return double(bytes.size) / fastest([&] {
        read_all(device_->stream, bytes.as<void>(), int64_t(bytes.size), sum.as<float>());
    });
}

double cuda_engine_t::matmul_rate() {
    const int n = 8192;
    const size_t size = size_t(n) * n * 2;
    // Zeros would take less power than numbers.
    std::vector<uint16_t> values(size / 2);
    uint32_t state = 1;
    for (uint16_t &v : values) {
        state = state * 1664525 + 1013904223;
        v = uint16_t(0x3f00 | (state >> 16 & 0x80ff));
    }
    const buffer_t a = put(values), b = put(values), c = allocate(size);
    cublasHandle_t blas = nullptr;
    check(cublasCreate(&blas), "use cuBLAS");
    check(cublasSetStream(blas, device_->stream), "use cuBLAS");
    const float one = 1, zero = 0;
    const double seconds = fastest([&] {
        check(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, a.as<void>(), CUDA_R_16BF, n,
                      b.as<void>(), CUDA_R_16BF, n, &zero, c.as<void>(), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT),
                "multiply with cuBLAS");
    });
    (void)cublasDestroy(blas);
    return 2. * n * n * n / seconds;
}

} // namespace

std::unique_ptr<engine_t> make_cuda_engine(size_t index, precision_t precision) {
    // The library says what is missing where there is no device.
    const mxdnn::engine engine(mxdnn::engine::kind::cuda, index);
    return std::make_unique<cuda_engine_t>(std::make_shared<device_t>(index), engine, precision);
}

} // namespace llm

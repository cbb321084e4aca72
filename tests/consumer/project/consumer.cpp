// SPDX-License-Identifier: Apache-2.0
// The same as consumer.c through the C++ header, with bf16 activations, a bias and a post-op; and what a C++
// caller sees of a mistake.
#include <mxdnn/mxdnn.hpp>
#include <mxdnn/mxdnn_container.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr memory::dim M = 5, K = 96, N = 33;

int failures = 0;

void require(bool ok, const char *what) {
    if (ok) return;
    std::fprintf(stderr, "not true: %s\n", what);
    ++failures;
}

// The values used here are exact in bf16, so cutting is enough.
uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);
}

float value(memory::dim i) { return static_cast<float>((i * 7 + i / 5) % 9 - 4) * 0.5f; }

// A container of one packed tensor, as doc/reference/container.md has it: packed bytes first, at multiples
// of 64.
void write_container(const char *path, const memory::desc &desc, const void *bytes) {
    const std::vector<uint8_t> blob = desc.get_blob();
    const size_t size = desc.get_size(); // a multiple of 64
    char sum[17];
    std::snprintf(sum, sizeof sum, "%016llx", static_cast<unsigned long long>(packed_checksum(desc, bytes)));
    const auto tensor = [](const char *name, size_t begin, size_t end) {
        return "\"" + std::string(name) + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin)
               + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    };
    std::string header = "{\"__metadata__\":{\"w.mxdnn_checksum\":\"" + std::string(sum) + "\"},"
                         + tensor("w.mxdnn_packed", 0, size) + ","
                         + tensor("w.mxdnn_desc", size, size + blob.size()) + "}";
    header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
    std::string file(8, '\0');
    for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> 8 * i);
    file += header;
    file.append(static_cast<const char *>(bytes), size);
    file.append(blob.begin(), blob.end());
    std::ofstream(path, std::ios::binary) << file;
}

void run() {
    engine eng(engine::kind::cpu, 0);
    stream s(eng);

    primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1), {32, 1}, dt::e8m0);
    post_ops ops;
    ops.append_eltwise(algorithm::eltwise_relu, 0.f, 0.f);
    attr.set_post_ops(ops);
    mx_matmul::primitive_desc pd(eng, memory::desc({MXDNN_RUNTIME_DIM_VAL, K}, dt::bf16, tag::ab),
            memory::desc({K, N}, dt::f8_e4m3, tag::any), memory::desc({1, N}, dt::f32, tag::ab),
            memory::desc({MXDNN_RUNTIME_DIM_VAL, N}, dt::f32, tag::ab), attr);
    const memory::desc packed = pd.weights_desc();

    std::vector<float> weights(N * K), bias(N), y(M * N, std::nanf(""));
    std::vector<uint16_t> x(M * K);
    for (memory::dim i = 0; i < N * K; ++i) weights[i] = value(i);
    for (memory::dim i = 0; i < M * K; ++i) x[i] = to_bf16(value(3 * i + 1));
    for (memory::dim i = 0; i < N; ++i) bias[i] = value(i) * 8.f;

    primitive_attr q;
    q.set_scales(MXDNN_ARG_DST, (1 << 0) | (1 << 1), {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
    const memory::desc framework({K, N}, dt::f32, tag::ba);
    memory from(framework, eng, weights.data());
    memory w(packed, eng);
    mx_reorder(mx_reorder::primitive_desc(eng, framework, eng, packed, q))
            .execute(s, {{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, w}});
    s.wait();

    const char *const path = "consumer.safetensors";
    write_container(path, packed, w.get_data_handle());
    const container file(path);
    std::remove(path); // it is open
    const size_t index = file.find("w");
    file.verify(index);
    require(file.get_entry(index).is_packed, "packed weights are known as such");
    const std::vector<uint8_t> blob = packed.get_blob();
    const memory::desc loaded = file.get_desc(index);
    require(loaded == packed, "the descriptor survives its blob");
    require(loaded.get_blob() == blob, "the blob survives its descriptor");

    memory x_mem(memory::desc({M, K}, dt::bf16, tag::ab), eng, x.data());
    memory bias_mem(memory::desc({1, N}, dt::f32, tag::ab), eng, bias.data());
    memory y_mem(memory::desc({M, N}, dt::f32, tag::ab), eng, y.data());
    const memory mapped = file.get_memory(index, eng);
    mx_matmul(pd).execute(s, {{MXDNN_ARG_SRC, x_mem}, {MXDNN_ARG_WEIGHTS, mapped}, {MXDNN_ARG_BIAS, bias_mem},
                                     {MXDNN_ARG_DST, y_mem}});
    s.wait();

    for (memory::dim i = 0; i < M; ++i)
        for (memory::dim j = 0; j < N; ++j) {
            float expected = bias[j];
            for (memory::dim k = 0; k < K; ++k) expected += value(3 * (i * K + k) + 1) * weights[j * K + k];
            if (expected < 0.f) expected = 0.f;
            if (y[i * N + j] != expected) {
                std::fprintf(stderr, "y[%d][%d] is %g, expected %g\n", static_cast<int>(i),
                        static_cast<int>(j), static_cast<double>(y[i * N + j]),
                        static_cast<double>(expected));
                ++failures;
            }
        }

    try {
        const memory::desc cut(std::vector<uint8_t>(blob.begin(), blob.end() - 1));
        require(false, "a truncated blob is refused");
    } catch (const error &e) {
        require(e.status != mxdnn_success, "the exception carries the status");
        require(std::string(e.what()).size() > 10, "the exception says what was wrong");
    }
}

} // namespace

int main() {
    try {
        run();
    } catch (const error &e) {
        std::fprintf(stderr, "%s: %s\n", mxdnn_status2str(e.status), e.what());
        return 1;
    }
    if (failures) return 1;
    std::puts("consumer_cpp: ok");
    return 0;
}

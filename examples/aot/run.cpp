// SPDX-License-Identifier: Apache-2.0
// The compiled program: maps the artefact, selects the weights for the engine, and runs.
//
//     aot_run FILE [cpu | cuda]
#include <cstdio>
#include <stdexcept>

#include "loader.hpp"
#include "network.hpp"

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;

namespace {

// Weights of the shape that the program was compiled for, and the multiplication by them.
struct linear_t {
    aot::weights_t weights;
    mx_matmul::primitive_desc pd;
    mx_matmul matmul;

    linear_t(const aot::file_t &file, const char *name, dim K, dim N, const engine &eng,
            const primitive_attr &attr)
        : weights(aot::select(file.variants(), name, eng)) {
        const memory::desc md = weights.memory.get_desc();
        if (md.get_dims() != memory::dims{K, N})
            throw std::runtime_error(std::string("'") + name + "' has another shape than the program");
        pd = mx_matmul::primitive_desc(eng, {{MXDNN_RUNTIME_DIM_VAL, K}, dt::f32, tag::ab}, md,
                {{MXDNN_RUNTIME_DIM_VAL, N}, dt::f32, tag::ab}, attr);
        matmul = mx_matmul(pd);
        std::printf("%-5s %s: %s, %s\n", name, md.to_string().c_str(),
                weights.verdict == blob_verdict::native ? "native" : "slower", pd.impl_info_str().c_str());
    }
    void execute(const stream &s, const memory &x, const memory &y) const {
        matmul.execute(s, {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_WEIGHTS, weights.memory}, {MXDNN_ARG_DST, y}});
    }
};

void run(const std::string &path, engine::kind kind) {
    const engine eng(kind, 0);
    const aot::file_t file(path);
    post_ops relu;
    relu.append_eltwise(algorithm::eltwise_relu, 0.f, 0.f);
    primitive_attr with_relu;
    with_relu.set_post_ops(relu);
    const linear_t up(file, aot::up, aot::in, aot::hidden, eng, with_relu);
    const linear_t down(file, aot::down, aot::hidden, aot::out, eng, primitive_attr());

    const memory x({{aot::rows, aot::in}, dt::f32, tag::ab}, eng),
            h({{aot::rows, aot::hidden}, dt::f32, tag::ab}, eng),
            y({{aot::rows, aot::out}, dt::f32, tag::ab}, eng);
    float *values = x.map_data<float>();
    for (dim i = 0; i < aot::rows * aot::in; i++) values[i] = aot::input(i);
    x.unmap_data(values);
    stream s(eng);
    up.execute(s, x, h);
    down.execute(s, h, y);
    s.wait();

    double sum = 0; // rows have weights: an exchanged one shows
    values = y.map_data<float>();
    for (dim i = 0; i < aot::rows * aot::out; i++) sum += double(i / aot::out + 1) * values[i];
    y.unmap_data(values);
    std::printf("result: %.17g\n", sum);
}

} // namespace

int main(int argc, char **argv) {
    try {
        const std::string kind = argc > 2 ? argv[2] : "cpu";
        if (argc < 2 || argc > 3 || *argv[1] == '-' || (kind != "cpu" && kind != "cuda"))
            throw std::runtime_error("usage: aot_run FILE [cpu | cuda]");
        run(argv[1], kind == "cpu" ? engine::kind::cpu : engine::kind::cuda);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "aot_run: %s\n", e.what());
        return 1;
    }
}

// SPDX-License-Identifier: Apache-2.0
// One primitive per layer, made for any number of rows; bias and GELU are fused.
#include "linear_mxdnn.hpp"

#include "common/contents.hpp"

namespace minilm {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

class mxdnn_linear_t : public linear_t {
public:
    mxdnn_linear_t(const linear_spec_t &spec, const engine &eng, const stream &s,
            const mx_matmul::primitive_desc &pd, dt source, const memory &weights)
        : spec_(spec), engine_(eng), stream_(s), matmul_(pd), source_(source), weights_(weights),
          bias_({{1, spec.out}, dt::f32, tag::ab}, eng, const_cast<float *>(spec.bias)) {}

    void run(int64_t rows, const void *x, float *y) override {
        if (rows != rows_) {
            src_ = memory({{rows, spec_.in}, source_, tag::ab}, engine_, MXDNN_MEMORY_NONE);
            dst_ = memory({{rows, spec_.out}, dt::f32, tag::ab}, engine_, MXDNN_MEMORY_NONE);
            rows_ = rows;
        }
        src_.set_data_handle(const_cast<void *>(x));
        dst_.set_data_handle(y);
        matmul_.execute(stream_, {{MXDNN_ARG_SRC, src_}, {MXDNN_ARG_WEIGHTS, weights_},
                                         {MXDNN_ARG_BIAS, bias_}, {MXDNN_ARG_DST, dst_}});
        stream_.wait();
    }

private:
    linear_spec_t spec_;
    engine engine_;
    stream stream_;
    mx_matmul matmul_;
    dt source_;
    memory weights_, bias_, src_, dst_;
    int64_t rows_ = -1;
};

} // namespace

packed_t find_packed(const container &file, const std::string &name, const engine &eng) {
    const size_t index = file.find(name);
    file.verify(index);
    packed_t p{file.get_desc(index), file.get_data(index)};
    safetensors::check_usable("packed tensor " + name, p.desc, eng);
    return p;
}

mxdnn_linears_t::mxdnn_linears_t(const engine &eng, const container &file, bool bf16_source)
    : engine_(eng), stream_(eng), file_(file), bf16_(bf16_source) {}

std::unique_ptr<linear_t> mxdnn_linears_t::make(const linear_spec_t &spec) {
    const packed_t p = find_packed(file_, spec.name, engine_);
    primitive_attr attr;
    if (spec.gelu) {
        post_ops ops;
        ops.append_eltwise(algorithm::eltwise_gelu_erf, 0.f, 0.f);
        attr.set_post_ops(ops);
    }
    const dt source = bf16_ ? dt::bf16 : dt::f32;
    const mx_matmul::primitive_desc pd(engine_,
            memory::desc({MXDNN_RUNTIME_DIM_VAL, spec.in}, source, tag::ab), p.desc,
            memory::desc({1, spec.out}, dt::f32, tag::ab),
            memory::desc({MXDNN_RUNTIME_DIM_VAL, spec.out}, dt::f32, tag::ab), attr);
    const std::string name = pd.impl_info_str();
    if (implementation_.find(name) == std::string::npos)
        implementation_ += (implementation_.empty() ? "" : ", ") + name;
    packed_.push_back(p);
    return std::make_unique<mxdnn_linear_t>(
            spec, engine_, stream_, pd, source, memory(p.desc, engine_, const_cast<void *>(p.bytes)));
}

bool mxdnn_likes_bf16() {
    const cpu_isa isa = get_effective_cpu_isa();
    return isa == cpu_isa::avx512_core_bf16 || isa == cpu_isa::avx512_core_amx;
}

} // namespace minilm

// SPDX-License-Identifier: Apache-2.0
// Linear layers through oneDNN's matmul, as well as it can: weights in its own layout for each number of
// rows, bias and GELU fused, everything made before it is timed.
#include "linear.hpp"

#if MINILM_ONEDNN && __has_include(<oneapi/dnnl/dnnl.hpp>)

#include <cstring>
#include <map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "ops.hpp"

namespace minilm {

namespace {

using dnnl::memory;
using tag = memory::format_tag;
using dt = memory::data_type;

struct shared_t {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    dt type; // of source and weights
};

dnnl::matmul::primitive_desc describe(const shared_t &s, int64_t rows, int64_t in, int64_t out, bool gelu) {
    dnnl::primitive_attr attr;
    if (gelu) {
        dnnl::post_ops ops;
        ops.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0.f, 0.f);
        attr.set_post_ops(ops);
    }
    return {s.engine, {{rows, in}, s.type, tag::ab}, {{in, out}, s.type, tag::any},
            {{1, out}, dt::f32, tag::ab}, {{rows, out}, dt::f32, tag::ab}, attr};
}

class onednn_linear_t : public linear_t {
public:
    onednn_linear_t(const linear_spec_t &spec, shared_t &shared, bool rounded)
        : spec_(spec), shared_(shared),
          bias_({{1, spec.out}, dt::f32, tag::ab}, shared.engine, const_cast<float *>(spec.bias)) {
        if (!rounded) return;
        rounded_.resize(size_t(spec.in * spec.out));
        for (size_t i = 0; i < rounded_.size(); i++) rounded_[i] = from_bf16(to_bf16(spec.weight[i]));
        spec_.weight = rounded_.data();
    }

    void run(int64_t rows, const void *x, float *y) override {
        auto it = ready_.find(rows);
        if (it == ready_.end()) it = ready_.emplace(rows, prepare(rows)).first;
        ready_t &r = it->second;
        r.src.set_data_handle(const_cast<void *>(x));
        r.dst.set_data_handle(y);
        r.primitive.execute(shared_.stream, {{DNNL_ARG_SRC, r.src}, {DNNL_ARG_WEIGHTS, r.weights},
                                                    {DNNL_ARG_BIAS, bias_}, {DNNL_ARG_DST, r.dst}});
        shared_.stream.wait();
    }

private:
    struct ready_t {
        dnnl::matmul primitive;
        memory src, weights, dst;
    };
    linear_spec_t spec_;
    dnnl::engine engine() const { return shared_.engine; }
    shared_t &shared_;
    memory bias_;
    std::vector<float> rounded_;
    std::map<int64_t, ready_t> ready_; // by rows

    ready_t prepare(int64_t rows) {
        const auto pd = describe(shared_, rows, spec_.in, spec_.out, spec_.gelu);
        memory weights;
        for (const auto &r : ready_) // one copy per layout
            if (r.second.weights.get_desc() == pd.weights_desc()) weights = r.second.weights;
        if (!weights) {
            weights = memory(pd.weights_desc(), engine());
            memory plain(
                    {{spec_.in, spec_.out}, dt::f32, tag::ba}, engine(), const_cast<float *>(spec_.weight));
            dnnl::stream s(engine());
            dnnl::reorder(plain, weights).execute(s, plain, weights);
            s.wait();
        }
        return {dnnl::matmul(pd), memory(pd.src_desc(), engine(), nullptr), weights,
                memory(pd.dst_desc(), engine(), nullptr)};
    }
};

class onednn_linears_t : public linears_t {
public:
    explicit onednn_linears_t(baseline_t which) : rounded_(which == baseline_t::bf16_rounded) {
        shared_.type = which == baseline_t::bf16 ? dt::bf16 : dt::f32;
    }
    bool bf16_source() const override { return shared_.type == dt::bf16; }
    std::unique_ptr<linear_t> make(const linear_spec_t &spec) override {
        return std::make_unique<onednn_linear_t>(spec, shared_, rounded_);
    }
    // Whether oneDNN has more than its reference code for the type.
    bool fast() const {
        try {
            return std::strstr(describe(shared_, 32, 384, 384, false).impl_info_str(), "ref") == nullptr;
        } catch (const dnnl::error &) {
            return false;
        }
    }

private:
    shared_t shared_;
    bool rounded_;
};

} // namespace

std::unique_ptr<linears_t> onednn_linears(baseline_t which) {
    auto linears = std::make_unique<onednn_linears_t>(which);
    if (!linears->fast()) return nullptr;
    return linears;
}

std::string onednn_version() {
    const dnnl_version_t *v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "."
           + std::to_string(v->patch);
}

} // namespace minilm

#else

namespace minilm {
std::unique_ptr<linears_t> onednn_linears(baseline_t) { return nullptr; }
std::string onednn_version() { return ""; }
} // namespace minilm

#endif

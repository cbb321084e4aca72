// SPDX-License-Identifier: Apache-2.0
// Linear layers in plain C++: the truth for everything else here, and the baseline where there is no oneDNN.
#include "linear.hpp"

#include <vector>

#include "ops.hpp"

namespace minilm {

namespace {

class plain_linear_t : public linear_t {
public:
    plain_linear_t(const linear_spec_t &spec, bool rounded) : spec_(spec) {
        if (!rounded) return;
        rounded_.resize(size_t(spec.in * spec.out));
        for (size_t i = 0; i < rounded_.size(); i++) rounded_[i] = from_bf16(to_bf16(spec.weight[i]));
        spec_.weight = rounded_.data();
    }
    void run(int64_t rows, const void *x, float *y) override {
        linear(rows, spec_.in, spec_.out, static_cast<const float *>(x), spec_.weight, spec_.bias, y);
        if (spec_.gelu) gelu(rows * spec_.out, y);
    }

private:
    linear_spec_t spec_;
    std::vector<float> rounded_;
};

class plain_linears_t : public linears_t {
public:
    explicit plain_linears_t(bool rounded) : rounded_(rounded) {}
    std::unique_ptr<linear_t> make(const linear_spec_t &spec) override {
        return std::make_unique<plain_linear_t>(spec, rounded_);
    }

private:
    bool rounded_;
};

} // namespace

std::unique_ptr<linears_t> plain_linears(baseline_t which) {
    return std::make_unique<plain_linears_t>(which != baseline_t::f32);
}

} // namespace minilm

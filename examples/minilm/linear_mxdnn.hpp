// SPDX-License-Identifier: Apache-2.0
// Linear layers through mx_matmul on packed weights that stay where they are mapped.
#pragma once

#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "common/container.hpp"
#include "linear.hpp"

namespace minilm {

class mxdnn_linears_t : public linears_t {
public:
    // `file` must outlive the object and every layer that it makes.
    mxdnn_linears_t(const mxdnn::engine &engine, const safetensors::file_t &file, bool bf16_source);

    bool bf16_source() const override { return bf16_; }
    // Checks the packed weights of that name and compiles for them; throws std::runtime_error.
    std::unique_ptr<linear_t> make(const linear_spec_t &spec) override;

    // Of the layers made so far.
    const std::vector<container::packed_t> &packed() const { return packed_; }
    const std::string &implementation() const { return implementation_; } // "jit:avx2"; several: "a, b"

private:
    mxdnn::engine engine_;
    mxdnn::stream stream_;
    const safetensors::file_t &file_;
    bool bf16_;
    std::vector<container::packed_t> packed_;
    std::string implementation_;
};

// Whether this machine multiplies bf16 faster than f32.
bool mxdnn_likes_bf16();

} // namespace minilm

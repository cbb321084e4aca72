// SPDX-License-Identifier: Apache-2.0
// Linear layers through mx_matmul on packed weights that stay where they are mapped.
#pragma once

#include <string>
#include <vector>

#include <mxdnn/mxdnn_container.hpp>

#include "linear.hpp"

namespace minilm {

// Packed weights where they lie in a mapped file.
struct packed_t {
    mxdnn::memory::desc desc;
    const void *bytes;
};

// Finds weights by name and checks that they are whole, and that the engine can use them as they are.
packed_t find_packed(const mxdnn::container &file, const std::string &name, const mxdnn::engine &engine);

class mxdnn_linears_t : public linears_t {
public:
    mxdnn_linears_t(const mxdnn::engine &engine, const mxdnn::container &file, bool bf16_source);

    bool bf16_source() const override { return bf16_; }
    // Checks the packed weights of that name and compiles for them; throws std::runtime_error.
    std::unique_ptr<linear_t> make(const linear_spec_t &spec) override;

    // Of the layers made so far.
    const std::vector<packed_t> &packed() const { return packed_; }
    const std::string &implementation() const { return implementation_; } // "jit:avx2"; several: "a, b"

private:
    mxdnn::engine engine_;
    mxdnn::stream stream_;
    mxdnn::container file_;
    bool bf16_;
    std::vector<packed_t> packed_;
    std::string implementation_;
};

// Whether this machine multiplies bf16 faster than f32.
bool mxdnn_likes_bf16();

} // namespace minilm

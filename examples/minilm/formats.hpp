// SPDX-License-Identifier: Apache-2.0
// The weight formats of the table and how each is asked of mxdnn.
#pragma once

#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

namespace minilm {

struct format_t {
    const char *name;  // in files and options
    const char *title; // in the table
    mxdnn::memory::data_type element;
    mxdnn::memory::dim block; // elements along K that share a scale
    mxdnn::memory::data_type scale;
    mxdnn::quantization_mode mode; // of the quantiser
    bool zero_points, global_scale;
};

const std::vector<format_t> &formats();
std::vector<std::string> format_names();

// The format of that name, or std::runtime_error that lists them.
const format_t &find_format(const std::string &name);

// The packed descriptor that mx_matmul wants for weights [in, out] of the format.
mxdnn::memory::desc packed_desc(
        const format_t &format, const mxdnn::engine &engine, mxdnn::memory::dim in, mxdnn::memory::dim out);

// Quantises and packs f32 weights [out, in] in one step.
mxdnn::memory pack(const format_t &format, const mxdnn::engine &engine, mxdnn::memory::dim in,
        mxdnn::memory::dim out, const float *weight);

// The opposite: what the packed weights are worth, as f32 [out, in].
std::vector<float> unpack(const mxdnn::memory::desc &packed, const mxdnn::engine &engine, const void *bytes);

} // namespace minilm

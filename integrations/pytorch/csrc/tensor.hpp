// SPDX-License-Identifier: Apache-2.0
// Tensors of torch's stable ABI as memory descriptors and pointers.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include <mxdnn/mxdnn.hpp>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

// Newer headers have this one, whose exception has torch's own message.
#if !defined(STABLE_TORCH_ERROR_CODE_CHECK)
#define STABLE_TORCH_ERROR_CODE_CHECK(call) TORCH_ERROR_CODE_CHECK(call)
#endif

namespace mxdnn_torch {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using dt = mxdnn::memory::data_type;
using dims_t = mxdnn::memory::dims;

// Where a tensor is.
struct place_t {
    bool is_cuda = false;
    int32_t index = 0; // of the CUDA device
    bool operator==(const place_t &o) const { return is_cuda == o.is_cuda && index == o.index; }
    bool operator!=(const place_t &o) const { return !(*this == o); }
};
std::string name_of(const place_t &place);

// Sizes or strides, without memory of their own.
struct extents_t {
    int64_t values[MXDNN_MAX_NDIMS];
    size_t n = 0;

    extents_t() = default;
    extents_t(const int64_t *begin, size_t count) : n(count) { std::copy(begin, begin + count, values); }
    extents_t(std::initializer_list<int64_t> list) : extents_t(list.begin(), list.size()) {}
    extents_t(const dims_t &dims) : extents_t(dims.data(), dims.size()) {} // of 12 at most
    operator dims_t() const { return dims_t(begin(), end()); }
    const int64_t *begin() const { return values; }
    const int64_t *end() const { return values + n; }
    size_t size() const { return n; }
    bool empty() const { return n == 0; }
    int64_t operator[](size_t i) const { return values[i]; }
    int64_t back() const { return values[n - 1]; }
};

// What an operator needs to know of a tensor, asked once.
struct view_t {
    void *data = nullptr;
    ScalarType type = ScalarType::Undefined;
    place_t place;
    extents_t dims, strides;

    int64_t numel() const;
    bool is_contiguous() const;
    std::string shape() const; // "[2, 3]"
};

// Refuses tensors that are neither on the CPU nor on a CUDA device.
view_t view_of(AtenTensorHandle tensor, const char *name);
inline view_t view_of(const Tensor &tensor, const char *name) { return view_of(tensor.get(), name); }

// Raises a sentence that begins with "mxdnn: ".
[[noreturn]] void refuse(const std::string &sentence);

// f32, bf16 and f16; `name` is the argument's for the sentence of a refusal.
dt high_precision(const view_t &view, const char *name);
ScalarType scalar_type_of(dt type);
const char *name_of(ScalarType type);

void expect_type(const view_t &view, const char *name, ScalarType type);
void expect_place(const view_t &view, const char *name, const place_t &place);
void expect_dims(const view_t &view, const char *name, const extents_t &dims);
void expect_contiguous(const view_t &view, const char *name);

// Of torch's allocator, contiguous, not initialised.
Tensor make_tensor(const extents_t &dims, ScalarType type, const place_t &place);

// The same values row by row; the tensor itself where they already are.
Tensor make_contiguous(const Tensor &tensor);

std::string to_string(const dims_t &dims);

} // namespace mxdnn_torch

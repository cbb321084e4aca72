// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <stdexcept>

namespace mxdnn_torch {

namespace {

struct type_row_t {
    ScalarType type;
    const char *name;
    int32_t (*code)(); // the number that this torch has for it
};

constexpr type_row_t type_rows[] = {
        {ScalarType::BFloat16, "bfloat16", aoti_torch_dtype_bfloat16},
        {ScalarType::Float, "float32", aoti_torch_dtype_float32},
        {ScalarType::Half, "float16", aoti_torch_dtype_float16},
        {ScalarType::Byte, "uint8", aoti_torch_dtype_uint8},
        {ScalarType::Int, "int32", aoti_torch_dtype_int32},
        {ScalarType::Long, "int64", aoti_torch_dtype_int64},
        {ScalarType::Char, "int8", aoti_torch_dtype_int8},
        {ScalarType::Float8_e4m3fn, "float8_e4m3fn", aoti_torch_dtype_float8_e4m3fn},
        {ScalarType::Float8_e5m2, "float8_e5m2", aoti_torch_dtype_float8_e5m2},
        {ScalarType::Double, "float64", aoti_torch_dtype_float64},
        {ScalarType::Bool, "bool", aoti_torch_dtype_bool},
};

ScalarType type_of(AtenTensorHandle tensor) {
    int32_t code = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor, &code));
    for (const type_row_t &row : type_rows)
        if (row.code() == code) return row.type;
    return ScalarType::Undefined;
}

} // namespace

void refuse(const std::string &sentence) { throw std::runtime_error("mxdnn: " + sentence); }

std::string name_of(const place_t &place) {
    return place.is_cuda ? "cuda:" + std::to_string(place.index) : "cpu";
}

const char *name_of(ScalarType type) {
    for (const type_row_t &row : type_rows)
        if (row.type == type) return row.name;
    return "another type";
}

std::string to_string(const dims_t &dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); i++) text += (i ? ", " : "") + std::to_string(dims[i]);
    return text + "]";
}

int64_t view_t::numel() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
}

bool view_t::is_contiguous() const {
    int64_t expected = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        if (dims[i] == 0) return true;
        if (dims[i] != 1 && strides[i] != expected) return false;
        expected *= dims[i];
    }
    return true;
}

std::string view_t::shape() const { return to_string(dims); }

view_t view_of(AtenTensorHandle handle, const char *name) {
    view_t view;
    int32_t device = 0, index = 0;
    int64_t ndims = 0, *sizes = nullptr, *strides = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(handle, &device));
    static const int32_t cpu = aoti_torch_device_type_cpu(), cuda = aoti_torch_device_type_cuda();
    if (device != cpu && device != cuda)
        refuse(std::string(name) + " is on a device of another kind; it must be on the CPU or a CUDA device");
    if (device == cuda) {
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(handle, &index));
        view.place = {true, index};
    }
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(handle, &ndims));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(handle, &sizes));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(handle, &strides));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(handle, &view.data));
    view.type = type_of(handle);
    if (ndims > MXDNN_MAX_NDIMS)
        refuse(std::string(name) + " has " + std::to_string(ndims) + " dimensions; at most 12 are possible");
    view.dims = extents_t(sizes, static_cast<size_t>(ndims));
    view.strides = extents_t(strides, static_cast<size_t>(ndims));
    return view;
}

dt high_precision(const view_t &view, const char *name) {
    switch (view.type) {
    case ScalarType::Float: return dt::f32;
    case ScalarType::BFloat16: return dt::bf16;
    case ScalarType::Half: return dt::f16;
    default:
        refuse(std::string(name) + " has dtype " + name_of(view.type)
                + "; it must be float32, bfloat16 or float16");
    }
}

ScalarType scalar_type_of(dt type) {
    switch (type) {
    case dt::f32: return ScalarType::Float;
    case dt::bf16: return ScalarType::BFloat16;
    case dt::f16: return ScalarType::Half;
    default: return ScalarType::Byte; // everything of a byte or less travels as bytes
    }
}

void expect_type(const view_t &view, const char *name, ScalarType type) {
    if (view.type != type)
        refuse(std::string(name) + " has dtype " + name_of(view.type) + "; it must be " + name_of(type));
}

void expect_place(const view_t &view, const char *name, const place_t &place) {
    if (view.place != place)
        refuse(std::string(name) + " is on " + name_of(view.place) + "; it must be on " + name_of(place)
                + ", where the other tensors are");
}

void expect_dims(const view_t &view, const char *name, const extents_t &dims) {
    if (!std::equal(view.dims.begin(), view.dims.end(), dims.begin(), dims.end()))
        refuse(std::string(name) + " has shape " + view.shape() + "; it must have " + to_string(dims));
}

void expect_contiguous(const view_t &view, const char *name) {
    if (!view.is_contiguous())
        refuse(std::string(name) + " is not contiguous; it must be, so call .contiguous() first");
}

Tensor make_tensor(const extents_t &dims, ScalarType type, const place_t &place) {
    int64_t strides[MXDNN_MAX_NDIMS], stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= dims[i] > 0 ? dims[i] : 1;
    }
    int32_t code = 0;
    for (const type_row_t &row : type_rows)
        if (row.type == type) {
            code = row.code();
            break;
        }
    AtenTensorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<int64_t>(dims.size()), dims.begin(),
            strides, code, place.is_cuda ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu(),
            place.index, &handle));
    return Tensor(handle);
}

Tensor make_contiguous(const Tensor &tensor) {
    return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

} // namespace mxdnn_torch

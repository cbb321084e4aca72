// SPDX-License-Identifier: Apache-2.0
#include "gguf_entries.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "common/gguf_blocks.hpp"
#include "common/safetensors.hpp"

namespace mxdnn_pack {

using nlohmann::json;
using safetensors::shown;
using dt = mxdnn::memory::data_type;

namespace {

dt type_of(const std::string &dtype) {
    return dtype == "F32" ? dt::f32 : dtype == "F16" ? dt::f16 : dtype == "BF16" ? dt::bf16 : dt::undef;
}

json element(const gguf::value_t &v, size_t i) {
    using t = gguf::type_t;
    switch (v.type()) {
    case t::string: return std::string(v.string(i));
    case t::boolean: return v.boolean(i);
    case t::f32:
    case t::f64: return v.number(i);
    case t::u64: return v.unsigned_integer(i);
    default: return v.integer(i);
    }
}

// Bytes that are not UTF-8 are replaced: what is written is UTF-8.
std::string element_text(const gguf::value_t &v, size_t i) {
    return element(v, i).dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

mxdnn::container::entry entry_of(const gguf::file_t &file, const gguf::tensor_t &tensor) {
    const auto refuse = [&](const std::string &why) {
        throw std::runtime_error(file.name() + ": tensor " + shown(tensor.name) + " " + why);
    };
    for (const char *suffix : {safetensors::packed_suffix, safetensors::desc_suffix})
        if (safetensors::ends_with(tensor.name, suffix))
            refuse("has the name of a packed one; GGUF files have none");
    const bool is_blocks = gguf::find_blocks(*tensor.element) != nullptr;
    mxdnn::container::entry e;
    e.name = tensor.name;
    e.dtype = is_blocks ? "F32" : tensor.element->name;
    e.data_type = type_of(e.dtype);
    e.dims = tensor.dims;
    e.offset = tensor.offset;
    const safetensors::dtype_t *dtype = safetensors::find_dtype(e.dtype);
    if (!dtype) refuse("is of type " + e.dtype + ", which is not read");
    if (const safetensors::status_t s = safetensors::size_in_bytes(*dtype, e.dims, e.size); !s.ok())
        refuse("is " + s.message);
    return e;
}

void read_entry(const gguf::file_t &file, const gguf::tensor_t &tensor, uint64_t offset, uint64_t size,
        void *buffer) {
    if (gguf::find_blocks(*tensor.element))
        gguf::read_values(file, tensor, offset / 4, size / 4, static_cast<float *>(buffer));
    else
        file.read(tensor, offset, size, buffer);
}

std::map<std::string, std::string> metadata_of(const gguf::file_t &file) {
    std::map<std::string, std::string> all;
    for (const auto &[key, value] : file.metadata()) {
        if (key.substr(0, 6) == "split.") continue; // of the files, not of the model
        std::string text;
        for (size_t i = 0; i < value.size(); i++) (text += i ? "," : "") += element_text(value, i);
        all["gguf." + std::string(key)] = value.is_array() ? "[" + text + "]" : text;
    }
    return all;
}

} // namespace mxdnn_pack

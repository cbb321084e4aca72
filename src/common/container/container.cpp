// SPDX-License-Identifier: Apache-2.0
#include "common/container/container.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace mxdnn {
namespace impl {

using safetensors::checksum_suffix;
using safetensors::desc_suffix;
using safetensors::dtype_t;
using safetensors::ends_with;
using safetensors::hexadecimal;
using safetensors::kind_t;
using safetensors::packed_alignment;
using safetensors::packed_suffix;
using safetensors::prefix_size;
using safetensors::shown;
using safetensors::tensor_t;
using safetensors::without;
using sentence_t = safetensors::status_t;

namespace {

status_t fail_with(status_t status, const std::string &text) { return fail(status, "%s", text.c_str()); }

status_t fail_with(const sentence_t &s) {
    return fail_with(s.kind == kind_t::io ? mxdnn_runtime_error : mxdnn_corrupt_blob, s.message);
}

struct type_row_t {
    const char *dtype;
    data_type_t type;
};
constexpr type_row_t types[] = {{"U8", mxdnn_u8}, {"I8", mxdnn_s8}, {"I32", mxdnn_s32}, {"F16", mxdnn_f16},
        {"BF16", mxdnn_bf16}, {"F32", mxdnn_f32}, {"F8_E4M3", mxdnn_f8_e4m3}, {"F8_E5M2", mxdnn_f8_e5m2},
        {"F8_E8M0", mxdnn_e8m0}, {"F6_E2M3", mxdnn_f6_e2m3}, {"F6_E3M2", mxdnn_f6_e3m2},
        {"F4", mxdnn_f4_e2m1}};

// Calls read(bytes, size) for all bytes of an entry, piece by piece.
template <typename F>
status_t for_pieces(const container_t &c, const container_t::entry_t &e, F &&take) {
    constexpr uint64_t piece = uint64_t(1) << 20;
    const uint64_t size = e.tensor->size();
    std::vector<uint8_t> buffer(size_t(std::min(size, piece)));
    for (uint64_t at = 0; at < size; at += piece) {
        const uint64_t n = std::min(size - at, piece);
        MXDNN_CHECK(c.read(e, at, buffer.data(), n));
        take(buffer.data(), n);
    }
    return mxdnn_success;
}

} // namespace

const data_type_info_t *data_type_of(const dtype_t &dtype) {
    for (const type_row_t &row : types)
        if (std::string(row.dtype) == dtype.name) return data_type_info(row.type);
    return nullptr;
}

xxh64_t tensor_checksum(const std::string &dtype, const std::vector<int64_t> &shape) {
    const std::string text = dtype + safetensors::to_string(shape);
    return xxh64_t(xxh64(text.data(), text.size(), 0));
}

std::string container_t::what(const entry_t &e) const {
    return file_.name() + ": " + (e.is_packed ? "packed tensor " : "tensor ") + shown(e.name);
}

status_t container_t::open(const char *path) {
    if (const sentence_t s = file_.open(path); !s.ok()) return fail_with(s);
    return parse();
}

status_t container_t::open_bytes(const void *bytes, uint64_t size) {
    file_.open_bytes(bytes, size);
    return parse();
}

status_t container_t::parse() {
    const auto refused = [&](const sentence_t &s) {
        return s.kind == kind_t::io ? fail_with(s)
                                    : fail_with(mxdnn_corrupt_blob, file_.name() + ": " + s.message);
    };
    uint8_t prefix[prefix_size] = {};
    uint64_t header_size = 0;
    if (const sentence_t s = file_.read(0, prefix, std::min(file_.size(), prefix_size)); !s.ok())
        return refused(s);
    if (const sentence_t s = safetensors::parse_prefix(prefix, file_.size(), header_size); !s.ok())
        return refused(s);
    {
        std::vector<uint8_t> header(static_cast<size_t>(header_size));
        if (const sentence_t s = file_.read(prefix_size, header.data(), header_size); !s.ok())
            return refused(s);
        if (const sentence_t s = safetensors::parse_header(header.data(), header_size, file_.size(), index_);
                !s.ok())
            return refused(s);
    }
    for (const auto &pair : index_.metadata) metadata_order_.push_back(&pair);
    for (const tensor_t &t : index_.tensors) {
        if (ends_with(t.name, desc_suffix) && index_.find(without(t.name, desc_suffix) + packed_suffix))
            continue; // belongs to the packed entry
        entry_t e;
        e.tensor = &t;
        e.is_packed = ends_with(t.name, packed_suffix);
        e.name = e.is_packed ? without(t.name, packed_suffix) : t.name;
        const auto sum = index_.metadata.find(e.name + checksum_suffix);
        e.checksum = sum == index_.metadata.end() ? nullptr : &sum->second;
        if (!by_name_.emplace(e.name, entries_.size()).second)
            return refused({kind_t::duplicate_name,
                    "there are a tensor " + shown(e.name) + " and packed weights of that name"});
        entries_.push_back(std::move(e));
    }
    return mxdnn_success;
}

const container_t::entry_t *container_t::find(const std::string &name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : &entries_[it->second];
}

status_t container_t::read(const entry_t &e, uint64_t offset, void *buffer, uint64_t size) const {
    if (offset > e.tensor->size() || size > e.tensor->size() - offset)
        return fail_with(mxdnn_invalid_arguments, what(e) + " has " + std::to_string(e.tensor->size())
                                                          + " bytes; " + std::to_string(size) + " from byte "
                                                          + std::to_string(offset) + " on are more");
    const sentence_t s = file_.read(offset_of(e) + offset, buffer, size);
    return s.ok() ? mxdnn_success : fail_with(s);
}

status_t container_t::data(const entry_t &e, const uint8_t *&data) const {
    const uint8_t *bytes = nullptr;
    if (const sentence_t s = file_.map(bytes); !s.ok()) return fail_with(s);
    data = bytes + offset_of(e);
    return mxdnn_success;
}

status_t container_t::desc(const entry_t &e, memory_desc_t &md) const {
    return e.is_packed ? packed_desc(e, md) : plain_desc(e, md);
}

status_t container_t::plain_desc(const entry_t &e, memory_desc_t &md) const {
    const tensor_t &t = *e.tensor;
    const data_type_info_t *type = data_type_of(*t.dtype);
    if (!type)
        return fail_with(
                mxdnn_unimplemented, what(e) + " is " + t.dtype->name + ", for which there is no data type");
    const std::vector<int64_t> dims = t.shape.empty() ? std::vector<int64_t>{1} : t.shape;
    if (dims.size() > size_t(MXDNN_MAX_NDIMS))
        return fail_with(mxdnn_unimplemented,
                what(e) + " has " + std::to_string(dims.size()) + " dimensions; descriptors have 12 at most");
    memory_desc_t d;
    MXDNN_CHECK(init_strided(d, int(dims.size()), dims.data(), type->id, nullptr));
    if (uint64_t(size_of(d)) != t.size())
        return fail_with(mxdnn_unimplemented,
                what(e) + " has " + std::to_string(t.size()) + " bytes where a descriptor of " + type->name
                        + " would have " + std::to_string(size_of(d))
                        + ": codes of fewer than 8 bits are stored without gaps");
    md = d;
    return mxdnn_success;
}

status_t container_t::packed_desc(const entry_t &e, memory_desc_t &md) const {
    const auto damaged = [&](const std::string &text) {
        return fail_with(mxdnn_corrupt_blob, what(e) + text);
    };
    const tensor_t &t = *e.tensor;
    const tensor_t *blob = index_.find(e.name + desc_suffix);
    if (!blob) return damaged(" has no descriptor: there is no tensor " + shown(e.name + desc_suffix));
    for (const tensor_t *u8 : {&t, blob})
        if (std::string(u8->dtype->name) != "U8")
            return damaged(": " + shown(u8->name) + " is " + u8->dtype->name + ", not U8");
    if (blob->size() > max_blob_bytes)
        return damaged(": its descriptor has " + std::to_string(blob->size()) + " bytes; at most "
                       + std::to_string(max_blob_bytes) + " are read");
    std::vector<uint8_t> bytes(size_t(blob->size()));
    if (const sentence_t s = file_.read(index_.data_offset + blob->begin, bytes.data(), bytes.size());
            !s.ok())
        return fail_with(s);
    memory_desc_t d;
    const status_t read = read_blob(d, bytes.data(), bytes.size());
    if (read != mxdnn_success) return fail_with(read, what(e) + ": " + last_error());
    if (!mxdnn::impl::is_packed(d))
        return damaged(" is described as " + to_string(d) + ", which is no packed layout");
    const int64_t size = size_of(d);
    if (size < 0 || t.size() != uint64_t(size))
        return damaged(" has " + std::to_string(t.size()) + " bytes; its descriptor asks for "
                       + std::to_string(size));
    if (offset_of(e) % packed_alignment) return damaged(" does not begin at a multiple of 64 bytes");
    md = std::move(d);
    return mxdnn_success;
}

status_t container_t::verify(const entry_t &e) const {
    memory_desc_t md;
    if (e.is_packed) MXDNN_CHECK(packed_desc(e, md));
    if (!e.checksum)
        return fail_with(
                e.is_packed ? mxdnn_corrupt_blob : mxdnn_unimplemented, what(e) + " has no checksum");
    xxh64_t sum = checksum_of(e, md);
    MXDNN_CHECK(
            for_pieces(*this, e, [&](const uint8_t *bytes, uint64_t size) { sum.add(bytes, size_t(size)); }));
    return compare(e, sum);
}

status_t container_t::load(const entry_t &e, const memory_desc_t &md, void *to) const {
    const uint64_t size = uint64_t(size_of(md));
    MXDNN_CHECK(read(e, 0, to, size));
    if (!e.checksum)
        return e.is_packed ? fail_with(mxdnn_corrupt_blob, what(e) + " has no checksum") : mxdnn_success;
    xxh64_t sum = checksum_of(e, md);
    sum.add(to, size_t(size));
    return compare(e, sum);
}

xxh64_t container_t::checksum_of(const entry_t &e, const memory_desc_t &md) const {
    return e.is_packed ? packed_checksum(md) : tensor_checksum(e.tensor->dtype->name, e.tensor->shape);
}

status_t container_t::compare(const entry_t &e, const xxh64_t &sum) const {
    const std::string found = hexadecimal(sum.value());
    if (*e.checksum != found)
        return fail_with(mxdnn_corrupt_blob,
                what(e) + " is damaged: its checksum is " + found + ", the file says " + shown(*e.checksum));
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn

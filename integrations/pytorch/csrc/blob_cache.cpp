// SPDX-License-Identifier: Apache-2.0
#include "blob_cache.hpp"

#include <array>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

namespace mxdnn_torch {

namespace {

constexpr size_t cache_capacity = 4096; // descriptors; a model has as many as it has different shapes
constexpr size_t max_blob_text = 5464;  // 4096 bytes, the largest blob, in base64

constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::array<int8_t, 256> make_values() {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (int i = 0; i < 64; i++) values[static_cast<uint8_t>(alphabet[i])] = static_cast<int8_t>(i);
    return values;
}

// Only the one text that to_base64() makes of the bytes.
std::vector<uint8_t> from_base64(const std::string &text) {
    static const std::array<int8_t, 256> values = make_values();
    const auto bad = [] { refuse("the blob is not base64; pass the text that PackedTensor.blob has"); };
    if (text.empty() || text.size() % 4 != 0 || text.size() > max_blob_text) bad();
    const size_t padding = text.back() != '=' ? 0 : text[text.size() - 2] != '=' ? 1 : 2;
    std::vector<uint8_t> bytes;
    bytes.reserve(text.size() / 4 * 3);
    uint32_t word = 0;
    for (size_t i = 0; i < text.size(); i++) {
        const bool is_padding = i >= text.size() - padding;
        const int value = is_padding ? 0 : values[static_cast<uint8_t>(text[i])];
        if (value < 0) bad();
        word = word << 6 | static_cast<uint32_t>(value);
        if (i % 4 != 3) continue;
        for (int shift : {16, 8, 0}) bytes.push_back(static_cast<uint8_t>(word >> shift));
        word = 0;
    }
    for (size_t i = 0; i < padding; i++) {
        if (bytes.back() != 0) bad();
        bytes.pop_back();
    }
    return bytes;
}

std::shared_ptr<const packed_desc_t> parse(const std::string &blob) {
    const std::vector<uint8_t> bytes = from_base64(blob);
    auto parsed = std::make_shared<packed_desc_t>();
    parsed->desc = mxdnn::memory::desc(bytes.data(), bytes.size());
    if (parsed->desc.get_format_kind() != mxdnn::memory::format_kind::opaque)
        refuse("the blob describes " + parsed->desc.to_string() + "; it must describe packed weights");
    parsed->dims = parsed->desc.get_dims();
    parsed->size = parsed->desc.get_size();
    parsed->element = parsed->desc.get_data_type();
    parsed->scale = parsed->desc.get_scale_data_type();
    parsed->block = parsed->desc.get_block_size();
    // Offsets of doc/reference/blob.md; the library has accepted these bytes.
    parsed->zero_point = static_cast<dt>(bytes[40] | bytes[41] << 8);
    parsed->minima = bytes[44] == 3;
    parsed->global_scale = static_cast<decltype(parsed->global_scale)>(bytes[45]);
    parsed->family = parsed->desc.get_target();
    parsed->recipe = parsed->desc.get_annotation_recipe();
    return parsed;
}

// The most recently used descriptors.
class cache_t {
public:
    std::shared_ptr<const packed_desc_t> get(const std::string &blob) {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = by_text_.find(blob);
        if (found != by_text_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            return found->second->second;
        }
        auto parsed = std::const_pointer_cast<packed_desc_t>(parse(blob));
        parsed->id = ++last_id_;
        order_.emplace_front(blob, parsed);
        by_text_.emplace(blob, order_.begin());
        if (order_.size() > cache_capacity) {
            by_text_.erase(order_.back().first);
            order_.pop_back();
        }
        return parsed;
    }

private:
    using entry_t = std::pair<std::string, std::shared_ptr<const packed_desc_t>>;
    std::mutex mutex_;
    std::list<entry_t> order_;
    std::unordered_map<std::string, std::list<entry_t>::iterator> by_text_;
    uint64_t last_id_ = 0;
};

} // namespace

dims_t packed_desc_t::weight_shape() const {
    dims_t shape = dims;
    std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
    return shape;
}

int64_t packed_desc_t::experts() const {
    int64_t n = 1;
    for (size_t i = 0; i + 2 < dims.size(); i++) n *= dims[i];
    return n;
}

// Before the cache of all threads: what this thread asked for, in places that the last letters of a text
// choose. They stand for its checksum.
std::shared_ptr<const packed_desc_t> parse_blob(const std::string &blob) {
    static cache_t cache;
    struct place_of_thread_t {
        std::string blob;
        std::shared_ptr<const packed_desc_t> desc;
    };
    thread_local std::array<place_of_thread_t, 64> places;
    uint64_t letters = 0;
    if (blob.size() >= 16) std::memcpy(&letters, blob.data() + blob.size() - 12, sizeof(letters));
    place_of_thread_t &place = places[letters * 0x9e3779b97f4a7c15u >> 58];
    if (!place.desc || place.blob != blob) place = {blob, cache.get(blob)};
    return place.desc;
}

void expect_packed(const view_t &packed, const packed_desc_t &desc) {
    expect_type(packed, "packed", ScalarType::Byte);
    if (packed.dims.size() != 1 || packed.dims[0] != static_cast<int64_t>(desc.size))
        refuse("packed has shape " + packed.shape() + ", but its blob describes " + std::to_string(desc.size)
                + " bytes of " + desc.desc.to_string() + "; pass the bytes and the blob of one tensor");
    expect_contiguous(packed, "packed");
    if (reinterpret_cast<uintptr_t>(packed.data) % 16 != 0)
        refuse("packed begins at an address that is not a multiple of 16; clone the tensor");
}

void expect_packed_for(const place_t &place, const packed_desc_t &desc) {
    const std::string wanted = place.is_cuda ? "cuda" : "cpu";
    if (desc.family.compare(0, wanted.size(), wanted) != 0)
        refuse("packed is on " + name_of(place) + ", but it was packed for " + desc.family
                + "; PackedTensor.to() packs it anew");
}

std::string to_base64(const std::vector<uint8_t> &bytes) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t word = 0;
        for (size_t j = 0; j < 3; j++) word = word << 8 | (i + j < bytes.size() ? bytes[i + j] : 0u);
        for (size_t j = 0; j < 4; j++)
            text += i + j <= bytes.size() ? alphabet[word >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

} // namespace mxdnn_torch

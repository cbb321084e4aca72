// SPDX-License-Identifier: Apache-2.0
// Writes and checks the three entries that one packed tensor has in a container.
#include "container.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace container {

namespace {

std::string hexadecimal(uint64_t v) {
    char text[17];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)v);
    return text;
}

std::string shown(const safetensors::file_t &file, const std::string &name) {
    return file.path() + ": packed tensor " + safetensors::shown(name);
}

} // namespace

safetensors::out_tensor_t made_later(std::string name, safetensors::dtype_t dtype, std::vector<int64_t> shape,
        const std::string &doing, const make_t &make) {
    using safetensors::status_t;
    return {std::move(name), dtype, std::move(shape), [=](const safetensors::sink_t &sink) -> status_t {
                try {
                    make([&](const void *bytes, uint64_t size) {
                        if (status_t s = sink(bytes, size); !s.ok()) throw status_t(std::move(s));
                    });
                    return {};
                } catch (const status_t &s) {
                    return s;
                } catch (const std::exception &e) {
                    return {safetensors::kind_t::io, doing + ": " + e.what()};
                }
            }};
}

void contents_t::add_packed(const std::string &name, const mxdnn::memory::desc &desc, const void *bytes) {
    add_packed_later(name, desc, [=](const take_t &take) { take(bytes, desc.get_size()); });
}

void contents_t::add_packed_later(
        const std::string &name, const mxdnn::memory::desc &desc, const make_t &make) {
    using safetensors::dtype_t;
    using safetensors::sink_t;
    // The checksum is known when the bytes are; the header, written last, finds it in its place.
    std::string *const checksum = &(metadata[name + safetensors::checksum_suffix] = hexadecimal(0));
    tensors.push_back(made_later(name + safetensors::packed_suffix, dtype_t::u8, {int64_t(desc.get_size())},
            "packing " + safetensors::shown(name), [=](const take_t &take) {
                mxdnn::checksum sum(desc);
                make([&](const void *bytes, uint64_t size) {
                    sum.add(bytes, size);
                    take(bytes, size);
                });
                *checksum = hexadecimal(sum.value());
            }));
    const auto blob = std::make_shared<const std::vector<uint8_t>>(desc.get_blob());
    tensors.push_back({name + safetensors::desc_suffix, dtype_t::u8, {int64_t(blob->size())},
            [blob](const sink_t &sink) { return sink(blob->data(), blob->size()); }});
}

std::vector<std::string> packed_names(const safetensors::file_t &file) {
    const std::string suffix = safetensors::packed_suffix;
    std::vector<std::string> names;
    for (const auto &t : file.index().tensors)
        if (t.name.size() > suffix.size()
                && t.name.compare(t.name.size() - suffix.size(), suffix.size(), suffix) == 0)
            names.push_back(t.name.substr(0, t.name.size() - suffix.size()));
    return names;
}

packed_t find_packed(const safetensors::file_t &file, const std::string &name) {
    const std::string what = shown(file, name);
    const auto find = [&](const char *suffix) {
        const safetensors::tensor_t *t = nullptr;
        const auto status = file.get(name + suffix, t);
        if (!status.ok()) throw std::runtime_error(status.message);
        if (t->dtype != safetensors::dtype_t::u8)
            throw std::runtime_error(
                    what + ": " + name + suffix + " is " + safetensors::name_of(t->dtype) + ", not U8");
        return t;
    };
    const auto *packed = find(safetensors::packed_suffix), *blob = find(safetensors::desc_suffix);

    packed_t p;
    try {
        p.desc = mxdnn::memory::desc(blob->data, blob->size());
    } catch (const mxdnn::error &e) {
        throw std::runtime_error(what + ": " + e.what());
    }
    if (p.desc.get_format_kind() != mxdnn::memory::format_kind::opaque)
        throw std::runtime_error(
                what + " is described as " + p.desc.to_string() + ", which is no packed layout");
    p.bytes = packed->data;
    p.size = p.desc.get_size();
    const uint64_t padded = (p.size + safetensors::packed_alignment - 1) / safetensors::packed_alignment
                            * safetensors::packed_alignment;
    if (packed->size() != padded)
        throw std::runtime_error(what + " has " + std::to_string(packed->size())
                                 + " bytes; its description asks for " + std::to_string(padded));
    if (reinterpret_cast<uintptr_t>(packed->data) % safetensors::packed_alignment)
        throw std::runtime_error(what + " does not begin at a multiple of 64 bytes");
    if (std::any_of(packed->data + p.size, packed->data + padded, [](uint8_t b) { return b != 0; }))
        throw std::runtime_error(what + " has other bytes than zeros in its padding");
    const auto &metadata = file.index().metadata;
    const auto stored = metadata.find(name + safetensors::checksum_suffix);
    if (stored == metadata.end()) throw std::runtime_error(what + " has no checksum");
    mxdnn::checksum sum(p.desc);
    safetensors::for_pieces(p.bytes, p.size, [&](const void *piece, uint64_t size) {
        sum.add(piece, size);
        file.forget(piece, size);
    });
    const std::string found = hexadecimal(sum.value());
    if (stored->second != found)
        throw std::runtime_error(what + " is damaged: its checksum is " + found + ", the file says "
                                 + safetensors::shown(stored->second));
    return p;
}

packed_t get_packed(const safetensors::file_t &file, const std::string &name, const mxdnn::engine &engine) {
    packed_t p = find_packed(file, name);
    p.verdict = mxdnn::check_blob(engine, p.desc.get_blob());
    if (p.verdict != mxdnn::blob_verdict::native && p.verdict != mxdnn::blob_verdict::slower)
        throw std::runtime_error(
                shown(file, name) + " is packed for " + p.desc.get_target() + ", not for "
                + engine.get_target()
                + "; unpack it for a target that it is packed for, or pack the weights again");
    return p;
}

} // namespace container

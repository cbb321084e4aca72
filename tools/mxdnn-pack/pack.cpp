// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to a container of packed weights and back, part of a tensor in memory at a time.
#include "commands.hpp"

#include <cstdio>
#include <set>
#include <stdexcept>

#include "common/weight_parts.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using mxdnn::memory;
using dt = memory::data_type;

namespace {

mxdnn::scale_rounding find_rounding(const std::string &name) {
    using r = mxdnn::scale_rounding;
    const std::pair<const char *, r> all[] = {
            {"floor", r::floor}, {"rceil", r::rceil}, {"ceil", r::ceil}, {"even", r::even}};
    for (const auto &x : all)
        if (name == x.first) return x.second;
    throw std::runtime_error("there is no rounding '" + name + "'; known are floor, rceil, ceil and even");
}

safetensors::file_t open(const std::string &path) {
    safetensors::file_t file;
    const auto status = safetensors::file_t::open(path, file);
    if (!status.ok()) throw std::runtime_error(status.message);
    return file;
}

parts_t parts_of(const safetensors::file_t &file, const options_t &o) {
    return {uint64_t(o.part_mib) << 20,
            [&file](const void *bytes, uint64_t size) { file.forget(bytes, size); }};
}

void write(const std::string &path, const container::contents_t &c) {
    const auto status = safetensors::write(path, c.tensors, c.metadata, [&](uint64_t done, uint64_t total) {
        progress(path + ": " + std::to_string(done >> 20) + " of " + std::to_string(total >> 20) + " MiB");
    });
    if (!status.ok()) throw std::runtime_error(status.message);
}

} // namespace

void pack(const options_t &o) {
    const auto file = open(o.in);
    const mxdnn::engine engine = make_engine(o);
    const format_t &format = find_format(o.format);
    const auto rounding = find_rounding(o.rounding);
    const auto sources = find_sources(file, o);
    if (sources.empty())
        throw std::runtime_error(o.in + " has no weights to pack: "
                                 + (o.codes_only ? "" : "F32, BF16 or F16 of two or three dims, or ")
                                 + "codes with their scales, whose name matches --include '" + o.include + "'"
                                 + (o.exclude.empty() ? "" : " and not --exclude '" + o.exclude + "'"));
    // What is packed already is copied; that it is whole is checked before anything is written.
    for (const std::string &name : container::packed_names(file)) container::find_packed(file, name);
    const parts_t parts = parts_of(file, o);
    container::contents_t contents;
    contents.metadata = file.index().metadata;
    std::set<const safetensors::tensor_t *> taken;
    uint64_t before = 0, after = 0;
    for (const source_t &s : sources) {
        const format_t &f = s.format ? *s.format : format;
        memory::desc desc = packed_desc(f, engine, s.shape);
        desc.set_annotation(s.format ? dt::undef : s.type, o.recipe);
        taken.insert(s.values);
        if (s.scales) taken.insert(s.scales);
        before += s.values->size() + (s.scales ? s.scales->size() : 0);
        after += desc.get_size();
        contents.add_packed_later(s.name, desc, [=, &engine, &f, &parts](const container::take_t &take) {
            if (s.format)
                pack_codes_in_parts(parts, take, f, engine, s.shape, s.values->data, s.scales->data);
            else
                pack_in_parts(parts, take, f, engine, s.shape, s.type, s.values->data, rounding);
        });
    }
    for (const auto &t : file.index().tensors)
        if (!taken.count(&t)) contents.tensors.push_back(safetensors::from_file(file, t));
    write(o.out, contents);
    printf("%s: %zu tensors packed for %s, %llu bytes to %llu\n", o.out.c_str(), sources.size(),
            engine.get_target().c_str(), (unsigned long long)before, (unsigned long long)after);
}

void unpack(const options_t &o) {
    const auto file = open(o.in);
    const mxdnn::engine engine = make_engine(o);
    const dt type = o.type == "f32"    ? dt::f32
                    : o.type == "bf16" ? dt::bf16
                    : o.type == "f16"  ? dt::f16
                                       : dt::undef;
    if (type == dt::undef)
        throw std::runtime_error("there is no type '" + o.type + "'; known are f32, bf16 and f16");
    using safetensors::dtype_t;
    const dtype_t stored = type == dt::f32 ? dtype_t::f32 : type == dt::bf16 ? dtype_t::bf16 : dtype_t::f16;
    const auto names = container::packed_names(file);
    if (names.empty()) throw std::runtime_error(o.in + " has no packed weights");
    const parts_t parts = parts_of(file, o);
    container::contents_t contents;
    contents.metadata = file.index().metadata;
    std::set<std::string> taken;
    for (const std::string &name : names) {
        const auto p = container::get_packed(file, name, engine); // checked before anything is written
        taken.insert(name + safetensors::packed_suffix);
        taken.insert(name + safetensors::desc_suffix);
        contents.metadata.erase(name + safetensors::checksum_suffix);
        const auto dims = p.desc.get_dims();
        std::vector<int64_t> shape(dims.begin(), dims.end());
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
        contents.tensors.push_back(container::made_later(name, stored, shape,
                "unpacking " + safetensors::shown(name), [=, &engine, &parts](const container::take_t &take) {
                    unpack_in_parts(parts, take, p.desc, engine, p.bytes, type);
                }));
    }
    for (const auto &t : file.index().tensors)
        if (!taken.count(t.name)) contents.tensors.push_back(safetensors::from_file(file, t));
    write(o.out, contents);
    printf("%s: %zu tensors unpacked to %s\n", o.out.c_str(), names.size(), o.type.c_str());
}

} // namespace mxdnn_pack

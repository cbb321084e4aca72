// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to a container of packed weights and back, part of a tensor in memory at a time.
#include "commands.hpp"

#include <cstdio>
#include <set>
#include <stdexcept>

#include <sys/stat.h>

#include "common/interrupt.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using mxdnn::memory;
using dt = memory::data_type;

namespace {

mxdnn::scale_rounding find_rounding(const std::string &name) {
    using r = mxdnn::scale_rounding;
    if (name.empty()) return default_rounding;
    const std::pair<const char *, r> all[] = {
            {"floor", r::floor}, {"rceil", r::rceil}, {"ceil", r::ceil}, {"even", r::even}};
    for (const auto &x : all)
        if (name == x.first) return x.second;
    throw std::runtime_error(
            "there is no rounding " + safetensors::shown(name) + "; known are floor, rceil, ceil and even");
}

// The result has less precision than what it is made of, which is not to be lost by a slip.
void refuse_same_file(const options_t &o) {
    struct stat in, out;
    if (stat(o.in.c_str(), &in) == 0 && stat(o.out.c_str(), &out) == 0 && in.st_dev == out.st_dev
            && in.st_ino == out.st_ino)
        throw std::runtime_error(
                safetensors::shown_path(o.out) + " is the input itself; name another file to write");
}

void write(const std::string &path, const safetensors::contents_t &c) {
    using safetensors::status_t;
    const std::string shown = safetensors::shown_path(path);
    const status_t status =
            safetensors::write(path, c.tensors, c.metadata, [&](uint64_t done, uint64_t total) -> status_t {
                progress(shown + ": " + std::to_string(done >> 20) + " of " + std::to_string(total >> 20)
                         + " MiB");
                if (interrupt::received()) return {safetensors::kind_t::io, "ended by a signal"};
                return {};
            });
    if (!status.ok()) throw std::runtime_error(status.message);
}

std::string summary(const sources_t &sources) {
    std::string s;
    for (const auto &l : sources.left)
        s += "  " + l.first + ": " + std::to_string(l.second.count) + ", such as "
             + safetensors::shown(l.second.first) + "\n";
    return s;
}

} // namespace

void pack(const options_t &o) {
    refuse_same_file(o);
    const format_t &format = find_format(o.format);
    const auto rounding = find_rounding(o.rounding);
    if (!o.rounding.empty() && format.scale != dt::e8m0)
        throw std::runtime_error(std::string("--rounding is of e8m0 scales; ") + format.name + " has others");
    const mxdnn::engine engine = make_engine(o);
    const input_t input(o.in);
    const sources_t sources = find_sources(input, o);
    if (sources.packed.empty())
        throw std::runtime_error(input.path + " has no weights to pack; its tensors are\n" + summary(sources)
                                 + "(mxdnn-pack pack --help has the rule; --include packs what matches)");
    input.verify();
    const uint64_t part = uint64_t(o.part_mib) << 20;
    safetensors::contents_t contents;
    contents.metadata = input.file.get_metadata();
    std::set<size_t> taken;
    uint64_t before = 0, after = 0;
    for (const source_t &s : sources.packed) {
        const format_t &f = s.format ? *s.format : format;
        memory::desc desc = packed_desc(f, engine, s.shape);
        desc.set_annotation(s.format ? dt::undef : s.type, o.recipe);
        for (const size_t i : {s.values, s.scales.value_or(s.values)}) {
            if (!taken.insert(i).second) continue;
            before += input.entries[i].size;
            contents.metadata.erase(input.entries[i].name + safetensors::checksum_suffix);
        }
        after += desc.get_size();
        contents.add_packed(s.name, desc, [=, &engine, &f, &input](const take_t &take) {
            if (s.format)
                pack_codes_in_parts(
                        part, take, f, engine, s.shape, input.reader(s.values), input.reader(*s.scales));
            else
                pack_in_parts(part, take, f, engine, s.shape, s.type, input.reader(s.values), rounding);
        });
    }
    for (size_t i = 0; i < input.entries.size(); i++)
        if (!taken.count(i)) contents.add_copy(input.file, i);
    write(o.out, contents);
    printf("%s: %zu tensors packed for %s, %llu bytes to %llu\n", safetensors::shown_path(o.out).c_str(),
            sources.packed.size(), engine.get_target().c_str(), (unsigned long long)before,
            (unsigned long long)after);
    if (!sources.left.empty())
        printf("left as they are (weights of linear layers and experts are packed: mxdnn-pack pack --help):\n%s",
                summary(sources).c_str());
}

void unpack(const options_t &o) {
    refuse_same_file(o);
    const dt type = o.type == "f32"    ? dt::f32
                    : o.type == "bf16" ? dt::bf16
                    : o.type == "f16"  ? dt::f16
                                       : dt::undef;
    if (type == dt::undef)
        throw std::runtime_error(
                "there is no type " + safetensors::shown(o.type) + "; known are f32, bf16 and f16");
    const char *const stored = type == dt::f32 ? "F32" : type == dt::bf16 ? "BF16" : "F16";
    const mxdnn::engine engine = make_engine(o);
    const input_t input(o.in);
    input.verify();
    const uint64_t part = uint64_t(o.part_mib) << 20;
    safetensors::contents_t contents;
    contents.metadata = input.file.get_metadata();
    size_t count = 0;
    for (size_t i = 0; i < input.entries.size(); i++) {
        const auto &e = input.entries[i];
        if (!e.is_packed) {
            contents.add_plain_copy(input.file, i);
            continue;
        }
        count++;
        const memory::desc desc = input.file.get_desc(i);
        safetensors::check_usable(input.path + ": packed tensor " + safetensors::shown(e.name), desc, engine);
        contents.metadata.erase(e.name + safetensors::checksum_suffix);
        const auto dims = desc.get_dims();
        std::vector<int64_t> shape(dims.begin(), dims.end());
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
        contents.tensors.push_back(safetensors::made_later(e.name, stored, shape,
                "unpacking " + safetensors::shown(e.name), [=, &engine, &input](const take_t &take) {
                    unpack_in_parts(part, take, desc, engine, input.reader(i), type);
                }));
    }
    if (count == 0) throw std::runtime_error(input.path + " has no packed weights");
    write(o.out, contents);
    printf("%s: %zu tensors unpacked to %s\n", safetensors::shown_path(o.out).c_str(), count, o.type.c_str());
}

} // namespace mxdnn_pack

// SPDX-License-Identifier: Apache-2.0
// From packed weights back to plain ones.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "checkpoint.hpp"
#include "common/weight_parts.hpp"
#include "output.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::shown;

namespace {

struct type_t {
    const char *name, *stored;
    dt type;
};
constexpr type_t types[] = {{"f32", "F32", dt::f32}, {"bf16", "BF16", dt::bf16}, {"f16", "F16", dt::f16}};

const type_t &find_type(const std::string &name) {
    for (const type_t &t : types)
        if (name == t.name) return t;
    throw std::runtime_error("there is no type " + shown(name) + "; known are f32, bf16 and f16");
}

} // namespace

void unpack(const options_t &o) {
    const type_t &type = find_type(o.type);
    const mxdnn::engine engine = make_engine(o);
    const checkpoint_t input(o.in);
    const auto count = std::count_if(
            input.entries.begin(), input.entries.end(), [](const entry_t &e) { return e.is_packed; });
    if (count == 0) throw std::runtime_error(input.path + " has no packed weights");
    output_t output(o.out, input);
    const unsigned threads = use_threads(o);
    input.verify(threads);
    for (size_t i = 0; i < input.entries.size(); i++) {
        const entry_t &e = input.entries[i];
        safetensors::contents_t &contents = output.contents(e);
        if (!e.is_packed) {
            contents.add_plain_copy(input.file_of(e), e.index);
            continue;
        }
        const mxdnn::memory::desc desc = input.desc_of(e);
        safetensors::check_usable(input.path + ": packed tensor " + shown(e.name), desc, engine);
        contents.metadata.erase(e.name + safetensors::checksum_suffix);
        const auto dims = desc.get_dims();
        std::vector<int64_t> shape(dims.begin(), dims.end());
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
        const auto unpacking = std::make_shared<const unpacking_t>(
                uint64_t(o.part_mib) << 20, desc, engine, input.reader(i), type.type);
        contents.tensors.push_back(safetensors::made_later(e.name, type.stored, shape,
                "unpacking " + shown(e.name),
                {unpacking->parts(),
                        [unpacking](size_t part, const take_t &take) { unpacking->make(part, take); }}));
    }
    output.write(threads);
    printf("%s: %td tensors unpacked to %s\n", output.shown().c_str(), count, o.type.c_str());
}

} // namespace mxdnn_pack

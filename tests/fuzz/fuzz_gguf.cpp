// SPDX-License-Identifier: Apache-2.0
// Bytes of GGUF files: refused with a sentence, or all of the metadata can be read, the tensors lie within
// the file and apart from each other, and mxdnn-pack packs them.
#include "fuzz/examine_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "common/gguf_blocks.hpp"
#include "gtests/gguf_writer.hpp"

using namespace fuzz;

namespace {

void read_value(const gguf::value_t &v) {
    using t = gguf::type_t;
    size_t bytes = 0;
    for (size_t i = 0; i < v.size(); i++) {
        if (v.type() == t::string)
            for (const char c : v.string(i)) bytes += size_t(c == 0);
        else if (v.type() == t::boolean)
            bytes += size_t(v.boolean(i));
        else
            refused_or([&] { bytes += size_t(v.number(i) > 0); });
    }
    refused_or([&] { (void)v.integer(v.size()); });
}

void examine(const gguf::file_t &file, uint64_t file_size) {
    for (const auto &[key, value] : file.metadata()) {
        FUZZ_CHECK(!key.empty() && file.find(key) == &value);
        read_value(value);
    }
    std::vector<std::pair<uint64_t, uint64_t>> places;
    for (const gguf::tensor_t &t : file.tensors()) {
        FUZZ_CHECK(t.offset <= file_size && t.size <= file_size - t.offset && file.find_tensor(t.name) == &t);
        if (t.size > 0) places.emplace_back(t.offset, t.size);
        std::vector<uint8_t> bytes(t.size);
        file.read(t, 0, t.size, bytes.data());
        uint64_t count = t.size > 0 ? 1 : 0;
        for (const int64_t d : t.dims) count *= uint64_t(d);
        FUZZ_CHECK(count / t.element->block * t.element->bytes == t.size);
        std::vector<float> values(count);
        if (gguf::find_blocks(*t.element))
            refused_or([&] { gguf::read_values(file, t, 0, count, values.data()); });
    }
    std::sort(places.begin(), places.end());
    for (size_t i = 1; i < places.size(); i++)
        FUZZ_CHECK(places[i - 1].first + places[i - 1].second <= places[i].first);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const gguf_test::memory_file_t file(std::string(data, data + size));
    FUZZ_CHECK(file.is_written());
    refused_or([&] { examine(gguf::file_t(file.path()), size); });
    // Blocks of two bits have up to four elements in a byte.
    if (gguf::is_gguf(file.path())) refused_or([&] { examine_checkpoint(file.path(), 4 * size); });
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    using namespace gguf_test;
    std::vector<fuzz_input_t> seeds;
    const auto add = [&](const writer_t &w) {
        const std::string bytes = w.bytes();
        seeds.emplace_back(bytes.begin(), bytes.end());
    };
    writer_t keys;
    keys.add("general.architecture", "llama");
    keys.add("general.alignment", 4, uint32_t(32));
    keys.add("a.bool", 7, uint8_t(1));
    keys.add("a.u64", 10, uint64_t(1) << 63);
    keys.add("a.f64", 12, 0.1);
    keys.add_array("tokens", {"a", "", "bc"});
    keys.add_array<float>("scores", 6, {1, 2});
    keys.add_array<uint8_t>("bools", 7, {0, 1, 1});
    add(keys);
    keys.tensors = {{"v", 0, {3}, std::string(12, '\1')}, {"w.weight", 1, {32, 2}, std::string(128, '\2')}};
    add(keys);
    for (const gguf::element_t &e : gguf::elements()) {
        writer_t w;
        w.tensors = {{"w.weight", e.id, {e.block, 2}, std::string(2 * e.bytes, '\3')},
                {"x_exps.weight", e.id, {e.block, 1, 2}, std::string(2 * e.bytes, '\4')}};
        if (e.block == 64) w.tensors.push_back({"w.scale", 0, {1}, raw(0.5f)});
        add(w);
    }
    return seeds;
}

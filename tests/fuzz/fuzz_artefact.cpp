// SPDX-License-Identifier: Apache-2.0
// Any bytes as an artefact of examples/aot: refused with a sentence, or every variant lies inside the file,
// and what an engine takes is as long as its descriptor says.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "examples/aot/artefact.hpp"
#include "examples/aot/loader.hpp"
#include "fuzz/fuzz.hpp"

using mxdnn::engine;
using mxdnn::memory;

namespace {

bool is_inside(const fuzz_input_t &file, const uint8_t *at, size_t size) {
    const auto begin = size_t(at - file.data());
    return begin <= file.size() && size <= file.size() - begin;
}

// Whether it was read.
bool examine(const fuzz_input_t &file) {
    static const engine engines[] = {engine(engine::kind::cpu, 0), engine::for_target("cpu:x64:avx2"),
            engine::for_target("cuda:sm_80"), engine::for_target("cuda:sm_90")};
    std::vector<aot::variant_t> variants;
    try {
        variants = aot::read(file.data(), file.size());
    } catch (const std::runtime_error &e) {
        FUZZ_CHECK(is_sentence(e.what()));
        return false;
    }
    for (const aot::variant_t &v : variants) {
        FUZZ_CHECK(is_inside(file, v.blob, v.blob_size) && is_inside(file, v.data, v.data_size));
        FUZZ_CHECK(v.name.size() < sizeof(aot::record_t::name));
    }
    for (const engine &e : engines)
        for (const char *name : {"up", "down"}) try {
                const aot::weights_t w = aot::select(variants, name, e);
                const auto *data = static_cast<const uint8_t *>(w.memory.get_data_handle());
                // For a device it is a copy.
                FUZZ_CHECK(e.get_kind() != engine::kind::cpu
                           || is_inside(file, data, w.memory.get_desc().get_size()));
            } catch (const std::exception &refused) {
                std::string lines = refused.what(); // one for each reason
                std::replace(lines.begin(), lines.end(), '\n', ' ');
                FUZZ_CHECK(is_sentence(lines.c_str()));
            }
    return true;
}

struct packed_t {
    const char *name;
    memory weights;
    std::vector<uint8_t> blob;
};

fuzz_input_t file_of(const std::vector<packed_t> &list) {
    aot::header_t header = {};
    std::memcpy(header.magic, aot::magic, sizeof(header.magic));
    header.count = list.size();
    std::vector<aot::record_t> records(list.size());
    uint64_t end = sizeof(header) + list.size() * sizeof(aot::record_t);
    for (size_t i = 0; i < list.size(); i++) {
        std::strncpy(records[i].name, list[i].name, sizeof(records[i].name) - 1);
        records[i].blob_offset = end;
        records[i].blob_size = list[i].blob.size();
        end += list[i].blob.size();
    }
    header.data_begin = end;
    for (size_t i = 0; i < list.size(); i++) {
        const memory::desc md = list[i].weights.get_desc();
        records[i].data_offset = end = (end + aot::alignment - 1) / aot::alignment * aot::alignment;
        records[i].data_size = md.get_size();
        records[i].checksum = mxdnn::packed_checksum(md, list[i].weights.get_data_handle());
        end += md.get_size();
    }
    header.file_size = end;
    fuzz_input_t file(end);
    std::memcpy(&file[sizeof(header)], records.data(), records.size() * sizeof(aot::record_t));
    for (size_t i = 0; i < list.size(); i++) {
        std::copy(list[i].blob.begin(), list[i].blob.end(), &file[records[i].blob_offset]);
        std::memcpy(&file[records[i].data_offset], list[i].weights.get_data_handle(), records[i].data_size);
    }
    header.checksum = aot::front_checksum(&file[sizeof(header)], header.data_begin - sizeof(header));
    std::memcpy(file.data(), &header, sizeof(header));
    return file;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input_t file(data, data + size);
    if (examine(file) || size < sizeof(aot::header_t)) return 0;
    // Mutations rarely have a right length and checksum, so the input is tried again with those.
    aot::header_t header;
    std::memcpy(&header, file.data(), sizeof(header));
    if (header.data_begin < sizeof(header) || header.data_begin > size) return 0;
    std::memcpy(header.magic, aot::magic, sizeof(header.magic));
    header.file_size = size;
    header.checksum = aot::front_checksum(&file[sizeof(header)], header.data_begin - sizeof(header));
    std::memcpy(file.data(), &header, sizeof(header));
    examine(file);
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<packed_t> all;
    const engine here(engine::kind::cpu, 0);
    const memory::dims dims = {64, 32};
    mxdnn::primitive_attr scales;
    scales.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, memory::data_type::e8m0);
    for (const char *name : {"up", "down"})
        for (const char *target : {"cpu:x64", "cuda"}) {
            const auto md = memory::desc::packed(
                    engine::for_target(target), dims, memory::data_type::f4_e2m1, scales);
            memory weights(md, here);
            std::memset(weights.get_data_handle(), 0x35, md.get_size());
            all.push_back({name, weights, md.get_blob()});
        }
    return {file_of(all), file_of({all[0]}), file_of({all[3], all[1]})};
}

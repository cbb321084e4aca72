// SPDX-License-Identifier: Apache-2.0
// Any bytes as a container: refused with a sentence, or opened, and then every entry lies within the bytes
// and every question about it is answered or refused. What is opened has a header that another JSON parser
// takes, too.
#include "fuzz/fuzz.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>

#include "common/container/container.hpp"
#include "common/memory_desc.hpp"
#include "gtests/blob_bytes.hpp"

using namespace mxdnn::impl;

namespace {

struct holder_t {
    mxdnn_container_t c = nullptr;
    ~holder_t() { mxdnn_container_destroy(c); }
};

mxdnn_engine_t cpu() {
    static mxdnn_engine_t engine = nullptr;
    if (!engine) FUZZ_CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0) == mxdnn_success);
    return engine;
}

// Whether it is opened.
bool examine(const fuzz_input_t &given) {
    const fuzz_input_t bytes(given.begin(), given.end()); // of exactly this size
    holder_t h;
    const mxdnn_status_t status = mxdnn_container_create_from_bytes(&h.c, bytes.data(), bytes.size());
    if (status != mxdnn_success) {
        FUZZ_CHECK(status == mxdnn_corrupt_blob);
        FUZZ_CHECK(is_sentence(mxdnn_get_last_error()));
        return false;
    }
    const uint64_t length = load_le<8>(bytes.data());
    FUZZ_CHECK(length <= bytes.size() - 8);
    FUZZ_CHECK(nlohmann::json::accept(bytes.begin() + 8, bytes.begin() + 8 + std::ptrdiff_t(length)));
    size_t count = 0, pairs = 0, index = 0;
    FUZZ_CHECK(mxdnn_container_get_count(h.c, &count) == mxdnn_success);
    FUZZ_CHECK(mxdnn_container_get_metadata_count(h.c, &pairs) == mxdnn_success);
    for (size_t i = 0; i < pairs; i++) {
        const char *key = nullptr, *value = nullptr, *same = nullptr;
        FUZZ_CHECK(mxdnn_container_get_metadata(h.c, i, &key, &value) == mxdnn_success);
        FUZZ_CHECK(mxdnn_container_find_metadata(h.c, key, &same) == mxdnn_success && same == value);
    }
    uint64_t end = 8 + length;
    for (size_t i = 0; i < count; i++) {
        mxdnn_container_entry_t e;
        FUZZ_CHECK(mxdnn_container_get_entry(h.c, i, &e) == mxdnn_success);
        FUZZ_CHECK(mxdnn_container_find(h.c, e.name, &index) == mxdnn_success && index == i);
        FUZZ_CHECK(e.offset >= end && e.size <= bytes.size() && e.offset <= bytes.size() - e.size);
        end = e.offset + e.size;
        FUZZ_CHECK(e.ndims >= 0 && e.ndims <= 32);
        const void *data = nullptr;
        FUZZ_CHECK(mxdnn_container_get_data(h.c, i, &data) == mxdnn_success);
        FUZZ_CHECK(data == bytes.data() + e.offset);
        std::vector<uint8_t> copy(size_t(e.size));
        FUZZ_CHECK(mxdnn_container_read(h.c, i, 0, copy.size(), copy.data()) == mxdnn_success);
        FUZZ_CHECK(copy.empty() || std::memcmp(copy.data(), data, copy.size()) == 0);
        FUZZ_CHECK(mxdnn_container_read(h.c, i, 1, copy.size(), copy.data()) == mxdnn_invalid_arguments);
        mxdnn_memory_desc_t md = nullptr;
        const mxdnn_status_t described = mxdnn_container_get_memory_desc(h.c, i, &md);
        if (described == mxdnn_success) {
            const uint64_t size = mxdnn_memory_desc_get_size(md);
            FUZZ_CHECK(e.is_packed ? size <= e.size && e.size - size < 64 : size == e.size);
        }
        const mxdnn_status_t whole = mxdnn_container_verify(h.c, i);
        mxdnn_memory_t memory = nullptr;
        const mxdnn_status_t loaded = mxdnn_container_load(h.c, i, cpu(), &memory);
        FUZZ_CHECK((loaded == mxdnn_success) == (memory != nullptr));
        FUZZ_CHECK(loaded == mxdnn_success ? described == mxdnn_success
                                           : described != mxdnn_success || whole != mxdnn_success);
        if (loaded == mxdnn_success) {
            void *handle = nullptr;
            const size_t size = mxdnn_memory_desc_get_size(md);
            FUZZ_CHECK(mxdnn_memory_get_data_handle(memory, &handle) == mxdnn_success);
            FUZZ_CHECK(size == 0 || std::memcmp(handle, data, size) == 0);
        }
        mxdnn_memory_destroy(memory);
        mxdnn_memory_desc_destroy(md);
        FUZZ_CHECK(!e.is_packed || whole != mxdnn_success || (described == mxdnn_success && e.has_checksum));
        FUZZ_CHECK(e.is_packed || e.has_checksum || whole == mxdnn_unimplemented);
    }
    return true;
}

fuzz_input_t container(const std::string &header, const fuzz_input_t &data) {
    fuzz_input_t x(8 + header.size() + data.size());
    store_le(x.data(), 8, header.size());
    std::copy(header.begin(), header.end(), x.begin() + 8);
    std::copy(data.begin(), data.end(), x.begin() + 8 + std::ptrdiff_t(header.size()));
    return x;
}

std::string tensor(
        const std::string &name, const char *dtype, const std::string &shape, size_t begin, size_t end) {
    return '"' + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":["
           + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input_t x(data, data + size);
    if (examine(x) || size < 8) return 0;
    // Mutations rarely keep a valid length of the header, so the input is tried again with one that ends
    // where an object of objects does.
    static constexpr char end[] = "}}";
    const auto at = std::search(x.begin() + 8, x.end(), end, end + 2);
    if (at == x.end()) return 0;
    store_le(x.data(), 8, uint64_t(at - x.begin()) + 2 - 8);
    examine(x);
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<fuzz_input_t> seeds = {container("{}", {}),
            container("{" + tensor("a", "F32", "2,3", 0, 24) + "," + tensor("b", "F4", "4", 24, 26) + "}",
                    fuzz_input_t(26, 7)),
            container("{\"__metadata__\":{\"k\\u00e9\":\"v\\n\"}, "
                              + tensor("\\ud83d\\ude00", "BF16", "", 0, 2) + "}",
                    fuzz_input_t(2, 7))};
    for (const memory_desc_t &md : sample_descs()) {
        if (!is_packed(md)) continue;
        const size_t bytes = size_t(size_of(md));
        fuzz_input_t data(bytes);
        for (size_t i = 0; i < bytes; i++) data[i] = uint8_t(i * 37);
        const bytes_t blob = blob_of(md);
        const std::string sum = safetensors::hexadecimal(packed_checksum(md, data.data()));
        data.insert(data.end(), blob.begin(), blob.end());
        std::string header = "{\"__metadata__\":{\"w.mxdnn_checksum\":\"" + sum + "\"},"
                             + tensor("w.mxdnn_packed", "U8", std::to_string(bytes), 0, bytes) + ","
                             + tensor("w.mxdnn_desc", "U8", std::to_string(blob.size()), bytes, data.size())
                             + "}";
        header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
        seeds.push_back(container(header, data));
        if (seeds.size() == 7) break;
    }
    return seeds;
}

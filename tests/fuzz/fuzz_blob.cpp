// SPDX-License-Identifier: Apache-2.0
// Any bytes as a blob: refused with a sentence, or read into a descriptor that gives the same bytes back.
#include "fuzz/fuzz.hpp"

#include "gtests/blob_bytes.hpp"

using namespace mxdnn::impl;

namespace {

void examine(const bytes_t &blob) {
    memory_desc_t md;
    blob_fault_t fault;
    const blob_class_t kind = classify_blob(blob.data(), blob.size(), &md, &fault);
    FUZZ_CHECK(kind == fault.kind);
    if (kind != blob_class_t::ok) {
        FUZZ_CHECK(fault.text[0] != 0);
        FUZZ_CHECK(is_zero(md));
        return;
    }
    FUZZ_CHECK(blob.size() <= max_blob_bytes);
    FUZZ_CHECK(blob_of(md) == blob);
    FUZZ_CHECK(md.ndims >= 1 && md.ndims <= max_ndims);
    FUZZ_CHECK(size_of(md) == runtime_dim || (size_of(md) >= 0 && size_of(md) <= max_bytes));
    FUZZ_CHECK(!to_string(md).empty());
    if (is_packed(md)) {
        const layout_t *layout = layout_of(md);
        FUZZ_CHECK(layout != nullptr);
        FUZZ_CHECK(md.packed.stride >= layout->matrix_bytes(shape_of(md)));
    }
    memory_desc_t again;
    FUZZ_CHECK(read_blob(again, blob.data()) == mxdnn_success && equal(md, again));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes_t blob(data, data + size);
    examine(blob);
    // Mutations rarely have a valid checksum, so the input is tried again with the right one.
    if (blob.size() > max_blob_bytes) blob.resize(max_blob_bytes);
    seal(blob);
    examine(blob);
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<fuzz_input_t> seeds;
    for (const memory_desc_t &md : sample_descs()) seeds.push_back(blob_of(md));
    for (uint32_t tag : {0x0003u, 0x7fffu, 0x8000u}) {
        seeds.push_back(seeds[0]);
        insert_option(seeds.back(), tag, "of a later release");
    }
    return seeds;
}

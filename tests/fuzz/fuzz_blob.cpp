// SPDX-License-Identifier: Apache-2.0
// Any bytes as a blob: refused with a sentence, or read into a descriptor that gives the same bytes back.
#include "fuzz/fuzz.hpp"

#include "gtests/blob_bytes.hpp"
#include "mxdnn/mxdnn.h"

using namespace mxdnn::impl;

namespace {

// What the public interface says of it. Nothing is executed, so sizes do not matter.
void examine_use(const memory_desc_t &md, const bytes_t &blob) {
    static const std::vector<mxdnn_engine_t> engines = [] {
        std::vector<mxdnn_engine_t> list;
        for (const char *target :
                {"cpu:x64:avx2", "cpu:x64:avx512_core_amx", "cuda:sm_80", "cuda:sm_90", "cuda:sm_120"}) {
            list.emplace_back();
            FUZZ_CHECK(mxdnn_engine_create_for_target(&list.back(), target) == mxdnn_success);
        }
        return list;
    }();
    mxdnn_memory_desc_t read = nullptr, plain = nullptr;
    FUZZ_CHECK(mxdnn_memory_desc_create_with_sized_blob(&read, blob.data(), blob.size()) == mxdnn_success);
    FUZZ_CHECK(mxdnn_memory_desc_create_with_sized_blob(&plain, blob.data(), blob.size() - 1)
               == mxdnn_corrupt_blob);
    FUZZ_CHECK(plain == nullptr && is_sentence(mxdnn_get_last_error()));
    for (const mxdnn_engine_t engine : engines) {
        mxdnn_blob_verdict_t verdict = mxdnn_blob_corrupt;
        FUZZ_CHECK(mxdnn_memory_desc_check_blob(engine, blob.data(), blob.size(), &verdict) == mxdnn_success);
        FUZZ_CHECK(verdict != mxdnn_blob_corrupt);
    }
    if (mxdnn_memory_desc_create_with_strides(&plain, md.ndims, md.dims, mxdnn_f32, nullptr)
            == mxdnn_success) {
        mxdnn_primitive_desc_t pd = nullptr;
        const status_t unpacks =
                mxdnn_mx_reorder_primitive_desc_create(&pd, read, engines[0], plain, engines[0], nullptr);
        FUZZ_CHECK(unpacks == mxdnn_success || (!pd && is_sentence(mxdnn_get_last_error())));
        mxdnn_primitive_desc_destroy(pd);
    }
    mxdnn_memory_desc_destroy(plain);
    mxdnn_memory_desc_destroy(read);
}

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
    examine_use(md, blob);
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

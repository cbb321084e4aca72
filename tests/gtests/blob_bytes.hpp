// SPDX-License-Identifier: Apache-2.0
// Making and damaging blobs, for the tests and the fuzzer.
#pragma once

#include <string>
#include <vector>

#include "common/blob/blob.hpp"
#include "common/blob/little_endian.hpp"
#include "common/blob/xxh64.hpp"
#include "common/formats/named_formats.hpp"
#include "common/packed_desc.hpp"

namespace mxdnn {
namespace impl {

using bytes_t = std::vector<uint8_t>;

inline bytes_t blob_of(const memory_desc_t &md) {
    size_t size = 0;
    if (write_blob(md, nullptr, &size) != mxdnn_success) return {};
    bytes_t blob(size);
    if (write_blob(md, blob.data(), &size) != mxdnn_success) return {};
    return blob;
}

// Corrects length and checksum, so that the checks of the other fields are reached.
inline void seal(bytes_t &blob) {
    if (blob.size() < min_blob_bytes) return;
    store_le(blob.data() + envelope_bytes - 4, 4, blob.size());
    store_le(blob.data() + blob.size() - checksum_bytes, checksum_bytes,
            xxh64(blob.data(), blob.size() - checksum_bytes, 0));
}

inline void insert_option(bytes_t &blob, uint32_t tag, const std::string &value) {
    bytes_t option(option_header_bytes);
    store_le(option.data(), 2, tag);
    store_le(option.data() + 2, 2, value.size());
    option.insert(option.end(), value.begin(), value.end());
    blob.insert(blob.end() - checksum_bytes, option.begin(), option.end());
    seal(blob);
}

// Where a field of a blob of this kind starts, -1 where the kind does not have it.
inline int64_t offset_of(const field_t &wanted, desc_kind_t kind, int ndims) {
    int64_t at = 0;
    for (const field_t &f : blob_fields) {
        if (f.section != section_t::envelope && !has_section(f.section, kind)) continue;
        if (&f == &wanted) return at;
        at += f.bytes * (f.list ? ndims : 1);
    }
    return -1;
}

// One descriptor of every kind and width, with and without annotation.
inline std::vector<memory_desc_t> sample_descs() {
    std::vector<memory_desc_t> all;
    const auto add = [&](status_t status, const memory_desc_t &md) {
        if (status == mxdnn_success) all.push_back(md);
    };
    memory_desc_t md;
    const dim_t rows_runtime[] = {runtime_dim, 2880}, matrix[] = {33, 17}, experts[] = {4, 65, 18};
    const dim_t strides[] = {48, 1};
    const dim_t many[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    add(init_with_tag(md, 2, rows_runtime, mxdnn_bf16, mxdnn_ab), md);
    add(init_strided(md, 2, matrix, mxdnn_f32, strides), md);
    add(init_strided(md, 12, many, mxdnn_s8, nullptr), md);
    add(init_with_tag(md, 2, matrix, mxdnn_f4_e2m1, mxdnn_ba), md);
    add(init_grouped(md, 2, rows_runtime, mxdnn_bf16, 0, 32, mxdnn_s32), md);
    for (const named_format_t &format : named_formats)
        add(init_packed(md, 2, matrix, format.elem, format.quant, target_family_t::cpu_x64), md);
    quant_t q = nvfp4_quant;
    q.global = global_scale_kind_t::per_expert;
    add(init_packed(md, 3, experts, mxdnn_f4_e2m1, q, target_family_t::cpu_x64), md);
    q = int4_quant;
    q.zp = zero_point_kind_t::float_zero;
    q.zp_dt = mxdnn_f16;
    add(init_packed(md, 3, experts, mxdnn_u4, q, target_family_t::cpu_x64), md);
    md.annotation.original_dt = mxdnn_bf16;
    md.annotation.recipe = "mxfp8:rceil";
    all.push_back(md);
    // For CUDA: of every layout.
    for (const layout_t &l : layout_list)
        for (const named_format_t &format : named_formats) {
            if (l.family != target_family_t::cuda) break;
            if (init_packed_as(md, 3, experts, format.elem, format.quant, l) != mxdnn_success) continue;
            all.push_back(md);
            break;
        }
    return all;
}

} // namespace impl
} // namespace mxdnn

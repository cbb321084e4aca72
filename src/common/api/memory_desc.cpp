// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"
#include "common/api/checksum.hpp"

#include <cstring>
#include <memory>

#include "common/blob/blob.hpp"
#include "common/blob_verdict.hpp"
#include "common/engine.hpp"
#include "common/formats/format_list.hpp"
#include "common/packed_weights.hpp"

using namespace mxdnn::impl;

namespace {
// Creates a descriptor with `init` and writes it to *md.
template <typename F>
mxdnn_status_t create(const char *function, mxdnn_memory_desc_t *md, F &&init) {
    MXDNN_CHECK(check_not_null(md, function, "md"));
    return guarded(function, [&] {
        auto d = std::make_unique<memory_desc_t>();
        MXDNN_CHECK(init(*d));
        *md = d.release();
        return mxdnn_success;
    });
}
} // namespace

mxdnn_status_t mxdnn_memory_desc_create_with_strides(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const mxdnn_dims_t strides) {
    MXDNN_CHECK_ARG(dims);
    return create(
            __func__, md, [&](memory_desc_t &d) { return init_strided(d, ndims, dims, data_type, strides); });
}

mxdnn_status_t mxdnn_memory_desc_create_with_tag(mxdnn_memory_desc_t *md, int ndims, const mxdnn_dims_t dims,
        mxdnn_data_type_t data_type, mxdnn_format_tag_t tag) {
    MXDNN_CHECK_ARG(dims);
    return create(
            __func__, md, [&](memory_desc_t &d) { return init_with_tag(d, ndims, dims, data_type, tag); });
}

mxdnn_status_t mxdnn_memory_desc_create_packed(mxdnn_memory_desc_t *md, mxdnn_engine_t engine, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(dims);
    MXDNN_CHECK_ARG(attr);
    return create(__func__, md,
            [&](memory_desc_t &d) { return init_packed_weights(d, *engine, ndims, dims, data_type, *attr); });
}

mxdnn_status_t mxdnn_memory_desc_create_with_grouped_encoding(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, int variable_dim, mxdnn_dim_t group_count,
        mxdnn_data_type_t offsets_dt) {
    MXDNN_CHECK_ARG(dims);
    return create(__func__, md, [&](memory_desc_t &d) {
        return init_grouped(d, ndims, dims, data_type, variable_dim, group_count, offsets_dt);
    });
}

mxdnn_status_t mxdnn_memory_desc_get_blob(uint8_t *blob, size_t *size, const_mxdnn_memory_desc_t md) {
    MXDNN_CHECK_ARG(size);
    MXDNN_CHECK_ARG(md);
    return guarded(__func__, [&] { return write_blob(*md, blob, size); });
}

mxdnn_status_t mxdnn_memory_desc_create_with_blob(mxdnn_memory_desc_t *md, const uint8_t *blob) {
    MXDNN_CHECK_ARG(blob);
    return create(__func__, md, [&](memory_desc_t &d) { return read_blob(d, blob); });
}

mxdnn_status_t mxdnn_memory_desc_create_with_sized_blob(
        mxdnn_memory_desc_t *md, const uint8_t *blob, size_t size) {
    if (size > 0) MXDNN_CHECK_ARG(blob); // an empty buffer is a truncated blob, at any address
    return create(__func__, md, [&](memory_desc_t &d) { return read_blob(d, blob, size); });
}

mxdnn_status_t mxdnn_memory_desc_check_blob(
        mxdnn_engine_t engine, const uint8_t *blob, size_t size, mxdnn_blob_verdict_t *verdict) {
    MXDNN_CHECK_ARG(engine);
    if (size > 0) MXDNN_CHECK_ARG(blob);
    MXDNN_CHECK_ARG(verdict);
    return guarded(__func__, [&] {
        *verdict = blob_verdict(*engine, blob, size);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_memory_desc_set_annotation(
        mxdnn_memory_desc_t md, mxdnn_data_type_t original_type, const char *recipe) {
    MXDNN_CHECK_ARG(md);
    if (original_type != mxdnn_data_type_undef && !data_type_info(original_type))
        return fail(mxdnn_invalid_data_type, "the annotation's data type is %d, which is none",
                int(original_type));
    if (recipe)
        if (const char *wrong = check_recipe(recipe, std::strlen(recipe)))
            return fail(mxdnn_invalid_arguments, "the annotation's recipe, of %zu bytes, %s",
                    std::strlen(recipe), wrong);
    return guarded(__func__, [&] {
        md->annotation.recipe = recipe ? recipe : "";
        md->annotation.original_dt = original_type;
        return mxdnn_success;
    });
}

size_t mxdnn_memory_desc_get_size(const_mxdnn_memory_desc_t md) {
    if (!md) return 0;
    const int64_t size = size_of(*md);
    return size > 0 ? size_t(size) : 0;
}

int mxdnn_memory_desc_equal(const_mxdnn_memory_desc_t lhs, const_mxdnn_memory_desc_t rhs) {
    return lhs == rhs || (lhs && rhs && equal(*lhs, *rhs));
}

mxdnn_status_t mxdnn_memory_desc_query(const_mxdnn_memory_desc_t md, mxdnn_query_t what, void *result) {
    MXDNN_CHECK_ARG(md);
    MXDNN_CHECK_ARG(result);
    const auto answer = [&](auto v) {
        *static_cast<decltype(v) *>(result) = v;
        return mxdnn_success;
    };
    switch (what) {
    case mxdnn_query_ndims_s32: return answer(int(md->ndims));
    case mxdnn_query_dims: return answer(static_cast<const mxdnn_dims_t *>(&md->dims));
    case mxdnn_query_data_type: return answer(md->dt);
    case mxdnn_query_format_kind: return answer(md->kind);
    case mxdnn_query_annotation_data_type: return answer(md->annotation.original_dt);
    case mxdnn_query_annotation_recipe_str: return answer(md->annotation.recipe.c_str());
    case mxdnn_query_strides:
        if (is_strided(*md)) return answer(static_cast<const mxdnn_dims_t *>(&md->strides));
        break;
    default: break;
    }
    if (is_packed(*md)) switch (what) {
        case mxdnn_query_expert_stride_s64: return answer(int64_t(md->packed.stride));
        case mxdnn_query_scale_data_type: return answer(md->packed.quant.scale_dt);
        case mxdnn_query_block_size_s64: return answer(int64_t(md->packed.quant.block));
        case mxdnn_query_layout_id_s32: return answer(int(md->packed.layout_id));
        case mxdnn_query_layout_version_s32: return answer(int(md->packed.layout_version));
        case mxdnn_query_alignment_s64: return answer(int64_t(md->packed.align));
        case mxdnn_query_target_str: return answer(target_family_name(md->packed.family));
        default: break;
        }
    return guarded(__func__, [&] {
        return fail(
                mxdnn_invalid_arguments, "query %d has no answer for %s", int(what), to_string(*md).c_str());
    });
}

mxdnn_status_t mxdnn_memory_desc_to_string(char *text, size_t *size, const_mxdnn_memory_desc_t md) {
    MXDNN_CHECK_ARG(size);
    MXDNN_CHECK_ARG(md);
    return guarded(__func__, [&] {
        const std::string s = to_string(*md);
        if (text && *size < s.size() + 1)
            return fail(mxdnn_invalid_arguments, "the text needs %zu bytes; the buffer has %zu", s.size() + 1,
                    *size);
        if (text) std::memcpy(text, s.c_str(), s.size() + 1);
        *size = s.size() + 1;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_memory_desc_clone(mxdnn_memory_desc_t *md, const_mxdnn_memory_desc_t existing) {
    MXDNN_CHECK_ARG(existing);
    return create(__func__, md, [&](memory_desc_t &d) {
        d = *existing;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_memory_desc_destroy(mxdnn_memory_desc_t md) {
    delete md;
    return mxdnn_success;
}

namespace {
// Calls fn(). Refuses descriptors that are not packed.
template <typename F>
mxdnn_status_t with_packed(const char *function, const memory_desc_t &md, F &&fn) {
    return guarded(function, [&] {
        if (!is_packed(md))
            return fail(mxdnn_invalid_arguments, "a checksum of %s; only packed descriptors have one",
                    to_string(md).c_str());
        fn();
        return mxdnn_success;
    });
}
} // namespace

mxdnn_status_t mxdnn_packed_checksum(const_mxdnn_memory_desc_t md, const void *packed, uint64_t *checksum) {
    MXDNN_CHECK_ARG(md);
    MXDNN_CHECK_ARG(packed);
    MXDNN_CHECK_ARG(checksum);
    return with_packed(__func__, *md, [&] { *checksum = packed_checksum(*md, packed); });
}

mxdnn_status_t mxdnn_checksum_create(mxdnn_checksum_t *checksum, const_mxdnn_memory_desc_t md) {
    MXDNN_CHECK_ARG(checksum);
    MXDNN_CHECK_ARG(md);
    return with_packed(__func__, *md, [&] {
        *checksum = new mxdnn_checksum{packed_checksum(*md), uint64_t(size_of(*md))};
    });
}

mxdnn_status_t mxdnn_checksum_add(mxdnn_checksum_t checksum, const void *bytes, size_t size) {
    MXDNN_CHECK_ARG(checksum);
    if (size > 0) MXDNN_CHECK_ARG(bytes);
    if (size > checksum->size - checksum->sum.size())
        return fail(mxdnn_invalid_arguments, "%zu more bytes for a checksum of %llu, %llu of which are there",
                size, (unsigned long long)checksum->size, (unsigned long long)checksum->sum.size());
    if (size > 0) checksum->sum.add(bytes, size);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_checksum_get(const_mxdnn_checksum_t checksum, uint64_t *value) {
    MXDNN_CHECK_ARG(checksum);
    MXDNN_CHECK_ARG(value);
    if (checksum->sum.size() < checksum->size)
        return fail(mxdnn_invalid_arguments,
                "%llu of %llu bytes were added to the checksum; add the others first",
                (unsigned long long)checksum->sum.size(), (unsigned long long)checksum->size);
    *value = checksum->sum.value();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_checksum_destroy(mxdnn_checksum_t checksum) {
    delete checksum;
    return mxdnn_success;
}

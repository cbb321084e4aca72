// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"

#include "common/attr.hpp"

using namespace mxdnn::impl;

namespace {

// The entry at `index`. Refuses an index beyond the last, and an entry of another kind.
status_t entry_of(const_mxdnn_post_ops_t po, int index, mxdnn_primitive_kind_t kind, const char *function,
        const post_op_t **entry) {
    MXDNN_CHECK(check_not_null(po, function, "post_ops"));
    if (index < 0 || index >= int(po->ops.size()))
        return fail(mxdnn_invalid_arguments, "%s: entry %d of %zu post-ops", function, index, po->ops.size());
    *entry = &po->ops[index];
    if ((*entry)->kind != kind)
        return fail(mxdnn_invalid_arguments, "%s: entry %d is of kind %d, not %d", function, index,
                int((*entry)->kind), int(kind));
    return mxdnn_success;
}

template <typename T, typename U>
void put(T *to, U value) {
    if (to) *to = value;
}

} // namespace

mxdnn_status_t mxdnn_post_ops_create(mxdnn_post_ops_t *post_ops) {
    MXDNN_CHECK_ARG(post_ops);
    return guarded(__func__, [&] {
        *post_ops = new mxdnn_post_ops;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_post_ops_clone(mxdnn_post_ops_t *post_ops, const_mxdnn_post_ops_t existing) {
    MXDNN_CHECK_ARG(post_ops);
    MXDNN_CHECK_ARG(existing);
    return guarded(__func__, [&] {
        *post_ops = new mxdnn_post_ops(*existing);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_post_ops_destroy(mxdnn_post_ops_t post_ops) {
    delete post_ops;
    return mxdnn_success;
}

int mxdnn_post_ops_len(const_mxdnn_post_ops_t post_ops) { return post_ops ? int(post_ops->ops.size()) : 0; }

mxdnn_primitive_kind_t mxdnn_post_ops_get_kind(const_mxdnn_post_ops_t post_ops, int index) {
    if (index < 0 || index >= mxdnn_post_ops_len(post_ops)) return mxdnn_undefined_primitive;
    return post_ops->ops[index].kind;
}

mxdnn_status_t mxdnn_post_ops_append_sum(
        mxdnn_post_ops_t post_ops, float scale, int32_t zero_point, mxdnn_data_type_t data_type) {
    MXDNN_CHECK_ARG(post_ops);
    return guarded(__func__, [&] { return append_sum(*post_ops, scale, zero_point, data_type); });
}

mxdnn_status_t mxdnn_post_ops_append_eltwise(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, float alpha, float beta) {
    MXDNN_CHECK_ARG(post_ops);
    return guarded(__func__, [&] { return append_eltwise(*post_ops, alg, alpha, beta); });
}

mxdnn_status_t mxdnn_post_ops_append_binary(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, const_mxdnn_memory_desc_t src1_desc) {
    MXDNN_CHECK_ARG(post_ops);
    MXDNN_CHECK_ARG(src1_desc);
    return guarded(__func__, [&] { return append_binary(*post_ops, alg, *src1_desc); });
}

mxdnn_status_t mxdnn_post_ops_append_gated(mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, float alpha,
        float limit, mxdnn_gated_layout_t layout) {
    MXDNN_CHECK_ARG(post_ops);
    return guarded(__func__, [&] { return append_gated(*post_ops, alg, alpha, limit, layout); });
}

mxdnn_status_t mxdnn_post_ops_get_params_sum(const_mxdnn_post_ops_t post_ops, int index, float *scale,
        int32_t *zero_point, mxdnn_data_type_t *data_type) {
    const post_op_t *e = nullptr;
    MXDNN_CHECK(entry_of(post_ops, index, mxdnn_sum, __func__, &e));
    put(scale, e->scale);
    put(zero_point, e->zero_point);
    put(data_type, e->dt);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_post_ops_get_params_eltwise(
        const_mxdnn_post_ops_t post_ops, int index, mxdnn_alg_kind_t *alg, float *alpha, float *beta) {
    const post_op_t *e = nullptr;
    MXDNN_CHECK(entry_of(post_ops, index, mxdnn_eltwise, __func__, &e));
    put(alg, e->alg);
    put(alpha, e->alpha);
    put(beta, e->beta);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_post_ops_get_params_binary(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, const_mxdnn_memory_desc_t *src1_desc) {
    const post_op_t *e = nullptr;
    MXDNN_CHECK(entry_of(post_ops, index, mxdnn_binary, __func__, &e));
    put(alg, e->alg);
    put(src1_desc, &e->src1);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_post_ops_get_params_gated(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, float *alpha, float *limit, mxdnn_gated_layout_t *layout) {
    const post_op_t *e = nullptr;
    MXDNN_CHECK(entry_of(post_ops, index, mxdnn_gated, __func__, &e));
    put(alg, e->alg);
    put(alpha, e->alpha);
    put(limit, e->beta);
    put(layout, e->gated_layout);
    return mxdnn_success;
}

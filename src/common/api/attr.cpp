// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"

#include <algorithm>

#include "common/attr.hpp"

using namespace mxdnn::impl;

namespace {

// The quantisation attributes of src, weights, dst, dst_1 or diff_dst. Other arguments are refused.
template <typename attr_type, typename arg_attr_type>
status_t arg_of(attr_type *attr, int arg, const char *function, arg_attr_type **a) {
    MXDNN_CHECK(check_not_null(attr, function, "attr"));
    *a = attr->arg(arg);
    if (!*a)
        return fail(mxdnn_invalid_arguments,
                "%s: argument %d; possible are src (1), weights (33), dst (17), dst_1 (18) and diff_dst (145)",
                function, arg);
    return mxdnn_success;
}

template <typename T>
status_t set_enum(const char *what, T &to, T value, int last) {
    if (int(value) < 0 || int(value) > last)
        return fail(mxdnn_invalid_arguments, "%s is %d; possible are 0 to %d", what, int(value), last);
    to = value;
    return mxdnn_success;
}

// Writes one attribute of src, weights, dst, dst_1 or diff_dst.
template <typename T>
status_t get_of_arg(const_mxdnn_primitive_attr_t attr, int arg, const char *function, const char *name,
        T arg_attr_t::*member, T *to) {
    const arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, function, &a));
    MXDNN_CHECK(check_not_null(to, function, name));
    *to = a->*member;
    return mxdnn_success;
}

template <typename T>
void tell(T *to, T value) {
    if (to) *to = value;
}

void tell(const arg_attr_t::grouping_t &g, int *mask, int *ndims, dim_t *group_dims, data_type_t *data_type) {
    tell(mask, g.set ? g.mask : 0);
    tell(ndims, g.set ? 2 : 0);
    if (g.set && group_dims) std::copy(g.groups, g.groups + 2, group_dims);
    tell(data_type, g.set ? g.dt : mxdnn_data_type_undef);
}

} // namespace

mxdnn_status_t mxdnn_primitive_attr_create(mxdnn_primitive_attr_t *attr) {
    MXDNN_CHECK_ARG(attr);
    return guarded(__func__, [&] {
        *attr = new attr_t;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_primitive_attr_clone(
        mxdnn_primitive_attr_t *attr, const_mxdnn_primitive_attr_t existing) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(existing);
    return guarded(__func__, [&] {
        *attr = new attr_t(*existing);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_primitive_attr_destroy(mxdnn_primitive_attr_t attr) {
    delete attr;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_fpmath_mode(
        mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t mode, int apply_to_int) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK(set_enum("fpmath mode", attr->fpmath, mode, mxdnn_fpmath_mode_tf32));
    attr->fpmath_apply_to_int = apply_to_int != 0;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_fpmath_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t *mode, int *apply_to_int) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(mode);
    *mode = attr->fpmath;
    if (apply_to_int) *apply_to_int = attr->fpmath_apply_to_int;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_accumulation_mode(
        mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t mode) {
    MXDNN_CHECK_ARG(attr);
    return set_enum("accumulation mode", attr->accumulation, mode, mxdnn_accumulation_mode_f16);
}

mxdnn_status_t mxdnn_primitive_attr_get_accumulation_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t *mode) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(mode);
    *mode = attr->accumulation;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_deterministic(mxdnn_primitive_attr_t attr, int value) {
    MXDNN_CHECK_ARG(attr);
    attr->deterministic = value != 0;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_deterministic(const_mxdnn_primitive_attr_t attr, int *value) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(value);
    *value = attr->deterministic;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_constant_weights(mxdnn_primitive_attr_t attr, int value) {
    MXDNN_CHECK_ARG(attr);
    attr->constant_weights = value != 0;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_constant_weights(const_mxdnn_primitive_attr_t attr, int *value) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(value);
    *value = attr->constant_weights;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_scratchpad_mode(
        mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t mode) {
    MXDNN_CHECK_ARG(attr);
    return set_enum("scratchpad mode", attr->scratchpad, mode, mxdnn_scratchpad_mode_user);
}

mxdnn_status_t mxdnn_primitive_attr_get_scratchpad_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t *mode) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(mode);
    *mode = attr->scratchpad;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_scales(mxdnn_primitive_attr_t attr, int arg, int mask, int ndims,
        const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type, int is_on_host,
        mxdnn_quantization_mode_t mode) {
    MXDNN_CHECK_ARG(attr);
    if (is_on_host)
        return fail(mxdnn_unimplemented,
                "is_on_host is %d for the scales of %s; scales are one per block or row in memory of the "
                "primitive's engine, so it is 0",
                is_on_host, arg_name(arg));
    return guarded(
            __func__, [&] { return set_scales(*attr, arg, mask, ndims, group_dims, data_type, mode); });
}

mxdnn_status_t mxdnn_primitive_attr_get_scales(const_mxdnn_primitive_attr_t attr, int arg, int *mask,
        int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type, mxdnn_quantization_mode_t *mode) {
    const arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    tell(a->scales, mask, ndims, group_dims, data_type);
    tell(mode, a->scales.set ? a->mode : mxdnn_quantization_mode_undef);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_zero_points(mxdnn_primitive_attr_t attr, int arg, int mask, int ndims,
        const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type) {
    MXDNN_CHECK_ARG(attr);
    return guarded(__func__, [&] { return set_zero_points(*attr, arg, mask, ndims, group_dims, data_type); });
}

mxdnn_status_t mxdnn_primitive_attr_get_zero_points(const_mxdnn_primitive_attr_t attr, int arg, int *mask,
        int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type) {
    const arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    tell(a->zero_points, mask, ndims, group_dims, data_type);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_zero_points_kind(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_zero_points_kind_t kind) {
    arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    return set_enum("kind of zero points", a->zero_points_kind, kind, mxdnn_zero_points_minimum);
}

mxdnn_status_t mxdnn_primitive_attr_get_zero_points_kind(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_zero_points_kind_t *kind) {
    return get_of_arg(attr, arg, __func__, "kind", &arg_attr_t::zero_points_kind, kind);
}

mxdnn_status_t mxdnn_primitive_attr_set_scale_rounding(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t rounding) {
    arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    return set_enum("scale rounding", a->rounding, rounding, mxdnn_scale_rounding_rceil);
}

mxdnn_status_t mxdnn_primitive_attr_get_scale_rounding(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t *rounding) {
    return get_of_arg(attr, arg, __func__, "rounding", &arg_attr_t::rounding, rounding);
}

mxdnn_status_t mxdnn_primitive_attr_set_scales_layout(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t layout) {
    arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    return set_enum("scales layout", a->layout, layout, mxdnn_scales_swizzle_128x4);
}

mxdnn_status_t mxdnn_primitive_attr_get_scales_layout(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t *layout) {
    return get_of_arg(attr, arg, __func__, "layout", &arg_attr_t::layout, layout);
}

mxdnn_status_t mxdnn_primitive_attr_set_global_scale(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t mode) {
    arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    if (mode != mxdnn_quantization_mode_static_sazp && mode != mxdnn_quantization_mode_dynamic_fp
            && mode != mxdnn_quantization_mode_undef)
        return fail(mxdnn_invalid_arguments,
                "the global scale of %s has mode %d; possible are static_sazp (1), dynamic_fp (3), undef (0, none)",
                arg_name(arg), int(mode));
    a->global = mode;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_global_scale(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t *mode) {
    return get_of_arg(attr, arg, __func__, "mode", &arg_attr_t::global, mode);
}

mxdnn_status_t mxdnn_primitive_attr_set_element_packing(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t packing) {
    arg_attr_t *a = nullptr;
    MXDNN_CHECK(arg_of(attr, arg, __func__, &a));
    return set_enum("element packing", a->packing, packing, mxdnn_element_packing_dense);
}

mxdnn_status_t mxdnn_primitive_attr_get_element_packing(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t *packing) {
    return get_of_arg(attr, arg, __func__, "packing", &arg_attr_t::packing, packing);
}

mxdnn_status_t mxdnn_primitive_attr_set_row_grouping(
        mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t grouping) {
    MXDNN_CHECK_ARG(attr);
    return set_enum("row grouping", attr->row_grouping, grouping, mxdnn_row_grouping_row_ids);
}

mxdnn_status_t mxdnn_primitive_attr_get_row_grouping(
        const_mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t *grouping) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(grouping);
    *grouping = attr->row_grouping;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_topk_weights_placement(
        mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t where) {
    MXDNN_CHECK_ARG(attr);
    return set_enum(
            "placement of top-k weights", attr->topk_weights_placement, where, mxdnn_topk_weights_on_input);
}

mxdnn_status_t mxdnn_primitive_attr_get_topk_weights_placement(
        const_mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t *where) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(where);
    *where = attr->topk_weights_placement;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_expert_range(
        mxdnn_primitive_attr_t attr, mxdnn_dim_t first, mxdnn_dim_t global_experts) {
    MXDNN_CHECK_ARG(attr);
    if (first < 0 || global_experts < 0 || global_experts > INT32_MAX || first > global_experts)
        return fail(mxdnn_invalid_arguments,
                "the range of experts starts at %lld of %lld; possible are 0 to %d experts and a start among them",
                (long long)first, (long long)global_experts, INT32_MAX);
    attr->first_expert = first;
    attr->global_experts = global_experts;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_expert_range(
        const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *first, mxdnn_dim_t *global_experts) {
    MXDNN_CHECK_ARG(attr);
    tell(first, attr->first_expert);
    tell(global_experts, attr->global_experts);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_max_rows_hint(mxdnn_primitive_attr_t attr, mxdnn_dim_t rows) {
    MXDNN_CHECK_ARG(attr);
    if (rows < 0 || rows > max_dim)
        return fail(mxdnn_invalid_arguments, "the hint is %lld rows; possible are 0 (none) to %lld",
                (long long)rows, (long long)max_dim);
    attr->max_rows_hint = rows;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_get_max_rows_hint(const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *rows) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(rows);
    *rows = attr->max_rows_hint;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_attr_set_post_ops(
        mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t post_ops) {
    MXDNN_CHECK_ARG(attr);
    return guarded(__func__, [&] {
        attr->post_ops = post_ops ? *post_ops : mxdnn_post_ops();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_primitive_attr_get_post_ops(
        const_mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t *post_ops) {
    MXDNN_CHECK_ARG(attr);
    MXDNN_CHECK_ARG(post_ops);
    *post_ops = &attr->post_ops;
    return mxdnn_success;
}

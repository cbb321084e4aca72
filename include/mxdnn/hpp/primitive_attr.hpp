// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attributes of primitives: scales, rounding, post-ops, modes. mxdnn.h documents each of them in full.
#ifndef MXDNN_HPP_PRIMITIVE_ATTR_HPP
#define MXDNN_HPP_PRIMITIVE_ATTR_HPP

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/post_ops.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_primitive_attr_t> {
    static void destroy(mxdnn_primitive_attr_t p) { mxdnn_primitive_attr_destroy(p); }
};

/// What a problem has beside its tensors: scales, modes, post-ops. A getter tells the default where nothing
/// was set.
struct primitive_attr : public handle<mxdnn_primitive_attr_t> {
    /// Default values.
    primitive_attr() {
        mxdnn_primitive_attr_t a = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_create(&a), "could not create primitive attributes");
        reset(a);
    }
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit primitive_attr(mxdnn_primitive_attr_t a, bool weak = false) : handle(a, weak) {}

    /// A copy that does not depend on this object. A plain C++ copy refers to the same attributes.
    primitive_attr clone() const {
        mxdnn_primitive_attr_t a = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_clone(&a, get()), "could not clone primitive attributes");
        return primitive_attr(a);
    }

    /// Sets the precision that f32 operands may be rounded to (default strict: none). With `apply_to_int`
    /// quantised weights may be, too.
    void set_fpmath_mode(fpmath_mode mode, bool apply_to_int = false) {
        error::wrap_c_api(mxdnn_primitive_attr_set_fpmath_mode(
                                  get(), static_cast<mxdnn_fpmath_mode_t>(mode), apply_to_int ? 1 : 0),
                "could not set the fpmath mode");
    }
    /// The mode that was set.
    fpmath_mode get_fpmath_mode() const {
        fpmath_mode mode;
        bool apply_to_int;
        get_fpmath_mode(mode, apply_to_int);
        return mode;
    }
    /// The mode that was set, and whether it applies to quantised weights.
    void get_fpmath_mode(fpmath_mode &mode, bool &apply_to_int) const {
        mxdnn_fpmath_mode_t c_mode = mxdnn_fpmath_mode_strict;
        int c_apply = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_fpmath_mode(get(), &c_mode, &c_apply),
                "could not get the fpmath mode");
        mode = static_cast<fpmath_mode>(c_mode);
        apply_to_int = c_apply != 0;
    }

    /// Sets the precision of sums (default strict: that of f32).
    void set_accumulation_mode(accumulation_mode mode) {
        error::wrap_c_api(mxdnn_primitive_attr_set_accumulation_mode(
                                  get(), static_cast<mxdnn_accumulation_mode_t>(mode)),
                "could not set the accumulation mode");
    }
    /// The mode that was set.
    accumulation_mode get_accumulation_mode() const {
        mxdnn_accumulation_mode_t mode = mxdnn_accumulation_mode_strict;
        error::wrap_c_api(mxdnn_primitive_attr_get_accumulation_mode(get(), &mode),
                "could not get the accumulation mode");
        return static_cast<accumulation_mode>(mode);
    }

    /// True asks for the same bits on every execution and for any number of threads.
    void set_deterministic(bool value) {
        error::wrap_c_api(mxdnn_primitive_attr_set_deterministic(get(), value ? 1 : 0),
                "could not set the deterministic attribute");
    }
    /// What was set.
    bool get_deterministic() const {
        int value = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_deterministic(get(), &value),
                "could not get the deterministic attribute");
        return value != 0;
    }

    /// A promise that the weights do not change from before each execution until its work has ended (default
    /// false). CUDA kernels then read them while earlier work of the stream still runs.
    /// mxdnn_primitive_attr_set_constant_weights() has the exact conditions.
    void set_constant_weights(bool value) {
        error::wrap_c_api(mxdnn_primitive_attr_set_constant_weights(get(), value ? 1 : 0),
                "could not set the constant weights attribute");
    }
    /// What was set.
    bool get_constant_weights() const {
        int value = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_constant_weights(get(), &value),
                "could not get the constant weights attribute");
        return value != 0;
    }

    /// Sets whose memory a primitive works in. With scratchpad_mode::user the caller passes
    /// MXDNN_ARG_SCRATCHPAD to every execution: memory of scratchpad_desc().
    void set_scratchpad_mode(scratchpad_mode mode) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_scratchpad_mode(get(), static_cast<mxdnn_scratchpad_mode_t>(mode)),
                "could not set the scratchpad mode");
    }
    /// The mode that was set.
    scratchpad_mode get_scratchpad_mode() const {
        mxdnn_scratchpad_mode_t mode = mxdnn_scratchpad_mode_library;
        error::wrap_c_api(
                mxdnn_primitive_attr_get_scratchpad_mode(get(), &mode), "could not get the scratchpad mode");
        return static_cast<scratchpad_mode>(mode);
    }

    /// Describes the scales of argument `arg`. If bit i of `mask` is set, there is one scale along dimension
    /// i for each element, or for each group of elements. `groups` are the lengths of the groups in the last
    /// dimensions (empty: no groups). `mode` says who computes the scales. `is_on_host` is false; true is
    /// refused.
    void set_scales(int arg, int mask, const memory::dims &groups,
            memory::data_type data_type = memory::data_type::f32, bool is_on_host = false,
            quantization_mode mode = quantization_mode::static_sazp) {
        mxdnn_dims_t c_groups = {};
        error::wrap_c_api(mxdnn_primitive_attr_set_scales(get(), arg, mask, static_cast<int>(groups.size()),
                                  to_c(groups, c_groups), static_cast<mxdnn_data_type_t>(data_type),
                                  is_on_host ? 1 : 0, static_cast<mxdnn_quantization_mode_t>(mode)),
                "could not set scales");
    }

    /// The values of set_scales(). `groups` are two lengths, of the last two dimensions. Without scales,
    /// `data_type` is undef and `groups` is empty.
    void get_scales(int arg, int &mask, memory::dims &groups, memory::data_type &data_type,
            quantization_mode &mode) const {
        int ndims = 0;
        mxdnn_dims_t c_groups = {};
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        mxdnn_quantization_mode_t c_mode = mxdnn_quantization_mode_undef;
        error::wrap_c_api(mxdnn_primitive_attr_get_scales(get(), arg, &mask, &ndims, c_groups, &dt, &c_mode),
                "could not get scales");
        groups.assign(c_groups, c_groups + ndims);
        data_type = static_cast<memory::data_type>(dt);
        mode = static_cast<quantization_mode>(c_mode);
    }

    /// Describes the zero points of argument `arg`. Mask and groups are those of the scales.
    void set_zero_points(int arg, int mask, const memory::dims &groups,
            memory::data_type data_type = memory::data_type::u8) {
        mxdnn_dims_t c_groups = {};
        error::wrap_c_api(
                mxdnn_primitive_attr_set_zero_points(get(), arg, mask, static_cast<int>(groups.size()),
                        to_c(groups, c_groups), static_cast<mxdnn_data_type_t>(data_type)),
                "could not set zero points");
    }

    /// The values of set_zero_points(), in the form of get_scales().
    void get_zero_points(int arg, int &mask, memory::dims &groups, memory::data_type &data_type) const {
        int ndims = 0;
        mxdnn_dims_t c_groups = {};
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        error::wrap_c_api(mxdnn_primitive_attr_get_zero_points(get(), arg, &mask, &ndims, c_groups, &dt),
                "could not get zero points");
        groups.assign(c_groups, c_groups + ndims);
        data_type = static_cast<memory::data_type>(dt);
    }

    /// Sets what the zero points of `arg` mean; the default is standard. Minima have a floating-point type.
    void set_zero_points_kind(int arg, zero_points_kind kind) {
        error::wrap_c_api(mxdnn_primitive_attr_set_zero_points_kind(
                                  get(), arg, static_cast<mxdnn_zero_points_kind_t>(kind)),
                "could not set the kind of zero points");
    }
    /// The kind that was set for `arg`.
    zero_points_kind get_zero_points_kind(int arg) const {
        mxdnn_zero_points_kind_t value = mxdnn_zero_points_kind_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_zero_points_kind(get(), arg, &value),
                "could not get the kind of zero points");
        return static_cast<zero_points_kind>(value);
    }

    /// Sets the rule for e8m0 scales that are computed for `arg`; the default is floor.
    void set_scale_rounding(int arg, scale_rounding rounding) {
        error::wrap_c_api(mxdnn_primitive_attr_set_scale_rounding(
                                  get(), arg, static_cast<mxdnn_scale_rounding_t>(rounding)),
                "could not set the rounding of scales");
    }
    /// The rule that was set for `arg`.
    scale_rounding get_scale_rounding(int arg) const {
        mxdnn_scale_rounding_t value = mxdnn_scale_rounding_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_scale_rounding(get(), arg, &value),
                "could not get the rounding of scales");
        return static_cast<scale_rounding>(value);
    }
    /// Sets the order of the plain scales of `arg`; the default is linear.
    void set_scales_layout(int arg, scales_layout layout) {
        error::wrap_c_api(mxdnn_primitive_attr_set_scales_layout(
                                  get(), arg, static_cast<mxdnn_scales_layout_t>(layout)),
                "could not set the layout of scales");
    }
    /// The order that was set for `arg`.
    scales_layout get_scales_layout(int arg) const {
        mxdnn_scales_layout_t value = mxdnn_scales_layout_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_scales_layout(get(), arg, &value),
                "could not get the layout of scales");
        return static_cast<scales_layout>(value);
    }
    /// Describes the f32 global scale of `arg` for NVFP4, of shape {1} or {E}. static_sazp: the caller passes
    /// it. dynamic_fp: it is computed and written. undef, the default: there is none.
    void set_global_scale(int arg, quantization_mode mode) {
        error::wrap_c_api(mxdnn_primitive_attr_set_global_scale(
                                  get(), arg, static_cast<mxdnn_quantization_mode_t>(mode)),
                "could not set a global scale");
    }
    /// The mode that was set for `arg`.
    quantization_mode get_global_scale(int arg) const {
        mxdnn_quantization_mode_t value = mxdnn_quantization_mode_t();
        error::wrap_c_api(
                mxdnn_primitive_attr_get_global_scale(get(), arg, &value), "could not get a global scale");
        return static_cast<quantization_mode>(value);
    }
    /// Sets how plain 6-bit elements of `arg` are stored; the default is one code per byte.
    void set_element_packing(int arg, element_packing packing) {
        error::wrap_c_api(mxdnn_primitive_attr_set_element_packing(
                                  get(), arg, static_cast<mxdnn_element_packing_t>(packing)),
                "could not set the packing of elements");
    }
    /// The packing that was set for `arg`.
    element_packing get_element_packing(int arg) const {
        mxdnn_element_packing_t value = mxdnn_element_packing_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_element_packing(get(), arg, &value),
                "could not get the packing of elements");
        return static_cast<element_packing>(value);
    }
    /// For grouped_matmul, moe_route and moe_permute: sets which arguments say where groups begin and end;
    /// the default is ends.
    void set_row_grouping(row_grouping grouping) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_row_grouping(get(), static_cast<mxdnn_row_grouping_t>(grouping)),
                "could not set the row grouping");
    }
    /// The grouping that was set.
    row_grouping get_row_grouping() const {
        mxdnn_row_grouping_t value = mxdnn_row_grouping_t();
        error::wrap_c_api(
                mxdnn_primitive_attr_get_row_grouping(get(), &value), "could not get the row grouping");
        return static_cast<row_grouping>(value);
    }
    /// For grouped_matmul: sets where MXDNN_ARG_TOPK_WEIGHTS are multiplied; the default is the output.
    void set_topk_weights_placement(topk_weights_placement where) {
        error::wrap_c_api(mxdnn_primitive_attr_set_topk_weights_placement(
                                  get(), static_cast<mxdnn_topk_weights_placement_t>(where)),
                "could not set the placement of top-k weights");
    }
    /// The placement that was set.
    topk_weights_placement get_topk_weights_placement() const {
        mxdnn_topk_weights_placement_t value = mxdnn_topk_weights_placement_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_topk_weights_placement(get(), &value),
                "could not get the placement of top-k weights");
        return static_cast<topk_weights_placement>(value);
    }
    /// For grouped_matmul: says that expert ids count `global_experts` experts, and that the weights hold
    /// those from `first` on. With 0, the default, ids are positions in the weights.
    void set_expert_range(memory::dim first, memory::dim global_experts) {
        error::wrap_c_api(mxdnn_primitive_attr_set_expert_range(get(), first, global_experts),
                "could not set the range of experts");
    }
    /// The range that was set.
    void get_expert_range(memory::dim &first, memory::dim &global_experts) const {
        error::wrap_c_api(mxdnn_primitive_attr_get_expert_range(get(), &first, &global_experts),
                "could not get the range of experts");
    }
    /// Sets how many rows are expected at most where M is a runtime value; 0, the default, for no hint. More
    /// rows are correct, too.
    void set_max_rows_hint(memory::dim rows) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_max_rows_hint(get(), rows), "could not set the hint of rows");
    }
    /// The hint that was set.
    memory::dim get_max_rows_hint() const {
        memory::dim rows = 0;
        error::wrap_c_api(
                mxdnn_primitive_attr_get_max_rows_hint(get(), &rows), "could not get the hint of rows");
        return rows;
    }

    /// Copies the post-ops.
    void set_post_ops(const post_ops &ops) {
        error::wrap_c_api(mxdnn_primitive_attr_set_post_ops(get(), ops.get()), "could not set post-ops");
    }
    /// A copy of the post-ops.
    post_ops get_post_ops() const {
        const_mxdnn_post_ops_t ops = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_get_post_ops(get(), &ops), "could not get post-ops");
        mxdnn_post_ops_t copy = nullptr;
        error::wrap_c_api(mxdnn_post_ops_clone(&copy, ops), "could not clone post-ops");
        return post_ops(copy);
    }

private:
    // Without groups the C API expects a null pointer.
    static const memory::dim *to_c(const memory::dims &groups, mxdnn_dims_t &c_groups) {
        if (groups.empty()) return nullptr;
        for (size_t i = 0; i < groups.size() && i < MXDNN_MAX_NDIMS; i++) c_groups[i] = groups[i];
        return c_groups;
    }
};

inline memory::desc memory::desc::packed(const engine &aengine, const dims &adims, data_type adata_type,
        const primitive_attr &attr, bool allow_empty) {
    mxdnn_dims_t c_dims = {};
    mxdnn_memory_desc_t md = nullptr;
    const mxdnn_status_t st =
            mxdnn_memory_desc_create_packed(&md, aengine.get(), static_cast<int>(adims.size()),
                    to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type), attr.get());
    desc result;
    result.init(st, md, allow_empty, "could not create a packed memory descriptor");
    return result;
}

} // namespace mxdnn

#endif

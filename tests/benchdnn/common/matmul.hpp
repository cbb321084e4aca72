// SPDX-License-Identifier: Apache-2.0
// What the drivers of mx_matmul and grouped_matmul share: knobs that both have, and their executions.
#pragma once

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/driver.hpp"
#include "benchdnn/common/peer.hpp"
#include "benchdnn/common/sums.hpp"

namespace bench {

struct matmul_problem_t {
    tensor_type_t src_type, wei_type, dst_type;
    bool bias = false;
    mxdnn::impl::data_type_t bias_dt = mxdnn_f32;
    mxdnn_scale_rounding_t rounding = mxdnn_scale_rounding_floor; // of scales that are computed
    std::string scales_tag = "ab";                                // order of plain scales and zero points
    std::vector<post_op_knob_t> post_ops;
    std::string wtag = "any";                                             // any (packed), ab, ba
    mxdnn::impl::recipe_kind_t recipe = mxdnn::impl::recipe_kind_t::none; // of the source
    bool runtime_rows = false, deterministic = false, constant_weights = false, user_scratchpad = false;
    mxdnn_fpmath_mode_t fpmath = mxdnn_fpmath_mode_strict;
    mxdnn_accumulation_mode_t sums = mxdnn_accumulation_mode_strict;
    int64_t hint = 0;            // of rows
    bool special_values = false; // NaN and Inf in one row of the source in eight
    std::string special; // "nan": a NaN scale in one block of the weights; "ends": scales over their whole
                         // range; "narrow": scales of weights within four powers of two, as those of trained
                         // weights mostly are

    std::string repro; // the words that make this problem again

    const post_op_knob_t *gated() const;
    bool adds_to_dst() const; // a sum post-op
    // Whether rows of f32 and f16 may be rounded to bf16.
    bool rounds_rows() const { return fpmath == mxdnn_fpmath_mode_bf16 || fpmath == mxdnn_fpmath_mode_any; }
};

// Knobs of both, which apply_words() reads.
std::string draw_types(draws_t &any, const knob_t &, const words_t &, const std::string &);
std::string draw_scales(draws_t &any, const knob_t &, const words_t &words, const std::string &descriptor);
std::string draw_zero_points(draws_t &any, const knob_t &, const words_t &words, const std::string &);
std::string draw_global(draws_t &any, const knob_t &, const words_t &words, const std::string &);
std::string draw_recipe(draws_t &any, const knob_t &knob, const words_t &words, const std::string &);
std::string draw_layouts(draws_t &any, const knob_t &, const words_t &words, const std::string &);
std::string draw_packings(draws_t &any, const knob_t &, const words_t &words, const std::string &);
std::string draw_given(draws_t &any, const knob_t &, const words_t &words, const std::string &);
constexpr knob_t dt_knob("dt", "bf16:mxfp4:bf16", draw_types, true), bias_knob("bia-dt", "", "|f32|bf16|f16"),
        wtag_knob("wtag", "any", "any|ab|ba"), scales_knob("attr-scales", "", draw_scales),
        zero_points_knob("attr-zero-points", "", draw_zero_points),
        global_knob("attr-global-scale", "", draw_global),
        recipe_knob("attr-src-quant", "none", "none|s8|f8_e4m3|mxint8", draw_recipe),
        layouts_knob("attr-scales-layout", "", draw_layouts),
        packings_knob("attr-element-packing", "", draw_packings), given_knob("given", "", draw_given),
        rounding_knob("rounding", "floor", "floor|ceil|even|rceil"),
        scales_tag_knob("scales-tag", "ab", "ab|ba"), runtime_rows_knob("runtime-rows", "0", "0|1"),
        deterministic_knob("attr-deterministic", "false", "false|true"),
        constant_weights_knob("attr-constant-weights", "false", "false|true"),
        scratchpad_knob("attr-scratchpad", "library", "library|user"),
        fpmath_knob("attr-fpmath", "strict", "strict|bf16|f16|any|tf32"),
        acc_mode_knob("attr-acc-mode", "strict", "strict|relaxed|any|s32|f32|f16"),
        hint_knob("max-rows-hint", "0", range_t{0, 300}), special_knob("special", "", "|nan|ends|narrow"),
        values_knob("values", "normal", "normal|special");
// K and N of "MxK:KxN" or "KxN".
std::pair<int64_t, int64_t> to_k_and_n(const std::string &descriptor);
// Post-ops that a random destination and N allow.
std::string draw_post_ops(draws_t &any, const words_t &words, const std::string &descriptor, bool binary);

// Weights have a global scale for each of `wei_batch` matrices, the others for each of
// `batch`.
void apply_words(matmul_problem_t &p, const words_t &words, int64_t wei_batch, int64_t batch);
// Post-ops except binary ones, which have a tensor.
void append(mxdnn::post_ops &po, const post_op_knob_t &o);
// Everything but post-ops, for tensors of so many dims.
void set_attr(
        mxdnn::primitive_attr &attr, const matmul_problem_t &p, size_t src_nd, size_t wei_nd, size_t dst_nd);

// Bytes of so many elements of a type, with their scales and zero points.
double bytes_of(double elements, const tensor_type_t &t);
perf_t report_of(const matmul_problem_t &p, const std::string &impl, double flops, double bytes);

// A sum post-op: the previous destination minus the zero point, times the scale.
interval_t added_to(
        const interval_t &x, const post_op_knob_t &o, const tensor_t &old_dst, const int64_t *idx);

// ---- execution ----

// Whether threads may read packed weights at full speed.
constexpr size_t packed_align = 64;

// Codes and scales unchanged, through mx_reorder of the stream's engine.
void pack(const quantised_t &from, const mxdnn::stream &s, const mxdnn::memory::desc &md, void *to);
// Weights rounded to bf16, the last two dims in `tag` order, through mx_reorder.
buffer_t as_bf16(const quantised_t &from, const mxdnn::stream &s, const std::string &tag);
// A source rounded to bf16, row-major. Quantised ones go element by element: some have no reorder.
buffer_t as_bf16(const operand_t &from, const mxdnn::engine &e);

// Memory of the caller's, as large as the primitives so far have asked for.
class scratchpad_t {
public:
    // Among the arguments if the primitive asks for any.
    void add(const mxdnn::memory::desc &md, const mxdnn::engine &e, args_t &args);

private:
    buffer_t bytes_;
};

// Compares every wanted implementation by executions of `x`. `expected(problem, arithmetic)` gives the
// results.
template <typename prim_t, typename pd_t, typename problem_t, typename execution_t, typename expected_t>
std::string check_each(
        const pd_t &pd, const problem_t &p, std::string &names, execution_t &x, expected_t expected) {
    std::vector<interval_t> want[2]; // by arithmetic
    std::vector<interval_t> unquantised;
    if (p.recipe != mxdnn::impl::recipe_kind_t::none && !x.dst.is_quantised) {
        problem_t plain = p;
        plain.recipe = mxdnn::impl::recipe_kind_t::none;
        unquantised = expected(plain, arithmetic_t());
    }
    return check_each(pd, names, [&](const pd_t &each, mismatch_t &bad) {
        const arithmetic_t a = arithmetic_of(each.impl_info_str());
        std::vector<interval_t> &w = want[a.bf16_products];
        if (w.empty()) w = expected(p, a);
        x.poison_dst();
        x.run(each, prim_t(each));
        if (settings.plant_fault && !w.empty()) plant_fault(x.dst.codes());
        compare(x.dst, p.rounding, w, bad);
        compare_gaps(x.dst.codes(), bad);
        if (!unquantised.empty()) names += sqnr_text(x.dst.plain, w, unquantised);
    });
}

// The reference, executed by `x`.
template <typename prim_t, typename pd_t, typename execution_t>
peer_t make_reference(const pd_t &timed, execution_t &x) {
    pd_t pd = clone(timed);
    choose_reference(pd);
    const prim_t prim(pd);
    return {[&x, pd, prim] { x.run(pd, prim); }, "ref"};
}

} // namespace bench

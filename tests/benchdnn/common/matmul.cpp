// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/matmul.hpp"

namespace bench {

using namespace mxdnn::impl;

const post_op_knob_t *matmul_problem_t::gated() const {
    for (const auto &o : post_ops)
        if (o.kind == mxdnn_gated) return &o;
    return nullptr;
}

bool matmul_problem_t::adds_to_dst() const {
    for (const auto &o : post_ops)
        if (o.kind == mxdnn_sum) return true;
    return false;
}

void apply_words(matmul_problem_t &p, const words_t &words, int64_t wei_batch, int64_t batch) {
    const auto types = split(words["dt"], ':');
    if (types.size() != 3) throw usage_error_t("--dt='" + words["dt"] + "' is not SRC:WEI:DST");
    tensor_type_t t[3] = {to_tensor_type(types[0]), to_tensor_type(types[1]), to_tensor_type(types[2])};
    const std::vector<named_type_t> named = {
            {"src", &t[0], batch}, {"wei", &t[1], wei_batch}, {"dst", &t[2], batch}};
    apply_scales(words["attr-scales"], named);
    apply_zero_points(words["attr-zero-points"], named);
    apply_global(words["attr-global-scale"], named);
    apply_scales_layouts(words["attr-scales-layout"], named);
    apply_element_packings(words["attr-element-packing"], named);
    apply_given(words["given"], named);
    p.rounding = to_rounding(words);
    p.scales_tag = one_of(words, "scales-tag");
    p.src_type = t[0];
    p.wei_type = t[1];
    p.dst_type = t[2];
    p.bias = !words["bia-dt"].empty() && words["bia-dt"] != "undef";
    if (p.bias) p.bias_dt = to_data_type(words["bia-dt"]);
    p.post_ops = parse_post_ops(words["attr-post-ops"]);
    p.wtag = one_of(words, "wtag");
    p.runtime_rows = flag(words, "runtime-rows");
    p.deterministic = flag(words, "attr-deterministic");
    p.constant_weights = flag(words, "attr-constant-weights");
    p.user_scratchpad = flag(words, "attr-scratchpad");
    p.fpmath = pick(words, "attr-fpmath",
            {mxdnn_fpmath_mode_strict, mxdnn_fpmath_mode_bf16, mxdnn_fpmath_mode_f16, mxdnn_fpmath_mode_any,
                    mxdnn_fpmath_mode_tf32});
    p.sums = pick(words, "attr-acc-mode",
            {mxdnn_accumulation_mode_strict, mxdnn_accumulation_mode_relaxed, mxdnn_accumulation_mode_any,
                    mxdnn_accumulation_mode_s32, mxdnn_accumulation_mode_f32, mxdnn_accumulation_mode_f16});
    p.hint = number(words, "max-rows-hint");
    p.recipe = pick(words, "attr-src-quant",
            {recipe_kind_t::none, recipe_kind_t::row_int8, recipe_kind_t::row_fp8, recipe_kind_t::mx_int8});
    p.special = one_of(words, "special");
    p.special_values = flag(words, "values");
}

std::string draw_types(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    const std::string src = draw_tensor_type(any, true);
    const std::string wei = draw_quantised_type(any);
    const std::string dst = any.one_in(2) ? draw_type(any, role_high_precision) : draw_tensor_type(any);
    return src + ":" + wei + ":" + dst;
}

namespace {

std::vector<typed_side_t> sides_of(const words_t &words, int64_t K) {
    const auto types = split(words["dt"], ':');
    return {{"src", types[0], K}, {"wei", types[1], 0}, {"dst", types[2], 0}};
}

} // namespace

std::string draw_scales(draws_t &any, const knob_t &, const words_t &words, const std::string &descriptor) {
    return draw_scales(any, sides_of(words, to_k_and_n(descriptor).first));
}

std::string draw_zero_points(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return draw_zero_points(any, sides_of(words, 0));
}

std::string draw_global(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return draw_global(any, sides_of(words, 0));
}

namespace {

// Weights among them where they are plain.
std::vector<typed_side_t> plain_sides_of(const words_t &words) {
    std::vector<typed_side_t> sides = sides_of(words, 0);
    if (words["wtag"] == "any") sides.erase(sides.begin() + 1);
    return sides;
}

} // namespace

std::string draw_layouts(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return any.one_in(2) ? knob.usual : draw_scales_layouts(any, plain_sides_of(words));
}

std::string draw_packings(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return any.one_in(2) ? knob.usual : draw_element_packings(any, plain_sides_of(words));
}

std::string draw_given(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return draw_given(any, {sides_of(words, 0).back()}, words["attr-global-scale"]);
}

std::string draw_recipe(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    const bool possible = is_high_precision(split(words["dt"], ':')[0]) && words["rounding"] != "even";
    return possible ? draw_word(any, knob) : knob.usual;
}

std::pair<int64_t, int64_t> to_k_and_n(const std::string &descriptor) {
    const std::vector<int64_t> wei = to_dims(split(descriptor, ':').back(), "KxN");
    return {wei[wei.size() - 2], wei.back()};
}

std::string draw_post_ops(draws_t &any, const words_t &words, const std::string &descriptor, bool binary) {
    const bool sum = is_high_precision(split(words["dt"], ':')[2]);
    return draw_post_ops(any, {binary, sum, to_k_and_n(descriptor).second % 2 == 0});
}

void append(mxdnn::post_ops &po, const post_op_knob_t &o) {
    const auto alg = static_cast<mxdnn::algorithm>(o.alg);
    switch (o.kind) {
    case mxdnn_eltwise: return po.append_eltwise(alg, float(o.alpha), float(o.beta));
    case mxdnn_sum: return po.append_sum(float(o.alpha), int32_t(o.beta), cpp(o.dt));
    case mxdnn_gated:
        return po.append_gated(alg, float(o.alpha), float(o.beta),
                o.halves ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
    default: throw usage_error_t("post-op '" + o.text + "' is none of this primitive");
    }
}

void set_attr(
        mxdnn::primitive_attr &attr, const matmul_problem_t &p, size_t src_nd, size_t wei_nd, size_t dst_nd) {
    set_quant(attr, MXDNN_ARG_SRC, p.src_type, src_nd, int(src_nd) - 1, false);
    set_quant(attr, MXDNN_ARG_WEIGHTS, p.wei_type, wei_nd, int(wei_nd) - 2, false);
    set_quant(attr, MXDNN_ARG_DST, p.dst_type, dst_nd, int(dst_nd) - 1, true);
    const int rows = (1 << (src_nd - 1)) - 1, all = (1 << src_nd) - 1; // masks of dims
    if (p.recipe == recipe_kind_t::row_int8 || p.recipe == recipe_kind_t::row_fp8)
        attr.set_scales(MXDNN_ARG_SRC, rows, {}, mxdnn::memory::data_type::f32, false,
                p.recipe == recipe_kind_t::row_fp8 ? mxdnn::quantization_mode::dynamic_fp
                                                   : mxdnn::quantization_mode::dynamic_affine);
    if (p.recipe == recipe_kind_t::mx_int8)
        attr.set_scales(MXDNN_ARG_SRC, all, {1, mx_block}, mxdnn::memory::data_type::e8m0, false,
                mxdnn::quantization_mode::dynamic_mx);
    const auto rounding = static_cast<mxdnn::scale_rounding>(p.rounding);
    if (p.dst_type.quantised) attr.set_scale_rounding(MXDNN_ARG_DST, rounding);
    if (p.recipe != recipe_kind_t::none) attr.set_scale_rounding(MXDNN_ARG_SRC, rounding);
    if (p.deterministic) attr.set_deterministic(true);
    if (p.constant_weights) attr.set_constant_weights(true);
    if (p.user_scratchpad) attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    attr.set_fpmath_mode(static_cast<mxdnn::fpmath_mode>(p.fpmath));
    attr.set_accumulation_mode(static_cast<mxdnn::accumulation_mode>(p.sums));
    if (p.hint > 0) attr.set_max_rows_hint(p.hint);
}

double bytes_of(double elements, const tensor_type_t &t) {
    double bits = data_type_info(t.dt)->bits;
    if (t.quantised) {
        bits += double(data_type_info(t.quant.scale_dt)->bits) / double(t.quant.block);
        if (t.quant.zp_dt != mxdnn_data_type_undef)
            bits += double(data_type_info(t.quant.zp_dt)->bits) / double(t.quant.block);
    }
    return elements * bits / 8;
}

// Integers a byte each, as the values are or as the recipe makes them.
products_t products_of(const matmul_problem_t &p) {
    const mxdnn_data_type_t s = p.src_type.dt, w = p.wei_type.dt;
    const bool int8_rows =
            s == mxdnn_s8 || p.recipe == recipe_kind_t::row_int8 || p.recipe == recipe_kind_t::mx_int8;
    const bool int8_weights = w == mxdnn_s8 || w == mxdnn_f4_e2m1 || w == mxdnn_s4 || w == mxdnn_u4;
    if (int8_rows && int8_weights) return products_t::int8;
    return s == mxdnn_f32 || s == mxdnn_f16 ? products_t::f32 : products_t::bf16;
}

perf_t report_of(const matmul_problem_t &p, const std::string &impl, double flops, double bytes) {
    perf_t r = report_of(p.repro, impl);
    r.flops = flops;
    r.bytes = bytes;
    r.products = products_of(p);
    return r;
}

interval_t added_to(
        const interval_t &x, const post_op_knob_t &o, const tensor_t &old_dst, const int64_t *idx) {
    const data_type_t dt = o.dt == mxdnn_data_type_undef ? old_dst.dt : o.dt;
    const double term = o.alpha * (decode_value(dt, old_dst.code(idx)) - o.beta);
    const double rounding = 3 * u32 * (std::fabs(term) + std::fabs(o.alpha * o.beta));
    return rounded({x.v + term, x.e + rounding, x.or_nan}, 2);
}

void pack(const quantised_t &from, const mxdnn::stream &s, const mxdnn::memory::desc &md, void *to) {
    const mxdnn::engine e = s.get_engine(), host = host_engine(e);
    tensor_type_t type;
    type.dt = from.codes.dt;
    type.quantised = true;
    type.quant = from.quant;
    mxdnn::primitive_attr attr;
    set_quant(attr, MXDNN_ARG_SRC, type, from.codes.dims.size(), from.axis, false);
    const mxdnn::mx_reorder::primitive_desc pd(e, from.codes.desc(), e, md, attr);
    args_t args = {{MXDNN_ARG_FROM, from.codes.memory(host)}, {MXDNN_ARG_TO, mxdnn::memory(md, host, to)}};
    from.add_args(MXDNN_ARG_SRC, host, args);
    execute(mxdnn::mx_reorder(pd), s, args);
}

namespace {

mxdnn::memory::desc bf16_desc(const std::vector<int64_t> &dims, const std::string &tag) {
    return mxdnn::memory::desc(dims, mxdnn::memory::data_type::bf16, strides_of(dims, tag, mxdnn_bf16));
}

} // namespace

buffer_t as_bf16(const quantised_t &from, const mxdnn::stream &s, const std::string &tag) {
    const mxdnn::memory::desc md = bf16_desc(from.codes.dims, tag);
    buffer_t to(md.get_size(), packed_align);
    pack(from, s, md, to.data());
    return to;
}

buffer_t as_bf16(const operand_t &from, const mxdnn::engine &e) {
    const std::vector<int64_t> &dims = from.codes().dims;
    if (from.is_quantised) {
        tensor_t to(dims, tensor_t::row_major(dims), mxdnn_bf16);
        const data_type_info_t *info = data_type_info(mxdnn_bf16);
        for_each(dims, [&](const int64_t *idx) { to.set_code(idx, info->encode(from.value(idx))); });
        return std::move(to.bytes);
    }
    const mxdnn::memory::desc md = bf16_desc(dims, "ab");
    buffer_t to(md.get_size(), packed_align);
    mxdnn::stream stream(e);
    mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(e, from.plain.desc(), e, md))
            .execute(stream, {{MXDNN_ARG_FROM, from.plain.memory(e)},
                                     {MXDNN_ARG_TO, mxdnn::memory(md, e, to.data())}});
    return to;
}

void scratchpad_t::add(const mxdnn::memory::desc &md, const mxdnn::engine &e, args_t &args) {
    const size_t bytes = md.get_size();
    if (bytes > bytes_.size()) bytes_ = buffer_t(bytes, 64);
    args.erase(MXDNN_ARG_SCRATCHPAD);
    if (bytes > 0) args[MXDNN_ARG_SCRATCHPAD] = mxdnn::memory(md, e, bytes_.data());
}

} // namespace bench

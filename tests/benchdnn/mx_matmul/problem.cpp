// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_matmul/problem.hpp"

#include <algorithm>

#include "benchdnn/common/settings.hpp"
#include "benchdnn/common/tensor.hpp"

namespace bench {
namespace mx_matmul {

using namespace mxdnn::impl;
using mxdnn::memory;

int64_t problem_t::batch() const {
    int64_t b = 1;
    for (size_t i = 0; i + 2 < nd(); i++) b *= std::max(src[i], wei[i]);
    return b;
}

std::vector<int64_t> problem_t::binary_dims(size_t i) const {
    const auto is_gated = [](const post_op_knob_t &o) { return o.kind == mxdnn_gated; };
    const bool before_gate = std::any_of(post_ops.begin() + long(i), post_ops.end(), is_gated);
    return dims_of(post_ops[i].policy, !before_gate);
}

std::vector<int64_t> problem_t::src_strides() const {
    return strides_of(src, stag, src_type.dt, row_pad, batch_strides);
}

std::vector<int64_t> problem_t::dst_strides() const {
    return strides_of(dst, dtag, dst_type.dt, row_pad, batch_strides == "same" ? "outer" : batch_strides);
}

std::vector<int64_t> problem_t::dims_of(const std::string &policy, bool gated) const {
    std::vector<int64_t> full = dst, one(nd(), 1);
    if (!gated) full.back() = N();
    if (policy == "per_tensor") return full;
    if (policy == "per_oc") one.back() = full.back();
    if (policy == "per_row") one[nd() - 2] = full[nd() - 2];
    return one;
}

namespace {

std::string draw_all_post_ops(
        draws_t &any, const knob_t &, const words_t &words, const std::string &descriptor) {
    return draw_post_ops(any, words, descriptor, true);
}

constexpr knob_t knob_list[] = {dt_knob, bias_knob,
        {"bia-policy", "per_oc", "common|per_oc|per_row|per_tensor"}, {"stag", "ab", "ab|ba"}, wtag_knob,
        {"dtag", "ab", "ab|ba"}, scales_knob, zero_points_knob, global_knob, layouts_knob, packings_knob,
        given_knob, scales_tag_knob, rounding_knob, recipe_knob, {"attr-post-ops", "", draw_all_post_ops},
        runtime_rows_knob, {"runtime-batch", "0", "0|1"}, {"row-pad", "0", range_t{0, 5}},
        {"batch-strides", "outer", "outer|inner|same"}, special_knob, values_knob, deterministic_knob,
        constant_weights_knob, scratchpad_knob, fpmath_knob, acc_mode_knob, hint_knob};

// Of a random problem: few enough for every implementation and the oracle.
int64_t most_products() { return settings.random_size << 22; }

// As far as the descriptor knows them.
memory::dims known_dims(const problem_t &p, const std::vector<int64_t> &d) {
    memory::dims r(d.begin(), d.end());
    const size_t rows = r.size() - 2;
    if (p.runtime_rows) r[rows] = MXDNN_RUNTIME_DIM_VAL;
    for (size_t i = 0; i < rows && p.runtime_batch; i++) r[i] = MXDNN_RUNTIME_DIM_VAL;
    return r;
}

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    const auto halves = split(descriptor, ':');
    if (halves.size() != 2) throw usage_error_t("problem '" + descriptor + "' is not MxK:KxN");
    problem_t p;
    p.src = to_dims(halves[0], "MxK");
    p.wei = to_dims(halves[1], "KxN");
    if (p.src.size() != p.wei.size())
        throw usage_error_t("problem '" + descriptor + "' has different numbers of dims in src and weights");
    int64_t wei_batch = 1;
    for (size_t i = 0; i + 2 < p.nd(); i++) wei_batch *= p.wei[i];
    apply_words(p, words, wei_batch, p.batch());
    p.stag = one_of(words, "stag");
    p.dtag = one_of(words, "dtag");
    p.row_pad = number(words, "row-pad");
    p.batch_strides = one_of(words, "batch-strides");
    p.bias_policy = one_of(words, "bia-policy");
    p.runtime_batch = flag(words, "runtime-batch");
    p.dst = p.src;
    for (size_t i = 0; i + 2 < p.nd(); i++) p.dst[i] = std::max(p.src[i], p.wei[i]);
    p.dst.back() = p.gated() ? p.N() / 2 : p.N();
    p.repro = words.repro("mx_matmul", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    std::string src, wei;
    int64_t batch = 1;
    for (int64_t left = any.one_in(4) ? 1 + any.below(2) : 0; left > 0; left--) {
        const int64_t n = any.range(1, 4), broadcast = any.below(4);
        src += std::to_string(broadcast == 1 ? 1 : n) + "x";
        wei += std::to_string(broadcast == 2 ? 1 : n) + "x";
        batch *= n;
    }
    const int64_t N = any.length(700);
    const int64_t K = any.length(std::min<int64_t>(3000, most_products() / (batch * N)));
    const int64_t M =
            any.one_in(50) ? 0 : any.length(std::min<int64_t>(1500, most_products() / (batch * N * K)));
    const std::string k = std::to_string(K);
    return src + std::to_string(M) + "x" + k + ":" + wei + k + "x" + std::to_string(N);
}

descs_t make_descs(const problem_t &p) {
    descs_t d;
    // Of a tensor that may follow the destination: dims of more than one element are its.
    const auto runtime_of = [&](const memory::dims &b) {
        memory::dims known = known_dims(p, b);
        for (size_t i = 0; i < b.size(); i++)
            if (b[i] == 1) known[i] = 1;
        return known;
    };
    d.src = memory::desc(known_dims(p, p.src), cpp(p.src_type.dt), p.src_strides());
    d.dst = memory::desc(known_dims(p, p.dst), cpp(p.dst_type.dt), p.dst_strides());
    if (p.wtag == "any")
        d.wei = memory::desc(p.wei, cpp(p.wei_type.dt), memory::format_tag::any);
    else
        d.wei = memory::desc(p.wei, cpp(p.wei_type.dt), strides_of(p.wei, p.wtag, p.wei_type.dt));
    if (p.bias) {
        const memory::dims b = p.bias_dims();
        d.bias = memory::desc(runtime_of(b), cpp(p.bias_dt), strides_of(b, "ab", mxdnn_f32));
    }
    set_attr(d.attr, p, p.nd(), p.nd(), p.nd());
    mxdnn::post_ops po;
    for (size_t i = 0; i < p.post_ops.size(); i++) {
        const post_op_knob_t &o = p.post_ops[i];
        if (o.kind != mxdnn_binary) {
            append(po, o);
            continue;
        }
        const memory::dims b = p.binary_dims(i);
        const memory::dims strides = strides_of(b, "ab", mxdnn_f32);
        po.append_binary(
                static_cast<mxdnn::algorithm>(o.alg), memory::desc(runtime_of(b), cpp(o.dt), strides));
    }
    d.attr.set_post_ops(po);
    return d;
}

double flops_of(const problem_t &p) {
    return 2. * double(p.batch()) * double(p.M()) * double(p.K()) * double(p.N());
}

double bytes_of(const problem_t &p) {
    const auto tensor = [](const std::vector<int64_t> &dims, const tensor_type_t &t) {
        double n = 1;
        for (int64_t d : dims) n *= double(d);
        return bench::bytes_of(n, t);
    };
    return tensor(p.src, p.src_type) + tensor(p.wei, p.wei_type) + tensor(p.dst, p.dst_type);
}

} // namespace mx_matmul
} // namespace bench

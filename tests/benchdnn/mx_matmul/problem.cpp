// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_matmul/problem.hpp"

#include <algorithm>

#include "benchdnn/common/tensor.hpp"

namespace bench {
namespace mx_matmul {

using namespace mxdnn::impl;
using mxdnn::memory;
using mxdnn::primitive_attr;

int64_t problem_t::batch() const {
    int64_t b = 1;
    for (size_t i = 0; i + 2 < nd(); i++) b *= std::max(src[i], wei[i]);
    return b;
}

const post_op_knob_t *problem_t::gated() const {
    for (const auto &o : post_ops)
        if (o.kind == mxdnn_gated) return &o;
    return nullptr;
}

namespace {

memory::dims dims_of(const std::vector<int64_t> &d, bool runtime_rows) {
    memory::dims r(d.begin(), d.end());
    if (runtime_rows) r[r.size() - 2] = MXDNN_RUNTIME_DIM_VAL;
    return r;
}

} // namespace

void knobs_t::reset() {
    dt_ = {"bf16:mxfp4:bf16"};
    bia_dt_ = {""};
    post_ops_ = scales_ = zero_points_ = global_ = special_ = strides_ = {""};
    stag_ = {"ab"};
    wtag_ = {"any"};
    dtag_ = {"ab"};
    runtime_ = {"0"};
    deterministic_ = user_scratchpad_ = fpmath_bf16_ = false;
}

bool knobs_t::parse(const std::string &word) {
    std::string v;
    struct row_t {
        const char *name;
        std::vector<std::string> *list;
    };
    const row_t rows[] = {{"dt", &dt_}, {"bia-dt", &bia_dt_}, {"attr-post-ops", &post_ops_},
            {"attr-scales", &scales_}, {"attr-zero-points", &zero_points_}, {"attr-global-scale", &global_},
            {"stag", &stag_}, {"wtag", &wtag_}, {"dtag", &dtag_}, {"runtime-rows", &runtime_},
            {"row-pad", &strides_}, {"special", &special_}};
    for (const row_t &r : rows)
        if (option(word, r.name, v)) {
            *r.list = split(v, ',');
            return true;
        }
    if (option(word, "attr-deterministic", v)) return deterministic_ = v == "true", true;
    if (option(word, "attr-scratchpad", v)) return user_scratchpad_ = v == "user", true;
    if (option(word, "attr-fpmath", v)) return fpmath_bf16_ = v == "bf16", true;
    if (word == "--reset") return reset(), true;
    return false;
}

std::vector<problem_t> knobs_t::problems(const std::string &descriptor) const {
    const auto halves = split(descriptor, ':');
    if (halves.size() != 2) throw usage_error_t("problem '" + descriptor + "' is not MxK:KxN");
    std::vector<problem_t> all;
    for (const auto &dt : dt_)
        for (const auto &bia : bia_dt_)
            for (const auto &po : post_ops_)
                for (const auto &sc : scales_)
                    for (const auto &zp : zero_points_)
                        for (const auto &gl : global_)
                            for (const auto &stag : stag_)
                                for (const auto &wtag : wtag_)
                                    for (const auto &dtag : dtag_)
                                        for (const auto &rt : runtime_)
                                            for (const auto &pad : strides_)
                                                for (const auto &special : special_) {
                                                    problem_t p;
                                                    p.src = to_dims(halves[0]);
                                                    p.wei = to_dims(halves[1]);
                                                    if (p.src.size() != p.wei.size())
                                                        throw usage_error_t("problem '" + descriptor
                                                                            + "' has different numbers of "
                                                                              "dims in src and weights");
                                                    const auto types = split(dt, ':');
                                                    if (types.size() != 3)
                                                        throw usage_error_t(
                                                                "--dt='" + dt + "' is not SRC:WEI:DST");
                                                    tensor_type_t t[3] = {to_tensor_type(types[0]),
                                                            to_tensor_type(types[1]),
                                                            to_tensor_type(types[2])};
                                                    apply_scales(sc, t);
                                                    apply_zero_points(zp, t);
                                                    int64_t wei_batch = 1;
                                                    for (size_t i = 0; i + 2 < p.wei.size(); i++)
                                                        wei_batch *= p.wei[i];
                                                    apply_global(gl, wei_batch, p.batch(), t);
                                                    p.src_type = t[0];
                                                    p.wei_type = t[1];
                                                    p.dst_type = t[2];
                                                    p.bias = !bia.empty() && bia != "undef";
                                                    if (p.bias) p.bias_dt = to_data_type(bia);
                                                    p.post_ops = parse_post_ops(po);
                                                    p.stag = stag;
                                                    p.wtag = wtag;
                                                    p.dtag = dtag;
                                                    p.runtime_rows = rt == "1";
                                                    if (!pad.empty())
                                                        p.src_pad = p.dst_pad = to_int(pad, "--row-pad");
                                                    p.special = special;
                                                    p.deterministic = deterministic_;
                                                    p.user_scratchpad = user_scratchpad_;
                                                    p.fpmath_bf16 = fpmath_bf16_;
                                                    p.dst = p.src;
                                                    for (size_t i = 0; i + 2 < p.nd(); i++)
                                                        p.dst[i] = std::max(p.src[i], p.wei[i]);
                                                    p.dst.back() = p.gated() ? p.N() / 2 : p.N();
                                                    // The line that makes this problem, and only this, again.
                                                    const auto add = [&](const char *name,
                                                                             const std::string &v,
                                                                             const std::string &usual) {
                                                        if (v != usual)
                                                            p.repro += std::string(" --") + name + "=" + v;
                                                    };
                                                    p.repro = "--mx_matmul";
                                                    add("dt", dt, "");
                                                    add("bia-dt", bia, "");
                                                    add("stag", stag, "ab");
                                                    add("wtag", wtag, "any");
                                                    add("dtag", dtag, "ab");
                                                    add("attr-scales", sc, "");
                                                    add("attr-zero-points", zp, "");
                                                    add("attr-global-scale", gl, "");
                                                    add("attr-post-ops", po, "");
                                                    add("runtime-rows", rt, "0");
                                                    add("row-pad", pad, "");
                                                    add("special", special, "");
                                                    if (deterministic_)
                                                        p.repro += " --attr-deterministic=true";
                                                    if (user_scratchpad_)
                                                        p.repro += " --attr-scratchpad=user";
                                                    if (fpmath_bf16_) p.repro += " --attr-fpmath=bf16";
                                                    p.repro += " " + descriptor;
                                                    all.push_back(p);
                                                }
    return all;
}

descs_t make_descs(const problem_t &p) {
    descs_t d;
    d.src = memory::desc(dims_of(p.src, p.runtime_rows), cpp(p.src_type.dt),
            strides_of(p.src, p.stag, p.src_type.dt, p.src_pad));
    d.dst = memory::desc(dims_of(p.dst, p.runtime_rows), cpp(p.dst_type.dt),
            strides_of(p.dst, p.dtag, p.dst_type.dt, p.dst_pad));
    if (p.wtag == "any")
        d.wei = memory::desc(p.wei, cpp(p.wei_type.dt), memory::format_tag::any);
    else
        d.wei = memory::desc(p.wei, cpp(p.wei_type.dt), strides_of(p.wei, p.wtag, p.wei_type.dt));
    if (p.bias) {
        memory::dims b(p.nd(), 1);
        b.back() = p.N();
        d.bias = memory::desc(b, cpp(p.bias_dt), strides_of(b, "ab", mxdnn_f32));
    }
    set_quant(d.attr, MXDNN_ARG_SRC, p.src_type, p.nd(), false);
    set_quant(d.attr, MXDNN_ARG_WEIGHTS, p.wei_type, p.nd(), false);
    set_quant(d.attr, MXDNN_ARG_DST, p.dst_type, p.nd(), true);
    mxdnn::post_ops po;
    bool before_gate = p.gated() != nullptr;
    for (const auto &o : p.post_ops) {
        const auto alg = static_cast<mxdnn::algorithm>(o.alg);
        switch (o.kind) {
        case mxdnn_eltwise: po.append_eltwise(alg, float(o.alpha), float(o.beta)); break;
        case mxdnn_sum: po.append_sum(float(o.alpha)); break;
        case mxdnn_gated:
            po.append_gated(alg, float(o.alpha), float(o.beta),
                    o.halves ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
            before_gate = false;
            break;
        default: {
            memory::dims full(p.dst.begin(), p.dst.end());
            if (before_gate) full.back() = p.N();
            memory::dims b(p.nd(), 1);
            if (o.policy == "per_tensor")
                b = full;
            else if (o.policy == "per_oc")
                b.back() = full.back();
            else if (o.policy == "per_row")
                b[p.nd() - 2] = full[p.nd() - 2];
            else if (o.policy != "common")
                throw usage_error_t(
                        "binary policy '" + o.policy + "' is not per_tensor, per_oc, per_row or common");
            memory::dims strides = strides_of(b, "ab", mxdnn_f32);
            if (p.runtime_rows && b[p.nd() - 2] != 1) b[p.nd() - 2] = MXDNN_RUNTIME_DIM_VAL;
            po.append_binary(alg, memory::desc(b, cpp(o.dt), strides));
        }
        }
    }
    d.attr.set_post_ops(po);
    if (p.deterministic) d.attr.set_deterministic(true);
    if (p.user_scratchpad) d.attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    if (p.fpmath_bf16) d.attr.set_fpmath_mode(mxdnn::fpmath_mode::bf16);
    return d;
}

double flops_of(const problem_t &p) {
    return 2. * double(p.batch()) * double(p.M()) * double(p.K()) * double(p.N());
}

double bytes_of(const problem_t &p) {
    const auto tensor = [](const std::vector<int64_t> &dims, const tensor_type_t &t) {
        double n = 1;
        for (int64_t d : dims) n *= double(d);
        double bits = data_type_info(t.dt)->bits;
        if (t.quantised) {
            bits += double(data_type_info(t.quant.scale_dt)->bits) / double(t.quant.block);
            if (t.quant.zp_dt != mxdnn_data_type_undef)
                bits += double(data_type_info(t.quant.zp_dt)->bits) / double(t.quant.block);
        }
        return n * bits / 8;
    };
    return tensor(p.src, p.src_type) + tensor(p.wei, p.wei_type) + tensor(p.dst, p.dst_type);
}

} // namespace mx_matmul
} // namespace bench

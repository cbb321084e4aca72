// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_reorder/problem.hpp"

#include <algorithm>

namespace bench {
namespace mx_reorder {

using namespace mxdnn::impl;

namespace {

constexpr const char *roundings[] = {"floor", "ceil", "even", "rceil"};

mxdnn_scale_rounding_t to_rounding(const std::string &s) {
    for (int i = 0; i < 4; i++)
        if (s == roundings[i]) return mxdnn_scale_rounding_t(i);
    throw usage_error_t("rounding '" + s + "' is not floor, ceil, even or rceil");
}

// "dst:per_ocic:bf16:64x1", "dst:per_ocic:u8", "dst" onto whichever sides are quantised.
void apply(const std::string &scales, const std::string &zp, const std::string &global, int64_t batch,
        side_t &s) {
    if (!has_role(s.type.dt, role_mx_element | role_affine_element)) return;
    s.type.quantised = true;
    quant_t &q = s.type.quant;
    if (!scales.empty()) {
        const auto part = split(scales, ':');
        if (part.size() < 4) throw usage_error_t("scales '" + scales + "' are not dst:per_ocic:TYPE:G0xG1");
        const auto groups = to_dims(part[3]);
        q.scale_dt = to_data_type(part[2]);
        q.block = std::max(groups[0], groups[1]);
    }
    if (!zp.empty()) {
        const auto part = split(zp, ':');
        if (part.size() < 3) throw usage_error_t("zero points '" + zp + "' are not dst:per_ocic:TYPE");
        q.zp_dt = to_data_type(part[2]);
        q.zp = q.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8 : zero_point_kind_t::float_zero;
    }
    if (!global.empty()) q.global = batch > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
}

} // namespace

void knobs_t::reset() {
    sdt_ = {"bf16"};
    ddt_ = {"mxfp4"};
    stag_ = {"ba"};
    dtag_ = {"any"};
    rounding_ = {"floor"};
    scales_ = zero_points_ = global_ = {""};
    axis_ = {"k"};
    values_ = {"normal"};
}

bool knobs_t::parse(const std::string &word) {
    struct row_t {
        const char *name;
        std::vector<std::string> *list;
    };
    const row_t rows[] = {{"sdt", &sdt_}, {"ddt", &ddt_}, {"stag", &stag_}, {"dtag", &dtag_},
            {"rounding", &rounding_}, {"attr-scales", &scales_}, {"attr-zero-points", &zero_points_},
            {"attr-global-scale", &global_}, {"axis", &axis_}, {"values", &values_}};
    std::string v;
    for (const row_t &r : rows)
        if (option(word, r.name, v)) {
            *r.list = split(v, ',');
            return true;
        }
    if (word == "--reset") return reset(), true;
    return false;
}

std::vector<problem_t> knobs_t::problems(const std::string &descriptor) const {
    std::vector<problem_t> all;
    for (const auto &sdt : sdt_)
        for (const auto &ddt : ddt_)
            for (const auto &stag : stag_)
                for (const auto &dtag : dtag_)
                    for (const auto &rnd : rounding_)
                        for (const auto &sc : scales_)
                            for (const auto &zp : zero_points_)
                                for (const auto &gl : global_)
                                    for (const auto &axis : axis_)
                                        for (const auto &values : values_) {
                                            problem_t p;
                                            p.dims = to_dims(descriptor);
                                            int64_t batch = 1;
                                            for (size_t i = 0; i + 2 < p.dims.size(); i++) batch *= p.dims[i];
                                            p.src = {to_tensor_type(sdt), stag};
                                            p.dst = {to_tensor_type(ddt), dtag};
                                            if (!p.src.type.quantised && p.src.packed())
                                                p.src.tag = "ab"; // packed is a form of quantised types
                                            if (!p.dst.type.quantised && p.dst.packed()) p.dst.tag = "ab";
                                            apply(sc, zp, gl, batch, p.src);
                                            apply(sc, zp, gl, batch, p.dst);
                                            if (axis != "k" && axis != "n")
                                                throw usage_error_t("--axis='" + axis + "' is not k or n");
                                            p.axis = int(p.dims.size()) - (axis == "k" ? 2 : 1);
                                            p.rounding = to_rounding(rnd);
                                            p.values = values;
                                            p.repro = "--mx_reorder --sdt=" + sdt + " --ddt=" + ddt
                                                      + " --stag=" + stag + " --dtag=" + dtag;
                                            const auto add = [&](const char *name, const std::string &v,
                                                                     const std::string &usual) {
                                                if (v != usual)
                                                    p.repro += std::string(" --") + name + "=" + v;
                                            };
                                            add("rounding", rnd, "floor");
                                            add("attr-scales", sc, "");
                                            add("attr-zero-points", zp, "");
                                            add("attr-global-scale", gl, "");
                                            add("axis", axis, "k");
                                            add("values", values, "normal");
                                            p.repro += " " + descriptor;
                                            all.push_back(p);
                                        }
    return all;
}

} // namespace mx_reorder
} // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/grouped_matmul/problem.hpp"

#include <algorithm>

#include "benchdnn/common/tensor.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;
using mxdnn::memory;
using mxdnn::row_grouping;

const post_op_knob_t *problem_t::gated() const {
    for (const auto &o : post_ops)
        if (o.kind == mxdnn_gated) return &o;
    return nullptr;
}

namespace {

struct knob_t {
    const char *name, *usual;
};
constexpr knob_t knob_list[] = {{"dt", "bf16:mxfp4:bf16"}, {"bia-dt", ""}, {"experts", "4"}, {"topk", "2"},
        {"tokens", "8"}, {"local", ""}, {"routing", "uniform"}, {"row-grouping", "ends"}, {"wtag", "any"},
        {"attr-scales", ""}, {"attr-zero-points", ""}, {"attr-global-scale", ""}, {"attr-post-ops", ""},
        {"gather", "0"}, {"scatter", "none"}, {"topk-weights", ""}, {"topk-dt", "f32"}, {"expert-alpha", "0"},
        {"activation-params", "none"}, {"active-experts", "0"}, {"expert-map", "0"}, {"weights-ptrs", "0"},
        {"extra-rows", "0"}, {"skips", "0"}, {"runtime-rows", "0"}, {"max-rows-hint", "0"},
        {"attr-deterministic", ""}, {"attr-scratchpad", ""}, {"attr-fpmath", ""}, {"special", ""}};

template <typename T>
T pick(const std::string &v, const char *name, std::initializer_list<std::pair<const char *, T>> words) {
    std::string all;
    for (const auto &w : words) {
        if (v == w.first) return w.second;
        all += std::string(" ") + w.first;
    }
    throw usage_error_t(std::string("--") + name + " is '" + v + "'; possible are" + all);
}

bool flag(const std::string &v, const char *name) { return pick<bool>(v, name, {{"0", false}, {"1", true}}); }

} // namespace

void knobs_t::reset() {
    for (const knob_t &k : knob_list) values_[k.name] = {k.usual};
}

bool knobs_t::parse(const std::string &word) {
    std::string v;
    for (const knob_t &k : knob_list)
        if (option(word, k.name, v)) {
            values_[k.name] = split(v, ',');
            return true;
        }
    if (word == "--reset") return reset(), true;
    return false;
}

namespace {

problem_t make_problem(const std::string &descriptor, std::map<std::string, std::string> v) {
    problem_t p;
    const auto dims = to_dims(descriptor);
    if (dims.size() != 2) throw usage_error_t("problem '" + descriptor + "' is not KxN");
    p.K = dims[0];
    p.N = dims[1];
    const auto number = [&](const char *name, int64_t least) { return to_int(v[name], name, least); };
    p.experts = number("experts", 1);
    p.topk = number("topk", 1);
    p.tokens = number("tokens", 0);
    p.extra_rows = number("extra-rows", 0);
    p.hint = number("max-rows-hint", 0);
    if (p.topk > p.experts && v["routing"] != "one" && v["routing"] != "twice")
        throw usage_error_t("--topk is more than --experts");
    p.local = p.experts;
    if (!v["local"].empty()) {
        const auto part = split(v["local"], ':');
        if (part.size() != 2) throw usage_error_t("--local is '" + v["local"] + "'; it is FIRST:COUNT");
        p.first = to_int(part[0], "--local");
        p.local = to_int(part[1], "--local", 1);
        if (p.first + p.local > p.experts) throw usage_error_t("--local ends beyond --experts");
    }
    p.routing = v["routing"];
    const auto types = split(v["dt"], ':');
    if (types.size() != 3) throw usage_error_t("--dt='" + v["dt"] + "' is not SRC:WEI:DST");
    tensor_type_t t[3] = {to_tensor_type(types[0]), to_tensor_type(types[1]), to_tensor_type(types[2])};
    apply_scales(v["attr-scales"], t);
    apply_zero_points(v["attr-zero-points"], t);
    apply_global(v["attr-global-scale"], p.local, 1, t);
    p.src_type = t[0];
    p.wei_type = t[1];
    p.dst_type = t[2];
    p.bias = !v["bia-dt"].empty() && v["bia-dt"] != "undef";
    if (p.bias) p.bias_dt = to_data_type(v["bia-dt"]);
    p.topk_dt = to_data_type(v["topk-dt"]);
    p.post_ops = parse_post_ops(v["attr-post-ops"]);
    p.grouping = pick<row_grouping>(v["row-grouping"], "row-grouping",
            {{"ends", row_grouping::ends}, {"starts", row_grouping::starts}, {"padded", row_grouping::padded},
                    {"row_ids", row_grouping::row_ids}});
    p.scatter = pick<scatter_t>(v["scatter"], "scatter",
            {{"none", scatter_t::none}, {"permute", scatter_t::permute}, {"reduce", scatter_t::reduce}});
    p.params = pick<params_t>(v["activation-params"], "activation-params",
            {{"none", params_t::none}, {"shared", params_t::shared}, {"per_expert", params_t::per_expert}});
    p.topk_weights = pick<const char *>(v["topk-weights"], "topk-weights",
            {{"", ""}, {"none", ""}, {"output", "output"}, {"input", "input"}});
    p.gather = flag(v["gather"], "gather");
    p.active = flag(v["active-experts"], "active-experts");
    p.map = flag(v["expert-map"], "expert-map");
    p.pointers = flag(v["weights-ptrs"], "weights-ptrs");
    p.alpha = flag(v["expert-alpha"], "expert-alpha");
    p.skips = flag(v["skips"], "skips");
    p.runtime_rows = flag(v["runtime-rows"], "runtime-rows");
    p.deterministic = v["attr-deterministic"] == "true";
    p.user_scratchpad = v["attr-scratchpad"] == "user";
    p.fpmath_bf16 = v["attr-fpmath"] == "bf16";
    p.wtag = v["wtag"];
    p.special = v["special"];
    if (p.params != params_t::none && !p.gated())
        throw usage_error_t("--activation-params need a gated post-op");
    p.repro = "--grouped_matmul";
    for (const knob_t &k : knob_list)
        if (v[k.name] != k.usual) p.repro += std::string(" --") + k.name + "=" + v[k.name];
    p.repro += " " + descriptor;
    return p;
}

} // namespace

std::vector<problem_t> knobs_t::problems(const std::string &descriptor) const {
    // Every combination, the knobs of the list's end fastest.
    std::vector<problem_t> all;
    std::map<std::string, std::string> chosen;
    const std::function<void(size_t)> choose = [&](size_t i) {
        if (i == sizeof(knob_list) / sizeof(knob_list[0]))
            return all.push_back(make_problem(descriptor, chosen));
        for (const std::string &v : values_.at(knob_list[i].name)) {
            chosen[knob_list[i].name] = v;
            choose(i + 1);
        }
    };
    choose(0);
    return all;
}

std::vector<problem_t> random_problems(int64_t count, uint32_t seed) {
    std::vector<problem_t> all;
    for (int64_t i = 0; i < count; i++) {
        rng_t rng(seed * 1000003 + uint32_t(i));
        const auto one_of = [&](std::initializer_list<const char *> words) -> std::string {
            return words.begin()[rng() % words.size()];
        };
        const auto upto = [&](int64_t n) { return std::to_string(rng() % uint32_t(n + 1)); };
        std::map<std::string, std::string> v;
        for (const knob_t &k : knob_list) v[k.name] = k.usual;
        const int64_t experts = 1 + int64_t(rng() % 9);
        const int64_t K = 1 + int64_t(rng() % (rng() % 4 ? 70 : 300)),
                      N = 2 * (1 + int64_t(rng() % (rng() % 4 ? 30 : 100)));
        v["experts"] = std::to_string(experts);
        v["topk"] = std::to_string(1 + int64_t(rng()) % experts);
        v["tokens"] = rng() % 4 ? upto(12) : upto(90);
        v["routing"] = one_of({"uniform", "skewed", "one", "empty", "twice"});
        v["dt"] = one_of({"bf16", "f32", "f16", "mxfp8", "mxfp4", "nvfp4"}) + ":"
                  + one_of({"mxfp4", "mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "nvfp4", "mxint8", "int4"})
                  + ":" + one_of({"bf16", "f32", "f16", "mxfp8"});
        v["bia-dt"] = one_of({"", "f32", "bf16"});
        v["row-grouping"] = one_of({"ends", "starts", "padded", "row_ids"});
        v["gather"] = one_of({"0", "1"});
        v["scatter"] = one_of({"none", "permute", "reduce"});
        v["topk-weights"] = one_of({"", "output", "input"});
        v["topk-dt"] = one_of({"f32", "bf16"});
        for (const char *flag : {"expert-alpha", "active-experts", "weights-ptrs", "skips", "runtime-rows"})
            v[flag] = one_of({"0", "0", "1"});
        const int64_t first = int64_t(rng()) % experts;
        if (rng() % 3 == 0)
            v["local"] = std::to_string(first) + ":" + std::to_string(1 + int64_t(rng()) % (experts - first));
        v["expert-map"] = one_of({"0", "1"});
        v["extra-rows"] = upto(3);
        v["max-rows-hint"] = one_of({"0", "0", "7", "100"});
        v["attr-post-ops"] = one_of({"", "", "relu", "swiglu:1.702:7:interleaved", "swiglu:1.702:7:halves",
                "silu:1:0:interleaved", "geglu_tanh:1:0:halves+relu"});
        const bool plain = v["dt"].rfind("mxfp8") != v["dt"].size() - 5;
        if (plain && rng() % 4 == 0) v["attr-post-ops"] += v["attr-post-ops"].empty() ? "sum" : "+sum";
        if (v["attr-post-ops"].find("glu") != std::string::npos)
            v["activation-params"] = one_of({"none", "shared", "per_expert"});
        all.push_back(make_problem(std::to_string(K) + "x" + std::to_string(N), v));
    }
    return all;
}

int64_t routing_t::groups() const { return padded ? int64_t(bounds.size()) : 0; }

namespace {

// The experts of every token, tokens * topk of them.
std::vector<int64_t> choose_experts(const problem_t &p, rng_t &rng) {
    std::vector<int64_t> ids;
    const int64_t E = p.experts;
    // Half of the experts get nothing where some are to be empty.
    const int64_t used = p.routing == "empty" ? std::max<int64_t>(div_up(E, 2), std::min(E, p.topk)) : E;
    std::vector<double> weight(static_cast<size_t>(E), 0.);
    std::vector<int64_t> order(static_cast<size_t>(E));
    for (int64_t e = 0; e < E; e++) order[size_t(e)] = e;
    std::shuffle(order.begin(), order.end(), rng);
    for (int64_t i = 0; i < used; i++)
        weight[size_t(order[size_t(i)])] = p.routing == "skewed" ? 1. / double(i + 1) : 1.;
    for (int64_t t = 0; t < p.tokens; t++) {
        std::vector<double> left = weight;
        for (int64_t k = 0; k < p.topk; k++) {
            if (p.routing == "one") { // the first choice of all tokens is one expert
                ids.push_back(k == 0 ? E / 2 : (E / 2 + k) % E);
                continue;
            }
            if (p.routing == "twice") { // every choice of a token is the same expert
                ids.push_back(t % E);
                continue;
            }
            const auto e = std::discrete_distribution<int64_t>(left.begin(), left.end())(rng);
            ids.push_back(e);
            left[size_t(e)] = 0;
        }
    }
    return ids;
}

} // namespace

routing_t make_routing(const problem_t &p, uint32_t seed) {
    rng_t rng(seed + 77);
    routing_t r;
    const int64_t E = p.experts, pairs = p.tokens * p.topk;
    const std::vector<int64_t> ids = choose_experts(p, rng);
    r.padded = p.grouping == row_grouping::padded;
    // Which of the weights' experts an id is.
    std::vector<int64_t> here(static_cast<size_t>(E));
    for (int64_t e = 0; e < E; e++)
        here[size_t(e)] = e >= p.first && e < p.first + p.local ? e - p.first : -1;
    if (p.map) {
        std::vector<int64_t> order(static_cast<size_t>(p.local));
        for (int64_t e = 0; e < p.local; e++) order[size_t(e)] = e;
        std::shuffle(order.begin(), order.end(), rng);
        for (int64_t e = 0; e < E; e++) {
            if (here[size_t(e)] >= 0) here[size_t(e)] = order[size_t(here[size_t(e)])];
            r.map.push_back(int32_t(here[size_t(e)]));
        }
    }
    std::uniform_real_distribution<float> weight(.05f, 1.f);
    struct pair_t {
        int64_t index, expert;
    };
    std::vector<pair_t> order;
    for (int64_t i = 0; i < pairs; i++) order.push_back({i, ids[size_t(i)]});
    if (p.grouping != row_grouping::row_ids)
        std::stable_sort(order.begin(), order.end(),
                [](const pair_t &a, const pair_t &b) { return a.expert < b.expert; });
    std::vector<int64_t> per_id(static_cast<size_t>(E), 0);
    for (int64_t e : ids) per_id[size_t(e)]++;

    const auto add_row = [&](const pair_t *of) {
        row_t row;
        const int64_t index = int64_t(r.rows.size());
        if (of) row.expert = here[size_t(of->expert)];
        row.src = p.gather ? (of ? of->index / p.topk : 0) : index;
        row.dst = p.scatter == scatter_t::none      ? index
                  : !of                             ? 0
                  : p.scatter == scatter_t::permute ? of->index
                                                    : of->index / p.topk;
        row.weight = p.topk_weights.empty() ? 1.f : weight(rng);
        if (p.topk_dt == mxdnn_bf16)
            row.weight = decode_value(mxdnn_bf16, data_type_info(mxdnn_bf16)->encode(row.weight));
        if (p.skips && of && index % 5 == 3 && p.gather) row.src = -1;
        if (p.skips && of && index % 7 == 2 && p.scatter != scatter_t::none) row.dst = -1;
        r.rows.push_back(row);
    };

    if (p.grouping == row_grouping::row_ids) {
        for (const pair_t &o : order) {
            const bool skip = p.skips && r.rows.size() % 6 == 4;
            r.bounds.push_back(skip ? -1 : int32_t(o.expert));
            add_row(skip ? nullptr : &o);
        }
        for (int64_t i = 0; i < p.extra_rows; i++) {
            r.bounds.push_back(-1);
            add_row(nullptr);
        }
    } else {
        r.group_rows = *std::max_element(per_id.begin(), per_id.end()) + p.extra_rows;
        if (p.grouping == row_grouping::starts) r.bounds.push_back(0);
        size_t at = 0;
        const auto add_group = [&](int64_t id, bool skip) {
            const int64_t n = skip ? 0 : per_id[size_t(id)];
            for (int64_t i = 0; i < n; i++) add_row(&order[at++]);
            if (r.padded)
                for (int64_t i = n; i < r.group_rows; i++) add_row(nullptr);
            r.bounds.push_back(int32_t(r.padded ? n : int64_t(r.rows.size())));
            if (p.active) r.group_ids.push_back(skip ? -1 : int32_t(id));
        };
        for (int64_t e = 0; e < E; e++)
            if (!p.active || per_id[size_t(e)] > 0) add_group(e, false);
        if (p.active) add_group(0, true);
        if (!r.padded)
            for (int64_t i = 0; i < p.extra_rows; i++) add_row(nullptr);
    }
    r.src_rows = p.gather ? p.tokens : int64_t(r.rows.size());
    r.dst_rows = p.scatter == scatter_t::none      ? int64_t(r.rows.size())
                 : p.scatter == scatter_t::permute ? pairs
                                                   : p.tokens;
    for (const row_t &row : r.rows) {
        if (p.gather) r.gather.push_back(int32_t(row.src));
        if (p.scatter != scatter_t::none) r.scatter.push_back(int32_t(row.dst));
    }
    r.counts.assign(size_t(p.local), 0);
    for (const row_t &row : r.rows)
        if (row.expert >= 0 && row.dst >= 0) r.counts[size_t(row.expert)]++;
    return r;
}

descs_t make_descs(const problem_t &p, const routing_t &r) {
    descs_t d;
    const auto rows_desc = [&](int64_t rows, int64_t columns, const tensor_type_t &t, bool by_group) {
        const int64_t n = p.runtime_rows ? MXDNN_RUNTIME_DIM_VAL : rows;
        if (by_group && r.padded) {
            const std::vector<int64_t> full = {r.groups(), r.group_rows, columns};
            memory::dims dims = full;
            if (p.runtime_rows) dims[1] = MXDNN_RUNTIME_DIM_VAL;
            memory::dims strides = strides_of(full, "ab", t.dt);
            if (p.runtime_rows) strides[0] = MXDNN_RUNTIME_DIM_VAL;
            return memory::desc(dims, cpp(t.dt), strides);
        }
        if (by_group && p.grouping != row_grouping::row_ids)
            return memory::desc::grouped({n, columns}, cpp(t.dt), 0,
                    int64_t(r.bounds.size()) - (p.grouping == row_grouping::starts ? 1 : 0));
        return memory::desc({n, columns}, cpp(t.dt), strides_of({rows, columns}, "ab", t.dt));
    };
    d.src = rows_desc(r.src_rows, p.K, p.src_type, !p.gather);
    d.dst = rows_desc(r.dst_rows, p.dst_n(), p.dst_type, p.scatter == scatter_t::none);
    const std::vector<int64_t> wei = {p.local, p.K, p.N};
    if (p.wtag == "any")
        d.wei = memory::desc(wei, cpp(p.wei_type.dt), memory::format_tag::any);
    else
        d.wei = memory::desc(wei, cpp(p.wei_type.dt), strides_of(wei, p.wtag, p.wei_type.dt));
    if (p.bias) d.bias = memory::desc({p.local, p.N}, cpp(p.bias_dt), memory::format_tag::ab);
    const size_t src_nd = size_t(d.src.get_ndims()), dst_nd = size_t(d.dst.get_ndims());
    set_quant(d.attr, MXDNN_ARG_SRC, p.src_type, src_nd, false);
    set_quant(d.attr, MXDNN_ARG_WEIGHTS, p.wei_type, 3, false);
    set_quant(d.attr, MXDNN_ARG_DST, p.dst_type, dst_nd, true);
    mxdnn::post_ops po;
    for (const auto &o : p.post_ops) {
        const auto alg = static_cast<mxdnn::algorithm>(o.alg);
        switch (o.kind) {
        case mxdnn_eltwise: po.append_eltwise(alg, float(o.alpha), float(o.beta)); break;
        case mxdnn_sum: po.append_sum(float(o.alpha)); break;
        case mxdnn_gated:
            po.append_gated(alg, float(o.alpha), float(o.beta),
                    o.halves ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
            break;
        default: throw usage_error_t("post-op '" + o.text + "' is none of grouped_matmul");
        }
    }
    d.attr.set_post_ops(po);
    d.attr.set_row_grouping(p.grouping);
    if (p.topk_weights == "input") d.attr.set_topk_weights(mxdnn::topk_weights::input);
    if (p.local != p.experts && !p.map) d.attr.set_expert_range(p.first, p.experts);
    if (p.hint > 0) d.attr.set_max_rows_hint(p.hint);
    if (p.deterministic) d.attr.set_deterministic(true);
    if (p.user_scratchpad) d.attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    if (p.fpmath_bf16) d.attr.set_fpmath_mode(mxdnn::fpmath_mode::bf16);
    return d;
}

namespace {
int64_t rows_here(const routing_t &r) {
    int64_t n = 0;
    for (int64_t c : r.counts) n += c;
    return n;
}
} // namespace

double flops_of(const problem_t &p, const routing_t &r) {
    return 2. * double(rows_here(r)) * double(p.K) * double(p.N);
}

double bytes_of(const problem_t &p, const routing_t &r) {
    const auto tensor = [](double elements, const tensor_type_t &t) {
        double bits = data_type_info(t.dt)->bits;
        if (t.quantised) {
            bits += double(data_type_info(t.quant.scale_dt)->bits) / double(t.quant.block);
            if (t.quant.zp_dt != mxdnn_data_type_undef)
                bits += double(data_type_info(t.quant.zp_dt)->bits) / double(t.quant.block);
        }
        return elements * bits / 8;
    };
    double active = 0;
    for (int64_t c : r.counts) active += c > 0;
    const double rows = double(rows_here(r));
    const double src = p.gather ? std::min(rows, double(r.src_rows)) : rows;
    const double dst = p.scatter == scatter_t::none ? rows : double(r.dst_rows);
    return tensor(src * double(p.K), p.src_type) + tensor(active * double(p.K) * double(p.N), p.wei_type)
           + tensor(dst * double(p.dst_n()), p.dst_type);
}

} // namespace grouped_matmul
} // namespace bench

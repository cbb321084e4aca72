// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/grouped_matmul/problem.hpp"

#include <algorithm>
#include <tuple>

#include "benchdnn/common/tensor.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;
using mxdnn::memory;
using mxdnn::row_grouping;

namespace {

constexpr knob_t knob_list[] = {{"dt", "bf16:mxfp4:bf16"}, {"bia-dt", ""}, {"experts", "4"}, {"topk", "2"},
        {"tokens", "8"}, {"local", ""}, {"routing", "uniform"}, {"row-grouping", "ends"}, {"wtag", "any"},
        {"attr-scales", ""}, {"attr-zero-points", ""}, {"attr-global-scale", ""}, {"attr-src-quant", "none"},
        {"attr-post-ops", ""}, {"gather", "0"}, {"scatter", "none"}, {"topk-weights", "none"},
        {"topk-dt", "f32"}, {"expert-alpha", "0"}, {"activation-params", "none"}, {"active-experts", "0"},
        {"expert-map", "0"}, {"weights-ptrs", "0"}, {"extra-rows", "0"}, {"skips", "0"},
        {"runtime-rows", "0"}, {"max-rows-hint", "0"}, {"attr-deterministic", "false"},
        {"attr-scratchpad", "library"}, {"attr-fpmath", "strict"}, {"attr-acc-mode", "strict"},
        {"special", ""}};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.K, p.N) = to_two_dims(descriptor, "KxN");
    p.experts = number(words, "experts", 1);
    p.topk = number(words, "topk", 1);
    p.tokens = number(words, "tokens");
    p.extra_rows = number(words, "extra-rows");
    p.hint = number(words, "max-rows-hint");
    p.routing = one_of(words, "routing", {"uniform", "skewed", "one", "empty", "twice"});
    if (p.topk > p.experts && p.routing != "one" && p.routing != "twice")
        throw usage_error_t("--topk is more than --experts");
    p.local = p.experts;
    if (!words["local"].empty()) {
        const auto part = split(words["local"], ':');
        if (part.size() != 2) throw usage_error_t("--local is '" + words["local"] + "'; it is FIRST:COUNT");
        p.first = to_int(part[0], "--local");
        p.local = to_int(part[1], "--local", 1);
        if (p.first + p.local > p.experts) throw usage_error_t("--local ends beyond --experts");
    }
    apply_words(p, words, p.local, 1);
    p.topk_dt = to_data_type(words["topk-dt"]);
    p.grouping = pick<row_grouping>(words, "row-grouping",
            {{"ends", row_grouping::ends}, {"starts", row_grouping::starts}, {"padded", row_grouping::padded},
                    {"row_ids", row_grouping::row_ids}});
    p.scatter = pick<scatter_t>(words, "scatter",
            {{"none", scatter_t::none}, {"permute", scatter_t::permute}, {"reduce", scatter_t::reduce}});
    p.params = pick<params_t>(words, "activation-params",
            {{"none", params_t::none}, {"shared", params_t::shared}, {"per_expert", params_t::per_expert}});
    p.topk_weights = pick<const char *>(
            words, "topk-weights", {{"none", ""}, {"output", "output"}, {"input", "input"}});
    p.gather = flag(words, "gather");
    p.active = flag(words, "active-experts");
    p.map = flag(words, "expert-map");
    p.pointers = flag(words, "weights-ptrs");
    p.alpha = flag(words, "expert-alpha");
    p.skips = flag(words, "skips");
    if (p.params != params_t::none && !p.gated())
        throw usage_error_t("--activation-params need a gated post-op");
    p.repro = words.repro("grouped_matmul", descriptor);
    return p;
}

std::vector<problem_t> random_problems(int64_t count, uint32_t seed) {
    std::vector<problem_t> all;
    for (int64_t i = 0; i < count; i++) {
        rng_t rng(seed * 1000003 + uint32_t(i));
        const auto any_of = [&](std::initializer_list<const char *> words) -> std::string {
            return words.begin()[rng() % words.size()];
        };
        const auto upto = [&](int64_t n) { return std::to_string(rng() % uint32_t(n + 1)); };
        words_t v = knobs.usual();
        const int64_t experts = 1 + int64_t(rng() % 9);
        const int64_t K = 1 + int64_t(rng() % (rng() % 4 ? 70 : 300)),
                      N = 2 * (1 + int64_t(rng() % (rng() % 4 ? 30 : 100)));
        v["experts"] = std::to_string(experts);
        v["topk"] = std::to_string(1 + int64_t(rng()) % experts);
        v["tokens"] = rng() % 4 ? upto(12) : upto(90);
        v["routing"] = any_of({"uniform", "skewed", "one", "empty", "twice"});
        v["dt"] = any_of({"bf16", "f32", "f16", "mxfp8", "mxfp4", "nvfp4", "mxint8"}) + ":"
                  + any_of({"mxfp4", "mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "nvfp4", "mxint8", "int4"})
                  + ":" + any_of({"bf16", "f32", "f16", "mxfp8"});
        v["bia-dt"] = any_of({"", "f32", "bf16"});
        v["row-grouping"] = any_of({"ends", "starts", "padded", "row_ids"});
        v["gather"] = any_of({"0", "1"});
        v["scatter"] = any_of({"none", "permute", "reduce"});
        v["topk-weights"] = any_of({"none", "output", "input"});
        v["topk-dt"] = any_of({"f32", "bf16"});
        for (const char *flag : {"expert-alpha", "active-experts", "weights-ptrs", "skips", "runtime-rows"})
            v[flag] = any_of({"0", "0", "1"});
        const int64_t first = int64_t(rng()) % experts;
        if (rng() % 3 == 0)
            v["local"] = std::to_string(first) + ":" + std::to_string(1 + int64_t(rng()) % (experts - first));
        v["expert-map"] = any_of({"0", "1"});
        v["extra-rows"] = upto(3);
        v["max-rows-hint"] = any_of({"0", "0", "7", "100"});
        v["attr-post-ops"] = any_of({"", "", "relu", "swiglu:1.702:7:interleaved", "swiglu:1.702:7:halves",
                "silu:1:0:interleaved", "geglu_tanh:1:0:halves+relu"});
        const bool plain = v["dt"].rfind("mxfp8") != v["dt"].size() - 5;
        if (plain && rng() % 4 == 0) v["attr-post-ops"] += v["attr-post-ops"].empty() ? "sum" : "+sum";
        if (v["attr-post-ops"].find("glu") != std::string::npos)
            v["activation-params"] = any_of({"none", "shared", "per_expert"});
        if (v["dt"].rfind("bf16", 0) == 0 || v["dt"].rfind("f", 0) == 0)
            v["attr-src-quant"] = any_of({"none", "none", "s8", "f8_e4m3", "mxint8"});
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
    set_attr(d.attr, p, size_t(d.src.get_ndims()), 3, size_t(d.dst.get_ndims()));
    mxdnn::post_ops po;
    for (const auto &o : p.post_ops) append(po, o);
    d.attr.set_post_ops(po);
    d.attr.set_row_grouping(p.grouping);
    if (p.topk_weights == "input") d.attr.set_topk_weights(mxdnn::topk_weights::input);
    if (p.local != p.experts && !p.map) d.attr.set_expert_range(p.first, p.experts);
    if (p.hint > 0) d.attr.set_max_rows_hint(p.hint);
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
    double active = 0;
    for (int64_t c : r.counts) active += c > 0;
    const double rows = double(rows_here(r));
    const double src = p.gather ? std::min(rows, double(r.src_rows)) : rows;
    const double dst = p.scatter == scatter_t::none ? rows : double(r.dst_rows);
    return bench::bytes_of(src * double(p.K), p.src_type)
           + bench::bytes_of(active * double(p.K) * double(p.N), p.wei_type)
           + bench::bytes_of(dst * double(p.dst_n()), p.dst_type);
}

} // namespace grouped_matmul
} // namespace bench

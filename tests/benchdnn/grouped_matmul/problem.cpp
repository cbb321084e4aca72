// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/grouped_matmul/problem.hpp"

#include <algorithm>
#include <tuple>

#include "benchdnn/common/settings.hpp"
#include "benchdnn/common/tensor.hpp"
#include "common/formats/swizzle_128x4.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;
using mxdnn::memory;
using mxdnn::row_grouping;

namespace {

// For a random problem: few enough for every implementation and the oracle.
int64_t most_weights() { return settings.random_size << 20; }
int64_t most_products() { return settings.random_size << 22; }

// As many experts and tokens as that allows.
std::string draw_experts(draws_t &any, const knob_t &knob, const words_t &, const std::string &descriptor) {
    const auto kn = to_k_and_n(descriptor);
    const int64_t most = std::min(knob.range.most, most_weights() / (kn.first * kn.second));
    return std::to_string(any.range(knob.range.least, most));
}
std::string draw_topk(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return std::to_string(any.range(knob.range.least, std::min(knob.range.most, number(words, "experts"))));
}
std::string draw_tokens(
        draws_t &any, const knob_t &knob, const words_t &words, const std::string &descriptor) {
    const auto kn = to_k_and_n(descriptor);
    const int64_t most = most_products() / (kn.first * kn.second * number(words, "topk"));
    return std::to_string(any.range(knob.range.least, std::min(knob.range.most, most)));
}
std::string draw_local(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    if (!any.one_in(3)) return knob.usual;
    const int64_t experts = number(words, "experts");
    const int64_t first = any.below(experts);
    return std::to_string(first) + ":" + std::to_string(1 + any.below(experts - first));
}
std::string draw_all_post_ops(
        draws_t &any, const knob_t &, const words_t &words, const std::string &descriptor) {
    return draw_post_ops(any, words, descriptor, false);
}
std::string draw_params(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    matmul_problem_t p;
    p.post_ops = parse_post_ops(words["attr-post-ops"]);
    return p.gated() ? draw_word(any, knob) : knob.usual;
}

constexpr knob_t knob_list[] = {dt_knob, bias_knob, {"experts", "4", range_t{1, 128}, draw_experts},
        {"topk", "2", range_t{1, 8}, draw_topk}, {"tokens", "8", range_t{0, 1000}, draw_tokens},
        {"local", "", draw_local}, {"routing", "uniform", "uniform|skewed|one|empty|twice"},
        {"row-grouping", "ends", "ends|starts|padded|row_ids"}, wtag_knob, scales_knob, zero_points_knob,
        global_knob, layouts_knob, packings_knob, given_knob, scales_tag_knob, rounding_knob, recipe_knob,
        {"attr-post-ops", "", draw_all_post_ops}, {"gather", "0", "0|1"},
        {"scatter", "none", "none|permute|reduce"}, {"topk-weights", "none", "none|output|input"},
        {"topk-dt", "f32", "f32|bf16"}, {"expert-alpha", "0", "0|1"},
        {"activation-params", "none", "none|shared|per_expert", draw_params},
        {"active-experts", "0", "0|1|shuffled"}, {"expert-map", "0", "0|1"}, {"weights-ptrs", "0", "0|1"},
        {"extra-rows", "0", range_t{0, 5}}, {"plain-rows", "0", "0|1"}, {"row-pad", "0", range_t{0, 5}},
        {"skips", "0", "0|1"}, runtime_rows_knob, hint_knob, deterministic_knob, constant_weights_knob,
        scratchpad_knob, fpmath_knob, acc_mode_knob, special_knob, values_knob};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.K, p.N) = to_two_dims(descriptor, "KxN");
    p.experts = number(words, "experts");
    p.topk = number(words, "topk");
    p.tokens = number(words, "tokens");
    check_rows(p.tokens, p.topk);
    p.extra_rows = number(words, "extra-rows");
    p.plain_rows = flag(words, "plain-rows");
    p.row_pad = number(words, "row-pad");
    p.routing = one_of(words, "routing");
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
    p.topk_dt = to_data_type(one_of(words, "topk-dt"));
    p.grouping = pick(words, "row-grouping",
            {row_grouping::ends, row_grouping::starts, row_grouping::padded, row_grouping::row_ids});
    p.scatter = pick(words, "scatter", {scatter_t::none, scatter_t::permute, scatter_t::reduce});
    p.params = pick(words, "activation-params", {params_t::none, params_t::shared, params_t::per_expert});
    p.topk_weights = one_of(words, "topk-weights");
    if (p.topk_weights == "none") p.topk_weights.clear();
    p.gather = flag(words, "gather");
    p.active = choice(words, "active-experts") > 0;
    p.shuffled = choice(words, "active-experts") > 1;
    p.map = flag(words, "expert-map");
    p.pointers = flag(words, "weights-ptrs");
    p.alpha = flag(words, "expert-alpha");
    p.skips = flag(words, "skips");
    if (p.params != params_t::none && !p.gated())
        throw usage_error_t("--activation-params need a gated post-op");
    p.repro = words.repro("grouped_matmul", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    const int64_t N = any.length(700);
    const int64_t K = any.length(std::min<int64_t>(2000, most_weights() / 2 / N));
    return std::to_string(K) + "x" + std::to_string(N);
}

bool problem_t::is_grouped(bool of_src) const {
    const bool by_group = of_src ? !gather : scatter == scatter_t::none;
    return by_group && !plain_rows && (grouping == row_grouping::ends || grouping == row_grouping::starts);
}

std::vector<int64_t> problem_t::strides(const std::vector<int64_t> &dims, bool of_src) const {
    return strides_of(dims, "ab", of_src ? src_type.dt : dst_type.dt, is_grouped(of_src) ? 0 : row_pad);
}

int64_t routing_t::groups() const { return padded ? int64_t(bounds.size()) : 0; }

namespace {

// The experts of every token, tokens * topk of them.
std::vector<int64_t> choose_experts(const problem_t &p, rng_t &rng) {
    std::vector<int64_t> ids;
    const int64_t E = p.experts;
    // Half of the experts get no rows if some are to be empty.
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

// Which of the weights' experts an id is, or -1; a map has them in random order.
std::vector<int64_t> local_experts(const problem_t &p, rng_t &rng) {
    std::vector<int64_t> order(static_cast<size_t>(p.local));
    for (int64_t e = 0; e < p.local; e++) order[size_t(e)] = e;
    if (p.map) std::shuffle(order.begin(), order.end(), rng);
    std::vector<int64_t> here(static_cast<size_t>(p.experts), -1);
    std::copy(order.begin(), order.end(), here.begin() + p.first);
    return here;
}

// A token's choice of an expert.
struct pair_t {
    int64_t index, expert;
};

// Puts rows into a routing, one after the other.
struct row_adder_t {
    const problem_t &p;
    const std::vector<int64_t> &here;
    rng_t &rng;
    routing_t &r;

    // `of` is null for a row that belongs to no expert.
    void add(const pair_t *of) {
        row_t row;
        const int64_t index = int64_t(r.rows.size());
        row.group = of ? int64_t(r.bounds.size()) : -1;
        if (of) row.expert = here[size_t(of->expert)];
        row.src = p.gather ? (of ? of->index / p.topk : 0) : index;
        row.dst = p.scatter == scatter_t::none      ? index
                  : !of                             ? 0
                  : p.scatter == scatter_t::permute ? of->index
                                                    : of->index / p.topk;
        if (!p.topk_weights.empty()) row.weight = std::uniform_real_distribution<float>(.05f, 1.f)(rng);
        if (p.topk_dt == mxdnn_bf16)
            row.weight = decode_value(mxdnn_bf16, data_type_info(mxdnn_bf16)->encode(row.weight));
        if (p.skips && of && index % 5 == 3 && p.gather) row.src = -1;
        if (p.skips && of && index % 7 == 2 && p.scatter != scatter_t::none) row.dst = -1;
        r.rows.push_back(row);
    }

    void add_to_nobody(int64_t count) {
        for (int64_t i = 0; i < count; i++) add(nullptr);
    }

    // Each row has its id, in the order of the choices.
    void add_by_id(const std::vector<pair_t> &pairs) {
        for (const pair_t &of : pairs) {
            const bool skip = p.skips && r.rows.size() % 6 == 4;
            r.bounds.push_back(skip ? -1 : int32_t(of.expert));
            add(skip ? nullptr : &of);
        }
        r.bounds.resize(r.bounds.size() + size_t(p.extra_rows), -1);
        add_to_nobody(p.extra_rows);
    }

    // Pairs stand in the order of experts, `counts` of each.
    void add_groups(const std::vector<pair_t> &pairs, const std::vector<int64_t> &counts) {
        r.group_rows = *std::max_element(counts.begin(), counts.end()) + p.extra_rows;
        if (p.grouping == row_grouping::starts) r.bounds.push_back(0);
        for (const group_t &g : make_groups(counts)) {
            for (int64_t i = 0; i < g.rows; i++) add(&pairs[size_t(g.first + i)]);
            if (r.padded) add_to_nobody(r.group_rows - g.rows);
            r.bounds.push_back(int32_t(r.padded ? g.rows : int64_t(r.rows.size())));
            if (p.active) r.group_ids.push_back(int32_t(g.id));
        }
        if (!r.padded) add_to_nobody(p.extra_rows);
    }

private:
    // For an expert, -1 for none: so many pairs from `first` on.
    struct group_t {
        int64_t id, first, rows;
    };
    // In the order of experts, or in any, where some experts have two.
    std::vector<group_t> make_groups(const std::vector<int64_t> &counts) const {
        std::vector<group_t> groups;
        int64_t first = 0;
        for (int64_t e = 0; e < p.experts; e++) {
            const int64_t n = counts[size_t(e)], apart = p.shuffled ? n / 3 : 0;
            if (apart > 0) groups.push_back({e, first, apart});
            if (!p.active || n > 0) groups.push_back({e, first + apart, n - apart});
            first += n;
        }
        if (p.active) groups.push_back({-1, 0, 0});
        if (p.shuffled) std::shuffle(groups.begin(), groups.end(), rng);
        return groups;
    }
};

// Every group begins at a tile of the 128x4 order; so do rows of no group.
std::vector<int64_t> swizzled_rows(const std::vector<row_t> &rows) {
    std::vector<int64_t> swizzled;
    int64_t first = 0;
    for (size_t begin = 0, next = 0; begin < rows.size(); begin = next) {
        while (next < rows.size() && rows[next].group == rows[begin].group)
            swizzled.push_back(first + int64_t(next++ - begin));
        first += round_up(int64_t(next - begin), swizzle_128x4::tile_rows);
    }
    return swizzled;
}

} // namespace

routing_t make_routing(const problem_t &p, uint32_t seed) {
    rng_t rng(seed + 77);
    routing_t r;
    r.padded = p.grouping == row_grouping::padded;
    const std::vector<int64_t> ids = choose_experts(p, rng);
    const std::vector<int64_t> here = local_experts(p, rng);
    if (p.map) r.map.assign(here.begin(), here.end());

    std::vector<pair_t> pairs;
    std::vector<int64_t> counts(static_cast<size_t>(p.experts), 0);
    for (const int64_t id : ids) {
        pairs.push_back({int64_t(pairs.size()), id});
        counts[size_t(id)]++;
    }
    row_adder_t rows{p, here, rng, r};
    if (p.grouping == row_grouping::row_ids) {
        rows.add_by_id(pairs);
    } else {
        std::stable_sort(pairs.begin(), pairs.end(),
                [](const pair_t &a, const pair_t &b) { return a.expert < b.expert; });
        rows.add_groups(pairs, counts);
    }
    if (p.grouping == row_grouping::ends || p.grouping == row_grouping::starts)
        r.swizzled_rows = swizzled_rows(r.rows);

    const int64_t count = int64_t(r.rows.size());
    r.src_rows = p.gather ? p.tokens : count;
    r.dst_rows = p.scatter == scatter_t::none      ? count
                 : p.scatter == scatter_t::permute ? int64_t(pairs.size())
                                                   : p.tokens;
    r.counts.assign(size_t(p.local), 0);
    for (const row_t &row : r.rows) {
        if (p.gather) r.gather.push_back(int32_t(row.src));
        if (p.scatter != scatter_t::none) r.scatter.push_back(int32_t(row.dst));
        if (row.expert >= 0 && row.dst >= 0) r.counts[size_t(row.expert)]++;
    }
    return r;
}

descs_t make_descs(const problem_t &p, const routing_t &r) {
    descs_t d;
    const auto rows_desc = [&](int64_t rows, int64_t columns, const tensor_type_t &t, bool by_group) {
        const bool of_src = &t == &p.src_type;
        const int64_t n = p.runtime_rows ? MXDNN_RUNTIME_DIM_VAL : rows;
        if (by_group && r.padded) {
            const std::vector<int64_t> full = {r.groups(), r.group_rows, columns};
            memory::dims dims = full;
            if (p.runtime_rows) dims[1] = MXDNN_RUNTIME_DIM_VAL;
            memory::dims strides = p.strides(full, of_src);
            if (p.runtime_rows) strides[0] = MXDNN_RUNTIME_DIM_VAL;
            return memory::desc(dims, cpp(t.dt), strides);
        }
        if (p.is_grouped(of_src))
            return memory::desc::grouped({n, columns}, cpp(t.dt), 0,
                    int64_t(r.bounds.size()) - (p.grouping == row_grouping::starts ? 1 : 0));
        return memory::desc({n, columns}, cpp(t.dt), p.strides({rows, columns}, of_src));
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
    if (p.topk_weights == "input") d.attr.set_topk_weights_placement(mxdnn::topk_weights_placement::on_input);
    if (p.local != p.experts && !p.map) d.attr.set_expert_range(p.first, p.experts);
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

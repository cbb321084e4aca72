// SPDX-License-Identifier: Apache-2.0
// Runs one moe_route problem: experts and weights of every implementation against f64, rows against a sort.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "benchdnn/common/driver.hpp"
#include "benchdnn/moe_route/problem.hpp"

namespace bench {
namespace moe_route {

using namespace mxdnn::impl;
using pd_t = mxdnn::moe_route::primitive_desc;
using mxdnn::memory;

namespace {

tensor_t vector_of(int64_t n, data_type_t dt) { return tensor_t({n}, {1}, dt); }

struct data_t {
    tensor_t logits, bias, ids, weights, counts, offsets, order, tokens, row_weights;

    explicit data_t(const problem_t &p) {
        const int64_t T = p.tokens, E = p.experts, k = p.topk;
        logits = tensor_t({T, E}, strides_of({T, E}, p.ltag, p.dt, p.row_pad), p.dt);
        if (p.has(mxdnn_route_bias)) bias = vector_of(E, mxdnn_f32);
        ids = tensor_t({T, k}, {k, 1}, mxdnn_s32);
        weights = tensor_t({T, k}, {k, 1}, mxdnn_f32);
        if (!p.all_outputs) return;
        counts = vector_of(E, mxdnn_s32);
        offsets = vector_of(E + p.starts, mxdnn_s32);
        order = vector_of(T * k, mxdnn_s32);
        tokens = vector_of(T * k, mxdnn_s32);
        row_weights = vector_of(T * k, mxdnn_f32);
    }
    std::vector<std::pair<int, const tensor_t *>> outputs() const {
        std::vector<std::pair<int, const tensor_t *>> all = {{MXDNN_ARG_TOPK_IDS, &ids},
                {MXDNN_ARG_TOPK_WEIGHTS, &weights}, {MXDNN_ARG_GROUP_COUNTS, &counts},
                {MXDNN_ARG_GROUP_OFFSETS, &offsets}, {MXDNN_ARG_ROW_ORDER, &order},
                {MXDNN_ARG_GATHER_IDX, &tokens}, {MXDNN_ARG_ROW_WEIGHTS, &row_weights}};
        all.erase(
                std::remove_if(all.begin(), all.end(), [](const auto &a) { return a.second->dims.empty(); }),
                all.end());
        return all;
    }
};

void fill(const problem_t &p, data_t &d) {
    rng_t rng(settings.seed);
    std::normal_distribution<float> normal(0, 2);
    std::uniform_int_distribution<int> few(0, 3), one_in(0, 15), which(0, 5);
    const float odd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.f};
    const data_type_info_t *info = data_type_info(p.dt);
    for_each(d.logits.dims, [&](const int64_t *idx) {
        float x = p.values == "ties" ? float(few(rng)) - 1.5f : normal(rng);
        if (p.values == "special" && one_in(rng) == 0) x = odd[which(rng)];
        d.logits.set_code(idx, info->encode(x));
    });
    if (!d.bias.dims.empty())
        for_each(d.bias.dims, [&](const int64_t *idx) {
            d.bias.set_code(idx, bits_of(p.values == "ties" ? .5f * float(few(rng)) : .3f * normal(rng)));
        });
}

// ---- what a token's experts and weights have to be ----

struct expected_t {
    std::vector<double> score; // of every expert
    std::vector<int> ids;
    bool close = false; // scores that rank experts are nearer than f32 arithmetic tells apart
};

// Relative error of a score: the exponential's own, its argument's rounding, sums and divisions.
double score_error(const problem_t &p, double distance) {
    return (double(p.experts) / 16 + 80) * u32 + 2 * function_ulps + 2 * u32 * std::min(distance, 120.);
}

// Ranks by falling score; NaN after all numbers, the lower index first of what is equal.
std::vector<int> ranked(const std::vector<double> &s, const std::vector<int> &among) {
    std::vector<int> order = among;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        if (std::isnan(s[size_t(a)]) || std::isnan(s[size_t(b)]))
            return !std::isnan(s[size_t(a)]) && std::isnan(s[size_t(b)]);
        return s[size_t(a)] > s[size_t(b)];
    });
    return order;
}

expected_t expect(const problem_t &p, const data_t &d, int64_t t) {
    const size_t E = size_t(p.experts);
    expected_t r;
    std::vector<double> x(E), choice;
    std::vector<float> bias(E, 0.f);
    for (size_t e = 0; e < E; e++) {
        const int64_t idx[2] = {t, int64_t(e)}, one[1] = {int64_t(e)};
        x[e] = d.logits.value(idx);
        if (!d.bias.dims.empty()) bias[e] = d.bias.value(one);
    }
    const double top = [&] {
        double m = -INFINITY;
        for (double v : x) m = v > m ? v : m;
        return m;
    }();
    r.score = x;
    if (p.scoring == mxdnn_route_sigmoid)
        for (double &v : r.score) v = 1 / (1 + std::exp(-v));
    if (p.scoring == mxdnn_route_softmax_topk) {
        double sum = 0;
        for (double &v : r.score) sum += v = std::exp(v - top);
        for (double &v : r.score) v /= sum;
    }
    const bool biased = p.has(mxdnn_route_bias);
    choice = r.score;
    for (size_t e = 0; e < E && biased; e++) choice[e] += bias[e];
    // Two scores that are not made of the same numbers are told apart from here on.
    double largest = 0;
    for (size_t e = 0; e < E; e++)
        if (std::isfinite(choice[e]))
            largest = std::max(largest, std::fabs(choice[e]) + std::fabs(double(bias[e])));
    const double gap = 4 * score_error(p, 120) * largest;
    const auto near = [&](double a, double b) {
        return std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= gap;
    };
    const auto alike = [&](int a, int b) {
        return x[size_t(a)] == x[size_t(b)] && bias[size_t(a)] == bias[size_t(b)];
    };

    std::vector<int> open(E);
    std::iota(open.begin(), open.end(), 0);
    if (p.topk_groups < p.groups) {
        const int n = int(p.experts / p.groups);
        std::vector<double> value(static_cast<size_t>(p.groups));
        for (int g = 0; g < p.groups; g++) {
            const std::vector<int> best = ranked(choice, {open.begin() + g * n, open.begin() + (g + 1) * n});
            double &v = value[size_t(g)];
            v = choice[size_t(best[0])];
            if (!p.has(mxdnn_route_group_max) && n > 1) v += choice[size_t(best[1])];
        }
        std::vector<int> groups(size_t(p.groups), 0);
        std::iota(groups.begin(), groups.end(), 0);
        groups = ranked(value, groups);
        for (size_t g = size_t(p.topk_groups); g < groups.size(); g++)
            r.close |= near(value[size_t(groups[size_t(p.topk_groups) - 1])], value[size_t(groups[g])]);
        groups.resize(size_t(p.topk_groups));
        std::sort(groups.begin(), groups.end());
        open.clear();
        for (int g : groups)
            for (int e = g * n; e < (g + 1) * n; e++) open.push_back(e);
    }
    r.ids = ranked(biased ? choice : x, open);
    for (size_t j = 0; biased && j + 1 < r.ids.size() && j < size_t(p.topk); j++)
        r.close |= near(choice[size_t(r.ids[j])], choice[size_t(r.ids[j + 1])])
                   && !alike(r.ids[j], r.ids[j + 1]);
    r.ids.resize(size_t(p.topk));
    return r;
}

std::vector<double> weights_of(const problem_t &p, const expected_t &r, const std::vector<int> &ids) {
    std::vector<double> w;
    w.reserve(ids.size());
    for (int e : ids) w.push_back(r.score[size_t(e)]);
    if (p.scoring == mxdnn_route_topk_softmax) {
        double top = -INFINITY, sum = 0;
        for (double v : w) top = v > top ? v : top;
        for (double &v : w) sum += v = std::exp(v - top);
        for (double &v : w) v /= sum;
    } else if (p.has(mxdnn_route_renormalize)) {
        double sum = p.scoring == mxdnn_route_sigmoid ? 1e-20 : 0;
        for (double v : w) sum += v;
        for (double &v : w) v /= sum;
    }
    for (double &v : w) v *= double(p.scale);
    return w;
}

class checker_t {
public:
    checker_t(const problem_t &p, const data_t &d, mismatch_t &bad) : p_(p), d_(d), bad_(bad) {}

    void check() {
        for (int64_t t = 0; t < p_.tokens; t++) check_token(t);
        if (p_.all_outputs && bad_.count == 0) check_rows();
    }

private:
    const problem_t &p_;
    const data_t &d_;
    mismatch_t &bad_;

    int32_t id(int64_t i) const { return at(d_.ids, i); }
    static int32_t at(const tensor_t &t, int64_t i) {
        return reinterpret_cast<const int32_t *>(t.bytes.data())[i];
    }

    void differ(const char *what, int64_t i, double want, double got, double bound) {
        char s[160];
        std::snprintf(s, sizeof(s), "%s [%lld] expected %.9g got %.9g bound %.3g", what, (long long)i, want,
                got, bound);
        bad_.add(s);
    }

    void check_token(int64_t t) {
        const expected_t want = expect(p_, d_, t);
        std::vector<int> got;
        for (int64_t j = 0; j < p_.topk; j++) {
            const int32_t e = id(t * p_.topk + j);
            const bool possible =
                    e >= 0 && e < p_.experts && std::find(got.begin(), got.end(), e) == got.end();
            if (!possible || (!want.close && e != want.ids[size_t(j)]))
                return differ("id", t * p_.topk + j, want.ids[size_t(j)], e, 0);
            got.push_back(e);
        }
        const std::vector<double> w = weights_of(p_, want, got);
        for (int64_t j = 0; j < p_.topk; j++) {
            const int64_t i = t * p_.topk + j;
            const float g = reinterpret_cast<const float *>(d_.weights.bytes.data())[i];
            const double v = w[size_t(j)];
            const double bound =
                    2 * score_error(p_, 120) * std::fabs(v) + 1e-24 * std::fabs(double(p_.scale));
            if (std::isnan(v) ? !std::isnan(g) : !(std::fabs(double(g) - v) <= bound))
                differ("weight", i, v, double(g), bound);
        }
    }

    void check_rows() {
        const int64_t rows = p_.tokens * p_.topk;
        std::vector<int64_t> order(static_cast<size_t>(rows));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return id(a) < id(b); });
        const auto same = [&](const char *what, const tensor_t &t, int64_t i, int64_t want) {
            if (at(t, i) != want) differ(what, i, double(want), double(at(t, i)), 0);
        };
        for (int64_t r = 0; r < rows; r++) {
            const int64_t i = order[size_t(r)];
            same("row order", d_.order, r, i);
            same("token of row", d_.tokens, r, i / p_.topk);
            same("bits of row weight", d_.row_weights, r, at(d_.weights, i));
        }
        int64_t end = 0;
        if (p_.starts) same("start", d_.offsets, 0, 0);
        for (int64_t e = 0; e < p_.experts; e++) {
            int64_t count = 0;
            for (int64_t i = 0; i < rows; i++) count += id(i) == e;
            end += count;
            same("count", d_.counts, e, count);
            same("offset", d_.offsets, e + p_.starts, end);
        }
    }
};

pd_t make_pd(const mxdnn::engine &eng, const problem_t &p) {
    mxdnn::primitive_attr attr;
    if (p.starts) attr.set_row_grouping(mxdnn::row_grouping::starts);
    if (p.scale != 1) {
        mxdnn::post_ops po;
        po.append_eltwise(mxdnn::algorithm::eltwise_linear, p.scale, 0);
        attr.set_post_ops(po);
    }
    return pd_t(eng,
            memory::desc({p.runtime_rows ? MXDNN_RUNTIME_DIM_VAL : p.tokens, p.experts},
                    static_cast<memory::data_type>(p.dt),
                    strides_of({p.tokens, p.experts}, p.ltag, p.dt, p.row_pad)),
            p.topk, static_cast<mxdnn::algorithm>(p.scoring), p.flags, p.groups, p.topk_groups, attr);
}

} // namespace

void run(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const mxdnn::stream stream = stream_of(eng);
        const pd_t pd = create([&] { return make_pd(eng, p); });
        data_t d(p);
        fill(p, d);
        args_t args = {{MXDNN_ARG_SRC, d.logits.memory(host_engine(eng))}};
        if (!d.bias.dims.empty()) args[MXDNN_ARG_ROUTE_BIAS] = d.bias.memory(host_engine(eng));
        for (const auto &o : d.outputs()) args[o.first] = o.second->memory(host_engine(eng));
        const auto compare = [&](const pd_t &each, mismatch_t &bad) {
            for (const auto &o : d.outputs()) o.second->bytes.poison();
            execute(mxdnn::moe_route(each), stream, args);
            if (settings.plant_fault && p.tokens > 0) {
                const int64_t idx[2] = {p.tokens / 2, p.topk / 2};
                d.weights.set_code(idx, d.weights.code(idx) ^ 0x10000);
            }
            checker_t(p, d, bad).check();
        };
        std::string wrong;
        if (settings.correctness) wrong = check_each(pd, names, compare);
        double bytes = double(d.logits.bytes.size());
        for (const auto &o : d.outputs()) bytes += double(o.second->bytes.size());
        if (wrong.empty()) run_and_time<mxdnn::moe_route>(pd, stream, args, p.repro, bytes);
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace moe_route
} // namespace bench

// SPDX-License-Identifier: Apache-2.0
// A whole expert layer of gpt-oss from MXFP4 weights, on a CPU or a CUDA device:
//
//     route      router logits -> experts, weights, and the rows of each expert
//     gate_up    gathers the tokens of each expert, multiplies, adds the bias, applies swiglu_oai
//     down       multiplies, adds the bias, weights each row and sums the rows of a token
//
//     moe_layer [--engine cpu|cuda] [--shape small|20b|120b] [TOKENS ...]        e.g. moe_layer 1 16 256
//
// Prints how long each part takes, and holds the result against plain loops over the same weights.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "timing.hpp"

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
constexpr dim any_rows = MXDNN_RUNTIME_DIM_VAL;

namespace {

struct shape_t {
    const char *name;
    dim experts, topk, hidden, inter; // gate_up has 2 * inter columns
};
constexpr shape_t shapes[] = {
        {"small", 8, 2, 160, 96}, {"20b", 32, 4, 2880, 2880}, {"120b", 128, 4, 2880, 2880}};

// ---- bf16, random numbers, and memories wherever the engine has them ----

uint16_t to_bf16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t h) {
    const uint32_t u = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}

std::vector<uint16_t> random_bf16(dim n, float size, std::mt19937 &rng) {
    std::vector<uint16_t> v(static_cast<size_t>(n));
    // The sum of four bytes is close enough to a normal distribution, and fast.
    for (uint16_t &x : v) {
        const uint32_t r = rng();
        const int sum = int(r & 255) + int(r >> 8 & 255) + int(r >> 16 & 255) + int(r >> 24) - 510;
        x = to_bf16(float(sum) * (size / 148.f));
    }
    return v;
}
std::vector<float> random_f32(dim n, float size, std::mt19937 &rng) {
    std::normal_distribution<float> normal(0, size);
    std::vector<float> v(static_cast<size_t>(n));
    for (float &x : v) x = normal(rng);
    return v;
}

template <typename T>
memory put(const memory::desc &md, const engine &eng, const std::vector<T> &values) {
    const memory m(md, eng);
    T *p = m.map_data<T>();
    std::copy(values.begin(), values.end(), p);
    m.unmap_data(p);
    return m;
}
template <typename T>
std::vector<T> get(const memory &m) {
    std::vector<T> values(m.get_desc().get_size() / sizeof(T));
    T *p = m.map_data<T>();
    std::copy(p, p + values.size(), values.begin());
    m.unmap_data(p);
    return values;
}

memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }
memory::desc vector(dim length, dt type) { return {{length}, type, tag::a}; }

// ---- the layer ----

struct layer_t {
    const shape_t shape;
    engine eng;
    stream s{eng};
    moe_route route;
    grouped_matmul gate_up, down;
    memory gate_up_weights, down_weights; // packed
    memory gate_up_bias, down_bias;
    std::string impl; // that multiplies

    layer_t(const shape_t &sh, const engine &e, std::mt19937 &rng) : shape(sh), eng(e) {
        const dim E = shape.experts, H = shape.hidden, I = shape.inter;

        // 1. Descriptors. The number of tokens is a runtime value; the layout of the weights does not depend
        // on it.
        route = moe_route(moe_route::primitive_desc(eng, matrix(any_rows, E, dt::f32), shape.topk,
                algorithm::route_topk_softmax, moe_route::none, 1, 1));

        primitive_attr gate_up_attr;
        gate_up_attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0);
        post_ops swiglu_oai;
        swiglu_oai.append_gated(algorithm::gated_swiglu_oai, 1.702f, 7.f, gated_layout::interleaved);
        gate_up_attr.set_post_ops(swiglu_oai);
        const grouped_matmul::primitive_desc gate_up_pd(eng, matrix(any_rows, H, dt::bf16),
                memory::desc({E, H, 2 * I}, dt::f4_e2m1, tag::any), matrix(E, 2 * I, dt::f32),
                memory::desc::grouped({any_rows, I}, dt::bf16, 0, E), gate_up_attr);

        primitive_attr down_attr;
        down_attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0);
        const grouped_matmul::primitive_desc down_pd(eng,
                memory::desc::grouped({any_rows, I}, dt::bf16, 0, E),
                memory::desc({E, I, H}, dt::f4_e2m1, tag::any), matrix(E, H, dt::f32),
                matrix(any_rows, H, dt::bf16), down_attr);
        impl = gate_up_pd.impl_info_str();
        gate_up = grouped_matmul(gate_up_pd);
        down = grouped_matmul(down_pd);

        // 2. Weights: quantised and packed, one expert after the other.
        gate_up_weights = pack(gate_up_pd.weights_desc(), rng);
        down_weights = pack(down_pd.weights_desc(), rng);
        gate_up_bias = put(matrix(E, 2 * I, dt::f32), eng, random_f32(E * 2 * I, .1f, rng));
        down_bias = put(matrix(E, H, dt::f32), eng, random_f32(E * H, .1f, rng));
    }

    // One expert of a packed tensor: a descriptor of one, and where its bytes begin.
    static memory expert(const memory &packed, const memory::desc &one, dim e) {
        char *bytes =
                static_cast<char *>(packed.get_data_handle()) + e * packed.get_desc().get_expert_stride();
        return memory(one, packed.get_engine(), bytes);
    }
    memory::desc one_expert(const memory::desc &packed) const {
        const memory::dims d = packed.get_dims();
        primitive_attr attr;
        attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0);
        return grouped_matmul::primitive_desc(eng, memory::desc::grouped({any_rows, d[1]}, dt::bf16, 0, 1),
                memory::desc({1, d[1], d[2]}, dt::f4_e2m1, tag::any),
                memory::desc::grouped({any_rows, d[2]}, dt::bf16, 0, 1), attr)
                .weights_desc();
    }

    memory pack(const memory::desc &packed_md, std::mt19937 &rng) const {
        const dim E = shape.experts, K = packed_md.get_dims()[1], N = packed_md.get_dims()[2];
        memory packed(packed_md, eng);
        primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0, false,
                quantization_mode::dynamic_mx);
        q.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
        // bf16 [N, K] as frameworks store it is [K, N] with the last two dims exchanged.
        const memory::desc from({1, K, N}, dt::bf16, tag::acb), one = one_expert(packed_md);
        const mx_reorder quantise(mx_reorder::primitive_desc(eng, from, eng, one, q));
        // Every expert is another window of the same random numbers.
        const dim step = 136, n = K * N + E * step;
        const memory values = put(vector(n, dt::bf16), eng, random_bf16(n, 1.f / std::sqrt(float(K)), rng));
        for (dim e = 0; e < E; e++)
            quantise.execute(s,
                    {{MXDNN_ARG_FROM,
                             memory(from, eng, static_cast<uint16_t *>(values.get_data_handle()) + e * step)},
                            {MXDNN_ARG_TO, expert(packed, one, e)}});
        stream(s).wait();
        return packed;
    }

    // What the packed bytes of an expert stand for, [N][K].
    std::vector<float> unpack(const memory &packed, dim e) const {
        const memory::desc one = one_expert(packed.get_desc());
        const dim K = one.get_dims()[1], N = one.get_dims()[2];
        const memory::desc to({1, K, N}, dt::f32, tag::acb);
        const memory values(to, eng);
        mx_reorder(mx_reorder::primitive_desc(eng, one, eng, to))
                .execute(s, {{MXDNN_ARG_FROM, expert(packed, one, e)}, {MXDNN_ARG_TO, values}});
        stream(s).wait();
        return get<float>(values);
    }
};

// 3. Buffers and arguments for a number of tokens. What route writes is what the matmuls read.
struct run_t {
    const layer_t &layer;
    const dim T;
    memory logits, x, y;
    using args_t = std::unordered_map<int, memory>;
    args_t route_args, gate_up_args, down_args;

    run_t(const layer_t &l, dim tokens, std::mt19937 &rng)
        : layer(l), T(tokens),
          logits(put(matrix(T, l.shape.experts, dt::f32), l.eng, random_f32(T * l.shape.experts, 1.5f, rng))),
          x(put(matrix(T, l.shape.hidden, dt::bf16), l.eng, random_bf16(T * l.shape.hidden, 1.f, rng))),
          y(matrix(T, l.shape.hidden, dt::bf16), l.eng) {
        const dim E = l.shape.experts, k = l.shape.topk, I = l.shape.inter, rows = T * k;
        const memory mid(memory::desc::grouped({rows, I}, dt::bf16, 0, E), l.eng);
        const memory ends(vector(E, dt::s32), l.eng), token_of_row(vector(rows, dt::s32), l.eng),
                weight_of_row(vector(rows, dt::f32), l.eng);

        route_args = {{MXDNN_ARG_SRC, logits}, {MXDNN_ARG_TOPK_IDS, memory(matrix(T, k, dt::s32), l.eng)},
                {MXDNN_ARG_TOPK_WEIGHTS, memory(matrix(T, k, dt::f32), l.eng)},
                {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_GATHER_IDX, token_of_row},
                {MXDNN_ARG_ROW_WEIGHTS, weight_of_row}};
        gate_up_args = {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_WEIGHTS, l.gate_up_weights},
                {MXDNN_ARG_BIAS, l.gate_up_bias}, {MXDNN_ARG_DST, mid}, {MXDNN_ARG_GROUP_OFFSETS, ends},
                {MXDNN_ARG_GATHER_IDX, token_of_row}};
        down_args = {{MXDNN_ARG_SRC, mid}, {MXDNN_ARG_WEIGHTS, l.down_weights}, {MXDNN_ARG_BIAS, l.down_bias},
                {MXDNN_ARG_DST, y}, {MXDNN_ARG_GROUP_OFFSETS, ends},
                // The rows of a token are added in its row of dst, each times its weight.
                {MXDNN_ARG_SCATTER_IDX, token_of_row}, {MXDNN_ARG_TOPK_WEIGHTS, weight_of_row}};
    }

    void execute_route() const { layer.route.execute(layer.s, route_args); }
    void execute_gate_up() const { layer.gate_up.execute(layer.s, gate_up_args); }
    void execute_down() const { layer.down.execute(layer.s, down_args); }
    void execute() const {
        execute_route();
        execute_gate_up();
        execute_down();
    }
};

// The two matmuls without what the layer makes of them: rows lie in the order of experts before and after.
struct bare_t {
    run_t::args_t gate_up, down;

    explicit bare_t(const run_t &r) : gate_up(r.gate_up_args), down(r.down_args) {
        const dim rows = r.T * r.layer.shape.topk, H = r.layer.shape.hidden;
        std::mt19937 rng(3);
        gate_up[MXDNN_ARG_SRC] = put(matrix(rows, H, dt::bf16), r.layer.eng, random_bf16(rows * H, 1.f, rng));
        gate_up.erase(MXDNN_ARG_GATHER_IDX);
        down[MXDNN_ARG_DST] = memory(matrix(rows, H, dt::bf16), r.layer.eng);
        down.erase(MXDNN_ARG_SCATTER_IDX);
        down.erase(MXDNN_ARG_TOPK_WEIGHTS);
    }
};

// ---- the same with plain loops ----

// Signal-to-noise ratio of `tokens` rows of the result, in dB.
double check(const run_t &r, const std::vector<dim> &tokens) {
    const layer_t &l = r.layer;
    const dim E = l.shape.experts, k = l.shape.topk, H = l.shape.hidden, I = l.shape.inter;
    const std::vector<float> logits = get<float>(r.logits), bias1 = get<float>(l.gate_up_bias),
                             bias2 = get<float>(l.down_bias);
    const std::vector<uint16_t> x = get<uint16_t>(r.x), y = get<uint16_t>(r.y);
    std::vector<std::vector<double>> want(tokens.size(), std::vector<double>(size_t(H), 0.));
    for (dim e = 0; e < E; e++) {
        std::vector<float> w1, w2;
        for (size_t i = 0; i < tokens.size(); i++) {
            // The k largest logits, and a softmax over them.
            const float *logit = &logits[size_t(tokens[i] * E)];
            const auto ahead = [&](dim a) {
                dim n = 0;
                for (dim b = 0; b < E; b++) n += logit[b] > logit[a] || (logit[b] == logit[a] && b < a);
                return n;
            };
            if (ahead(e) >= k) continue;
            double sum = 0;
            for (dim b = 0; b < E; b++)
                if (ahead(b) < k) sum += std::exp(double(logit[b] - logit[e]));
            if (w1.empty()) {
                w1 = l.unpack(l.gate_up_weights, e);
                w2 = l.unpack(l.down_weights, e);
            }
            const auto dot = [](const std::vector<float> &a, const float *b) {
                float part[16] = {};
                size_t j = 0;
                for (; j + 16 <= a.size(); j += 16)
                    for (size_t c = 0; c < 16; c++) part[c] += a[j + c] * b[j + c];
                for (; j < a.size(); j++) part[0] += a[j] * b[j];
                double all = 0;
                for (float p : part) all += double(p);
                return all;
            };
            std::vector<float> in(static_cast<size_t>(H)), mid(static_cast<size_t>(I));
            for (dim c = 0; c < H; c++) in[size_t(c)] = from_bf16(x[size_t(tokens[i] * H + c)]);
            for (dim c = 0; c < I; c++) {
                const double g = dot(in, &w1[size_t(2 * c * H)]) + double(bias1[size_t(e * 2 * I + 2 * c)]);
                const double u =
                        dot(in, &w1[size_t((2 * c + 1) * H)]) + double(bias1[size_t(e * 2 * I + 2 * c + 1)]);
                const double gate = std::min(g, 7.), up = std::max(std::min(u, 7.), -7.);
                mid[size_t(c)] = float(gate / (1 + std::exp(-1.702 * gate)) * (up + 1));
            }
            for (dim c = 0; c < H; c++)
                want[i][size_t(c)] += (dot(mid, &w2[size_t(c * I)]) + double(bias2[size_t(e * H + c)])) / sum;
        }
    }
    double signal = 0, noise = 0;
    for (size_t i = 0; i < tokens.size(); i++)
        for (dim c = 0; c < H; c++) {
            const double v = want[i][size_t(c)], got = double(from_bf16(y[size_t(tokens[i] * H + c)]));
            signal += v * v;
            noise += (got - v) * (got - v);
        }
    return noise > 0 ? 10 * std::log10(signal / noise) : INFINITY;
}

// ---- timing ----

// Several sets of tokens in turn, so that no expert's weights are in cache because the last execution used
// them.
bool measure(const layer_t &layer, dim tokens, std::mt19937 &rng, double budget_ms) {
    const dim sets = tokens < 8 ? 8 : 2;
    std::vector<run_t> runs;
    for (dim i = 0; i < sets; i++) runs.emplace_back(layer, tokens, rng);
    stream s = layer.s;
    for (const run_t &r : runs) r.execute();
    s.wait();
    std::vector<dim> checked = {0};
    if (tokens > 1) checked.insert(checked.end(), {tokens / 2, tokens - 1});
    const double db = check(runs[0], checked);

    std::vector<bare_t> bare(runs.begin(), runs.end());
    enum { whole, route, gate_up, down, bare_gate_up, bare_down, parts };
    std::vector<std::function<void()>> work(parts);
    const auto of_every_set = [&](auto execute) {
        return [&runs, execute] {
            for (const run_t &r : runs) execute(r);
        };
    };
    work[whole] = of_every_set([](const run_t &r) { r.execute(); });
    work[route] = of_every_set([](const run_t &r) { r.execute_route(); });
    work[gate_up] = of_every_set([](const run_t &r) { r.execute_gate_up(); });
    work[down] = of_every_set([](const run_t &r) { r.execute_down(); });
    work[bare_gate_up] = [&] {
        for (const bare_t &b : bare) layer.gate_up.execute(layer.s, b.gate_up);
    };
    work[bare_down] = [&] {
        for (const bare_t &b : bare) layer.down.execute(layer.s, b.down);
    };
    std::vector<double> ms = median_ms(s, work, budget_ms);
    for (double &m : ms) m /= double(sets);
    const double fused = ms[gate_up] + ms[down], plain = ms[bare_gate_up] + ms[bare_down];
    std::printf("%6lld | %9.4f | %10.4f | %9.4f | %9.4f | %6.3f | %14.4f | %6.3f | %7.1f\n",
            (long long)tokens, ms[route], ms[gate_up], ms[down], ms[whole], ms[whole] / fused, plain,
            ms[whole] / plain, db);
    std::fflush(stdout);
    // Two roundings to bf16 leave about 50 dB; a wrong expert, weight or scale leaves less than 20.
    return db >= 40;
}

int usage() {
    std::fprintf(stderr, "usage: moe_layer [--engine cpu|cuda] [--shape small|20b|120b] [TOKENS ...]\n");
    return 2;
}

} // namespace

int main(int argc, char **argv) {
    engine::kind kind = engine::kind::cpu;
    const shape_t *shape = &shapes[1];
    std::vector<dim> tokens;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--engine" && (value == "cpu" || value == "cuda")) {
            kind = value == "cuda" ? engine::kind::cuda : engine::kind::cpu;
            i++;
        } else if (word == "--shape") {
            shape = std::find_if(
                    std::begin(shapes), std::end(shapes), [&](const shape_t &s) { return s.name == value; });
            if (shape == std::end(shapes)) return usage();
            i++;
        } else if (std::atoll(argv[i]) > 0) {
            tokens.push_back(std::atoll(argv[i]));
        } else {
            return usage();
        }
    }
    if (tokens.empty()) tokens = {1, 16, 256};
    try {
        std::mt19937 rng(1);
        const layer_t layer(*shape, engine(kind, 0), rng);
        std::printf(
                "%lld experts, top %lld, hidden %lld, intermediate %lld; %.0f MB of packed MXFP4; %s, %s\n",
                (long long)shape->experts, (long long)shape->topk, (long long)shape->hidden,
                (long long)shape->inter,
                double(layer.gate_up_weights.get_desc().get_size() + layer.down_weights.get_desc().get_size())
                        * 1e-6,
                kind == engine::kind::cpu ? (std::to_string(get_max_concurrency()) + " threads").c_str()
                                          : layer.eng.get_target().c_str(),
                layer.impl.c_str());
        std::printf(
                "tokens |  route ms | gate_up ms |   down ms |  layer ms |  ratio | bare matmuls ms |  ratio "
                "| SQNR dB\n");
        bool good = true;
        for (dim t : tokens) good = measure(layer, t, rng, shape == shapes ? 20 : 1000) && good;
        std::printf("%s\n", good ? "the results are those of plain loops"
                                 : "WRONG: the results are not those of plain loops");
        return good ? 0 : 1;
    } catch (const error &e) {
        std::fprintf(stderr, "moe_layer: %s\n", e.what());
        return 1;
    }
}

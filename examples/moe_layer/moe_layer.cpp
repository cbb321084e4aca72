// SPDX-License-Identifier: Apache-2.0
// A whole expert layer of gpt-oss from MXFP4 weights:
//
//     route      router logits -> experts, weights, and the rows of each expert
//     gate_up    gathers the tokens of each expert, multiplies, adds the bias, applies swiglu
//     down       multiplies, adds the bias, weights each row and sums the rows of a token
//
//     moe_layer [--small] [TOKENS ...]        e.g. moe_layer 1 16 256
//
// Prints how long each part takes, and holds the result against plain loops over the same weights.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
constexpr dim any_rows = MXDNN_RUNTIME_DIM_VAL;

namespace {

struct shape_t {
    dim experts, topk, hidden, inter; // gate_up has 2 * inter columns
};

// ---- bf16 and random numbers ----

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

void fill(std::vector<uint16_t> &v, float size, std::mt19937 &rng) {
    // The sum of four bytes is close enough to a normal distribution, and fast.
    for (uint16_t &x : v) {
        const uint32_t r = rng();
        const int sum = int(r & 255) + int(r >> 8 & 255) + int(r >> 16 & 255) + int(r >> 24) - 510;
        x = to_bf16(float(sum) * (size / 148.f));
    }
}

// ---- the layer ----

struct layer_t {
    const shape_t shape;
    engine eng{engine::kind::cpu, 0};
    stream s{eng};
    moe_route route;
    grouped_matmul gate_up, down;
    memory gate_up_weights, down_weights; // packed
    std::vector<float> gate_up_bias, down_bias;
    std::string impl; // that multiplies

    layer_t(const shape_t &sh, std::mt19937 &rng) : shape(sh) {
        const dim E = shape.experts, H = shape.hidden, I = shape.inter;

        // 1. Descriptors. The number of tokens is a runtime value; the layout of the weights does not depend
        // on it.
        route = moe_route(moe_route::primitive_desc(eng, memory::desc({any_rows, E}, dt::f32, tag::ab),
                shape.topk, algorithm::route_topk_softmax, moe_route::none, 1, 1));

        primitive_attr gate_up_attr;
        gate_up_attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0);
        post_ops swiglu;
        swiglu.append_gated(algorithm::gated_swiglu, 1.702f, 7.f, gated_layout::interleaved);
        gate_up_attr.set_post_ops(swiglu);
        const grouped_matmul::primitive_desc gate_up_pd(eng, memory::desc({any_rows, H}, dt::bf16, tag::ab),
                memory::desc({E, H, 2 * I}, dt::f4_e2m1, tag::any),
                memory::desc({E, 2 * I}, dt::f32, tag::ab),
                memory::desc::grouped({any_rows, I}, dt::bf16, 0, E), gate_up_attr);

        primitive_attr down_attr;
        down_attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0);
        const grouped_matmul::primitive_desc down_pd(eng,
                memory::desc::grouped({any_rows, I}, dt::bf16, 0, E),
                memory::desc({E, I, H}, dt::f4_e2m1, tag::any), memory::desc({E, H}, dt::f32, tag::ab),
                memory::desc({any_rows, H}, dt::bf16, tag::ab), down_attr);
        impl = gate_up_pd.impl_info_str();
        gate_up = grouped_matmul(gate_up_pd);
        down = grouped_matmul(down_pd);

        // 2. Weights: quantised and packed, one expert after the other.
        gate_up_weights = pack(gate_up_pd.weights_desc(), rng);
        down_weights = pack(down_pd.weights_desc(), rng);
        gate_up_bias = random_bias(E * 2 * I, rng);
        down_bias = random_bias(E * H, rng);
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
        const dim K = packed_md.get_dims()[1], N = packed_md.get_dims()[2];
        memory packed(packed_md, eng);
        primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, (1 << 0) | (1 << 1) | (1 << 2), {32, 1}, dt::e8m0, false,
                quantization_mode::dynamic_mx);
        q.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
        // bf16 [N, K] as frameworks store it is [K, N] with the last two dims exchanged.
        const memory::desc from({1, K, N}, dt::bf16, tag::acb), one = one_expert(packed_md);
        const mx_reorder quantise(mx_reorder::primitive_desc(eng, from, eng, one, q));
        std::vector<uint16_t> bf16(size_t(K * N));
        for (dim e = 0; e < shape.experts; e++) {
            fill(bf16, 1.f / std::sqrt(float(K)), rng);
            quantise.execute(s, {{MXDNN_ARG_FROM, memory(from, eng, bf16.data())},
                                        {MXDNN_ARG_TO, expert(packed, one, e)}});
        }
        return packed;
    }

    // What the packed bytes of an expert stand for, [N][K].
    std::vector<float> unpack(const memory &packed, dim e) const {
        const memory::desc one = one_expert(packed.get_desc());
        const dim K = one.get_dims()[1], N = one.get_dims()[2];
        const memory::desc to({1, K, N}, dt::f32, tag::acb);
        std::vector<float> values(size_t(K * N));
        mx_reorder(mx_reorder::primitive_desc(eng, one, eng, to))
                .execute(s, {{MXDNN_ARG_FROM, expert(packed, one, e)},
                                    {MXDNN_ARG_TO, memory(to, eng, values.data())}});
        return values;
    }

    static std::vector<float> random_bias(dim n, std::mt19937 &rng) {
        std::normal_distribution<float> normal(0, .1f);
        std::vector<float> v(static_cast<size_t>(n));
        for (float &x : v) x = normal(rng);
        return v;
    }
};

// 3. Buffers and arguments for a number of tokens. What route writes is what the matmuls read.
struct run_t {
    const layer_t &layer;
    const dim T, rows;
    std::vector<float> logits;
    std::vector<uint16_t> x, h, y;
    std::vector<int32_t> ids, offsets, tokens;
    std::vector<float> weights, row_weights;
    using args_t = std::unordered_map<int, memory>;
    args_t route_args, gate_up_args, down_args;

    run_t(const layer_t &l, dim tokens_, std::mt19937 &rng)
        : layer(l), T(tokens_), rows(tokens_ * l.shape.topk) {
        const dim E = l.shape.experts, k = l.shape.topk, H = l.shape.hidden, I = l.shape.inter;
        logits.resize(size_t(T * E));
        x.resize(size_t(T * H));
        h.resize(size_t(rows * I));
        y.resize(size_t(T * H));
        ids.resize(size_t(rows));
        weights.resize(size_t(rows));
        offsets.resize(size_t(E));
        tokens.resize(size_t(rows));
        row_weights.resize(size_t(rows));
        draw(rng);

        const auto ints = [&](std::vector<int32_t> &v) {
            return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), l.eng, v.data());
        };
        const auto floats = [&](std::vector<float> &v, const memory::dims &dims) {
            return memory(memory::desc(dims, dt::f32, dims.size() == 1 ? tag::a : tag::ab), l.eng, v.data());
        };
        const memory src(memory::desc({T, H}, dt::bf16, tag::ab), l.eng, x.data());
        const memory dst(memory::desc({T, H}, dt::bf16, tag::ab), l.eng, y.data());
        const memory mid(memory::desc::grouped({rows, I}, dt::bf16, 0, E), l.eng, h.data());
        const memory ends = ints(offsets), token_of_row = ints(tokens),
                     weight_of_row = floats(row_weights, {rows});
        auto &bias1 = const_cast<std::vector<float> &>(l.gate_up_bias),
             &bias2 = const_cast<std::vector<float> &>(l.down_bias);

        route_args = {{MXDNN_ARG_SRC, floats(logits, {T, E})},
                {MXDNN_ARG_TOPK_IDS, memory(memory::desc({T, k}, dt::s32, tag::ab), l.eng, ids.data())},
                {MXDNN_ARG_TOPK_WEIGHTS, floats(weights, {T, k})}, {MXDNN_ARG_GROUP_OFFSETS, ends},
                {MXDNN_ARG_GATHER_IDX, token_of_row}, {MXDNN_ARG_ROW_WEIGHTS, weight_of_row}};
        gate_up_args = {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, l.gate_up_weights},
                {MXDNN_ARG_BIAS, floats(bias1, {E, 2 * I})}, {MXDNN_ARG_DST, mid},
                {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_GATHER_IDX, token_of_row}};
        down_args = {{MXDNN_ARG_SRC, mid}, {MXDNN_ARG_WEIGHTS, l.down_weights},
                {MXDNN_ARG_BIAS, floats(bias2, {E, H})}, {MXDNN_ARG_DST, dst},
                {MXDNN_ARG_GROUP_OFFSETS, ends},
                // A token's rows meet in its row of dst: each times its weight, summed.
                {MXDNN_ARG_SCATTER_IDX, token_of_row}, {MXDNN_ARG_TOPK_WEIGHTS, weight_of_row}};
    }

    void draw(std::mt19937 &rng) {
        std::normal_distribution<float> normal(0, 1.5f);
        for (float &l : logits) l = normal(rng);
        fill(x, 1.f, rng);
    }

    void execute() const {
        layer.route.execute(layer.s, route_args);
        layer.gate_up.execute(layer.s, gate_up_args);
        layer.down.execute(layer.s, down_args);
    }
};

// ---- the same with plain loops ----

// Signal-to-noise ratio of `tokens` rows of the result, in dB.
double check(const run_t &r, const std::vector<dim> &tokens) {
    const layer_t &l = r.layer;
    const dim E = l.shape.experts, k = l.shape.topk, H = l.shape.hidden, I = l.shape.inter;
    std::vector<std::vector<double>> want(tokens.size(), std::vector<double>(size_t(H), 0.));
    for (dim e = 0; e < E; e++) {
        std::vector<float> w1, w2;
        for (size_t i = 0; i < tokens.size(); i++) {
            // The k largest logits, and a softmax over them.
            const float *logit = &r.logits[size_t(tokens[i] * E)];
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
            for (dim c = 0; c < H; c++) in[size_t(c)] = from_bf16(r.x[size_t(tokens[i] * H + c)]);
            for (dim c = 0; c < I; c++) {
                const double g =
                        dot(in, &w1[size_t(2 * c * H)]) + double(l.gate_up_bias[size_t(e * 2 * I + 2 * c)]);
                const double u = dot(in, &w1[size_t((2 * c + 1) * H)])
                                 + double(l.gate_up_bias[size_t(e * 2 * I + 2 * c + 1)]);
                const double gate = std::min(g, 7.), up = std::max(std::min(u, 7.), -7.);
                mid[size_t(c)] = float(gate / (1 + std::exp(-1.702 * gate)) * (up + 1));
            }
            for (dim c = 0; c < H; c++)
                want[i][size_t(c)] +=
                        (dot(mid, &w2[size_t(c * I)]) + double(l.down_bias[size_t(e * H + c)])) / sum;
        }
    }
    double signal = 0, noise = 0;
    for (size_t i = 0; i < tokens.size(); i++)
        for (dim c = 0; c < H; c++) {
            const double v = want[i][size_t(c)], got = double(from_bf16(r.y[size_t(tokens[i] * H + c)]));
            signal += v * v;
            noise += (got - v) * (got - v);
        }
    return noise > 0 ? 10 * std::log10(signal / noise) : INFINITY;
}

// ---- timing ----

double now_ms() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
    return v[v.size() / 2];
}

// Medians over several sets of tokens, so that no expert's weights are in cache because the last run used
// them.
bool measure(const layer_t &layer, dim tokens, std::mt19937 &rng, double budget_ms) {
    run_t r(layer, tokens, rng);
    r.execute();
    std::vector<dim> checked = {0};
    if (tokens > 1) checked.insert(checked.end(), {tokens / 2, tokens - 1});
    const double db = check(r, checked);

    std::vector<double> whole, route, gate_up, down;
    const double start = now_ms();
    while (whole.size() < 5 || (now_ms() - start < budget_ms && whole.size() < 1000)) {
        r.draw(rng);
        const double t0 = now_ms();
        r.execute();
        whole.push_back(now_ms() - t0);
        r.draw(rng);
        const double t1 = now_ms();
        layer.route.execute(layer.s, r.route_args);
        const double t2 = now_ms();
        layer.gate_up.execute(layer.s, r.gate_up_args);
        const double t3 = now_ms();
        layer.down.execute(layer.s, r.down_args);
        route.push_back(t2 - t1);
        gate_up.push_back(t3 - t2);
        down.push_back(now_ms() - t3);
    }
    const double matmuls = median(gate_up) + median(down);
    std::printf("%6lld | %9.4f | %10.3f | %10.3f | %10.3f | %6.3f | %7.1f\n", (long long)tokens,
            median(route), median(gate_up), median(down), median(whole), median(whole) / matmuls, db);
    // Two roundings to bf16 leave about 50 dB; a wrong expert, weight or scale leaves less than 20.
    return db >= 40;
}

} // namespace

int main(int argc, char **argv) {
    bool small = false;
    std::vector<dim> tokens;
    for (int i = 1; i < argc; i++) {
        if (std::string(argv[i]) == "--small")
            small = true;
        else if (std::atoll(argv[i]) > 0)
            tokens.push_back(std::atoll(argv[i]));
        else {
            std::fprintf(stderr, "usage: moe_layer [--small] [TOKENS ...]\n");
            return 2;
        }
    }
    if (tokens.empty()) tokens = {1, 16, 256};
    const shape_t shape = small ? shape_t{8, 2, 160, 96} : shape_t{32, 4, 2880, 2880};
    try {
        std::mt19937 rng(1);
        const double start = now_ms();
        const layer_t layer(shape, rng);
        std::printf("%lld experts, top %lld, hidden %lld, intermediate %lld; %.0f MB of packed MXFP4; %d "
                    "threads, %s; "
                    "packed in %.1f s\n",
                (long long)shape.experts, (long long)shape.topk, (long long)shape.hidden,
                (long long)shape.inter,
                double(layer.gate_up_weights.get_desc().get_size() + layer.down_weights.get_desc().get_size())
                        * 1e-6,
                get_max_concurrency(), layer.impl.c_str(), (now_ms() - start) * 1e-3);
        std::printf("tokens |  route ms | gate_up ms |    down ms |   layer ms |  ratio | SQNR dB\n");
        bool good = true;
        for (dim t : tokens) good = measure(layer, t, rng, small ? 20 : 1000) && good;
        std::printf("%s\n", good ? "the results are those of plain loops"
                                 : "WRONG: the results are not those of plain loops");
        return good ? 0 : 1;
    } catch (const error &e) {
        std::fprintf(stderr, "moe_layer: %s\n", e.what());
        return 1;
    }
}

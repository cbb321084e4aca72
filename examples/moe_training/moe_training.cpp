// SPDX-License-Identifier: Apache-2.0
// Trains a tiny expert layer in MXFP8 and in f32, with the same data and the same first weights:
//
//     forward            y  = x · W       x in blocks of 32 along K, W in blocks along K
//     gradient of x      dx = dy · Wᵀ     dy in blocks of 32 along N, W in blocks along N
//     gradient of W      dW = xᵀ · dy     both in blocks of 32 rows, anew in each group
//
// Each expert is two such products with relu between them. The experts of a teacher with other weights say
// what the results have to be. Prints the losses. Fails if an MXFP8 result or gradient is too far from that
// of f32, if an expert without rows has a gradient, or if training does not come as far.
//
//     moe_training [--engine cpu|cuda]
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
using values_t = std::vector<float>;

namespace {

constexpr dim block = 32;

// The rows of each expert, one expert after the other. The second one has none.
const std::vector<dim> group_rows = {70, 0, 33, 41};
const dim experts = dim(group_rows.size());
dim all_rows() {
    dim n = 0;
    for (const dim rows : group_rows) n += rows;
    return n;
}

values_t random_values(dim n, float size, std::mt19937 &rng) {
    std::normal_distribution<float> normal(0, size);
    values_t v(static_cast<size_t>(n));
    for (float &x : v) x = normal(rng);
    return v;
}

// ---- f32, in plain loops ----

// Calls body(expert, row) for all rows.
template <typename F>
void for_rows(F body) {
    dim row = 0;
    for (dim e = 0; e < experts; e++)
        for (dim i = 0; i < group_rows[size_t(e)]; i++) body(e, row++);
}

// Weights are [E, N, K], as frameworks have them.
values_t forward_f32(const values_t &x, const values_t &w, dim K, dim N) {
    values_t y(size_t(all_rows() * N));
    for_rows([&](dim e, dim r) {
        for (dim n = 0; n < N; n++)
            for (dim k = 0; k < K; k++)
                y[size_t(r * N + n)] += x[size_t(r * K + k)] * w[size_t((e * N + n) * K + k)];
    });
    return y;
}
values_t dx_f32(const values_t &dy, const values_t &w, dim K, dim N) {
    values_t dx(size_t(all_rows() * K));
    for_rows([&](dim e, dim r) {
        for (dim n = 0; n < N; n++)
            for (dim k = 0; k < K; k++)
                dx[size_t(r * K + k)] += dy[size_t(r * N + n)] * w[size_t((e * N + n) * K + k)];
    });
    return dx;
}
values_t dw_f32(const values_t &x, const values_t &dy, dim K, dim N) {
    values_t dw(size_t(experts * N * K));
    for_rows([&](dim e, dim r) {
        for (dim n = 0; n < N; n++)
            for (dim k = 0; k < K; k++)
                dw[size_t((e * N + n) * K + k)] += dy[size_t(r * N + n)] * x[size_t(r * K + k)];
    });
    return dw;
}

// ---- MXFP8, with primitives ----

// A memory of the engine with these bytes, and the values of one.
memory put(const engine &eng, const memory::desc &md, const void *bytes) {
    memory m(md, eng);
    auto *p = m.map_data<char>();
    std::memcpy(p, bytes, md.get_size());
    m.unmap_data(p);
    return m;
}
values_t get(stream &s, const memory &m) {
    s.wait();
    auto *p = m.map_data<float>();
    const values_t v(p, p + m.get_desc().get_size() / sizeof(float));
    m.unmap_data(p);
    return v;
}

// Rows in both forms that training needs: blocks along the columns, and blocks along the rows of each group.
struct quantised_t {
    memory by_column, column_scales, by_row, row_scales;
};

struct quantiser_t {
    const engine &eng;
    stream &s;
    const memory &ends;
    dim columns;
    mx_reorder reorder;

    quantiser_t(const engine &e, stream &st, const memory &group_ends, dim c)
        : eng(e), s(st), ends(group_ends), columns(c) {
        primitive_attr attr;
        attr.set_scales(MXDNN_ARG_DST, 3, {1, block}, dt::e8m0, false, quantization_mode::dynamic_mx);
        attr.set_scales(MXDNN_ARG_DST_1, 3, {block, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
        for (int arg : {MXDNN_ARG_DST, MXDNN_ARG_DST_1}) attr.set_scale_rounding(arg, scale_rounding::rceil);
        reorder = mx_reorder(mx_reorder::primitive_desc(
                eng, rows(dt::f32), eng, rows(dt::f8_e4m3), rows(dt::f8_e4m3), attr));
    }
    memory::desc rows(dt type) const {
        return memory::desc::grouped({all_rows(), columns}, type, 0, experts);
    }
    quantised_t operator()(const values_t &x) const {
        dim blocks = 0;
        for (const dim n : group_rows) blocks += (n + block - 1) / block;
        quantised_t q;
        q.by_column = memory(rows(dt::f8_e4m3), eng);
        q.by_row = memory(rows(dt::f8_e4m3), eng);
        q.column_scales = memory({{all_rows(), (columns + block - 1) / block}, dt::e8m0, tag::ab}, eng);
        q.row_scales = memory({{blocks, columns}, dt::e8m0, tag::ab}, eng);
        reorder.execute(s,
                {{MXDNN_ARG_FROM, put(eng, rows(dt::f32), x.data())}, {MXDNN_ARG_GROUP_OFFSETS, ends},
                        {MXDNN_ARG_DST, q.by_column},
                        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, q.column_scales}, {MXDNN_ARG_DST_1, q.by_row},
                        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST_1, q.row_scales}});
        return q;
    }
};

// y = x · W for the rows of each expert, and its gradients.
struct linear_t {
    const engine &eng;
    stream &s;
    const memory &ends;
    const dim K, N;
    quantiser_t of_x, of_dy;
    mx_reorder pack;
    grouped_matmul multiply, multiply_back;
    grouped_matmul_backward_weights backward;
    memory w, turned; // packed for both directions
    quantised_t kept; // x, for the gradient of the weights

    linear_t(const engine &e, stream &st, const memory &group_ends, dim k, dim n)
        : eng(e), s(st), ends(group_ends), K(k), N(n), of_x(e, st, group_ends, k),
          of_dy(e, st, group_ends, n) {
        // One call packs [E, K, N] and its transpose [E, N, K], each in blocks along the dim that is summed.
        primitive_attr both;
        both.set_scales(MXDNN_ARG_DST, 7, {1, block, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
        both.set_scales(MXDNN_ARG_DST_1, 7, {1, 1, block}, dt::e8m0, false, quantization_mode::dynamic_mx);
        for (int arg : {MXDNN_ARG_DST, MXDNN_ARG_DST_1}) both.set_scale_rounding(arg, scale_rounding::rceil);
        const memory::desc any({experts, K, N}, dt::f8_e4m3, tag::any);
        const mx_reorder::primitive_desc packs(eng, weights(), eng, any, any, both);
        pack = mx_reorder(packs);
        w = memory(packs.dst_desc(0), eng);
        turned = memory(packs.dst_desc(1), eng);

        primitive_attr rows;
        rows.set_scales(MXDNN_ARG_SRC, 3, {1, block}, dt::e8m0);
        multiply = grouped_matmul({eng, of_x.rows(dt::f8_e4m3), w.get_desc(), of_dy.rows(dt::f32), rows});
        multiply_back =
                grouped_matmul({eng, of_dy.rows(dt::f8_e4m3), turned.get_desc(), of_x.rows(dt::f32), rows});

        primitive_attr columns;
        for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DIFF_DST}) columns.set_scales(arg, 3, {block, 1}, dt::e8m0);
        backward = grouped_matmul_backward_weights(
                {eng, of_x.rows(dt::f8_e4m3), of_dy.rows(dt::f8_e4m3), weights(), columns});
    }
    memory::desc weights() const { return {{experts, K, N}, dt::f32, tag::acb}; }

    values_t forward(const values_t &x, const values_t &master) {
        pack.execute(s, {{MXDNN_ARG_FROM, put(eng, weights(), master.data())}, {MXDNN_ARG_DST, w},
                                {MXDNN_ARG_DST_1, turned}});
        kept = of_x(x);
        const memory y(of_dy.rows(dt::f32), eng);
        multiply.execute(s,
                {{MXDNN_ARG_SRC, kept.by_column}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, kept.column_scales},
                        {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_DST, y}});
        return get(s, y);
    }
    // The gradient of x; that of the weights goes to dw.
    values_t backwards(const values_t &dy, values_t &dw) {
        const quantised_t q = of_dy(dy);
        const memory dx(of_x.rows(dt::f32), eng), gradient(weights(), eng);
        multiply_back.execute(s,
                {{MXDNN_ARG_SRC, q.by_column}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, q.column_scales},
                        {MXDNN_ARG_WEIGHTS, turned}, {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_DST, dx}});
        backward.execute(
                s, {{MXDNN_ARG_SRC, kept.by_row}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, kept.row_scales},
                           {MXDNN_ARG_DIFF_DST, q.by_row},
                           {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DIFF_DST, q.row_scales},
                           {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_DIFF_WEIGHTS, gradient}});
        dw = get(s, gradient);
        return get(s, dx);
    }
};

// ---- checks, and training ----

bool good = true;

// Signal to noise in dB: 20 log10(|x| / |x - y|).
void expect_close(const char *what, const values_t &x, const values_t &y, double least) {
    double signal = 0, noise = 0;
    for (size_t i = 0; i < x.size(); i++) {
        signal += double(x[i]) * x[i];
        noise += double(x[i] - y[i]) * (x[i] - y[i]);
    }
    const double db = 10 * std::log10(signal / noise);
    std::printf("%-22s %5.1f dB (at least %g)\n", what, db, least);
    good = good && db >= least;
}

constexpr dim D = 96, H = 128; // columns of x and y, and of the hidden rows
constexpr float rate = 0.1f;
constexpr int steps = 40;

// relu, and where its gradient passes.
values_t relu(const values_t &h) {
    values_t a = h;
    for (float &x : a) x = x > 0 ? x : 0;
    return a;
}
void mask(values_t &da, const values_t &h) {
    for (size_t i = 0; i < h.size(); i++) da[i] = h[i] > 0 ? da[i] : 0;
}
// The mean square of the difference, which becomes its gradient per row.
double loss_of(const values_t &y, const values_t &want, values_t &dy) {
    dy = y;
    double sum = 0;
    for (size_t i = 0; i < y.size(); i++) {
        dy[i] = y[i] - want[i];
        sum += double(dy[i]) * dy[i];
        dy[i] /= float(all_rows()) / float(experts);
    }
    return sum / double(y.size());
}
void descend(values_t &w, const values_t &dw) {
    for (size_t i = 0; i < w.size(); i++) w[i] -= rate * dw[i];
}

bool train(const engine &eng) {
    std::mt19937 rng(1);
    stream s(eng);
    std::vector<int32_t> ends;
    int32_t end = 0;
    for (const dim rows : group_rows) ends.push_back(end += int32_t(rows));
    const memory group_ends = put(eng, {{experts}, dt::s32, tag::a}, ends.data());

    const values_t x = random_values(all_rows() * D, 1, rng);
    values_t up = random_values(experts * H * D, 0.1f, rng), down = random_values(experts * D * H, 0.1f, rng);
    const values_t teacher_up = random_values(experts * H * D, 0.1f, rng),
                   teacher_down = random_values(experts * D * H, 0.1f, rng);
    const values_t want = forward_f32(relu(forward_f32(x, teacher_up, D, H)), teacher_down, H, D);

    linear_t first(eng, s, group_ends, D, H), second(eng, s, group_ends, H, D);
    values_t plain_up = up, plain_down = down;
    double begin = 0, loss = 0, plain_loss = 0;
    for (int step = 0; step < steps; step++) {
        const values_t h = first.forward(x, up);
        const values_t a = relu(h);
        values_t dy, dw_up, dw_down;
        const values_t y = second.forward(a, down);
        loss = loss_of(y, want, dy);
        values_t da = second.backwards(dy, dw_down);
        if (step == 0) {
            begin = loss;
            expect_close("forward", forward_f32(a, down, H, D), y, 28);
            expect_close("gradient of rows", dx_f32(dy, down, H, D), da, 26);
            expect_close("gradient of weights", dw_f32(a, dy, H, D), dw_down, 25);
            for (dim i = 0; i < D * H; i++)
                good = good && dw_down[size_t(D * H + i)] == 0; // the second expert
        }
        mask(da, h);
        first.backwards(da, dw_up);
        descend(up, dw_up);
        descend(down, dw_down);

        const values_t plain_h = forward_f32(x, plain_up, D, H), plain_a = relu(plain_h);
        values_t plain_dy;
        plain_loss = loss_of(forward_f32(plain_a, plain_down, H, D), want, plain_dy);
        values_t plain_da = dx_f32(plain_dy, plain_down, H, D);
        mask(plain_da, plain_h);
        descend(plain_down, dw_f32(plain_a, plain_dy, H, D));
        descend(plain_up, dw_f32(x, plain_da, D, H));
        if (step % 8 == 0 || step == steps - 1)
            std::printf("step %2d   loss %.5f   in f32 %.5f\n", step, loss, plain_loss);
    }
    good = good && loss < begin / 10 && std::fabs(loss - plain_loss) < begin / 100;
    std::printf(good ? "ok\n" : "too far from f32\n");
    return good;
}

} // namespace

int main(int argc, char **argv) {
    const std::string kind = argc == 3 && std::string(argv[1]) == "--engine" ? argv[2]
                             : argc == 1                                     ? "cpu"
                                                                             : "";
    if (kind != "cpu" && kind != "cuda") {
        std::fprintf(stderr, "usage: moe_training [--engine cpu|cuda]\n");
        return 2;
    }
    try {
        return train(engine(kind == "cpu" ? engine::kind::cpu : engine::kind::cuda, 0)) ? 0 : 1;
    } catch (const error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}

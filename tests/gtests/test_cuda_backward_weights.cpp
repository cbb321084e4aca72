// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights on a device. Where sums are exact, every implementation gives the bits of
// the host, for all groupings, types, orders and sizes. Rows that do not count have no effect. Unchecked
// indices on the device cause no access outside of the tensors.
#include <climits>
#include <cmath>

#include "cuda_call.hpp"

using namespace cuda_test;
using mxdnn::row_grouping;
using mxdnn::impl::data_type_info;
using mxdnn::impl::decode_value;
using mxdnn::impl::div_up;
using mxdnn::impl::encode_value;
using backward_t = mxdnn::grouped_matmul_backward_weights;

namespace {

using dim = memory::dim;
constexpr dim block = 32;

mxdnn_data_type_t c_type(dt t) { return static_cast<mxdnn_data_type_t>(t); }
dim bytes_of(dt t) { return data_type_info(c_type(t))->bits / 8; }
bool is_f8(dt t) { return bytes_of(t) == 1; }

template <typename T>
bytes_t raw(const std::vector<T> &v) {
    bytes_t b(v.size() * sizeof(T));
    if (!v.empty()) std::memcpy(b.data(), v.data(), b.size());
    return b;
}
void put(bytes_t &b, dim i, dim width, uint32_t code) {
    std::memcpy(&b[size_t(i * width)], &code, size_t(width));
}
float get(const bytes_t &b, dim i, dt type) {
    uint32_t code = 0;
    std::memcpy(&code, &b[size_t(i * bytes_of(type))], size_t(bytes_of(type)));
    return decode_value(c_type(type), code);
}

// A problem with its data. Rows that do not count are NaN, and so are their scales.
struct problem_of_test_t {
    dice_t d;
    dim K, N;
    std::vector<dim> counts, places;
    row_grouping grouping = row_grouping::ends;
    dt src = dt::bf16, diff_dst = dt::bf16, to = dt::f32;
    bool three_dims = false, counted = false, runtime_rows = false;
    dim ranks = 1, spare = 0;
    tag order = tag::abc;
    float sum = 0;
    values_t in;
    shapes_t shapes;

    // Large problems have sizes that the tensor-core kernel takes.
    problem_of_test_t(unsigned seed, bool large) : d(seed) {
        const dim sizes[] = {1, 7, 24, 40, 72, 130}, tiles[] = {64, 128, 200, 264, 392, 520};
        K = large ? d.one_of(tiles) : d.one_of(sizes);
        N = large ? d.one_of(tiles) : d.one_of(sizes);
        const int rows[] = {0, 1, 2, 5, 17, 31, 33, 40}, many[] = {0, 1, 15, 16, 63, 64, 65, 100, 257, 330};
        const int groups = 1 + d.below(large ? 6 : 9);
        for (int g = 0; g < groups; g++) counts.push_back(large ? d.one_of(many) : d.one_of(rows));
        const dt plain[] = {dt::bf16, dt::bf16, dt::f16, dt::f32}, eight[] = {dt::f8_e4m3, dt::f8_e5m2},
                 results[] = {dt::f32, dt::bf16, dt::f16};
        src = diff_dst = d.one_of(plain);
        if (d.below(3) == 0) src = d.one_of(eight), diff_dst = d.one_of(eight);
        to = d.one_of(results);
        order = d.coin() ? tag::abc : tag::acb;
        if (d.below(3) == 0) sum = d.coin() ? 1.f : .5f;
        const row_grouping kinds[] = {row_grouping::ends, row_grouping::starts, row_grouping::padded};
        grouping = d.one_of(kinds);
        const bool padded = grouping == row_grouping::padded;
        three_dims = padded && d.coin();
        counted = padded || d.coin();
        if (counted && d.coin()) ranks = 1 + d.below(3);
        runtime_rows = !three_dims && d.below(4) == 0;
        spare = padded ? 0 : d.below(40);
        const dim alignment = counted && d.coin() ? 32 : 1,
                  most = *std::max_element(counts.begin(), counts.end()) + d.below(9);
        for (const dim n : counts)
            places.push_back(padded                  ? most
                             : counted && n % 2 == 1 ? div_up(n, alignment) * alignment + d.below(3)
                                                     : div_up(n, alignment) * alignment);
        make();
    }

    dim groups() const { return dim(counts.size()); }
    dim first(dim g) const { return g == 0 ? 0 : first(g - 1) + places[size_t(g - 1)]; }
    dim first_block(dim g) const {
        return g == 0 ? 0 : first_block(g - 1) + div_up(places[size_t(g - 1)], block);
    }
    dim rows() const { return first(groups()) + spare; }

    // Small numbers, whose sums are exact.
    uint32_t number(dt type) {
        return encode_value(c_type(type), float(d.below(17) - 8) / (is_f8(type) ? 4 : 8));
    }
    void make_operand(int arg, dt type, dim columns) {
        const dim width = bytes_of(type);
        bytes_t data(size_t(rows() * columns * width), 0xff);
        dim blocks = first_block(groups());
        if (three_dims) blocks = groups() * div_up(places[0], block);
        bytes_t scales(size_t(blocks * columns), 0xff);
        for (dim g = 0; g < groups(); g++)
            for (dim c = 0; c < columns; c++)
                for (dim i = 0; i < counts[size_t(g)]; i++) {
                    put(data, (first(g) + i) * columns + c, width, number(type));
                    if (i % block == 0)
                        scales[size_t((first_block(g) + i / block) * columns + c)] =
                                uint8_t(126 + d.below(4));
                }
        if (is_f8(type)) {
            in[MXDNN_ARG_ATTR_SCALES | arg] = scales;
            shapes[MXDNN_ARG_ATTR_SCALES | arg] =
                    three_dims
                            ? memory::desc({groups(), div_up(places[0], block), columns}, dt::e8m0, tag::abc)
                            : memory::desc({blocks, columns}, dt::e8m0, tag::ab);
        }
        in[arg] = data;
        shapes[arg] = operand(type, columns, false);
    }
    memory::desc operand(dt type, dim columns, bool runtime) const {
        if (three_dims) return memory::desc({groups(), places[0], columns}, type, tag::abc);
        return memory::desc({runtime ? MXDNN_RUNTIME_DIM_VAL : rows(), columns}, type, tag::ab);
    }
    void make() {
        make_operand(MXDNN_ARG_SRC, src, K);
        make_operand(MXDNN_ARG_DIFF_DST, diff_dst, N);
        if (sum != 0) {
            bytes_t old(size_t(groups() * K * N * bytes_of(to)));
            for (dim i = 0; i < groups() * K * N; i++) put(old, i, bytes_of(to), number(to));
            in[MXDNN_ARG_DIFF_WEIGHTS] = old;
        }
        std::vector<int32_t> offsets, count(size_t(ranks * groups()), 0);
        if (grouping == row_grouping::starts) offsets.push_back(0);
        for (dim g = 0; g < groups(); g++) {
            offsets.push_back(int32_t(first(g) + places[size_t(g)]));
            for (dim i = 0; i < counts[size_t(g)]; i++) count[size_t(i % ranks * groups() + g)]++;
        }
        if (grouping != row_grouping::padded) in[MXDNN_ARG_GROUP_OFFSETS] = raw(offsets);
        shapes[MXDNN_ARG_GROUP_COUNTS] = memory::desc({MXDNN_RUNTIME_DIM_VAL, groups()}, dt::s32, tag::ab);
        if (!counted) return;
        in[MXDNN_ARG_GROUP_COUNTS] = raw(count);
        shapes[MXDNN_ARG_GROUP_COUNTS] = ranks > 1 ? memory::desc({ranks, groups()}, dt::s32, tag::ab)
                                                   : memory::desc({groups()}, dt::s32, tag::a);
    }
    backward_t::primitive_desc make_pd(const mxdnn::engine &e) const {
        mxdnn::primitive_attr attr;
        attr.set_row_grouping(grouping);
        if (is_f8(src))
            for (const int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DIFF_DST})
                attr.set_scales(arg, three_dims ? 7 : 3,
                        three_dims ? std::vector<dim>{1, block, 1} : std::vector<dim>{block, 1}, dt::e8m0);
        mxdnn::post_ops ops;
        if (sum != 0) ops.append_sum(sum);
        attr.set_post_ops(ops);
        return backward_t::primitive_desc(e, operand(src, K, runtime_rows),
                operand(diff_dst, N, runtime_rows), memory::desc({groups(), K, N}, to, order), attr);
    }
    bytes_t result(const backward_t::primitive_desc &pd, const mxdnn::engine &e) const {
        return run(pd, e, in, shapes).at(MXDNN_ARG_DIFF_WEIGHTS);
    }
    dim at(dim g, dim k, dim n) const { return g * K * N + (order == tag::abc ? k * N + n : n * K + k); }
    std::string text() const {
        std::string s = "K " + std::to_string(K) + " N " + std::to_string(N) + " types "
                        + std::to_string(int(src)) + " " + std::to_string(int(diff_dst)) + " "
                        + std::to_string(int(to)) + " grouping " + std::to_string(int(grouping)) + " rows";
        for (size_t g = 0; g < counts.size(); g++)
            s += " " + std::to_string(counts[g]) + "/" + std::to_string(places[g]);
        return s;
    }
};

// How many executions by `impl` were compared; all of them gave the bits of the host.
int compare(unsigned seed, bool large, const char *impl) {
    const problem_of_test_t p(seed, large);
    auto pd = p.make_pd(gpu());
    if (!go_to(pd, impl)) return 0;
    EXPECT_EQ(p.result(pd, gpu()), p.result(p.make_pd(cpu()), cpu()))
            << impl << " seed " << seed << " " << p.text();
    return 1;
}

constexpr const char *impls[] = {"cuda:sm_90", "ref:cuda"};

TEST(cuda_backward_weights, gives_the_bits_of_the_host) {
    for (const char *impl : impls) {
        int compared = 0;
        for (unsigned seed = 0; seed < 60; seed++) compared += compare(seed, false, impl);
        EXPECT_GE(compared, 8) << impl;
    }
}

// Long groups and an even number of tiles: pairs of CTAs share what they read.
TEST(cuda_backward_weights, gives_the_bits_of_the_host_in_pairs) {
    int compared = 0;
    for (unsigned seed = 200; seed < 212; seed++) {
        problem_of_test_t p(seed, true);
        p.K = 264, p.N = 384;
        p.grouping = row_grouping::starts;
        p.three_dims = p.counted = false;
        p.counts = p.places = {1500, 0, 1601};
        p.in.clear(), p.shapes.clear();
        p.make();
        auto pd = p.make_pd(gpu());
        if (!go_to(pd, "cuda:sm_90")) continue;
        EXPECT_EQ(p.result(pd, gpu()), p.result(p.make_pd(cpu()), cpu())) << seed << " " << p.text();
        compared++;
    }
    EXPECT_GE(compared, 4);
}

TEST(cuda_backward_weights, gives_the_bits_of_the_host_for_many_rows) {
    for (const char *impl : impls) {
        int compared = 0;
        for (unsigned seed = 100; seed < 150; seed++) compared += compare(seed, true, impl);
        EXPECT_GE(compared, 20) << impl;
    }
}

TEST(cuda_backward_weights, nan_stays_in_its_column) {
    for (const dt type : {dt::f32, dt::bf16, dt::f16, dt::f8_e4m3}) {
        problem_of_test_t p(7, true);
        p.counts = {70, 9, 129}, p.places = {70, 9, 129};
        p.K = 128, p.N = 200;
        p.grouping = row_grouping::ends, p.counted = p.three_dims = p.runtime_rows = false, p.ranks = 1;
        p.src = p.diff_dst = type, p.to = dt::f32, p.sum = 0;
        p.in.clear(), p.shapes.clear();
        p.make();
        const dim row = p.first(1) + 2;
        const uint32_t nan = is_f8(type) ? 0x7f : encode_value(c_type(type), NAN);
        put(p.in[MXDNN_ARG_SRC], row * p.K + 4, bytes_of(type), nan);
        put(p.in[MXDNN_ARG_DIFF_DST], (p.first(2) + 128) * p.N + 7, bytes_of(type), nan);
        auto pd = p.make_pd(gpu());
        do {
            const bytes_t got = p.result(pd, gpu());
            int wrong = 0;
            for (dim g = 0; g < 3; g++)
                for (dim k = 0; k < p.K; k++)
                    for (dim n = 0; n < p.N; n++)
                        wrong += std::isnan(get(got, p.at(g, k, n), dt::f32))
                                 != ((g == 1 && k == 4) || (g == 2 && n == 7));
            EXPECT_EQ(wrong, 0) << pd.impl_info_str() << " type " << int(type);
        } while (pd.next_impl());
    }
}

// Nothing is added to the gradient of a group without rows, not even to -0.
TEST(cuda_backward_weights, groups_without_rows_keep_every_bit) {
    problem_of_test_t p(8, true);
    p.counts = p.places = {0, 64, 0};
    p.K = 128, p.N = 200;
    p.grouping = row_grouping::ends, p.counted = p.three_dims = p.runtime_rows = false, p.ranks = 1;
    p.src = p.diff_dst = p.to = dt::bf16, p.sum = 1, p.order = tag::abc;
    p.in.clear(), p.shapes.clear();
    p.make();
    bytes_t &old = p.in[MXDNN_ARG_DIFF_WEIGHTS];
    for (dim i = 0; i < p.K * p.N; i += 2) put(old, i, 2, 0x8000);
    auto pd = p.make_pd(gpu());
    do {
        const bytes_t got = p.result(pd, gpu());
        const size_t one = size_t(p.K * p.N * 2);
        EXPECT_TRUE(std::equal(got.begin(), got.begin() + one, old.begin())) << pd.impl_info_str();
        EXPECT_TRUE(std::equal(got.begin() + 2 * one, got.end(), old.begin() + 2 * one))
                << pd.impl_info_str();
    } while (pd.next_impl());
}

TEST(cuda_backward_weights, nothing_to_do) {
    const dim shapes[][3] = {{0, 4, 4}, {2, 0, 8}, {2, 8, 0}};
    for (const auto &s : shapes) {
        backward_t::primitive_desc pd(gpu(), memory::desc({5, s[1]}, dt::bf16, tag::ab),
                memory::desc({5, s[2]}, dt::bf16, tag::ab),
                memory::desc({s[0], s[1], s[2]}, dt::f32, tag::abc));
        const std::vector<int32_t> ends(size_t(s[0]), 5);
        do
            run(pd, gpu(), {{MXDNN_ARG_GROUP_OFFSETS, raw(ends)}},
                    {{MXDNN_ARG_GROUP_COUNTS,
                            memory::desc({MXDNN_RUNTIME_DIM_VAL, s[0]}, dt::s32, tag::ab)}});
        while (pd.next_impl());
    }
}

// Offsets and counts of any value.
TEST(cuda_backward_weights, out_of_range_touch_nothing_else) {
    const int32_t wrong[] = {INT_MIN, -1, 1 << 24, INT_MAX};
    for (unsigned seed = 200; seed < 224; seed++) {
        problem_of_test_t p(seed, seed % 2);
        for (const int arg : {MXDNN_ARG_GROUP_OFFSETS, MXDNN_ARG_GROUP_COUNTS}) {
            const auto given = p.in.find(arg);
            if (given == p.in.end()) continue;
            for (size_t i = 0; i + 4 <= given->second.size(); i += 4) {
                const int32_t any = p.d.coin() ? p.d.one_of(wrong) : p.d.below(int(p.rows()) + 1);
                if (p.d.coin()) std::memcpy(&given->second[i], &any, 4);
            }
        }
        auto pd = p.make_pd(gpu());
        do p.result(pd, gpu()); // throws where the device reports a fault
        while (pd.next_impl());
    }
}

} // namespace

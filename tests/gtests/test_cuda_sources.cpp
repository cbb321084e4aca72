// SPDX-License-Identifier: Apache-2.0
// cuda:sm_90 and rows:sm_80 with sources that they convert to bf16 rows first, against double arithmetic over
// the same codes: every format, scales over their whole range, NaN scales, and rows in any order in memory.
#include <cmath>

#include "common/formats/plain_bits.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/row_groups.hpp"
#include "cuda_call.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;

namespace {

using mode_t = mxdnn::quantization_mode;

struct source_t {
    const char *name;
    dt type, scale;    // scale undef: high precision
    memory::dim block; // 0: one scale per row
    bool global;
    bool exact = false; // high precision that is not to be rounded to bf16
};
const source_t sources[] = {
        {"mxfp8", dt::f8_e4m3, dt::e8m0, 32, false},
        {"mxfp8_e5m2", dt::f8_e5m2, dt::e8m0, 32, false},
        {"mxfp6", dt::f6_e2m3, dt::e8m0, 32, false},
        {"mxfp6_e3m2", dt::f6_e3m2, dt::e8m0, 32, false},
        {"mxfp4", dt::f4_e2m1, dt::e8m0, 32, false},
        {"mxint8", dt::s8, dt::e8m0, 32, false},
        {"nvfp4", dt::f4_e2m1, dt::f8_e4m3, 16, false},
        {"nvfp4 with a global scale", dt::f4_e2m1, dt::f8_e4m3, 16, true},
        {"s8 under f32 per row", dt::s8, dt::f32, 0, false},
        {"s8 under bf16 per row", dt::s8, dt::bf16, 0, false},
        {"f8_e4m3 under f32 per row", dt::f8_e4m3, dt::f32, 0, false},
        {"f8_e4m3 under f16 per row", dt::f8_e4m3, dt::f16, 0, false},
        {"bf16", dt::bf16, dt::undef, 0, false},
        {"f16 as bf16", dt::f16, dt::undef, 0, false},
        {"f32 as bf16", dt::f32, dt::undef, 0, false},
        {"f16", dt::f16, dt::undef, 0, false, true},
        {"f32", dt::f32, dt::undef, 0, false, true},
};

struct case_t {
    memory::dim M, N, K;
    tag order;
    bool bias;
    int64_t rows_hint = 0;
    const char *impl = "cuda:sm_90";
    bool int4 = false; // weights, else MXFP4
};
const char *const implementations[] = {"cuda:sm_90", "rows:sm_80"};

mxdnn::mx_matmul::primitive_desc make_pd(const mxdnn::engine &e, const source_t &s, const case_t &c) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, c.int4 ? dt::bf16 : dt::e8m0, false, mode_t::static_sazp);
    if (s.block)
        attr.set_scales(MXDNN_ARG_SRC, 3, {1, s.block}, s.scale, false, mode_t::static_sazp);
    else if (s.scale != dt::undef)
        attr.set_scales(MXDNN_ARG_SRC, 1, {}, s.scale, false, mode_t::static_sazp);
    else if (!s.exact)
        attr.set_fpmath_mode(mxdnn::fpmath_mode::bf16);
    if (s.global) attr.set_global_scale(MXDNN_ARG_SRC, mode_t::static_sazp);
    if (c.rows_hint) attr.set_max_rows_hint(c.rows_hint);
    const memory::desc src({c.M, c.K}, s.type, c.order),
            wei({c.K, c.N}, c.int4 ? dt::s4 : dt::f4_e2m1, tag::any);
    const memory::desc dst({c.M, c.N}, dt::f32, tag::ab), bias({1, c.N}, dt::f32, tag::ab);
    mxdnn::mx_matmul::primitive_desc pd =
            c.bias ? mxdnn::mx_matmul::primitive_desc(e, src, wei, bias, dst, attr, true)
                   : mxdnn::mx_matmul::primitive_desc(e, src, wei, dst, attr, true);
    EXPECT_TRUE(!pd || go_to(pd, c.impl)) << s.name << " is nothing for " << c.impl;
    return pd;
}

using scale_fn = uint32_t (*)(std::mt19937 &, int64_t row, int64_t block);
uint32_t moderate(std::mt19937 &rng, int64_t, int64_t) { return 118 + rng() % 20; }
// The whole range of scales: each row has scales of one size, and each row another size.
uint32_t by_row(std::mt19937 &rng, int64_t row, int64_t) { return uint32_t(row * 2 + rng() % 3) % 255; }
uint32_t any_scale(std::mt19937 &rng, int64_t, int64_t) { return rng() % 255; }
uint32_t nan_in_row_2(std::mt19937 &, int64_t row, int64_t block) {
    return row == 2 && block == 1 ? 255 : 127;
}

struct run_t {
    values_t in;
    bytes_t weights;
    packed_view_t view;
    std::vector<float> got;
};

// Values of a high precision with all its bits, some of which only an exact source has, subnormal ones too.
void fill(bytes_t &bytes, dt type, std::mt19937 &rng) {
    const size_t width = type == dt::f16 ? 2 : 4;
    for (size_t i = 0; i + width <= bytes.size(); i += width) {
        const float x = std::ldexp(float(int64_t(rng()) - (int64_t(1) << 31)), int(rng() % 12) - 36);
        const uint32_t code = rng() % 16 == 0                      ? rng() % 2 << (8 * width - 1) // a zero
                              : rng() % 16 == 0 && type == dt::f16 ? rng() & 0x83ff
                                                                   : encode_value(mxdnn_data_type_t(type), x);
        std::memcpy(&bytes[i], &code, width);
    }
}

run_t run_case(const source_t &s, const case_t &c, unsigned seed, scale_fn src_scale, scale_fn wei_scale) {
    std::mt19937 rng(seed);
    const auto pd = make_pd(gpu(), s, c);
    run_t r{random_inputs(pd, rng), {}, {}, {}};
    if (s.scale == dt::e8m0) {
        bytes_t &scales = r.in[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC];
        const int64_t blocks = div_up(c.K, 32);
        for (int64_t m = 0; m < c.M; m++)
            for (int64_t b = 0; b < blocks; b++)
                scales[size_t(m * blocks + b)] = uint8_t(src_scale(rng, m, b));
    }
    if (s.exact) fill(r.in[MXDNN_ARG_SRC], s.type, rng);
    const memory::desc wei = pd.weights_desc();
    r.weights.assign(wei.get_size(), 0);
    r.view = {layout_of(*wei.get()), shape_of(*wei.get()), r.weights.data()};
    for (int64_t k = 0; k < c.K; k++)
        for (int64_t n = 0; n < c.N; n++) {
            r.view.set_code(k, n, rng() & 15);
            if (k % 32 == 0) r.view.set_scale(k, n, wei_scale(rng, n, k / 32) << (c.int4 ? 7 : 0));
        }
    r.in[MXDNN_ARG_WEIGHTS] = r.weights;
    const bytes_t out = run(pd, gpu(), r.in).at(MXDNN_ARG_DST);
    r.got.resize(out.size() / 4);
    std::memcpy(r.got.data(), out.data(), out.size());
    return r;
}

uint32_t read_code(const bytes_t &bytes, int64_t at, int width) {
    uint32_t code = 0;
    std::memcpy(&code, &bytes[size_t(at * width)], size_t(width));
    return code;
}

float source_value(const run_t &r, const source_t &s, const case_t &c, int64_t m, int64_t k) {
    const bytes_t &src = r.in.at(MXDNN_ARG_SRC);
    const auto type = mxdnn_data_type_t(s.type), scale_type = mxdnn_data_type_t(s.scale);
    const int64_t at = c.order == tag::ab ? m * c.K + k : k * c.M + m;
    if (s.scale == dt::undef) {
        const float x = decode_value(type, read_code(src, at, data_type_info(type)->bits / 8));
        return s.exact ? x : bf16_t::decode(bf16_t::encode(x));
    }
    const int bits = storage_bits(data_type_info(type)->bits, mxdnn_element_packing_bytes);
    const uint32_t code = bits == 4
                                  ? get_code(src.data(), m, k, div_up(c.K, 2), 4, mxdnn_element_packing_bytes)
                                  : src[size_t(at)];
    quant_t q;
    q.scale_dt = scale_type;
    q.block = s.block ? s.block : c.K;
    if (s.global) q.global = global_scale_kind_t::one;
    float global = 1.f;
    if (s.global) std::memcpy(&global, r.in.at(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC).data(), 4);
    block_params_t p;
    p.scale = read_code(r.in.at(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC),
            m * div_up(c.K, q.block) + k / q.block, data_type_info(scale_type)->bits / 8);
    return dequantize_element(type, q, p, global, code);
}

void expect_close(const run_t &r, const source_t &s, const case_t &c) {
    std::vector<float> w(static_cast<size_t>(c.K * c.N));
    for (int64_t k = 0; k < c.K; k++)
        for (int64_t n = 0; n < c.N; n++)
            w[size_t(n * c.K + k)] = decode_value(c.int4 ? mxdnn_s4 : mxdnn_f4_e2m1, r.view.code(k, n))
                                     * decode_value(c.int4 ? mxdnn_bf16 : mxdnn_e8m0, r.view.scale(k, n));
    // cuda:sm_90 rounds int4 weights of many rows of bf16 to bf16.
    const bool rounds =
            c.int4 && c.M > 16 && std::string(c.impl) == "cuda:sm_90" && s.type != dt::f16 && !s.exact;
    const double rounding = rounds ? std::ldexp(1., -8) : 0.;
    std::vector<double> x(static_cast<size_t>(c.K));
    for (int64_t m = 0; m<c.M; m += c.M> 300 ? 37 : 1) {
        double largest = 0;
        for (int64_t k = 0; k < c.K; k++) {
            x[size_t(k)] = source_value(r, s, c, m, k);
            if (std::isfinite(x[size_t(k)])) largest = std::max(largest, std::fabs(x[size_t(k)]));
        }
        // Half of the least bf16, in rows that are not enlarged.
        const double lost = largest >= std::ldexp(1., -50) ? std::ldexp(1., -134) : 0.;
        for (int64_t n = 0; n < c.N; n++) {
            double sum = 0, finite = 0, weights = 0; // finite: magnitude of the finite products
            for (int64_t k = 0; k < c.K; k++) {
                const double weight = w[size_t(n * c.K + k)], product = x[size_t(k)] * weight;
                sum += product;
                if (std::isfinite(product)) finite += std::fabs(product);
                if (std::isfinite(weight)) weights += std::fabs(weight);
            }
            if (c.bias) {
                const float b = decode_value(mxdnn_f32, read_code(r.in.at(MXDNN_ARG_BIAS), n, 4));
                sum += b, finite += std::fabs(b);
            }
            const double bound = double(c.K + 6) * std::ldexp(finite, -23) + rounding * finite
                                 + lost * weights + double(c.K + 1) * std::ldexp(1., -149);
            const double got = r.got[size_t(m * c.N + n)];
            const auto where = [&] {
                return std::string(s.name) + ": row " + std::to_string(m) + " column " + std::to_string(n)
                       + " is " + std::to_string(got) + ", not " + std::to_string(sum);
            };
            // Sums that leave f32's range on the way may meet an Inf of the other sign there.
            if (std::isnan(sum))
                ASSERT_TRUE(std::isnan(got)) << where();
            else if (finite > 3.3e38)
                ASSERT_TRUE(!std::isfinite(got) || std::fabs(got - sum) <= bound) << where();
            else if (std::isinf(sum))
                ASSERT_EQ(got, sum) << where();
            else
                ASSERT_LE(std::fabs(got - sum), bound) << where();
        }
    }
}

bool on_hopper() { return gpu().get_target() == "cuda:sm_90"; }

TEST(cuda_sources, every_format_and_size) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const char *impl : implementations)
        for (const source_t &s : sources)
            for (case_t c : {case_t{1, 64, 64, tag::ab, false}, case_t{7, 100, 200, tag::ab, true},
                         case_t{33, 130, 1000, tag::ab, true}, case_t{150, 70, 2880, tag::ab, false},
                         case_t{5, 66, 77, tag::ab, false}, case_t{40, 65, 31, tag::ba, true},
                         case_t{50, 130, 1000, tag::ab, true, 0, "", true}}) {
                const auto type = mxdnn_data_type_t(s.type);
                if (c.order == tag::ba && data_type_info(type)->bits == 4) continue;
                c.impl = impl;
                expect_close(run_case(s, c, unsigned(c.M), moderate, moderate), s, c);
                if (HasFailure()) return;
            }
}

TEST(cuda_sources, scales_from_end_to_end) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const source_t &s : sources) {
        if (s.scale != dt::e8m0) continue;
        for (memory::dim M : {16, 128}) {
            const case_t c{M, 96, 128, tag::ab, false};
            expect_close(run_case(s, c, 1, by_row, moderate), s, c);
            if (HasFatalFailure()) return;
            expect_close(run_case(s, c, 2, by_row, any_scale), s, c);
            if (HasFatalFailure()) return;
            expect_close(run_case(s, c, 3, any_scale, moderate), s, c);
            if (HasFatalFailure()) return;
        }
    }
}

TEST(cuda_sources, a_nan_scale_stays_in_its_row) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const source_t &s : sources) {
        if (s.scale != dt::e8m0) continue;
        const case_t c{20, 64, 96, tag::ab, false};
        run_t r = run_case(s, c, 4, nan_in_row_2, moderate);
        expect_close(r, s, c); // FP8 codes have NaN of their own
        for (int64_t n = 0; n < c.N; n++) EXPECT_TRUE(std::isnan(r.got[size_t(2 * c.N + n)])) << s.name;
        if (HasFatalFailure()) return;
    }
}

// A value times an Inf of the weights is Inf, also one that bf16 holds; and Inf times a weight.
TEST(cuda_sources, infinities_meet_every_term) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const source_t &s : sources) {
        if (!s.exact) continue;
        for (int run_number = 0; run_number < 6; run_number++) {
            const memory::dim sizes[] = {3, 20, 100}, M = sizes[run_number / 2];
            const case_t c{M, 64, 96, tag::ab, false, 0, implementations[run_number % 2]};
            const auto pd = make_pd(gpu(), s, c);
            std::mt19937 rng(6);
            run_t r{random_inputs(pd, rng), {}, {}, {}};
            bytes_t &src = r.in[MXDNN_ARG_SRC];
            const auto type = mxdnn_data_type_t(s.type);
            const int width = data_type_info(type)->bits / 8;
            for (int64_t m = 0; m < M; m++)
                for (int64_t k = 0; k < c.K; k++) {
                    const float x = m % 3 == 1 && k == 40 ? -INFINITY : m % 3 == 2 && k == 41 ? NAN : 1.5f;
                    const uint32_t code = encode_value(type, x);
                    std::memcpy(&src[size_t((m * c.K + k) * width)], &code, size_t(width));
                }
            const memory::desc wei = pd.weights_desc();
            r.weights.assign(wei.get_size(), 0);
            r.view = {layout_of(*wei.get()), shape_of(*wei.get()), r.weights.data()};
            for (int64_t k = 0; k < c.K; k++)
                for (int64_t n = 0; n < c.N; n++) {
                    r.view.set_code(k, n, 7); // 6
                    if (k % 32 == 0) r.view.set_scale(k, n, n % 5 == 0 && k == 64 ? 254 : 127);
                }
            r.in[MXDNN_ARG_WEIGHTS] = r.weights;
            const bytes_t out = run(pd, gpu(), r.in).at(MXDNN_ARG_DST);
            r.got.resize(out.size() / 4);
            std::memcpy(r.got.data(), out.data(), out.size());
            expect_close(r, s, c);
            if (HasFatalFailure()) return;
        }
    }
}

// More rows than are converted at a time.
TEST(cuda_sources, gemm_in_parts) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const char *impl : implementations)
        for (const source_t &s : sources) {
            if (&s != sources && !s.exact) continue;
            const case_t c{300, 64, 64, tag::ab, false, 100, impl};
            expect_close(run_case(s, c, 5, moderate, moderate), s, c);
            if (HasFatalFailure()) return;
        }
}

// Scales in tiles of 128x4 that begin anew with every group give the bits of scales in rows.
TEST(cuda_sources, tiles_of_scales_begin_with_every_group) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    const int64_t E = 5, K = 200, N = 70, group_rows = 210;
    const std::vector<int32_t> counts = {5, 0, 130, 1, 200};
    using grouping_t = mxdnn::row_grouping;
    for (const char *impl : implementations)
        for (const source_t &s : sources)
            for (const grouping_t grouping : {grouping_t::ends, grouping_t::starts, grouping_t::padded}) {
                const bool padded = grouping == grouping_t::padded;
                if (!s.block) continue;
                std::vector<int32_t> bounds;
                int32_t rows = 2; // starts: those before the first are nobody's
                if (grouping == grouping_t::starts) bounds.push_back(rows);
                if (grouping == grouping_t::ends) rows = 0;
                for (int32_t c : counts) bounds.push_back(padded ? c : rows += c);
                rows = padded ? int32_t(E * group_rows) : rows + 3;
                row_groups_t groups;
                groups.grouping = mxdnn_row_grouping_t(grouping);
                groups.groups = groups.ids = groups.experts = E;
                groups.rows = rows;
                groups.bounds = bounds.data();

                const auto matrix = [&](int64_t columns, dt type) {
                    return padded ? memory::desc({E, group_rows, columns}, type, tag::abc)
                                  : memory::desc({rows, columns}, type, tag::ab);
                };
                const auto make = [&](bool tiles) {
                    mxdnn::primitive_attr attr;
                    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0, false, mode_t::static_sazp);
                    attr.set_scales(
                            MXDNN_ARG_SRC, padded ? 7 : 3, {1, s.block}, s.scale, false, mode_t::static_sazp);
                    if (s.global) attr.set_global_scale(MXDNN_ARG_SRC, mode_t::static_sazp);
                    if (tiles) attr.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
                    attr.set_row_grouping(grouping);
                    return mxdnn::grouped_matmul::primitive_desc(gpu(), matrix(K, s.type),
                            memory::desc({E, K, N}, dt::f4_e2m1, tag::any), memory::desc(),
                            matrix(N, dt::f32), attr);
                };
                std::mt19937 rng(8);
                const int64_t blocks = div_up(K, s.block);
                const memory::desc in_rows = matrix(blocks, s.scale);
                const bytes_t codes = random_bytes(mxdnn_u4, matrix(K, s.type).get_size(), rng),
                              scales = random_bytes(mxdnn_data_type_t(s.scale), size_t(rows * blocks), rng),
                              weights = random_inputs(make(false), rng).at(MXDNN_ARG_WEIGHTS);
                const int64_t all = groups.swizzled_rows_before(E);
                bytes_t in_tiles(size_t(swizzle_128x4::size(all, blocks)), 0xc3);
                for (int64_t g = 0; g < E; g++)
                    for (int64_t r = 0; r < groups.group(g).count; r++)
                        for (int64_t b = 0; b < blocks; b++)
                            in_tiles[size_t(swizzle_128x4::offset(groups.swizzled_rows_before(g) + r, b,
                                    blocks))] = scales[size_t((groups.group(g).first + r) * blocks + b)];
                const auto multiply = [&](bool tiles) {
                    auto pd = make(tiles);
                    EXPECT_TRUE(go_to(pd, impl)) << s.name;
                    std::unordered_map<int, memory> args;
                    args[MXDNN_ARG_SRC] = make_memory(pd.src_desc(), gpu(), codes);
                    const memory::dim parts = padded ? E : 1;
                    args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] = make_memory(
                            tiles ? memory::desc({parts, int64_t(in_tiles.size()) / parts}, s.scale, tag::ab)
                                  : in_rows,
                            gpu(), tiles ? in_tiles : scales);
                    if (s.global)
                        args[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC] = make_memory(
                                memory::desc({1}, dt::f32, tag::a), gpu(), random_bytes(mxdnn_f32, 4, rng));
                    args[MXDNN_ARG_WEIGHTS] = make_memory(pd.weights_desc(), gpu(), weights);
                    bytes_t index(bounds.size() * 4);
                    std::memcpy(index.data(), bounds.data(), index.size());
                    args[padded ? MXDNN_ARG_GROUP_COUNTS : MXDNN_ARG_GROUP_OFFSETS] = make_memory(
                            memory::desc({int64_t(bounds.size())}, dt::s32, tag::a), gpu(), index);
                    args[MXDNN_ARG_DST] =
                            make_memory(pd.dst_desc(), gpu(), bytes_t(pd.dst_desc().get_size(), 0xc3));
                    mxdnn::stream stream(gpu());
                    mxdnn::grouped_matmul(pd).execute(stream, args);
                    stream.wait();
                    return read_memory(args[MXDNN_ARG_DST]);
                };
                const std::mt19937 before = rng;
                const bytes_t want = multiply(false);
                rng = before;
                ASSERT_EQ(multiply(true), want) << s.name << " " << impl << " grouping " << int(grouping);
            }
}

// The same in batches, with shared weights and with weights per matrix.
TEST(cuda_sources, tiles_of_scales_begin_with_every_matrix) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    const int64_t batch = 3, K = 200, N = 70;
    for (const char *impl : implementations)
        for (const source_t &s : sources)
            for (const int64_t M : {13, 150})
                for (const int64_t matrices : {int64_t(1), batch}) { // of weights
                    if (!s.block) continue;
                    const int64_t blocks = div_up(K, s.block), tiles_each = swizzle_128x4::size(M, blocks);
                    const auto make = [&](bool tiles) {
                        mxdnn::primitive_attr attr;
                        attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0, false, mode_t::static_sazp);
                        attr.set_scales(MXDNN_ARG_SRC, 7, {1, s.block}, s.scale, false, mode_t::static_sazp);
                        if (s.global) attr.set_global_scale(MXDNN_ARG_SRC, mode_t::static_sazp);
                        if (tiles) attr.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
                        return mxdnn::mx_matmul::primitive_desc(gpu(),
                                memory::desc({batch, M, K}, s.type, tag::abc),
                                memory::desc({matrices, K, N}, dt::f4_e2m1, tag::any),
                                memory::desc({batch, M, N}, dt::f32, tag::abc), attr);
                    };
                    std::mt19937 rng(9);
                    const bytes_t codes = random_bytes(mxdnn_u4,
                                          memory::desc({batch, M, K}, s.type, tag::abc).get_size(), rng),
                                  scales = random_bytes(
                                          mxdnn_data_type_t(s.scale), size_t(batch * M * blocks), rng),
                                  weights = random_inputs(make(false), rng).at(MXDNN_ARG_WEIGHTS),
                                  globals = random_bytes(mxdnn_f32, size_t(batch) * 4, rng);
                    bytes_t in_tiles(size_t(batch * tiles_each), 0xc3);
                    for (int64_t i = 0; i < batch * M * blocks; i++)
                        in_tiles[size_t(i / (M * blocks) * tiles_each
                                        + swizzle_128x4::offset(i / blocks % M, i % blocks, blocks))] =
                                scales[size_t(i)];
                    const auto multiply = [&](bool tiles) {
                        auto pd = make(tiles);
                        EXPECT_TRUE(go_to(pd, impl)) << s.name;
                        std::unordered_map<int, memory> args;
                        args[MXDNN_ARG_SRC] = make_memory(pd.src_desc(), gpu(), codes);
                        args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                                make_memory(tiles ? memory::desc({batch, tiles_each}, s.scale, tag::ab)
                                                  : memory::desc({batch, M, blocks}, s.scale, tag::abc),
                                        gpu(), tiles ? in_tiles : scales);
                        if (s.global)
                            args[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC] =
                                    make_memory(memory::desc({batch}, dt::f32, tag::a), gpu(), globals);
                        args[MXDNN_ARG_WEIGHTS] = make_memory(pd.weights_desc(), gpu(), weights);
                        args[MXDNN_ARG_DST] =
                                make_memory(pd.dst_desc(), gpu(), bytes_t(pd.dst_desc().get_size(), 0xc3));
                        mxdnn::stream stream(gpu());
                        mxdnn::mx_matmul(pd).execute(stream, args);
                        stream.wait();
                        return read_memory(args[MXDNN_ARG_DST]);
                    };
                    const bytes_t want = multiply(false);
                    ASSERT_EQ(multiply(true), want)
                            << s.name << " " << impl << " M " << M << " matrices " << matrices;
                }
}

} // namespace

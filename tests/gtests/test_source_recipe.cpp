// SPDX-License-Identifier: Apache-2.0
// A high-precision source that is quantised in execute. Every implementation is compared with sums in double
// over codes that this file computes by the rules of doc/reference/mx_matmul.md.

#include "test_api_util.hpp"

using namespace api_test;

namespace {

using dim = memory::dim;
using mxdnn::quantization_mode;
using mxdnn::scale_rounding;

struct recipe_t {
    const char *name;
    bool blocks; // MXINT8; else one scale per row
    scale_rounding rounding;
    bool fp8 = false; // f8_e4m3; else s8
};
const recipe_t recipes[] = {{"per row", false, scale_rounding::floor},
        {"MXINT8", true, scale_rounding::floor}, {"MXINT8, ceil", true, scale_rounding::ceil},
        {"FP8 per row", false, scale_rounding::floor, true}};

void ask(mxdnn::primitive_attr &a, const recipe_t &r) {
    if (!r.blocks)
        return a.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32, false,
                r.fp8 ? quantization_mode::dynamic_fp : quantization_mode::dynamic_affine);
    a.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0, false, quantization_mode::dynamic_mx);
    a.set_scale_rounding(MXDNN_ARG_SRC, r.rounding);
}

struct weights_t {
    const char *name;
    dt elem, scale;
    dim block;
    quantization_mode mode;
};
const weights_t formats[] = {{"mxfp4", dt::f4_e2m1, dt::e8m0, 32, quantization_mode::dynamic_mx},
        {"mxint8", dt::s8, dt::e8m0, 32, quantization_mode::dynamic_mx},
        {"nvfp4", dt::f4_e2m1, dt::f8_e4m3, 16, quantization_mode::dynamic_fp},
        {"int4", dt::s4, dt::bf16, 32, quantization_mode::dynamic_affine}};

double rounded(double x) { // to the nearest code
    return std::fmax(-127, std::fmin(127, std::nearbyint(x)));
}
// The same among the values of f8_e4m3: four significant bits down to 2^-6, steps of 2^-9 below.
double rounded_fp8(double x) {
    if (x == 0) return 0;
    const double step = std::ldexp(1., std::max(std::ilogb(x), -6) - 3);
    return std::fmax(-448, std::fmin(448, std::nearbyint(x / step) * step));
}

// The decoded values of a row; NaN where the rule gives NaN.
std::vector<double> quantised(const float *x, dim K, const recipe_t &r) {
    std::vector<double> v(static_cast<size_t>(K));
    const dim block = r.blocks ? 32 : K;
    for (dim b = 0; b < K; b += block) {
        const dim end = std::min(b + block, K);
        float amax = 0;
        bool finite = true;
        for (dim k = b; k < end; k++) {
            amax = std::fmax(amax, std::fabs(x[k]));
            finite = finite && std::isfinite(x[k]);
        }
        double step;
        if (r.blocks) {
            int e = -127;
            if (amax > 0) {
                e = std::ilogb(amax);
                e += r.rounding == scale_rounding::ceil && std::ldexp(1., e) < double(amax);
                e = std::max(e, -127);
            }
            step = std::ldexp(1., e - 6);
        } else {
            const float scale = amax / (r.fp8 ? 448.f : 127.f);
            step = scale == 0 ? 1. : double(scale);
        }
        for (dim k = b; k < end; k++)
            v[size_t(k)] = !finite ? NAN
                           : r.fp8 ? rounded_fp8(double(x[k] / float(step))) * step
                                   : rounded(double(r.blocks ? x[k] / step : x[k] / float(step))) * step;
    }
    return v;
}

constexpr int M = 41; // more than kernels for few rows take
float random_row_value(std::mt19937 &rng, int row) {
    std::normal_distribution<float> normal;
    const float x = normal(rng);
    switch (row) {
    case 1: return 0.f;
    case 2: return x * (rng() % 3 ? 1e-30f : 1e30f);
    case 3: return float(int(rng() % 255) - 127) / 2; // ties
    case 4: return x * 1e-41f;                        // subnormal
    default: return x;
    }
}

struct case_t {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream s{eng};
    dim K, N;
    dt type;
    std::vector<float> x;       // values of the source, exact in `type`
    std::vector<uint16_t> half; // their codes, where it is no f32

    case_t(dim k, dim n, dt t) : K(k), N(n), type(t) {
        std::mt19937 rng(unsigned(k * 7 + n));
        for (dim i = 0; i < M * K; i++) {
            float v = random_row_value(rng, int(i / K));
            if (type == dt::bf16) half.push_back(to_bf16(v)), v = from_bf16(half.back());
            x.push_back(v);
        }
        // One value of a row each, in the middle.
        const auto plant = [&](int row, float v) {
            x[size_t(row * K + K / 2)] = v;
            if (type == dt::bf16) half[size_t(row * K + K / 2)] = to_bf16(v);
        };
        plant(6, INFINITY);
        plant(7, NAN);
    }
    void *data() { return type == dt::bf16 ? static_cast<void *>(half.data()) : x.data(); }

    memory pack(const memory::desc &packed, const weights_t &f, std::vector<float> &values) {
        const memory::dims dims = packed.get_dims();
        const int nd = int(dims.size()), mask = (1 << nd) - 1;
        std::vector<uint16_t> from = random_bf16(size_t(packed.get_dims()[0] * (nd == 3 ? K * N : N)), 3);
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, mask, {f.block, 1}, f.scale, false, f.mode);
        const tag order = nd == 3 ? tag::acb : tag::ba;
        memory plain(memory::desc(dims, dt::bf16, order), eng, from.data()), to(packed, eng);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, plain.get_desc(), eng, packed, q))
                .execute(s, plain, to);
        values.assign(from.size(), 0.f);
        memory back(memory::desc(dims, dt::f32, order), eng, values.data());
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, packed, eng, back.get_desc()))
                .execute(s, to, back);
        return to;
    }

    void check_row(const std::vector<double> &row, const float *w, const float *got, bool int4) const {
        for (dim n = 0; n < N; n++) {
            double sum = 0, size = 0;
            for (dim k = 0; k < K; k++) {
                const double t = row[size_t(k)] * double(w[n * K + k]);
                sum += t;
                size += std::fabs(t);
            }
            // int4 weights are rounded to bf16 where products are of bf16; subnormal operands of those count
            // 0.
            const double bound =
                    (double(K + 18) * 0x1p-24 + (int4 ? 0x1p-8 : 0)) * size + double(K) * 0x1p-120;
            if (std::isnan(sum))
                ASSERT_TRUE(std::isnan(got[n])) << "column " << n;
            else
                ASSERT_NEAR(double(got[n]), sum, bound) << "column " << n;
        }
    }
};

TEST(source_recipe, mx_matmul) {
    for (const recipe_t &r : recipes)
        for (const weights_t &f : formats)
            for (dim K : {1, 32, 70, 300})
                for (dt type : {dt::bf16, dt::f32}) {
                    SCOPED_TRACE(std::string(r.name) + ", " + f.name + ", K " + std::to_string(K)
                                 + (type == dt::f32 ? ", f32" : ", bf16"));
                    case_t c(K, 37, type);
                    mxdnn::primitive_attr a;
                    a.set_scales(MXDNN_ARG_WEIGHTS, 3, {f.block, 1}, f.scale);
                    ask(a, r);
                    mxdnn::mx_matmul::primitive_desc pd(c.eng, memory::desc({runtime, K}, type, tag::ab),
                            memory::desc({K, c.N}, f.elem, tag::any),
                            memory::desc({runtime, c.N}, dt::f32, tag::ab), a);
                    std::vector<float> values;
                    memory packed = c.pack(pd.weights_desc(), f, values);
                    std::string impl;
                    do {
                        impl = pd.impl_info_str();
                        SCOPED_TRACE(impl);
                        std::vector<float> y(size_t(M * c.N), -1.f);
                        mxdnn::mx_matmul(pd).execute(
                                c.s, {{MXDNN_ARG_SRC,
                                              memory(memory::desc({M, K}, type, tag::ab), c.eng, c.data())},
                                             {MXDNN_ARG_WEIGHTS, packed},
                                             {MXDNN_ARG_DST, memory(memory::desc({M, c.N}, dt::f32, tag::ab),
                                                                     c.eng, y.data())}});
                        for (int m = 0; m < M; m++) {
                            SCOPED_TRACE("row " + std::to_string(m));
                            c.check_row(quantised(c.x.data() + m * K, K, r), values.data(),
                                    y.data() + m * c.N, f.elem == dt::s4);
                        }
                    } while (pd.next_impl());
                    EXPECT_EQ(impl, "ref:any");
                }
}

// Gathered rows: each row is quantised on its own, for any expert.
TEST(source_recipe, grouped_matmul) {
    constexpr dim E = 3, K = 100;
    for (const recipe_t &r : recipes) {
        SCOPED_TRACE(r.name);
        case_t c(K, 40, dt::bf16);
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        ask(a, r);
        const std::vector<int32_t> gather = {8, 2, 0, 3, 5, 5, 1, 7, -1, 4}, ends = {4, 4, 10};
        const dim rows = dim(gather.size());
        mxdnn::grouped_matmul::primitive_desc pd(c.eng, memory::desc({M, K}, dt::bf16, tag::ab),
                memory::desc({E, K, c.N}, dt::f4_e2m1, tag::any), memory::desc(),
                memory::desc({rows, c.N}, dt::f32, tag::ab), a);
        std::vector<float> values;
        memory packed = c.pack(pd.weights_desc(), formats[0], values);
        const auto indices = [&](const std::vector<int32_t> &v) {
            return memory(
                    memory::desc({dim(v.size())}, dt::s32, tag::a), c.eng, const_cast<int32_t *>(v.data()));
        };
        std::string impl;
        do {
            impl = pd.impl_info_str();
            SCOPED_TRACE(impl);
            std::vector<float> y(size_t(rows * c.N), -1.f);
            mxdnn::grouped_matmul(pd).execute(c.s,
                    {{MXDNN_ARG_SRC, memory(pd.src_desc(), c.eng, c.data())}, {MXDNN_ARG_WEIGHTS, packed},
                            {MXDNN_ARG_GROUP_OFFSETS, indices(ends)}, {MXDNN_ARG_GATHER_IDX, indices(gather)},
                            {MXDNN_ARG_DST, memory(pd.dst_desc(), c.eng, y.data())}});
            for (dim i = 0; i < rows; i++) {
                SCOPED_TRACE("row " + std::to_string(i));
                const int32_t from = gather[size_t(i)];
                const dim e = i < 4 ? 0 : 2;
                const std::vector<double> row = from < 0 ? std::vector<double>(size_t(K), 0.)
                                                         : quantised(c.x.data() + from * K, K, r);
                c.check_row(row, values.data() + e * K * c.N, y.data() + i * c.N, false);
            }
        } while (pd.next_impl());
        EXPECT_EQ(impl, "ref:any");
    }
}

TEST(source_recipe, what_is_no_recipe_is_refused) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    const auto create = [&](const mxdnn::primitive_attr &a, dt type = dt::bf16) {
        const memory::desc src({4, 64}, type, tag::ab), wei({64, 16}, dt::f4_e2m1, tag::any),
                dst({4, 16}, dt::f32, tag::ab);
        mxdnn_primitive_desc_t pd = nullptr;
        const mxdnn_status_t st = mxdnn_mx_matmul_primitive_desc_create(
                &pd, e.get(), src.get(), wei.get(), nullptr, dst.get(), a.get());
        if (pd) mxdnn_primitive_desc_destroy(pd);
        return st;
    };
    const auto with = [&](int mask, const memory::dims &groups, dt type, quantization_mode mode) {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        a.set_scales(MXDNN_ARG_SRC, mask, groups, type, false, mode);
        return a;
    };
    for (dt type : {dt::f32, dt::bf16, dt::f16}) {
        EXPECT_OK(create(with(1, {}, dt::f32, quantization_mode::dynamic_affine), type));
        EXPECT_OK(create(with(3, {1, 32}, dt::e8m0, quantization_mode::dynamic_mx), type));
    }
    EXPECT_REFUSED(mxdnn_unimplemented, create(with(1, {}, dt::f16, quantization_mode::dynamic_affine)),
            "src is bf16", "dynamic_mx", "1x32");
    EXPECT_REFUSED(mxdnn_unimplemented, create(with(1, {}, dt::f32, quantization_mode::dynamic_mx)),
            "src is bf16", "dynamic_mx", "1x32");
    EXPECT_REFUSED(mxdnn_unimplemented, create(with(3, {1, 16}, dt::e8m0, quantization_mode::dynamic_mx)),
            "src is bf16", "dynamic_mx", "1x32");
    EXPECT_REFUSED(mxdnn_unimplemented, create(with(3, {1, 16}, dt::f8_e4m3, quantization_mode::dynamic_fp)),
            "src is bf16", "dynamic_mx", "1x32");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            create(with(3, {1, 32}, dt::e8m0, quantization_mode::static_sazp)), "quantisation attributes");
    mxdnn::primitive_attr even = with(3, {1, 32}, dt::e8m0, quantization_mode::dynamic_mx);
    even.set_scale_rounding(MXDNN_ARG_SRC, scale_rounding::even);
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(even), "even");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            create(with(3, {1, 32}, dt::e8m0, quantization_mode::dynamic_mx), dt::s8), "static");
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Unpacking, decoding and mx_matmul against results that a script computed from the documents without the
// library. Reference, packers and kernels share one map and one set of traits, so a comparison among them
// cannot find a fault in those. Only the public API is used here.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "golden_matmul/cases.hpp"
#include "gtests/golden/case_values.hpp"

namespace golden_matmul {

using api_test::dt;
using api_test::tag;
using golden::value_at;
using mxdnn::memory;
using mxdnn::quantization_mode;

namespace {

uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits;
}

using dim = memory::dim;
constexpr int both = 3; // mask of a matrix: scales along rows and columns

// The plain forms of weights.
struct form_t {
    const char *order; // "kn", "nk"
    bool dense;
    bool rows_of_k() const { return order[0] == 'n'; }
    std::string codes() const { return std::string(dense ? "dense_" : "codes_") + order; }
    std::string scales() const { return std::string("scales_") + order; }
    std::string zeros() const { return std::string("zeros_") + order; }
};
constexpr form_t forms[] = {{"kn", false}, {"nk", false}, {"kn", true}, {"nk", true}};

memory::desc matrix(dim rows, dim columns, dt type, const form_t &form, bool codes, int bits = 8) {
    dim length = form.rows_of_k() ? rows : columns;
    if (codes && bits == 4) length += length % 2; // rows start on a byte
    return form.rows_of_k() ? memory::desc({rows, columns}, type, memory::dims{1, length})
                            : memory::desc({rows, columns}, type, memory::dims{length, 1});
}

struct problem_t {
    const format_t &f;
    dim K = cases().K, N = cases().N, groups;
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream stream{eng};

    explicit problem_t(const format_t &format) : f(format), groups((K + f.block - 1) / f.block) {}

    // The format of the weights, set for argument `arg`.
    void describe(mxdnn::primitive_attr &a, int arg, const form_t *form = nullptr, bool moves = false) const {
        const quantization_mode made = f.is_mx()     ? quantization_mode::dynamic_mx
                                       : f.is_int4() ? quantization_mode::dynamic_affine
                                                     : quantization_mode::dynamic_fp;
        a.set_scales(arg, both, {f.block, 1}, f.scale, false, moves ? made : quantization_mode::static_sazp);
        if (f.zero != dt::undef) a.set_zero_points(arg, both, {f.block, 1}, f.zero);
        if (f.global)
            a.set_global_scale(arg, moves ? quantization_mode::dynamic_fp : quantization_mode::static_sazp);
        if (form && form->dense) a.set_element_packing(arg, mxdnn::element_packing::dense);
    }

    // Codes, scales, zero points and global scale in one of the plain forms. Empty if they are outputs.
    struct plain_t {
        std::vector<uint8_t> codes, scales, zeros, global;
    };
    plain_t given(const form_t &form) const {
        plain_t p;
        p.codes = f.bytes(form.codes());
        p.scales = f.bytes(form.scales());
        if (f.zero != dt::undef) p.zeros = f.bytes(form.zeros());
        if (f.global) p.global = f.bytes("global");
        return p;
    }
    plain_t poisoned(const form_t &form) const {
        plain_t p = given(form);
        for (auto *v : {&p.codes, &p.scales, &p.zeros, &p.global}) v->assign(v->size(), 0xa5);
        return p;
    }
    memory::desc codes_desc(const form_t &form) const { return matrix(K, N, f.elem, form, true, f.bits()); }
    std::unordered_map<int, memory> arguments(int arg, plain_t &p, const form_t &form) const {
        std::unordered_map<int, memory> m;
        // A descriptor does not know of dense packing: memory is as long as one byte per code makes it.
        p.codes.resize(std::max(p.codes.size(), codes_desc(form).get_size()), 0xa5);
        m[arg] = memory(codes_desc(form), eng, p.codes.data());
        m[MXDNN_ARG_ATTR_SCALES | arg] =
                memory(matrix(groups, N, f.scale, form, false), eng, p.scales.data());
        if (f.zero != dt::undef)
            m[MXDNN_ARG_ATTR_ZERO_POINTS | arg] =
                    memory(matrix(groups, N, f.zero, form, false), eng, p.zeros.data());
        if (f.global)
            m[MXDNN_ARG_ATTR_GLOBAL_SCALE | arg] =
                    memory(memory::desc({1}, dt::f32, tag::a), eng, p.global.data());
        return m;
    }

    memory::desc packed_desc() const {
        mxdnn::primitive_attr a;
        describe(a, MXDNN_ARG_WEIGHTS);
        return mxdnn::mx_matmul::primitive_desc(eng, memory::desc({1, K}, dt::f32, tag::ab),
                memory::desc({K, N}, f.elem, tag::any), memory::desc({1, N}, dt::f32, tag::ab), a)
                .weights_desc();
    }

    memory pack(plain_t p, const form_t &form) const {
        mxdnn::primitive_attr a;
        describe(a, MXDNN_ARG_FROM, &form);
        memory packed(packed_desc(), eng);
        std::memset(packed.get_data_handle(), 0xa5, packed.get_desc().get_size());
        auto args = arguments(MXDNN_ARG_FROM, p, form);
        args[MXDNN_ARG_TO] = packed;
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, codes_desc(form), eng, packed.get_desc(), a))
                .execute(stream, args);
        return packed;
    }
};

std::vector<uint8_t> bytes_of(const memory &m) {
    const auto *p = static_cast<const uint8_t *>(m.get_data_handle());
    return {p, p + m.get_desc().get_size()};
}

// Bits after the last code of a row are ignored.
void clear_unused(std::vector<uint8_t> &codes, const problem_t &p, const form_t &form) {
    const dim length = form.rows_of_k() ? p.K : p.N;
    const int bits = form.dense ? 6 : p.f.bits() == 4 ? 4 : 8;
    const size_t row = size_t(length * bits + 7) / 8;
    const int used = int(length * bits % 8);
    if (used == 0) return;
    for (size_t i = row - 1; i < codes.size(); i += row) codes[i] &= uint8_t((1 << used) - 1);
}

// Every form packs to the same bytes and unpacks to its original, by every implementation.
TEST(golden_matmul, packing_and_back) {
    for (const format_t &f : cases().formats) {
        SCOPED_TRACE(f.name);
        problem_t p(f);
        const memory packed = p.pack(p.given(forms[0]), forms[0]);
        for (const form_t &form : forms) {
            if (!f.has(form.codes())) continue;
            SCOPED_TRACE(form.codes());
            EXPECT_TRUE(bytes_of(p.pack(p.given(form), form)) == bytes_of(packed));
            mxdnn::primitive_attr a;
            p.describe(a, MXDNN_ARG_TO, &form, true);
            mxdnn::mx_reorder::primitive_desc pd(p.eng, packed.get_desc(), p.eng, p.codes_desc(form), a);
            do {
                SCOPED_TRACE(pd.impl_info_str());
                problem_t::plain_t want = p.given(form), got = p.poisoned(form);
                auto args = p.arguments(MXDNN_ARG_TO, got, form);
                args[MXDNN_ARG_FROM] = packed;
                mxdnn::mx_reorder(pd).execute(p.stream, args);
                for (size_t i = want.codes.size(); i < got.codes.size(); i++)
                    EXPECT_EQ(got.codes[i], 0xa5) << i;
                got.codes.resize(want.codes.size());
                clear_unused(got.codes, p, form);
                EXPECT_EQ(got.codes, want.codes);
                EXPECT_EQ(got.scales, want.scales);
                EXPECT_EQ(got.zeros, want.zeros);
                EXPECT_EQ(got.global, want.global);
            } while (pd.next_impl());
        }
    }
}

// Values of plain and of packed weights, bit for bit.
TEST(golden_matmul, decoding) {
    for (const format_t &f : cases().formats) {
        SCOPED_TRACE(f.name);
        problem_t p(f);
        const std::vector<float> want = f.as<float>("decoded");
        const memory::desc high({p.K, p.N}, dt::f32, tag::ab);
        const dim kept = (p.N + 2) / 3;
        ASSERT_EQ(dim(want.size()), p.K * kept);
        for (bool packed : {false, true}) {
            mxdnn::primitive_attr a;
            problem_t::plain_t plain = p.given(forms[0]);
            auto args = p.arguments(MXDNN_ARG_FROM, plain, forms[0]);
            if (packed)
                args = {{MXDNN_ARG_FROM, p.pack(plain, forms[0])}};
            else
                p.describe(a, MXDNN_ARG_FROM);
            mxdnn::mx_reorder::primitive_desc pd(
                    p.eng, packed ? p.packed_desc() : p.codes_desc(forms[0]), p.eng, high, a);
            do {
                std::vector<float> got(size_t(p.K * p.N), NAN);
                args[MXDNN_ARG_TO] = memory(high, p.eng, got.data());
                mxdnn::mx_reorder(pd).execute(p.stream, args);
                int wrong = 0;
                for (dim k = 0; k < p.K; k++)
                    for (dim j = 0; j < kept; j++) {
                        const float g = got[size_t(k * p.N + 3 * j)], w = want[size_t(k * kept + j)];
                        if (bits_of(g) != bits_of(w) && wrong++ < 3)
                            ADD_FAILURE()
                                    << pd.impl_info_str() << (packed ? ", packed" : ", plain") << " weight ["
                                    << k << ", " << 3 * j << "]: " << g << ", expected " << w;
                    }
                EXPECT_EQ(wrong, 0);
            } while (pd.next_impl());
        }
    }
}

// ---- mx_matmul ----

enum class post_t { none, swiglu_oai, silu };

struct variant_t {
    dt src, dst;
    bool fpmath_bf16;
};
constexpr variant_t variants[] = {{dt::f32, dt::f32, false}, {dt::f32, dt::f32, true},
        {dt::bf16, dt::f32, false}, {dt::f16, dt::f32, false}, {dt::bf16, dt::bf16, false},
        {dt::f16, dt::f16, false}};

const char *name_of(dt t) { return t == dt::f32 ? "f32" : t == dt::bf16 ? "bf16" : "f16"; }

// Exact for what has eleven significant bits and a normal exponent.
uint16_t to_f16(float x) {
    if (x == 0) return std::signbit(x) ? 0x8000 : 0;
    int e;
    const double m = std::frexp(std::fabs(double(x)), &e); // in [0.5, 1)
    return uint16_t((std::signbit(x) ? 0x8000 : 0) | (e - 1 + 15) << 10 | (int(m * 2048) - 1024));
}
std::vector<uint8_t> source(dt type, dim rows) {
    const size_t n = size_t(rows * cases().K), width = type == dt::f32 ? 4 : 2;
    std::vector<uint8_t> bytes(n * width);
    for (size_t i = 0; i < n; i++) {
        const float x = cases().x[i];
        const uint16_t half = type == dt::bf16 ? api_test::to_bf16(x) : to_f16(x);
        if (type == dt::f32)
            std::memcpy(&bytes[i * 4], &x, 4);
        else
            std::memcpy(&bytes[i * 2], &half, 2);
    }
    return bytes;
}

// Bounds as doc/concepts/accuracy.md derives them.
constexpr double u = 1. / (1 << 24);

struct bound_t {
    bool bf16_products, rounds_weights;
    dt dst;

    // Of a sum whose exact value is v: the terms, and the rounding of the golden value to f32.
    double sum(double v, double size, dim K) const {
        const double n = double(K + 16), gamma = n * u / (1 - n * u);
        double e = gamma * size + double(K + 1) * std::ldexp(1., -149) + u * std::fabs(v);
        if (bf16_products) e += double(K) * std::ldexp(1., -126) * (1 + 4);
        if (rounds_weights) e += std::ldexp(1., -8) * size;
        return e;
    }
    static double bias(double v, double e) { return e + u * (std::fabs(v) + e); }
    // f(g) * h(up), f(g) = g * sigmoid(alpha g) and h(up) = up + plus; `golden` is stored in f32.
    static double gated(double g, double eg, double up, double eu, double alpha, double plus, double golden) {
        const double f = std::fabs(g / (1 + std::exp(-alpha * g))), h = std::fabs(up + plus);
        const double ef =
                1.1 * eg + 32 * u * (f + 1.1 * eg) * (1 + std::fmin(std::fabs(alpha * g) + eg, 104));
        const double eh = eu + u * (h + eu);
        const double e = f * eh + h * ef + ef * eh;
        return e + 32 * u * (f * h + e) + u * std::fabs(golden);
    }
    double stored(double v, double e) const {
        const double half_ulp = dst == dt::f32 ? u : dst == dt::bf16 ? 1. / 256 : 1. / 2048;
        const double step = std::ldexp(1., dst == dt::f32 ? -149 : dst == dt::bf16 ? -133 : -24);
        return e + half_ulp * (std::fabs(v) + e) + step;
    }
};

struct run_t {
    dim rows;
    variant_t v;
    bool bias;
    post_t post;

    std::string golden() const {
        const std::string b = bias ? "bias" : "";
        if (post == post_t::none) return bias ? "bias" : "none";
        return b + (bias ? "_" : "") + (post == post_t::swiglu_oai ? "swiglu_oai" : "silu");
    }
};

void compare(const problem_t &p, const run_t &r, const std::vector<uint8_t> &got, const bound_t &b,
        const std::vector<bool> &nan_columns) {
    const std::vector<float> want = p.f.as<float>(r.golden()),
                             before = p.f.as<float>(r.bias ? "bias" : "none"), size = p.f.as<float>("size");
    const dim columns = r.post == post_t::none ? p.N : p.N / 2;
    int wrong = 0;
    const auto sum_error = [&](dim m, dim n) {
        const size_t i = size_t(m * p.N + n);
        const double e = b.sum(double(before[i]), double(size[i]), p.K);
        return r.bias ? b.bias(double(before[i]), e) + u * std::fabs(double(cases().bias[size_t(n)])) : e;
    };
    for (dim m = 0; m < r.rows; m++)
        for (dim j = 0; j < columns; j++) {
            const dim g = r.post == post_t::swiglu_oai ? 2 * j : j;
            const dim up = r.post == post_t::swiglu_oai ? 2 * j + 1 : j + p.N / 2;
            const double w = double(want[size_t(m * columns + j)]),
                         x = value_at(got, r.v.dst, size_t(m * columns + j));
            double e = sum_error(m, g);
            if (r.post != post_t::none) {
                const bool swiglu_oai = r.post == post_t::swiglu_oai;
                const double limit = swiglu_oai ? 7 : INFINITY;
                const double vg = std::fmin(double(before[size_t(m * p.N + g)]), limit);
                const double vu = std::fmax(-limit, std::fmin(double(before[size_t(m * p.N + up)]), limit));
                e = b.gated(vg, e, vu, sum_error(m, up), swiglu_oai ? 1.702 : 1, swiglu_oai ? 1 : 0, w);
            }
            e = b.stored(w, e);
            const bool nan = !nan_columns.empty() && nan_columns[size_t(j)];
            if ((nan ? std::isnan(x) : std::fabs(x - w) <= e) || wrong++ >= 3) continue;
            ADD_FAILURE() << "[" << m << ", " << j << "]: " << x << ", expected " << (nan ? NAN : w)
                          << " within " << e;
        }
    EXPECT_EQ(wrong, 0);
}

// Runs every implementation that takes the problem and returns their number. Weights are packed, or plain
// with scales.
int run_all(const problem_t &p, const run_t &r, const std::unordered_map<int, memory> &weights, bool packed,
        const std::vector<bool> &nan_columns = {}) {
    const dim columns = r.post == post_t::none ? p.N : p.N / 2;
    const memory::desc src_md({r.rows, p.K}, r.v.src, tag::ab), dst_md({r.rows, columns}, r.v.dst, tag::ab);
    const memory::desc bias_md = r.bias ? memory::desc({1, p.N}, dt::f32, tag::ab) : memory::desc();
    mxdnn::primitive_attr a;
    if (!packed) p.describe(a, MXDNN_ARG_WEIGHTS);
    if (r.v.fpmath_bf16) a.set_fpmath_mode(mxdnn::fpmath_mode::bf16, true);
    if (r.post != post_t::none) {
        mxdnn::post_ops ops;
        if (r.post == post_t::swiglu_oai)
            ops.append_gated(
                    mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
        else
            ops.append_gated(mxdnn::algorithm::gated_silu, 1.f, 0.f, mxdnn::gated_layout::halves);
        a.set_post_ops(ops);
    }
    mxdnn::mx_matmul::primitive_desc pd(
            p.eng, src_md, weights.at(MXDNN_ARG_WEIGHTS).get_desc(), bias_md, dst_md, a);
    std::vector<uint8_t> src = source(r.v.src, r.rows);
    std::vector<float> bias = cases().bias;
    int count = 0;
    std::string impl;
    do {
        impl = pd.impl_info_str();
        SCOPED_TRACE(impl + " " + name_of(r.v.src) + " to " + name_of(r.v.dst)
                     + (r.v.fpmath_bf16 ? " by bf16" : "") + ", " + r.golden() + ", rows "
                     + std::to_string(r.rows) + (packed ? "" : ", plain weights"));
        std::vector<uint8_t> dst(dst_md.get_size(), 0xff); // NaN in every type
        auto args = weights;
        args[MXDNN_ARG_SRC] = memory(src_md, p.eng, src.data());
        args[MXDNN_ARG_DST] = memory(dst_md, p.eng, dst.data());
        if (r.bias) args[MXDNN_ARG_BIAS] = memory(bias_md, p.eng, bias.data());
        mxdnn::mx_matmul(pd).execute(p.stream, args);
        const bool bf16 = impl.find("bf16") != std::string::npos || impl.find("amx") != std::string::npos;
        compare(p, r, dst, {bf16, bf16 && p.f.is_int4(), r.v.dst}, nan_columns);
        count++;
    } while (pd.next_impl());
    EXPECT_EQ(impl, "ref:any");
    return count;
}

// One row, a few, and enough that kernels decode ahead.
const dim row_counts[] = {1, 3, 13};

TEST(golden_matmul, packed_weights) {
    for (const format_t &f : cases().formats) {
        SCOPED_TRACE(f.name);
        problem_t p(f);
        const memory packed = p.pack(p.given(forms[0]), forms[0]);
        int ran = 0, problems = 0;
        for (dim rows : row_counts)
            for (const variant_t &v : variants)
                for (bool bias : {false, true})
                    for (post_t post : {post_t::none, post_t::swiglu_oai, post_t::silu}) {
                        ran += run_all(p, {rows, v, bias, post}, {{MXDNN_ARG_WEIGHTS, packed}}, true);
                        problems++;
                    }
        // Some implementation other than the reference took every one, under every ISA of this machine.
        if (mxdnn::get_effective_cpu_isa() >= mxdnn::cpu_isa::avx2) {
            EXPECT_GE(ran, 2 * problems);
        }
    }
}

TEST(golden_matmul, plain_weights) {
    for (const format_t &f : cases().formats) {
        SCOPED_TRACE(f.name);
        problem_t p(f);
        for (const form_t &form : {forms[0], forms[1]}) {
            problem_t::plain_t plain = p.given(form);
            for (bool bias : {false, true})
                for (post_t post : {post_t::none, post_t::swiglu_oai, post_t::silu})
                    run_all(p, {3, variants[0], bias, post}, p.arguments(MXDNN_ARG_WEIGHTS, plain, form),
                            false);
        }
    }
}

// A scale that is NaN makes its column NaN, and no other.
TEST(golden_matmul, nan_scale) {
    for (const format_t &f : cases().formats) {
        SCOPED_TRACE(f.name);
        problem_t p(f);
        problem_t::plain_t plain = p.given(forms[0]);
        const dim group = p.groups - 1, column = 21;
        const size_t width = plain.scales.size() / size_t(p.groups * p.N);
        const uint32_t nan = f.scale == dt::e8m0      ? 0xff
                             : f.scale == dt::f8_e4m3 ? 0x7f
                             : f.scale == dt::bf16    ? 0x7fc0
                             : f.scale == dt::f16     ? 0x7e00
                                                      : 0x7fc00000;
        std::memcpy(&plain.scales[size_t(group * p.N + column) * width], &nan, width);
        const memory packed = p.pack(plain, forms[0]);
        std::vector<bool> columns(size_t(p.N), false);
        columns[size_t(column)] = true;
        for (dim rows : row_counts)
            for (const variant_t &v : variants)
                run_all(p, {rows, v, true, post_t::none}, {{MXDNN_ARG_WEIGHTS, packed}}, true, columns);
    }
}

TEST(golden_matmul, every_format_is_here) {
    std::string names;
    for (const format_t &f : cases().formats) names += f.name + " ";
    EXPECT_EQ(names, "mxfp8 mxfp8_e5m2 mxfp6 mxfp6_e3m2 mxfp4 mxint8 nvfp4 nvfp4_global s4_bf16 u4_f32 "
                     "u4_u8_bf16 u4_u8_f16 u4_float_bf16 u4_float_f32 ");
}

} // namespace

} // namespace golden_matmul

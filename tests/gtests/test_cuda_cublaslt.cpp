// SPDX-License-Identifier: Apache-2.0
// cublaslt:bf16 and cublaslt:f16 against double arithmetic over the decoded weights: every weight format,
// numbers of rows at and below the least one, one pass over the columns and several, and any alignment of
// memory.
#include <cmath>
#include <thread>

#include <cuda_runtime.h>

#include "cuda_formats.hpp"
#include "gpu/cuda/impl/cublaslt_mx_matmul.hpp"

using namespace cuda_test;
using mxdnn::impl::cuda::cublaslt_bf16_mx_matmul_t;
using mxdnn::impl::cuda::cublaslt_f16_mx_matmul_t;

namespace {

constexpr memory::dim any_rows = MXDNN_RUNTIME_DIM_VAL;

struct case_t {
    memory::dim K, N;
    dt dst;
    bool bias, relu;
    dt src = dt::bf16;
};

mxdnn::mx_matmul::primitive_desc make_pd(
        const case_t &c, const format_t &f, memory::dim M, memory::dim hint = 0) {
    mxdnn::primitive_attr attr;
    set_format(attr, MXDNN_ARG_WEIGHTS, f, true, 2, false);
    if (hint) attr.set_max_rows_hint(hint);
    if (c.relu) {
        mxdnn::post_ops ops;
        ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0.f, 0.f);
        attr.set_post_ops(ops);
    }
    const memory::desc src({M, c.K}, c.src, tag::ab), wei({c.K, c.N}, f.elem, tag::any),
            dst({M, c.N}, c.dst, tag::ab), bias({1, c.N}, c.dst, tag::ab);
    return c.bias ? mxdnn::mx_matmul::primitive_desc(gpu(), src, wei, bias, dst, attr)
                  : mxdnn::mx_matmul::primitive_desc(gpu(), src, wei, dst, attr);
}

template <typename impl_t>
bool is_of(const mxdnn::mx_matmul::primitive_desc &pd) {
    return std::string(pd.impl_info_str()) == impl_t::impl_name;
}
bool is_cublaslt(const mxdnn::mx_matmul::primitive_desc &pd) {
    return is_of<cublaslt_bf16_mx_matmul_t>(pd) || is_of<cublaslt_f16_mx_matmul_t>(pd);
}
const mxdnn::impl::cuda::cublaslt::plan_t &plan_of(const mxdnn::mx_matmul::primitive_desc &pd) {
    const mxdnn::impl::pd_t &of = *pd.get()->pd;
    return is_of<cublaslt_f16_mx_matmul_t>(pd)
                   ? static_cast<const cublaslt_f16_mx_matmul_t::pd_t &>(of).plan
                   : static_cast<const cublaslt_bf16_mx_matmul_t::pd_t &>(of).plan;
}

// The machine's cuBLASLt is used where there is one.
bool has_cublaslt() {
    return is_cublaslt(make_pd({512, 1024, dt::bf16, false, false}, formats[0], any_rows));
}

double value_of(const bytes_t &b, dt type, int64_t i) {
    uint32_t code = 0;
    const size_t width = type == dt::f32 ? 4 : 2;
    std::memcpy(&code, &b[size_t(i) * width], width);
    return double(mxdnn::impl::decode_value(mxdnn_data_type_t(type), code));
}

struct problem_of_test_t {
    case_t c;
    format_t f;
    mxdnn::mx_matmul::primitive_desc pd;
    bytes_t packed, bias;
    std::vector<double> weights; // [N][K]

    problem_of_test_t(const case_t &problem, const format_t &format, unsigned seed)
        : c(problem), f(format), pd(make_pd(c, f, any_rows)) {
        std::mt19937 rng(seed);
        // Packed on the host from random codes and scales, and decoded there.
        const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
        const memory::desc codes({c.K, c.N}, f.elem, tag::ab), values({c.K, c.N}, dt::f32, tag::ba),
                md = pd.weights_desc();
        mxdnn::primitive_attr given;
        set_format(given, MXDNN_ARG_SRC, f, true, 2, false);
        const mxdnn::mx_reorder::primitive_desc pack(target, codes, target, md, given),
                decode(target, md, target, values);
        values_t in = random_inputs(pack, rng);
        if (f.elem == dt::f8_e4m3 || f.elem == dt::f8_e5m2)
            for (uint8_t &code : in.at(MXDNN_ARG_SRC)) code &= 0xbf; // neither NaN nor Inf
        packed = run(pack, target, in).at(MXDNN_ARG_DST);
        const bytes_t decoded = run(decode, target, {{MXDNN_ARG_SRC, packed}}).at(MXDNN_ARG_DST);
        for (int64_t i = 0; i < c.K * c.N; i++) weights.push_back(value_of(decoded, dt::f32, i));
        bias = random_bytes(mxdnn_data_type_t(c.dst), size_t(c.N) * (c.dst == dt::f32 ? 4 : 2), rng);
    }

    // `shift`: bytes by which src and dst start behind a boundary.
    void expect_right(memory::dim M, const std::string &what, int shift = 0, int times = 1) const {
        std::mt19937 rng{unsigned(M)};
        const memory::desc src_md({M, c.K}, c.src, tag::ab), dst_md({M, c.N}, c.dst, tag::ab);
        const auto room = [&](const memory::desc &md) {
            return memory::desc({memory::dim(md.get_size()) + 64}, dt::u8, tag::a);
        };
        const bytes_t x = random_bytes(mxdnn_data_type_t(c.src), src_md.get_size(), rng);
        bytes_t src(room(src_md).get_size(), 0);
        std::copy(x.begin(), x.end(), src.begin() + shift);
        const memory src_room = make_memory(room(src_md), gpu(), src),
                     dst_room = make_memory(room(dst_md), gpu(), bytes_t(room(dst_md).get_size(), 0xc3));
        const auto at = [&](const memory &m) { return static_cast<char *>(m.get_data_handle()) + shift; };
        std::unordered_map<int, memory> args = {{MXDNN_ARG_SRC, memory(src_md, gpu(), at(src_room))},
                {MXDNN_ARG_WEIGHTS, make_memory(pd.weights_desc(), gpu(), packed)},
                {MXDNN_ARG_DST, memory(dst_md, gpu(), at(dst_room))}};
        if (c.bias) args[MXDNN_ARG_BIAS] = make_memory(memory::desc({1, c.N}, c.dst, tag::ab), gpu(), bias);
        mxdnn::stream s(gpu());
        const mxdnn::mx_matmul p(pd);
        bytes_t got;
        for (int i = 0; i < times; i++) {
            p.execute(s, args);
            s.wait();
            const bytes_t now = read_memory(dst_room);
            if (i > 0) {
                ASSERT_EQ(now, got) << what << ": other bits at another time";
            }
            got = now;
        }
        const size_t size = dst_md.get_size();
        for (size_t i = 0; i < got.size(); i++)
            if (i < size_t(shift) || i >= size + size_t(shift)) {
                ASSERT_EQ(got[i], 0xc3) << what << ": byte " << i << " is not dst's";
            }
        got.erase(got.begin(), got.begin() + shift);
        // Decoded weights.
        const bool exact = f.scale == dt::e8m0 || f.scale == dt::f8_e4m3;
        const double rounding = exact ? 0 : c.src == dt::bf16 ? 1. / 256 : 1. / 2048;
        for (int64_t m = 0; m < M; m += m + 1 == M ? 1 : std::min<int64_t>(M - 1 - m, 1 + M / 5)) {
            std::vector<double> row;
            for (int64_t k = 0; k < c.K; k++) row.push_back(value_of(x, c.src, m * c.K + k));
            for (int64_t n = 0; n < c.N; n++) {
                double want = c.bias ? value_of(bias, c.dst, n) : 0, magnitude = std::fabs(want);
                for (int64_t k = 0; k < c.K; k++) {
                    const double product = row[size_t(k)] * weights[size_t(n * c.K + k)];
                    want += product;
                    magnitude += std::fabs(product);
                }
                // Two units of 2^-24 for every addition; half a unit of the type for a weight, and for dst.
                double bound = std::ldexp(double(c.K + 4) * magnitude, -23) + rounding * magnitude;
                if (c.relu) want = std::max(want, 0.);
                bound += c.dst == dt::f32 ? std::ldexp(std::fabs(want), -23)
                                          : std::ldexp(std::fabs(want) + bound, c.dst == dt::bf16 ? -8 : -11);
                ASSERT_LE(std::fabs(value_of(got, c.dst, m * c.N + n) - want), bound)
                        << what << " M " << M << ": row " << m << " column " << n << " is "
                        << value_of(got, c.dst, m * c.N + n) << ", not " << want;
            }
        }
    }
};

// Has to be the first here: cuBLASLt's handle is made once in a process. A blocking stream is one that the
// legacy stream waits for.
TEST(cuda_cublaslt, opens_beside_a_capture_of_a_blocking_stream) {
    cudaStream_t captured = nullptr;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamCreate(&captured), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
    bool found = false;
    std::thread([&] {
        const auto pd = make_pd({512, 1032, dt::bf16, true, false}, formats[0], any_rows);
        found = is_cublaslt(pd);
        const mxdnn::mx_matmul p(pd);
    }).join();
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    if (graph) cudaGraphDestroy(graph);
    ASSERT_EQ(cudaStreamDestroy(captured), cudaSuccess);
    if (!found) GTEST_SKIP() << "no cuBLASLt";
}

TEST(cuda_cublaslt, every_format_is_within_its_bound) {
    if (!has_cublaslt()) GTEST_SKIP() << "no cuBLASLt";
    unsigned seed = 1;
    for (const format_t &f : formats) {
        const bool even = seed % 2 == 0;
        const problem_of_test_t p(
                {2056, 1048, even ? dt::bf16 : dt::f32, seed % 3 == 0, seed % 4 == 0}, f, seed);
        const std::string what = "format " + std::to_string(seed++) + " " + p.pd.weights_desc().to_string();
        ASSERT_TRUE(is_cublaslt(p.pd)) << what;
        const memory::dim least = plan_of(p.pd).least_rows;
        p.expect_right(least + 1, what, 0, 2);
        if (HasFatalFailure()) return;
    }
}

TEST(cuda_cublaslt, int4_and_rows_of_f16_are_within_their_bound) {
    if (!has_cublaslt()) GTEST_SKIP() << "no cuBLASLt";
    constexpr format_t more[] = {{dt::s4, dt::f16, 128, quant_mode_t::undef},
            {dt::u4, dt::f16, 128, quant_mode_t::undef, dt::u8},
            {dt::u4, dt::f16, 32, quant_mode_t::undef, dt::f16}, {dt::u4, dt::f32, 64, quant_mode_t::undef}};
    std::vector<format_t> all(std::begin(more), std::end(more));
    for (const format_t &f : formats)
        if (f.elem == dt::s4 || f.elem == dt::u4) all.push_back(f);
    unsigned seed = 1;
    for (const format_t &f : all) {
        const case_t c{520, 1048, seed % 2 ? dt::f16 : dt::f32, seed % 3 == 0, seed % 4 == 0, dt::f16};
        const std::string what = "format " + std::to_string(seed);
        // Sums of f32 may be below every f16.
        const bool added = f.zp != dt::undef && f.zp != dt::u8;
        if (added && (f.zp == dt::f32 || f.scale == dt::f32)) {
            EXPECT_FALSE(is_cublaslt(make_pd(c, f, any_rows))) << what;
            continue;
        }
        const problem_of_test_t p(c, f, seed++);
        ASSERT_TRUE(is_of<cublaslt_f16_mx_matmul_t>(p.pd)) << what;
        p.expect_right(plan_of(p.pd).least_rows + 1, what + " " + p.pd.weights_desc().to_string(), 0, 2);
        if (HasFatalFailure()) return;
    }
}

// int4 with scales of f32 uses cuBLASLt from few rows on, so many numbers of rows can be tested in little
// time.
class cuda_cublaslt_of : public testing::TestWithParam<dt> {
protected:
    void SetUp() override {
        if (!has_cublaslt()) GTEST_SKIP() << "no cuBLASLt";
    }
};
INSTANTIATE_TEST_SUITE_P(types, cuda_cublaslt_of, testing::Values(dt::bf16, dt::f16),
        [](const auto &info) { return std::string(info.param == dt::bf16 ? "bf16" : "f16"); });

TEST_P(cuda_cublaslt_of, rows_on_both_sides_of_the_line) {
    const problem_of_test_t p({256, 1032, GetParam(), true, false, GetParam()}, formats[9], 3);
    ASSERT_TRUE(is_cublaslt(p.pd));
    const memory::dim least = plan_of(p.pd).least_rows;
    ASSERT_GT(least, 1);
    for (const memory::dim M : {memory::dim(1), least - 1, least, least + 1, least + 63, memory::dim(1024),
                 memory::dim(2047), memory::dim(4099)}) {
        p.expect_right(M, "rows");
        if (HasFatalFailure()) return;
    }
    // Known rows are chosen for at creation.
    EXPECT_TRUE(is_cublaslt(make_pd(p.c, p.f, least)));
    EXPECT_FALSE(is_cublaslt(make_pd(p.c, p.f, least - 1)));
    EXPECT_FALSE(is_cublaslt(make_pd(p.c, p.f, any_rows, least - 1)));
    EXPECT_TRUE(is_cublaslt(make_pd(p.c, p.f, any_rows, least)));
}

TEST_P(cuda_cublaslt_of, memory_that_starts_anywhere) {
    const problem_of_test_t p({256, 264, dt::f32, false, true, GetParam()}, formats[9], 4);
    for (const int shift : {4, 16, 48}) {
        p.expect_right(900, "shifted by " + std::to_string(shift), shift);
        if (HasFatalFailure()) return;
    }
}

// Where there would be few CTAs, a separate kernel adds parts of K. The scratchpad has room for it for any M.
TEST_P(cuda_cublaslt_of, long_sums_of_few_columns) {
    const problem_of_test_t p({8192, 264, GetParam(), true, true, GetParam()}, formats[9], 8);
    ASSERT_TRUE(is_cublaslt(p.pd));
    const memory::dim least = plan_of(p.pd).least_rows;
    for (const memory::dim M : {least, memory::dim(255), memory::dim(1023), memory::dim(4095)}) {
        ASSERT_GE(M, least);
        p.expect_right(M, "long sums", 0, 2);
        if (HasFatalFailure()) return;
    }
}

TEST_P(cuda_cublaslt_of, no_relu_makes_a_number_of_nan) {
    for (const dt dst : {dt::f32, GetParam()}) {
        const problem_of_test_t p({256, 264, dst, false, true, GetParam()}, formats[9], 4);
        const memory::dim M = plan_of(p.pd).least_rows + 3, row = 7;
        const memory::desc src_md({M, p.c.K}, GetParam(), tag::ab), dst_md({M, p.c.N}, dst, tag::ab);
        bytes_t x(src_md.get_size(), 0);
        const auto nan = uint16_t(mxdnn::impl::encode_value(mxdnn_data_type_t(GetParam()), NAN));
        std::memcpy(&x[size_t(row * p.c.K + 100) * 2], &nan, 2);
        const memory out = make_memory(dst_md, gpu(), bytes_t(dst_md.get_size(), 0xc3));
        mxdnn::stream s(gpu());
        mxdnn::mx_matmul(p.pd).execute(
                s, {{MXDNN_ARG_SRC, make_memory(src_md, gpu(), x)},
                           {MXDNN_ARG_WEIGHTS, make_memory(p.pd.weights_desc(), gpu(), p.packed)},
                           {MXDNN_ARG_DST, out}});
        s.wait();
        const bytes_t got = read_memory(out);
        for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < p.c.N; n++)
                ASSERT_EQ(std::isnan(value_of(got, dst, m * p.c.N + n)), m == row)
                        << "row " << m << " column " << n;
    }
}

TEST(cuda_cublaslt, several_passes_over_the_columns) {
    if (!has_cublaslt()) GTEST_SKIP() << "no cuBLASLt";
    // More than 64 MiB decoded, with a global scale before the panels; and panels of f16 that are noted.
    const problem_of_test_t with_global({8192, 4200, dt::bf16, true, false}, formats[7], 5),
            of_f16({8192, 4200, dt::f16, true, false, dt::f16}, formats[10], 6);
    for (const problem_of_test_t *p : {&with_global, &of_f16}) {
        ASSERT_TRUE(is_cublaslt(p->pd));
        ASSERT_LT(plan_of(p->pd).columns, p->c.N);
        p->expect_right(plan_of(p->pd).least_rows + 5, "passes");
    }
}

TEST(cuda_cublaslt, leaves_to_others_what_it_does_not_do) {
    if (!has_cublaslt()) GTEST_SKIP() << "no cuBLASLt";
    const auto takes = [](dt src, const memory::dims &dst_strides, dt bias, bool gelu) {
        mxdnn::primitive_attr attr;
        set_format(attr, MXDNN_ARG_WEIGHTS, formats[9], true, 2, false);
        if (gelu) {
            mxdnn::post_ops ops;
            ops.append_eltwise(mxdnn::algorithm::eltwise_gelu_erf, 0.f, 0.f);
            attr.set_post_ops(ops);
        }
        const memory::dim M = 4096;
        return is_cublaslt(mxdnn::mx_matmul::primitive_desc(gpu(), memory::desc({M, 256}, src, tag::ab),
                memory::desc({256, 264}, dt::s4, tag::any), memory::desc({1, 264}, bias, tag::ab),
                memory::desc({M, 264}, dt::bf16, dst_strides), attr));
    };
    EXPECT_TRUE(takes(dt::bf16, {264, 1}, dt::bf16, false));
    EXPECT_TRUE(takes(dt::bf16, {272, 1}, dt::bf16, false));
    EXPECT_FALSE(takes(dt::f32, {264, 1}, dt::bf16, false));
    EXPECT_FALSE(takes(dt::bf16, {265, 1}, dt::bf16, false));
    EXPECT_FALSE(takes(dt::bf16, {1, 4096}, dt::bf16, false));
    EXPECT_FALSE(takes(dt::bf16, {264, 1}, dt::f32, false));
    EXPECT_FALSE(takes(dt::bf16, {264, 1}, dt::bf16, true));
}

} // namespace

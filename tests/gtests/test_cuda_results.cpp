// SPDX-License-Identifier: Apache-2.0
// cuda:sm_90 and rows:sm_80 with quantised destinations. The bytes equal those of mx_reorder on the f32
// results, in every format, with computed or given scales, linear or in 128x4 tiles, after all kinds of
// post-ops. Rows of no group stay unchanged.
#include "cuda_formats.hpp"

using namespace cuda_test;

namespace {

bool is_quantised(const format_t &f) {
    return f.mode == quant_mode_t::dynamic_mx || f.mode == quant_mode_t::dynamic_fp;
}

struct case_t {
    memory::dim M, N, K;
    bool gated;
    int64_t rows_hint = 0;
};

mxdnn::primitive_attr make_attr(const case_t &c, int ndims) {
    mxdnn::primitive_attr a;
    a.set_scales(MXDNN_ARG_WEIGHTS, (1 << ndims) - 1, {32, 1}, dt::e8m0);
    if (c.rows_hint) a.set_max_rows_hint(c.rows_hint);
    if (c.gated) {
        mxdnn::post_ops ops;
        ops.append_gated(mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
        a.set_post_ops(ops);
    }
    return a;
}

void set_destination(mxdnn::primitive_attr &a, const format_t &f) {
    a.set_scales(MXDNN_ARG_DST, 3, {1, f.block}, f.scale, false, f.mode);
    if (f.mode == quant_mode_t::dynamic_mx) a.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
    if (f.global) a.set_global_scale(MXDNN_ARG_DST, quant_mode_t::static_sazp);
}

// What mx_reorder makes of rows of f32; `in` has the global scale, where there is one.
values_t quantised(const memory::dims &dims, const format_t &f, const bytes_t &values, const values_t &in) {
    mxdnn::primitive_attr a;
    set_destination(a, f);
    const mxdnn::mx_reorder::primitive_desc pd(
            gpu(), memory::desc(dims, dt::f32, tag::ab), gpu(), memory::desc(dims, f.elem, tag::ab), a);
    values_t from = {{MXDNN_ARG_SRC, values}};
    const int global = MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST;
    if (f.global) from[global] = in.at(global);
    return run(pd, gpu(), from);
}

class cuda_results : public testing::TestWithParam<const char *> {
protected:
    void SetUp() override {
        if (gpu().get_target() != "cuda:sm_90") GTEST_SKIP() << "no Hopper device";
    }
};

TEST_P(cuda_results, are_the_bytes_of_a_reorder) {
    int formats_met = 0;
    for (const format_t &f : formats) {
        if (!is_quantised(f)) continue;
        formats_met++;
        for (const case_t &c : {case_t{1, 64, 64, false}, case_t{7, 100, 200, false},
                     case_t{40, 130, 96, true}, case_t{9, 65, 77, false}, case_t{150, 328, 256, false},
                     case_t{300, 64, 64, true, 100}}) {
            const memory::dim columns = c.gated ? c.N / 2 : c.N;
            const auto make = [&](dt type, const mxdnn::primitive_attr &a) {
                return mxdnn::mx_matmul::primitive_desc(gpu(), memory::desc({c.M, c.K}, dt::bf16, tag::ab),
                        memory::desc({c.K, c.N}, dt::f4_e2m1, tag::any),
                        memory::desc({c.M, columns}, type, tag::ab), a);
            };
            mxdnn::primitive_attr codes = make_attr(c, 2);
            set_destination(codes, f);
            auto pd = make(f.elem, codes), plain = make(dt::f32, make_attr(c, 2));
            ASSERT_TRUE(go_to(pd, GetParam()) && go_to(plain, GetParam()));
            std::mt19937 rng{unsigned(c.M)};
            const values_t in = random_inputs(pd, rng);
            const bytes_t values = run(plain, gpu(), in).at(MXDNN_ARG_DST);
            const values_t want = quantised({c.M, columns}, f, values, in), got = run(pd, gpu(), in);
            for (int arg : {MXDNN_ARG_DST, MXDNN_ARG_DST | MXDNN_ARG_ATTR_SCALES})
                ASSERT_EQ(got.at(arg), want.at(arg))
                        << pd.dst_desc().to_string() << " " << c.M << " " << c.N << " argument " << arg;
        }
    }
    EXPECT_EQ(formats_met, 8);
}

enum class scales_t { computed, given, tiles };

// The destination and post-ops that the kernels leave to what comes after them.
void set_destination(mxdnn::primitive_attr &a, const format_t &f, scales_t scales) {
    set_format(a, MXDNN_ARG_DST, f, false, 2, scales != scales_t::given);
    if (scales == scales_t::tiles) a.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
}
void set_post_ops(mxdnn::primitive_attr &a, const case_t &c, int kind) {
    mxdnn::post_ops ops;
    if (c.gated) {
        ops.append_gated(mxdnn::algorithm::gated_gelu_tanh, 1.f, 0.f,
                kind ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
    } else if (kind) {
        ops.append_eltwise(mxdnn::algorithm::eltwise_gelu_erf, 0.f, 0.f);
        ops.append_binary(mxdnn::algorithm::binary_mul, memory::desc({1, c.N}, dt::bf16, tag::ab));
    }
    a.set_post_ops(ops);
}

TEST_P(cuda_results, finished_apart_are_the_bytes_of_a_reorder) {
    int met = 0;
    for (const format_t &f : formats)
        for (scales_t scales : {scales_t::computed, scales_t::given, scales_t::tiles})
            for (const case_t &c : {case_t{7, 100, 200, false}, case_t{40, 260, 96, true},
                         case_t{384, 512, 64, false, 128}, case_t{256, 1024, 64, true, 64}}) {
                if (scales != scales_t::given && f.mode == quant_mode_t::undef) continue;
                const memory::dim columns = c.gated ? c.N / 2 : c.N;
                // Padding of tiles is written by one of the two only.
                if (scales == scales_t::tiles
                        && (f.mode == quant_mode_t::dynamic_affine || c.M % 128 || columns % (f.block * 4)))
                    continue;
                for (int kind : {0, 1}) {
                    const auto make = [&](dt type) {
                        mxdnn::primitive_attr a;
                        if (type == f.elem) set_destination(a, f, scales);
                        a.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
                        if (c.rows_hint) a.set_max_rows_hint(c.rows_hint);
                        set_post_ops(a, c, kind);
                        return mxdnn::mx_matmul::primitive_desc(gpu(),
                                memory::desc({c.M, c.K}, dt::bf16, tag::ab),
                                memory::desc({c.K, c.N}, dt::f4_e2m1, tag::any),
                                memory::desc({c.M, columns}, type, tag::ab), a);
                    };
                    auto pd = make(f.elem), plain = make(dt::f32);
                    ASSERT_TRUE(go_to(pd, GetParam()) && go_to(plain, GetParam()));
                    mxdnn::primitive_attr to_codes;
                    set_destination(to_codes, f, scales);
                    const mxdnn::mx_reorder::primitive_desc reorder(gpu(),
                            memory::desc({c.M, columns}, dt::f32, tag::ab), gpu(),
                            memory::desc({c.M, columns}, f.elem, tag::ab), to_codes);
                    std::mt19937 rng{unsigned(c.M)};
                    const values_t in = random_inputs(pd, rng);
                    values_t from = in;
                    from[MXDNN_ARG_SRC] = run(plain, gpu(), in).at(MXDNN_ARG_DST);
                    const values_t want = run(reorder, gpu(), from), got = run(pd, gpu(), in);
                    for (const auto &w : want)
                        ASSERT_EQ(got.at(w.first), w.second)
                                << pd.dst_desc().to_string() << " " << c.M << " " << c.N << " scales "
                                << int(scales) << " post-ops " << kind << " argument " << w.first;
                    met++;
                }
            }
    EXPECT_GT(met, 200);
}

// Four experts with rows, one without, and rows of nobody at the end.
TEST_P(cuda_results, of_experts_leave_rows_of_nobody) {
    constexpr memory::dim groups = 5, rows = 230, N = 130, K = 160, columns = N / 2;
    const std::vector<int32_t> ends = {3, 3, 70, 71, 200};
    bytes_t offsets(ends.size() * 4);
    std::memcpy(offsets.data(), ends.data(), offsets.size());
    for (const format_t &f : formats) {
        if (!is_quantised(f)) continue;
        const auto make = [&](dt type, const mxdnn::primitive_attr &a) {
            return mxdnn::grouped_matmul::primitive_desc(gpu(),
                    memory::desc::grouped({rows, K}, dt::bf16, 0, groups),
                    memory::desc({groups, K, N}, dt::f4_e2m1, tag::any),
                    memory::desc::grouped({rows, columns}, type, 0, groups), a);
        };
        const case_t c{rows, N, K, true};
        mxdnn::primitive_attr codes = make_attr(c, 3);
        set_destination(codes, f);
        auto pd = make(f.elem, codes), plain = make(dt::f32, make_attr(c, 3));
        ASSERT_TRUE(go_to(pd, GetParam()) && go_to(plain, GetParam()));
        std::mt19937 rng(3);
        values_t in = random_inputs(pd, rng);
        in[MXDNN_ARG_GROUP_OFFSETS] = offsets;
        for (int absent : {MXDNN_ARG_WEIGHTS_PTRS, MXDNN_ARG_GROUP_EXPERT_IDS}) in.erase(absent);
        shapes_t shapes = {{MXDNN_ARG_WEIGHTS_PTRS, memory::desc({MXDNN_RUNTIME_DIM_VAL}, dt::u8, tag::a)},
                {MXDNN_ARG_GROUP_EXPERT_IDS, memory::desc({MXDNN_RUNTIME_DIM_VAL}, dt::u8, tag::a)}};
        if (f.global) { // one for all experts
            const float one = 0.37f;
            bytes_t &bytes = in[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST];
            bytes.resize(sizeof(one));
            std::memcpy(bytes.data(), &one, sizeof(one));
            shapes[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST] = memory::desc({1}, dt::f32, tag::a);
        }
        const bytes_t values = run(plain, gpu(), in, shapes).at(MXDNN_ARG_DST);
        const values_t want = quantised({rows, columns}, f, values, in), got = run(pd, gpu(), in, shapes);
        for (int arg : {MXDNN_ARG_DST, MXDNN_ARG_DST | MXDNN_ARG_ATTR_SCALES}) {
            const bytes_t &w = want.at(arg), &g = got.at(arg);
            ASSERT_EQ(w.size(), g.size());
            const size_t row = w.size() / rows, listed = size_t(ends.back()) * row;
            ASSERT_EQ(bytes_t(g.begin(), g.begin() + listed), bytes_t(w.begin(), w.begin() + listed)) << arg;
            ASSERT_EQ(bytes_t(g.begin() + listed, g.end()), bytes_t(w.size() - listed, 0xc3)) << arg;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(by, cuda_results, testing::Values("cuda:sm_90", "rows:sm_80"),
        [](const auto &p) { return std::string(p.index ? "rows_sm_80" : "cuda_sm_90"); });

} // namespace

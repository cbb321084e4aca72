// SPDX-License-Identifier: Apache-2.0
#include "cuda_samples.hpp"

namespace cuda_test {

namespace {

bytes_t s32(const std::vector<int32_t> &v) {
    bytes_t b(v.size() * 4);
    std::memcpy(b.data(), v.data(), b.size());
    return b;
}

class list_t {
public:
    list_t(const mxdnn::engine &engine, mxdnn::scratchpad_mode mode) : e(engine), mode_(mode) {}

    mxdnn::primitive_attr attr() const {
        mxdnn::primitive_attr a;
        a.set_scratchpad_mode(mode_);
        return a;
    }

    // `make` makes a descriptor; each of its implementations is a sample.
    template <typename F>
    void add(const std::string &name, F &&make, const values_t &indices = {}, const shapes_t &shapes = {}) {
        using pd_t = decltype(make());
        for (int impl = 0;; impl++) {
            auto pd = std::make_shared<pd_t>(make());
            for (int i = 0; i < impl; i++)
                if (!pd->next_impl()) return;
            all.push_back({name, pd, indices, shapes});
        }
    }

    void add_reorder(const std::string &name, const memory::desc &from, const memory::desc &to,
            const mxdnn::primitive_attr &a) {
        add(name, [&] { return mxdnn::mx_reorder::primitive_desc(e, from, e, to, a); });
    }

    const mxdnn::engine e;
    std::vector<sample_t> all;

private:
    mxdnn::scratchpad_mode mode_;
};

void add_reorders(list_t &l) {
    const memory::desc bf16({33, 100}, dt::bf16, tag::ab);
    mxdnn::primitive_attr q = l.attr();
    q.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    l.add_reorder("quantise", bf16, memory::desc({33, 100}, dt::f8_e4m3, tag::ab), q);
    mxdnn::primitive_attr nv = l.attr();
    nv.set_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3, false, mxdnn::quantization_mode::dynamic_fp);
    nv.set_global_scale(MXDNN_ARG_DST, mxdnn::quantization_mode::dynamic_fp);
    l.add_reorder("two levels", memory::desc({33, 100}, dt::f32, tag::ab),
            memory::desc({33, 100}, dt::f4_e2m1, tag::ab), nv);
    mxdnn::primitive_attr int4 = l.attr();
    int4.set_scales(MXDNN_ARG_DST, 3, {1, 64}, dt::bf16, false, mxdnn::quantization_mode::dynamic_affine);
    l.add_reorder("int4", bf16, memory::desc({33, 100}, dt::s4, tag::ab), int4);
    l.add_reorder("copy", bf16, bf16, l.attr());
    l.add_reorder("cast", bf16, memory::desc({33, 100}, dt::f32, tag::ab), l.attr());
    l.add_reorder("transpose", bf16, memory::desc({33, 100}, dt::bf16, tag::ba), l.attr());
    // Packed in the layout that a matmul chooses.
    mxdnn::primitive_attr w;
    w.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    const memory::desc packed = mxdnn::mx_matmul::primitive_desc(l.e,
            memory::desc({1, 100}, dt::bf16, tag::ab), memory::desc({100, 33}, dt::f4_e2m1, tag::any),
            memory::desc({1, 33}, dt::f32, tag::ab), w)
                                        .weights_desc();
    const memory::desc plain({100, 33}, dt::bf16, tag::ba);
    mxdnn::primitive_attr k = l.attr();
    k.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    l.add_reorder("pack", plain, packed, k);
    l.add_reorder("unpack", packed, plain, l.attr());
    // Rows in groups whose sizes are on the device only.
    mxdnn::primitive_attr both = l.attr();
    both.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    both.set_scales(MXDNN_ARG_DST_1, 3, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    const memory::desc rows = memory::desc::grouped({160, 64}, dt::bf16, 0, 3),
                       codes = memory::desc::grouped({160, 64}, dt::f8_e4m3, 0, 3);
    l.add("groups", [&] { return mxdnn::mx_reorder::primitive_desc(l.e, rows, l.e, codes, codes, both); },
            {{MXDNN_ARG_GROUP_OFFSETS, s32({37, 37, 160})}},
            {{MXDNN_ARG_GROUP_OFFSETS, memory::desc({3}, dt::s32, tag::a)},
                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, memory::desc({160, 2}, dt::e8m0, tag::ab)},
                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST_1, memory::desc({6, 64}, dt::e8m0, tag::ab)}});
}

void add_matmuls(list_t &l) {
    mxdnn::primitive_attr w = l.attr();
    w.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    const auto matmul = [&](const std::string &name, memory::dim M, memory::dim K, memory::dim N, dt src,
                                dt wei, tag order, const mxdnn::primitive_attr &a) {
        l.add(name, [&] {
            return mxdnn::mx_matmul::primitive_desc(l.e, memory::desc({M, K}, src, tag::ab),
                    memory::desc({K, N}, wei, order), memory::desc({M, N}, dt::f32, tag::ab), a);
        });
    };
    matmul("plain weights", 9, 70, 40, dt::bf16, dt::f4_e2m1, tag::ab, w);
    matmul("packed weights", 9, 70, 40, dt::bf16, dt::f4_e2m1, tag::any, w);
    matmul("few rows", 9, 512, 320, dt::bf16, dt::f4_e2m1, tag::any, w);
    matmul("many rows", 100, 512, 320, dt::bf16, dt::f4_e2m1, tag::any, w);
    mxdnn::primitive_attr both = w;
    both.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    matmul("quantised source", 20, 64, 40, dt::f8_e4m3, dt::f8_e4m3, tag::any, both);
    mxdnn::primitive_attr int4 = l.attr();
    int4.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::bf16);
    matmul("int4", 700, 256, 264, dt::bf16, dt::s4, tag::any, int4);
}

// Four experts, one of them without rows.
void add_experts(list_t &l) {
    const memory::desc left_out({MXDNN_RUNTIME_DIM_VAL}, dt::u8, tag::a), s32x4({4}, dt::s32, tag::a);
    mxdnn::primitive_attr a = l.attr();
    a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    for (const tag order : {tag::abc, tag::any})
        l.add("experts",
                [&] {
                    return mxdnn::grouped_matmul::primitive_desc(l.e,
                            memory::desc::grouped({9, 64}, dt::bf16, 0, 4),
                            memory::desc({4, 64, 32}, dt::f4_e2m1, order),
                            memory::desc::grouped({9, 32}, dt::f32, 0, 4), a);
                },
                {{MXDNN_ARG_GROUP_OFFSETS, s32({3, 3, 5, 9})},
                        {MXDNN_ARG_GROUP_EXPERT_IDS, s32({2, 0, 1, 3})}},
                {{MXDNN_ARG_WEIGHTS_PTRS, left_out}});
    // Rows are gathered, and summed where they share a destination: each way of summing, each kind of matmul.
    for (const int32_t rows : {40, 1200}) {
        std::vector<int32_t> token, ends = {rows / 8, rows / 8, rows / 2, rows};
        for (int32_t r = 0; r < rows; r++) token.push_back((r * 7 + r / 3) % (rows / 4));
        const memory::dim tokens = rows / 4;
        l.add("experts of " + std::to_string(tokens) + " tokens",
                [&] {
                    return mxdnn::grouped_matmul::primitive_desc(l.e,
                            memory::desc({tokens, 64}, dt::bf16, tag::ab),
                            memory::desc({4, 64, 96}, dt::f4_e2m1, tag::any),
                            memory::desc({tokens, 96}, dt::f32, tag::ab), a);
                },
                {{MXDNN_ARG_GROUP_OFFSETS, s32(ends)}, {MXDNN_ARG_GATHER_IDX, s32(token)},
                        {MXDNN_ARG_SCATTER_IDX, s32(token)}},
                {{MXDNN_ARG_WEIGHTS_PTRS, left_out}, {MXDNN_ARG_GROUP_OFFSETS, s32x4},
                        {MXDNN_ARG_GATHER_IDX, memory::desc({rows}, dt::s32, tag::a)},
                        {MXDNN_ARG_SCATTER_IDX, memory::desc({rows}, dt::s32, tag::a)}});
    }
}

// Gradients of four experts, one of them without rows, and padding behind the rows of another.
void add_gradients(list_t &l) {
    const shapes_t counts = {{MXDNN_ARG_GROUP_COUNTS, memory::desc({4}, dt::s32, tag::a)}};
    const values_t indices = {{MXDNN_ARG_GROUP_OFFSETS, s32({64, 64, 96, 200})},
            {MXDNN_ARG_GROUP_COUNTS, s32({40, 0, 32, 100})}};
    l.add(
            "gradients",
            [&] {
                return mxdnn::grouped_matmul_backward_weights::primitive_desc(l.e,
                        memory::desc({200, 72}, dt::bf16, tag::ab),
                        memory::desc({200, 40}, dt::bf16, tag::ab),
                        memory::desc({4, 72, 40}, dt::f32, tag::abc), l.attr());
            },
            indices, counts);
    mxdnn::primitive_attr a = l.attr();
    shapes_t shapes = counts;
    for (const int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DIFF_DST}) {
        a.set_scales(arg, 3, {32, 1}, dt::e8m0);
        shapes[MXDNN_ARG_ATTR_SCALES | arg] =
                memory::desc({7, arg == MXDNN_ARG_SRC ? 72 : 40}, dt::e8m0, tag::ab);
    }
    values_t scaled = indices;
    scaled[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] = bytes_t(7 * 72, 127);
    scaled[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DIFF_DST] = bytes_t(7 * 40, 125);
    l.add(
            "gradients of MXFP8",
            [&] {
                return mxdnn::grouped_matmul_backward_weights::primitive_desc(l.e,
                        memory::desc({200, 72}, dt::f8_e4m3, tag::ab),
                        memory::desc({200, 40}, dt::f8_e4m3, tag::ab),
                        memory::desc({4, 72, 40}, dt::bf16, tag::acb), a);
            },
            scaled, shapes);
}

void add_companions(list_t &l) {
    const mxdnn::engine &e = l.e;
    // One CTA, and many CTAs that wait for each other.
    for (const memory::dim tokens : {9, 333})
        l.add("route of " + std::to_string(tokens), [&] {
            return mxdnn::moe_route::primitive_desc(e, memory::desc({tokens, 16}, dt::bf16, tag::ab), 4,
                    mxdnn::algorithm::route_softmax_topk, unsigned(mxdnn_route_renormalize), 1, 1, l.attr());
        });
    l.add("permute",
            [&] {
                return mxdnn::moe_permute::primitive_desc(e, memory::desc({12, 40}, dt::bf16, tag::ab),
                        memory::desc({32, 40}, dt::bf16, tag::ab), 2, 3, 8, l.attr());
            },
            {{MXDNN_ARG_GROUP_COUNTS, s32({1, 2, 0, 3, 4, 2})}});
    l.add("unpermute",
            [&] {
                return mxdnn::moe_unpermute::primitive_desc(e, memory::desc({8, 40}, dt::bf16, tag::ab),
                        memory::desc({4, 40}, dt::f32, tag::ab), l.attr());
            },
            {{MXDNN_ARG_PERMUTED_IDX, s32({3, -1, 0, 7, 1, 5, -1, 6})},
                    {MXDNN_ARG_TOPK_WEIGHTS, bytes_t(4 * 2 * 4, 0x3e)}},
            {{MXDNN_ARG_TOPK_WEIGHTS, memory::desc({4, 2}, dt::f32, tag::ab)}});
}

} // namespace

std::vector<sample_t> samples(const mxdnn::engine &e, mxdnn::scratchpad_mode scratchpad) {
    list_t l(e, scratchpad);
    add_reorders(l);
    add_matmuls(l);
    add_experts(l);
    add_gradients(l);
    add_companions(l);
    return l.all;
}

} // namespace cuda_test

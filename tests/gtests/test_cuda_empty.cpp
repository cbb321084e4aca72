// SPDX-License-Identifier: Apache-2.0
// Dims of zero on a device, by every implementation: no rows, no columns, sums of nothing. What comes out is
// what the host makes of it.
#include <cstring>

#include "cuda_formats.hpp"

using namespace cuda_test;

namespace {

// Zeros of either sign are equal here: relu gives either, and codes of floats keep the sign.
values_t without_signs_of_zeros(values_t v, dt type) {
    bytes_t &dst = v[MXDNN_ARG_DST];
    const int bits = type == dt::f32 ? 32 : type == dt::f8_e4m3 ? 8 : type == dt::f4_e2m1 ? 4 : 0;
    const uint32_t sign = bits ? 1u << (bits - 1) : 0, mask = sign + (sign - 1);
    for (size_t at = 0; bits && at + bits <= dst.size() * 8; at += bits) {
        uint32_t value = 0;
        std::memcpy(&value, &dst[at / 8], (bits + 7) / 8);
        if ((value >> at % 8 & mask) == sign) value ^= sign << at % 8;
        std::memcpy(&dst[at / 8], &value, (bits + 7) / 8);
    }
    return v;
}

// If `make` gives a descriptor on both engines, compares every implementation of the device with the host.
// Returns false otherwise.
template <typename F>
bool expect_as_on_host(
        const F &make, unsigned seed, const values_t &indices = {}, const shapes_t &shapes = {}) {
    using pd_t = decltype(make(cpu()));
    pd_t host, device;
    try {
        host = make(cpu());
        device = make(gpu());
    } catch (const mxdnn::error &) {
        return false;
    }
    std::mt19937 rng(seed);
    values_t in = random_inputs(host, rng);
    for (const auto &i : indices) in[i.first] = i.second;
    in.erase(MXDNN_ARG_WEIGHTS); // another layout, of nothing that counts
    const dt type = host.dst_desc().get_data_type();
    const values_t want = without_signs_of_zeros(run(host, cpu(), in, shapes), type);
    do {
        EXPECT_EQ(without_signs_of_zeros(run(device, gpu(), in, shapes), type), want)
                << device.impl_info_str();
    } while (device.next_impl());
    return true;
}

// The number of seeds for which `one(dice, seed)` returned true.
template <typename F>
int count_done(unsigned seeds, const F &one) {
    int done = 0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        dice_t dice(seed);
        done += one(dice, seed);
    }
    return done;
}

TEST(cuda_empty, matmul) {
    const memory::dims sizes[] = {{0, 64, 64}, {5, 0, 64}, {70, 0, 200}, {5, 64, 0}, {0, 0, 64}, {0, 512, 0}};
    const int done = count_done(150, [&](dice_t &dice, unsigned seed) {
        const memory::dims &d = dice.one_of(sizes);
        const format_t &f = formats[dice.below(13)];
        const bool packed = dice.below(4) > 0, bias = dice.coin(), relu = dice.coin();
        const int result = dice.below(8); // 0: codes, 1: codes under a computed global scale, else values
        const int batch = dice.below(4);  // none, none, shared weights, weights of their own
        const dt src = dice.one_of(high);
        const auto make = [&](const mxdnn::engine &e) {
            const bool own = batch == 3, batched = batch >= 2;
            const tag ab = batched ? tag::abc : tag::ab;
            mxdnn::primitive_attr a;
            set_format(a, MXDNN_ARG_WEIGHTS, f, true, batched ? 3 : 2, false);
            const int mask = batched ? 7 : 3;
            if (result == 0)
                a.set_scales(MXDNN_ARG_DST, mask, {1, 32}, dt::e8m0, false, quant_mode_t::dynamic_mx);
            if (result == 1) {
                a.set_scales(MXDNN_ARG_DST, mask, {1, 16}, dt::f8_e4m3, false, quant_mode_t::dynamic_fp);
                a.set_global_scale(MXDNN_ARG_DST, quant_mode_t::dynamic_fp);
            }
            if (relu) {
                mxdnn::post_ops ops;
                ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0.f, 0.f);
                a.set_post_ops(ops);
            }
            memory::dims x = {d[0], d[1]}, w = {d[1], d[2]}, y = {d[0], d[2]}, b = {1, d[2]};
            if (batched) {
                for (memory::dims *of : {&x, &y}) of->insert(of->begin(), 2);
                b.insert(b.begin(), 1);
                w.insert(w.begin(), own ? 2 : 1);
            }
            const memory::desc src_md(x, src, ab),
                    dst_md(y,
                            result == 0   ? dt::f8_e4m3
                            : result == 1 ? dt::f4_e2m1
                                          : dt::f32,
                            ab),
                    weights(w, f.elem, packed ? tag::any : ab);
            return bias ? mxdnn::mx_matmul::primitive_desc(
                           e, src_md, weights, memory::desc(b, dt::f32, ab), dst_md, a)
                        : mxdnn::mx_matmul::primitive_desc(e, src_md, weights, dst_md, a);
        };
        return expect_as_on_host(make, seed);
    });
    EXPECT_GE(done, 100);
}

TEST(cuda_empty, reorder) {
    const int done = count_done(150, [&](dice_t &dice, unsigned seed) {
        const memory::dims sizes[] = {{0, 64}, {64, 0}, {0, 0}, {3, 0, 64}, {0, 64, 64}};
        const memory::dims &d = dice.one_of(sizes);
        const int nd = int(d.size()), kind = dice.below(3);
        const format_t &f = formats[dice.below(11)], &g = formats[dice.below(13)];
        const bool along_rows = dice.coin();
        const dt from = dice.one_of(high), to = dice.one_of(high);
        const tag ab = nd == 3 ? tag::abc : tag::ab;
        const auto make = [&](const mxdnn::engine &e) {
            mxdnn::primitive_attr a;
            if (kind != 0) set_format(a, MXDNN_ARG_SRC, g, along_rows, nd, false);
            if (kind != 1) set_format(a, MXDNN_ARG_DST, f, along_rows, nd, true);
            return mxdnn::mx_reorder::primitive_desc(e, memory::desc(d, kind != 0 ? g.elem : from, ab), e,
                    memory::desc(d, kind != 1 ? f.elem : to, ab), a);
        };
        return expect_as_on_host(make, seed);
    });
    EXPECT_GE(done, 100);
}

TEST(cuda_empty, experts) {
    const int done = count_done(60, [&](dice_t &dice, unsigned seed) {
        const memory::dims sizes[] = {{0, 64, 64}, {9, 0, 64}, {9, 64, 0}, {0, 0, 64}, {700, 0, 40}};
        const memory::dims &d = dice.one_of(sizes);
        const format_t &f = formats[dice.below(11)];
        const bool packed = dice.coin(), bias = dice.coin();
        const auto make = [&](const mxdnn::engine &e) {
            mxdnn::primitive_attr a;
            set_format(a, MXDNN_ARG_WEIGHTS, f, true, 3, false);
            const memory::desc src = memory::desc::grouped({d[0], d[1]}, dt::bf16, 0, 3),
                               weights({3, d[1], d[2]}, f.elem, packed ? tag::any : tag::abc),
                               dst = memory::desc::grouped({d[0], d[2]}, dt::f32, 0, 3);
            return bias ? mxdnn::grouped_matmul::primitive_desc(
                           e, src, weights, memory::desc({3, d[2]}, dt::f32, tag::ab), dst, a)
                        : mxdnn::grouped_matmul::primitive_desc(e, src, weights, dst, a);
        };
        const int32_t rows = int32_t(d[0]), ends[] = {rows / 2, rows / 2, rows};
        bytes_t offsets(sizeof(ends));
        std::memcpy(offsets.data(), ends, sizeof(ends));
        const memory::desc left_out({MXDNN_RUNTIME_DIM_VAL}, dt::u8, tag::a);
        return expect_as_on_host(make, seed, {{MXDNN_ARG_GROUP_OFFSETS, offsets}},
                {{MXDNN_ARG_WEIGHTS_PTRS, left_out}, {MXDNN_ARG_GROUP_EXPERT_IDS, left_out}});
    });
    EXPECT_GE(done, 40);
}

} // namespace

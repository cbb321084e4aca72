// SPDX-License-Identifier: Apache-2.0
// ref:cuda against the host's reference, byte for byte, over random problems of every format and form.
// Format arithmetic has exactly one result. Sums differ at most in the last bit of double, so results differ
// by at most one code of the type.
#include <algorithm>

#include "cuda_formats.hpp"

using namespace cuda_test;

namespace {

bool is_high(dt t) { return t == dt::f32 || t == dt::bf16 || t == dt::f16; }

// Equal bytes; of a high-precision destination codes that are neighbours (where sums are rounded), and any
// NaN for a NaN, whose payloads hosts and devices choose differently.
void expect_same(const values_t &want, const values_t &got, dt dst, bool exact, const std::string &what) {
    for (const auto &w : want) {
        const bytes_t &g = got.at(w.first);
        ASSERT_EQ(w.second.size(), g.size());
        if (w.second == g) continue;
        const bool values = w.first == MXDNN_ARG_DST && is_high(dst);
        const size_t width = values ? dst == dt::f32 ? 4 : 2 : 1;
        for (size_t i = 0; i + width <= g.size(); i += width) {
            uint32_t a = 0, b = 0;
            std::memcpy(&a, &w.second[i], width);
            std::memcpy(&b, &g[i], width);
            const auto value = [&](uint32_t c) {
                return mxdnn::impl::decode_value(mxdnn_data_type_t(dst), c);
            };
            if (values && std::isnan(value(a)) && std::isnan(value(b))) continue;
            ASSERT_LE(std::llabs(int64_t(a) - int64_t(b)), values && !exact ? 1 : 0)
                    << what << ": argument " << w.first << " code " << i / width << " of "
                    << g.size() / width;
        }
    }
}

TEST(cuda_ref, mx_reorder_gives_the_bytes_of_the_host) {
    int legal = 0;
    for (unsigned seed = 0; seed < 400; seed++) {
        dice_t d(seed);
        const memory::dim sizes[] = {1, 3, 16, 17, 31, 32, 33, 64, 100, 129, 256, 320};
        memory::dims dims = {d.one_of(sizes), d.one_of(sizes)};
        if (d.below(3) == 0) dims.insert(dims.begin(), 1 + d.below(3));
        const int nd = int(dims.size());
        const auto side = [&](int arg, mxdnn::primitive_attr &attr) {
            const bool quantised = d.below(3) != 0;
            const format_t &f = d.one_of(formats);
            const dt type = quantised ? f.elem : d.one_of(high);
            if (quantised) {
                const bool dynamic = arg == MXDNN_ARG_DST && f.mode != quant_mode_t::undef && d.below(4) != 0;
                set_format(attr, arg, f, d.coin(), nd, dynamic);
                if (arg == MXDNN_ARG_DST) attr.set_scale_rounding(arg, mxdnn::scale_rounding(d.below(4)));
                if (d.below(4) == 0) attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
                if ((type == dt::f6_e2m3 || type == dt::f6_e3m2) && d.coin())
                    attr.set_element_packing(arg, mxdnn::element_packing::dense);
            }
            return memory::desc(
                    dims, type, nd == 2 ? (d.coin() ? tag::ab : tag::ba) : (d.coin() ? tag::abc : tag::acb));
        };
        mxdnn::primitive_attr attr;
        const memory::desc src = side(MXDNN_ARG_SRC, attr), dst = side(MXDNN_ARG_DST, attr);
        mxdnn::mx_reorder::primitive_desc host(cpu(), src, cpu(), dst, attr, true),
                device(gpu(), src, gpu(), dst, attr, true);
        const std::string what =
                "seed " + std::to_string(seed) + " " + src.to_string() + " to " + dst.to_string();
        ASSERT_EQ(bool(host), bool(device)) << what;
        if (!host) continue;
        legal++;
        const values_t in = random_inputs(host, d.rng);
        expect_same(run(host, cpu(), in), run(device, gpu(), in), dst.get_data_type(), true, what);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(legal, 150);
}

// Packing and unpacking: the device's bytes equal the host's for every kind of source, and unpack to what was
// packed.
TEST(cuda_ref, packed_bytes_are_those_of_the_host) {
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    unsigned seed = 5000;
    for (const format_t &f : formats)
        for (const memory::dims &dims : {memory::dims{33, 17}, memory::dims{1, 1}, memory::dims{100, 130},
                     memory::dims{2, 300, 70}, memory::dims{64, 64}, memory::dims{3, 31, 65}}) {
            dice_t d(seed++);
            const int nd = int(dims.size());
            const tag ab = nd == 2 ? tag::ab : tag::abc, ba = nd == 2 ? tag::ba : tag::acb;
            const memory::desc packed = packed_desc(dims, f), codes(dims, f.elem, d.coin() ? ab : ba),
                               values(dims, dt::bf16, ba);
            const std::string what = "seed " + std::to_string(seed - 1) + " " + packed.to_string();
            // Codes and scales as they are.
            mxdnn::primitive_attr given;
            set_format(given, MXDNN_ARG_SRC, f, true, nd, false);
            const mxdnn::mx_reorder::primitive_desc host(target, codes, target, packed, given),
                    device(gpu(), codes, gpu(), packed, given);
            const values_t in = random_inputs(host, d.rng), want = run(host, target, in);
            expect_same(want, run(device, gpu(), in), dt::undef, true, "packing " + what);
            // And back.
            const mxdnn::mx_reorder::primitive_desc unpack(gpu(), packed, gpu(), codes);
            const values_t out = run(unpack, gpu(), {{MXDNN_ARG_SRC, want.at(MXDNN_ARG_DST)}});
            const mxdnn::mx_reorder::primitive_desc unpack_host(target, packed, target, codes);
            expect_same(run(unpack_host, target, {{MXDNN_ARG_SRC, want.at(MXDNN_ARG_DST)}}), out, dt::undef,
                    true, "unpacking " + what);
            if (f.mode != quant_mode_t::undef) {
                mxdnn::primitive_attr computed;
                set_format(computed, MXDNN_ARG_DST, f, true, nd, true);
                const mxdnn::mx_reorder::primitive_desc quantise(target, values, target, packed, computed),
                        quantise_device(gpu(), values, gpu(), packed, computed);
                const values_t x = random_inputs(quantise, d.rng);
                expect_same(run(quantise, target, x), run(quantise_device, gpu(), x), dt::undef, true,
                        "quantising " + what);
            }
            if (HasFatalFailure()) return;
        }
}

TEST(cuda_ref, mx_matmul_gives_the_results_of_the_host) {
    int legal = 0;
    for (unsigned seed = 0; seed < 300; seed++) {
        dice_t d(1000 + seed);
        const memory::dim ms[] = {1, 2, 5, 17}, ks[] = {1, 16, 31, 64, 96, 130}, ns[] = {2, 6, 16, 34, 70};
        const memory::dim M = d.one_of(ms), K = d.one_of(ks), N = d.one_of(ns);
        const int nd = d.below(3) == 0 ? 3 : 2;
        const memory::dim batch = 1 + d.below(3);
        const auto shape = [&](memory::dim b, memory::dim r, memory::dim c) {
            return nd == 2 ? memory::dims{r, c} : memory::dims{b, r, c};
        };
        const tag ab = nd == 2 ? tag::ab : tag::abc, ba = nd == 2 ? tag::ba : tag::acb;
        mxdnn::primitive_attr attr;
        const format_t &wf = d.one_of(formats);
        const memory::dim wei_batch = d.coin() ? batch : 1;
        set_format(attr, MXDNN_ARG_WEIGHTS, wf, true, nd, false);
        const memory::desc wei(shape(wei_batch, K, N), wf.elem, d.coin() ? ab : ba);
        dt src_type = d.one_of(high);
        if (d.below(3) == 0) {
            const format_t &sf = d.one_of(formats);
            src_type = sf.elem;
            set_format(attr, MXDNN_ARG_SRC, sf, false, nd, false);
        }
        const memory::desc src(shape(batch, M, K), src_type, d.below(4) == 0 && is_high(src_type) ? ba : ab);
        mxdnn::post_ops ops;
        bool gated = false, exact = true;
        for (int i = d.below(4); i > 0; i--) {
            const int what = d.below(4);
            if (what == 0 && !gated) {
                gated = true;
                exact = false;
                ops.append_gated(mxdnn::algorithm(int(mxdnn::algorithm::gated_silu) + d.below(4)), 1.702f,
                        d.coin() ? 7.f : 0.f,
                        d.coin() ? mxdnn::gated_layout::interleaved : mxdnn::gated_layout::halves);
            } else if (what == 1) {
                const mxdnn::algorithm algs[] = {mxdnn::algorithm::eltwise_relu,
                        mxdnn::algorithm::eltwise_clip, mxdnn::algorithm::eltwise_gelu_erf,
                        mxdnn::algorithm::eltwise_swish, mxdnn::algorithm::eltwise_tanh};
                const mxdnn::algorithm alg = d.one_of(algs);
                exact = exact
                        && (alg == mxdnn::algorithm::eltwise_relu || alg == mxdnn::algorithm::eltwise_clip);
                ops.append_eltwise(alg, alg == mxdnn::algorithm::eltwise_clip ? -3.f : .5f, 5.f);
            } else if (what == 2) {
                const mxdnn::algorithm algs[] = {mxdnn::algorithm::binary_add, mxdnn::algorithm::binary_mul,
                        mxdnn::algorithm::binary_max, mxdnn::algorithm::binary_min};
                ops.append_binary(
                        d.one_of(algs), memory::desc(shape(1, d.coin() ? M : 1, 1), d.one_of(high), ab));
            } else if (i == 1) {
                ops.append_sum(.5f);
            }
        }
        attr.set_post_ops(ops);
        dt dst_type = d.one_of(high);
        if (d.below(3) == 0) {
            const format_t &df = d.one_of(formats);
            dst_type = df.elem;
            set_format(attr, MXDNN_ARG_DST, df, false, nd, df.mode != quant_mode_t::undef && d.below(3) != 0);
        }
        const memory::desc dst(shape(batch, M, gated ? N / 2 : N), dst_type, ab);
        const memory::desc bias =
                d.coin() ? memory::desc(shape(1, 1, N), d.one_of(high), ab) : memory::desc();
        if (!exact && !is_high(dst_type)) continue; // rounding of transcendental functions may cross a code
        const auto make = [&](const mxdnn::engine &e) {
            return bias ? mxdnn::mx_matmul::primitive_desc(e, src, wei, bias, dst, attr, true)
                        : mxdnn::mx_matmul::primitive_desc(e, src, wei, dst, attr, true);
        };
        auto host = make(cpu());
        const auto device = make(gpu());
        const std::string what = "seed " + std::to_string(seed) + " " + src.to_string() + " "
                                 + wei.to_string() + " " + dst.to_string();
        ASSERT_EQ(bool(host), bool(device)) << what;
        if (!host) continue;
        while (std::string(host.impl_info_str()) != "ref:any") ASSERT_TRUE(host.next_impl()) << what;
        legal++;
        const values_t in = random_inputs(host, d.rng);
        expect_same(run(host, cpu(), in), run(device, gpu(), in), dst_type, false, what);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(legal, 120);
}

template <typename T>
bytes_t bytes_of(const std::vector<T> &v) {
    bytes_t b(v.size() * sizeof(T));
    std::memcpy(b.data(), v.data(), b.size());
    return b;
}

// Ids, weights, counts, offsets and orders are those of the host, bit for bit.
TEST(cuda_ref, moe_route_gives_the_bytes_of_the_host) {
    int legal = 0;
    for (unsigned seed = 0; seed < 150; seed++) {
        dice_t d(9000 + seed);
        const memory::dim ts[] = {1, 5, 16, 33, 130}, es[] = {1, 4, 16, 60, 128}, groups[] = {1, 1, 2, 4};
        const memory::dim T = d.one_of(ts), E = d.one_of(es), k = 1 + d.below(8), g = d.one_of(groups);
        const mxdnn::algorithm scorings[] = {mxdnn::algorithm::route_softmax_topk,
                mxdnn::algorithm::route_topk_softmax, mxdnn::algorithm::route_sigmoid};
        const mxdnn::algorithm scoring = d.one_of(scorings);
        const unsigned flags = unsigned(d.below(8));
        const memory::dim chosen = 1 + d.below(int(g));
        mxdnn::primitive_attr attr;
        if (d.coin()) attr.set_row_grouping(mxdnn::row_grouping::starts);
        const memory::desc logits({T, E}, d.one_of(high), d.coin() ? tag::ab : tag::ba);
        const mxdnn::moe_route::primitive_desc host(cpu(), logits, k, scoring, flags, g, chosen, attr, true),
                device(gpu(), logits, k, scoring, flags, g, chosen, attr, true);
        const std::string what = "seed " + std::to_string(9000 + seed) + " " + logits.to_string();
        ASSERT_EQ(bool(host), bool(device)) << what;
        if (!host) continue;
        legal++;
        const values_t in = random_inputs(host, d.rng);
        expect_same(run(host, cpu(), in), run(device, gpu(), in), dt::undef, true, what);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(legal, 60);
}

// Any of the outputs without the others, by every implementation: of few tokens, of some a warp, and of more
// than warps or the reference's scratchpad remember.
TEST(cuda_ref, moe_route_writes_what_is_asked_for) {
    for (const memory::dim T : {1, 16, 40, 20000}) {
        dice_t d{unsigned(9300 + T)};
        const memory::desc logits({T, 40}, dt::bf16, tag::ab);
        const auto make = [&](const mxdnn::engine &e) {
            return mxdnn::moe_route::primitive_desc(e, logits, 4, mxdnn::algorithm::route_sigmoid,
                    mxdnn::moe_route::renormalize | mxdnn::moe_route::bias, 4, 3);
        };
        const values_t in = random_inputs(make(cpu()), d.rng), want = run(make(cpu()), cpu(), in);
        mxdnn::moe_route::primitive_desc pd = make(gpu());
        int impls = 0;
        do {
            impls++;
            const call_t all(pd, gpu(), in);
            ASSERT_EQ(all.outputs.size(), 7u);
            const mxdnn::stream s(gpu());
            const mxdnn::primitive prim(pd);
            for (unsigned subset = 1; subset < 1u << all.outputs.size(); subset++) {
                auto args = all.args;
                for (size_t i = 0; i < all.outputs.size(); i++)
                    if (!(subset >> i & 1)) args.erase(all.outputs[i]);
                prim.execute(s, args);
                mxdnn::stream(s).wait();
                for (size_t i = 0; i < all.outputs.size(); i++) {
                    const int arg = all.outputs[i];
                    if (!(subset >> i & 1)) continue;
                    const memory &m = args.at(arg);
                    ASSERT_EQ(read_memory(m), want.at(arg))
                            << pd.impl_info_str() << " " << T << " tokens, output " << arg << " of subset "
                            << subset;
                    const bytes_t poison(m.get_desc().get_size(), 0xc3);
                    mxdnn::cuda_interop::copy(s, m.get_data_handle(), poison.data(), poison.size());
                    mxdnn::stream(s).wait();
                }
            }
        } while (pd.next_impl());
        EXPECT_GE(impls, 2);
    }
}

TEST(cuda_ref, moe_permute_and_unpermute_give_the_bytes_of_the_host) {
    for (unsigned seed = 0; seed < 60; seed++) {
        dice_t d(9500 + seed);
        const memory::dim ranks = 1 + d.below(3), experts = 1 + d.below(5), columns = 2 * (1 + d.below(35));
        const memory::dim alignments[] = {1, 8, 128}, alignment = d.one_of(alignments);
        std::vector<int32_t> counts;
        int64_t rows = 0, padded = 0;
        for (int64_t i = 0; i < ranks * experts; i++)
            rows += counts.emplace_back(d.below(4) ? d.below(9) : 0);
        for (int64_t e = 0; e < experts; e++) {
            int64_t n = 0;
            for (int64_t r = 0; r < ranks; r++) n += counts[size_t(r * experts + e)];
            padded += (std::max(n, alignment) + alignment - 1) / alignment * alignment;
        }
        const int64_t spare = d.below(5);
        mxdnn::primitive_attr attr;
        dt type = d.one_of(high);
        if (d.coin()) {
            const format_t &f = d.one_of(formats);
            if (f.zp == dt::undef && !f.global) {
                type = f.elem;
                set_format(attr, MXDNN_ARG_SRC, f, false, 2, false);
            }
        }
        const memory::desc from({rows + 1, columns}, type, tag::ab),
                to({padded + spare, columns}, type, tag::ab);
        const mxdnn::moe_permute::primitive_desc host(cpu(), from, to, ranks, experts, alignment, attr),
                device(gpu(), from, to, ranks, experts, alignment, attr);
        values_t in = random_inputs(host, d.rng);
        in[MXDNN_ARG_GROUP_COUNTS] = bytes_of(counts);
        const std::string what =
                "seed " + std::to_string(9500 + seed) + " " + from.to_string() + " to " + to.to_string();
        const values_t there = run(host, cpu(), in);
        expect_same(there, run(device, gpu(), in), dt::undef, true, what);
        if (HasFatalFailure()) return;

        // And back, of tokens with k choices each: PERMUTED_IDX numbers the choices, some of which no row
        // has.
        const int64_t k = is_high(type) ? 1 + d.below(4) : 1, tokens = rows / k + 1;
        std::vector<int32_t> choices(size_t(tokens * k)), idx(size_t(padded + spare), -1);
        for (size_t i = 0; i < choices.size(); i++) choices[i] = int32_t(i);
        std::shuffle(choices.begin(), choices.end(), d.rng);
        for (size_t i = 0; i < idx.size() && i < choices.size(); i++) idx[i] = d.below(5) ? choices[i] : -1;
        const dt out_type = is_high(type) ? d.one_of(high) : type;
        const memory::desc back({tokens, columns}, out_type, tag::ab);
        const mxdnn::moe_unpermute::primitive_desc host_back(cpu(), to, back, attr),
                device_back(gpu(), to, back, attr);
        values_t in_back = random_inputs(host_back, d.rng);
        shapes_t shapes;
        if (is_high(type)) {
            const bool f32 = d.coin();
            shapes[MXDNN_ARG_TOPK_WEIGHTS] = memory::desc({tokens, k}, f32 ? dt::f32 : dt::bf16, tag::ab);
            in_back[MXDNN_ARG_TOPK_WEIGHTS] =
                    random_bytes(f32 ? mxdnn_f32 : mxdnn_bf16, size_t(tokens * k) * (f32 ? 4 : 2), d.rng);
        }
        in_back[MXDNN_ARG_PERMUTED_IDX] = bytes_of(idx);
        expect_same(run(host_back, cpu(), in_back, shapes), run(device_back, gpu(), in_back, shapes),
                dt::undef, true, "back " + what);
        if (HasFatalFailure()) return;
    }
}

} // namespace

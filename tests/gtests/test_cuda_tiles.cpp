// SPDX-License-Identifier: Apache-2.0
// tiles:sm_80 against the host, byte for byte: every format, rounding, source type and order; whole and
// partial tiles; aligned and unaligned memory; values that round or saturate, and NaN.
#include "cuda_formats.hpp"

using namespace cuda_test;

namespace {

// Whole tiles of both widths; columns and rows left over; lines that start on any byte.
const memory::dims shapes[] = {{512, 192}, {300, 104}, {77, 131}, {2, 270, 70}};

// Random bits, of which some blocks get NaN or infinities and others numbers of every magnitude.
bytes_t any_values(dt type, size_t size, std::mt19937 &rng) {
    bytes_t b(size);
    const size_t width = type == dt::f32 ? 4 : 2;
    for (size_t i = 0; i + width <= size; i += width) {
        const bool wild = i / width / 512 % 4 == 3;
        const float x = std::ldexp(float(int(rng() % 2001) - 1000), int(rng() % 12) - 14);
        uint32_t code = mxdnn::impl::encode_value(mxdnn_data_type_t(type), x);
        if (wild && rng() % 64 == 0) code = uint32_t(rng());
        std::memcpy(&b[i], &code, width);
    }
    return b;
}

struct order_t {
    const char *name;
    bool packed, ab;
};
const order_t orders[] = {{"ab", false, true}, {"ba", false, false}, {"packed", true, false}};

tag tag_of(const order_t &o, size_t nd) {
    return nd == 2 ? o.ab ? tag::ab : tag::ba : o.ab ? tag::abc : tag::acb;
}

memory::desc desc_in(const order_t &o, const memory::dims &dims, const format_t &f) {
    return o.packed ? packed_desc(dims, f) : memory::desc(dims, f.elem, tag_of(o, dims.size()));
}

// Compares the results of both engines for the same inputs. `impl` must be the first implementation of the
// device.
void expect_host_bits(const mxdnn::mx_reorder::primitive_desc &host,
        const mxdnn::mx_reorder::primitive_desc &device, const char *impl, const values_t &in,
        const std::string &what) {
    ASSERT_EQ(std::string(device.impl_info_str()), impl) << what;
    const values_t want = run(host, host.get_dst_engine(), in), got = run(device, gpu(), in);
    for (const auto &w : want) {
        const bytes_t &g = got.at(w.first);
        ASSERT_EQ(w.second.size(), g.size()) << what;
        const dt type = w.first == MXDNN_ARG_DST ? device.dst_desc().get_data_type() : dt::undef;
        const size_t width = type == dt::f32 ? 4 : type == dt::bf16 || type == dt::f16 ? 2 : 1;
        for (size_t i = 0; i + width <= g.size(); i += width) {
            uint32_t a = 0, b = 0;
            std::memcpy(&a, &w.second[i], width);
            std::memcpy(&b, &g[i], width);
            if (a == b) continue;
            // Payloads of NaN may differ.
            const auto nan = [&](uint32_t c) {
                return width > 1 && std::isnan(mxdnn::impl::decode_value(mxdnn_data_type_t(type), c));
            };
            ASSERT_TRUE(nan(a) && nan(b)) << what << ": argument " << w.first << " element " << i / width
                                          << " is " << b << ", not " << a;
        }
    }
}

void expect_host_bits(const memory::desc &src, const memory::desc &dst, const mxdnn::primitive_attr &attr,
        const values_t &in, const std::string &what, const char *impl = "tiles:sm_80") {
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    expect_host_bits({target, src, target, dst, attr}, {gpu(), src, gpu(), dst, attr}, impl, in, what);
}

// The mode that computes the scales of a format.
const char *quantises(const format_t &f) {
    return f.minima || (f.elem == dt::s8 && f.mode == quant_mode_t::dynamic_affine) ? "ref:cuda"
                                                                                    : "tiles:sm_80";
}

TEST(cuda_tiles, quantise_as_the_host_does) {
    std::mt19937 rng(11);
    int count = 0;
    for (const format_t &f : formats) {
        if (f.mode == quant_mode_t::undef) continue;
        for (const dt type : high)
            for (const order_t &from : {orders[0], orders[1]})
                for (const order_t &to : orders)
                    for (const bool along_rows : {true, false})
                        for (int rounding = 0; rounding < 4; rounding++) {
                            const bool even_integer =
                                    rounding == mxdnn_scale_rounding_even && f.elem == dt::s8;
                            if ((to.packed && !along_rows) || even_integer) continue;
                            if (rounding && f.mode != quant_mode_t::dynamic_mx) continue;
                            const memory::dims &dims = shapes[size_t(count++) % 4];
                            const int nd = int(dims.size());
                            mxdnn::primitive_attr attr;
                            set_format(attr, MXDNN_ARG_DST, f, along_rows, nd, true);
                            attr.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding(rounding));
                            if (!to.packed && count % 3 == 0 && f.mode != quant_mode_t::dynamic_affine)
                                attr.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
                            const memory::desc src(dims, type, tag_of(from, dims.size())),
                                    dst = desc_in(to, dims, f);
                            expect_host_bits(src, dst, attr,
                                    {{MXDNN_ARG_SRC, any_values(type, src.get_size(), rng)}},
                                    src.to_string() + " to " + dst.to_string() + " rounding "
                                            + std::to_string(rounding) + (along_rows ? " axis k" : " axis n"),
                                    quantises(f));
                            if (HasFatalFailure()) return;
                        }
    }
    EXPECT_GT(count, 500);
}

// Codes of NVFP4 depend on a value and its block's scale: all of both, with lines along either dim.
TEST(cuda_tiles, every_bf16_under_every_scale_of_nvfp4) {
    const format_t f{dt::f4_e2m1, dt::f8_e4m3, 16, quant_mode_t::dynamic_fp};
    // A block is a largest magnitude and 15 values that are smaller: 8 binades and a bit below it.
    std::vector<uint16_t> values;
    for (uint32_t scale = 8; scale < 127; scale++) {
        const uint32_t largest = mxdnn::impl::bf16_t::encode(6 * mxdnn::impl::f8_e4m3_t::decode(scale));
        const uint32_t lowest = largest - 1100;
        for (uint32_t x = lowest; x <= largest; x += 15) {
            values.push_back(uint16_t(largest));
            for (uint32_t i = 0; i < 15; i++)
                values.push_back(uint16_t(std::min(x + i, largest) | (i % 2 ? 0x8000 : 0)));
        }
    }
    const memory::dim columns = 256, rows = (memory::dim(values.size()) / 16 / columns + 1) * 16;
    values.resize(size_t(rows * columns));
    const memory::dims dims = {rows, columns};
    for (const bool along_rows : {true, false}) {
        // Blocks run along contiguous elements, or across them.
        bytes_t bytes(size_t(rows * columns) * 2);
        for (size_t i = 0; i < bytes.size() / 2; i++) {
            const size_t r = i / size_t(columns), c = i % size_t(columns);
            const size_t j = along_rows ? (r / 16 * size_t(columns) + c) * 16 + r % 16 : i;
            std::memcpy(&bytes[2 * i], &values[j], 2);
        }
        for (const tag order : {tag::ab, tag::ba}) {
            mxdnn::primitive_attr attr;
            set_format(attr, MXDNN_ARG_DST, f, along_rows, 2, true);
            expect_host_bits(memory::desc(dims, dt::bf16, tag::ab), memory::desc(dims, f.elem, order), attr,
                    {{MXDNN_ARG_SRC, bytes}}, along_rows ? "blocks along rows" : "blocks along columns");
            if (HasFatalFailure()) return;
        }
    }
}

TEST(cuda_tiles, move_and_dequantise_as_the_host_does) {
    std::mt19937 rng(12);
    int count = 0;
    for (const format_t &f : formats)
        for (const order_t &from : orders)
            for (const order_t &to : orders)
                for (const bool values : {false, true}) {
                    if (values && to.packed) continue;
                    const memory::dims &dims = shapes[size_t(count++) % 4];
                    const int nd = int(dims.size());
                    const memory::desc src = desc_in(from, dims, f);
                    const memory::desc dst =
                            values ? memory::desc(dims, high[count % 3], tag_of(to, dims.size()))
                                   : desc_in(to, dims, f);
                    if (from.packed && to.packed) continue; // a copy
                    mxdnn::primitive_attr attr;
                    if (!from.packed) set_format(attr, MXDNN_ARG_SRC, f, true, nd, false);
                    if (!from.packed && !to.packed && !values) {
                        if (f.mode == quant_mode_t::undef)
                            continue; // scales are moved where they can be computed
                        set_format(attr, MXDNN_ARG_DST, f, true, nd, true);
                        // Padding of the source holds anything, that of the destination becomes zero.
                        if (f.mode != quant_mode_t::dynamic_affine && count % 2)
                            for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST})
                                attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
                    }
                    // Every code and scale that there is, NaN among them; packed ones by packing.
                    mxdnn::primitive_attr plain;
                    set_format(plain, MXDNN_ARG_SRC, f, true, nd, false);
                    const memory::desc codes(dims, f.elem, tag_of(orders[0], dims.size()));
                    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
                    const memory::desc packed = packed_desc(dims, f);
                    const mxdnn::mx_reorder::primitive_desc pack(target, codes, target, packed, plain);
                    values_t in;
                    if (from.packed)
                        in = {{MXDNN_ARG_SRC, run(pack, target, random_inputs(pack, rng)).at(MXDNN_ARG_DST)}};
                    else
                        in = random_inputs(
                                mxdnn::mx_reorder::primitive_desc(target, src, target, dst, attr), rng);
                    if (f.scale == dt::e8m0 && !from.packed)
                        for (uint8_t &s : in.at(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC)) s = uint8_t(rng());
                    expect_host_bits(src, dst, attr, in, src.to_string() + " to " + dst.to_string());
                    if (HasFatalFailure()) return;
                }
    EXPECT_GT(count, 150);
}

// Codes and scales that `f` may have, in a plain order or packed.
values_t any_codes(const memory::desc &src, const order_t &from, const memory::dims &dims, const format_t &f,
        std::mt19937 &rng) {
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    const int nd = int(dims.size());
    mxdnn::primitive_attr attr;
    set_format(attr, MXDNN_ARG_SRC, f, true, nd, false);
    const memory::desc plain(dims, f.elem, tag_of(orders[0], dims.size()));
    const mxdnn::mx_reorder::primitive_desc pack(target, plain, target, packed_desc(dims, f), attr),
            values(target, from.packed ? plain : src, target,
                    memory::desc(dims, dt::f32, tag_of(orders[0], dims.size())), attr);
    if (from.packed) return {{MXDNN_ARG_SRC, run(pack, target, random_inputs(pack, rng)).at(MXDNN_ARG_DST)}};
    values_t in = random_inputs(values, rng);
    in.erase(MXDNN_ARG_DST);
    return in;
}

void expect_other_format_as_on_host(const memory::dims &dims, const format_t &f, const order_t &from,
        const format_t &g, const order_t &to, std::mt19937 &rng) {
    const int nd = int(dims.size());
    mxdnn::primitive_attr attr;
    if (!from.packed) set_format(attr, MXDNN_ARG_SRC, f, true, nd, false);
    set_format(attr, MXDNN_ARG_DST, g, true, nd, true);
    if (!to.packed && g.mode != quant_mode_t::dynamic_affine && rng() % 2)
        attr.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
    const memory::desc src = desc_in(from, dims, f), dst = desc_in(to, dims, g);
    expect_host_bits(src, dst, attr, any_codes(src, from, dims, f, rng),
            src.to_string() + " to " + dst.to_string(), quantises(g));
}

// From one format to another through values, in one panel and in several.
TEST(cuda_tiles, one_format_to_another_as_the_host_does) {
    std::mt19937 rng(17);
    int count = 0;
    for (const format_t &f : formats)
        for (const format_t &g : formats) {
            if (g.mode == quant_mode_t::undef || g.global || &f == &g) continue;
            const order_t &from = orders[f.global ? count % 2 : count % 3], &to = orders[count / 3 % 3];
            expect_other_format_as_on_host(shapes[size_t(count++) % 4], f, from, g, to, rng);
            if (HasFatalFailure()) return;
        }
    EXPECT_GT(count, 100);
}
TEST(cuda_tiles, one_format_to_another_in_panels) {
    std::mt19937 rng(18);
    expect_other_format_as_on_host({8200, 2200}, formats[4], orders[2], formats[0], orders[1], rng);
    expect_other_format_as_on_host({8200, 2200}, formats[5], orders[0], formats[6], orders[2], rng);
}

// Between all types and orders, with gaps between lines or without, over values of every magnitude and over
// any bits.
TEST(cuda_tiles, cast_as_the_host_does) {
    std::mt19937 rng(16);
    int count = 0;
    for (const dt type : high)
        for (const dt to_type : high)
            for (const order_t &from : {orders[0], orders[1]})
                for (const order_t &to : {orders[0], orders[1]})
                    for (const int gaps : {0, 3}) {
                        const memory::dims &dims = shapes[size_t(count++ / 2) % 4];
                        const size_t nd = dims.size();
                        const auto desc = [&](const order_t &o, dt t, memory::dim gap) {
                            memory::dims strides(nd, 1);
                            const size_t inner = o.ab ? nd - 1 : nd - 2, outer = o.ab ? nd - 2 : nd - 1;
                            strides[outer] = dims[inner] + gap;
                            if (nd == 3) strides[0] = dims[outer] * strides[outer] + 5 * gap;
                            return memory::desc(dims, t, strides);
                        };
                        const memory::desc src = desc(from, type, gaps), dst = desc(to, to_type, 8 * gaps);
                        if (src == dst) continue; // a copy
                        bytes_t in = any_values(type, src.get_size(), rng);
                        for (size_t i = in.size() / 2; i < in.size(); i++) in[i] = uint8_t(rng());
                        expect_host_bits(src, dst, {}, {{MXDNN_ARG_SRC, in}},
                                src.to_string() + " to " + dst.to_string());
                        if (HasFatalFailure()) return;
                    }
    EXPECT_GT(count, 60);
}

// Lines along K and packed bytes need no shared memory where tiles are whole. Here: several tiles and a
// remainder, several matrices, scales in both layouts.
TEST(cuda_tiles, lines_to_packed_bytes_and_back) {
    std::mt19937 rng(14);
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    int count = 0;
    for (const format_t &f : formats)
        for (const memory::dims &dims : {memory::dims{704, 192}, memory::dims{2, 512, 128}})
            for (const bool swizzled : {false, true}) {
                if (swizzled && (f.zp != dt::undef || f.mode == quant_mode_t::dynamic_affine)) continue;
                const int nd = int(dims.size());
                const auto layout =
                        swizzled ? mxdnn::scales_layout::swizzle_128x4 : mxdnn::scales_layout::linear;
                const memory::desc lines = desc_in(orders[1], dims, f), packed = packed_desc(dims, f);
                mxdnn::primitive_attr from, to;
                set_format(from, MXDNN_ARG_SRC, f, true, nd, false);
                from.set_scales_layout(MXDNN_ARG_SRC, layout);
                const mxdnn::mx_reorder::primitive_desc pack(target, lines, target, packed, from);
                values_t in = random_inputs(pack, rng);
                if (f.scale == dt::e8m0)
                    for (uint8_t &s : in.at(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC)) s = uint8_t(rng());
                expect_host_bits(lines, packed, from, in, "lines of " + packed.to_string());
                if (HasFatalFailure()) return;
                if (f.mode == quant_mode_t::undef) continue;
                set_format(to, MXDNN_ARG_DST, f, true, nd, true);
                to.set_scales_layout(MXDNN_ARG_DST, layout);
                in = {{MXDNN_ARG_SRC, run(pack, target, in).at(MXDNN_ARG_DST)}};
                expect_host_bits(packed, lines, to, in, "lines from " + packed.to_string());
                if (HasFatalFailure()) return;
                count++;
            }
    EXPECT_GT(count, 20);
}

// Lines of both sides across the blocks need no shared memory where all tiles are whole. Here: several
// matrices, remaining blocks, every source type, and NaN in blocks.
TEST(cuda_tiles, lines_across_blocks) {
    std::mt19937 rng(15);
    int count = 0;
    for (const format_t &f : formats) {
        const bool nvfp4 = f.mode == quant_mode_t::dynamic_fp;
        if (f.elem != dt::f4_e2m1 || (!nvfp4 && f.mode != quant_mode_t::dynamic_mx)) continue;
        for (const memory::dims &dims : {memory::dims{704, 192}, memory::dims{3, 96, 128},
                     memory::dims{48, 64}, memory::dims{1040, 320}, memory::dims{320, 66}})
            for (const dt type : high)
                for (int rounding = 0; rounding < (nvfp4 ? 1 : 4); rounding++) {
                    const int nd = int(dims.size());
                    mxdnn::primitive_attr attr;
                    set_format(attr, MXDNN_ARG_DST, f, true, nd, true);
                    attr.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding(rounding));
                    const memory::desc src(dims, type, tag_of(orders[0], dims.size())),
                            dst = desc_in(orders[0], dims, f);
                    expect_host_bits(src, dst, attr, {{MXDNN_ARG_SRC, any_values(type, src.get_size(), rng)}},
                            src.to_string() + " to " + dst.to_string());
                    if (HasFatalFailure()) return;
                    count++;
                }
    }
    EXPECT_GT(count, 60);
}

// Both dims of a matrix in one call, in every order of both sides. Two kernels run where one does not take
// it.
TEST(cuda_tiles, quantise_along_both_axes_as_the_host_does) {
    std::mt19937 rng(13);
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    const memory::dims squares[] = {{256, 384}, {300, 104}, {77, 131}, {2, 270, 70}};
    int count = 0;
    for (const format_t &f : formats) {
        if (f.mode != quant_mode_t::dynamic_mx && f.mode != quant_mode_t::dynamic_fp) continue;
        const bool byte_codes = f.mode == quant_mode_t::dynamic_mx && f.elem != dt::f4_e2m1;
        for (const dt type : high)
            for (const order_t &from : {orders[0], orders[1]})
                for (const order_t &to : orders)
                    for (const order_t &to_1 : {orders[0], orders[1]}) {
                        const memory::dims &dims = squares[size_t(count++) % 4];
                        const int nd = int(dims.size());
                        mxdnn::primitive_attr attr;
                        const bool first_along_rows = to.packed || count % 3;
                        set_format(attr, MXDNN_ARG_DST, f, first_along_rows, nd, true);
                        set_format(attr, MXDNN_ARG_DST_1, f, !first_along_rows, nd, true);
                        if (f.mode == quant_mode_t::dynamic_mx)
                            attr.set_scale_rounding(MXDNN_ARG_DST_1, mxdnn::scale_rounding::rceil);
                        if (count % 5 == 0)
                            attr.set_scales_layout(MXDNN_ARG_DST_1, mxdnn::scales_layout::swizzle_128x4);
                        const memory::desc src(dims, type, tag_of(from, dims.size())),
                                dst = desc_in(to, dims, f), dst_1 = desc_in(to_1, dims, f);
                        expect_host_bits({target, src, target, dst, dst_1, attr},
                                {gpu(), src, gpu(), dst, dst_1, attr},
                                byte_codes ? "both_axes:sm_80" : "two:any",
                                {{MXDNN_ARG_SRC, any_values(type, src.get_size(), rng)}},
                                src.to_string() + " to " + dst.to_string() + " and " + dst_1.to_string());
                        if (HasFatalFailure()) return;
                    }
    }
    EXPECT_GT(count, 150);
}

// All tiles are whole. The codes of both sides, one side or no side are contiguous in the order of
// computation.
TEST(cuda_tiles, whole_squares_along_both_axes) {
    std::mt19937 rng(14);
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    int count = 0;
    for (const format_t &f : formats) {
        if (f.mode != quant_mode_t::dynamic_mx || f.elem == dt::f4_e2m1) continue;
        for (const memory::dims &dims : {memory::dims{256, 384}, memory::dims{3, 128, 256}})
            for (const order_t &from : {orders[0], orders[1]})
                for (int ways = 0; ways < 8; ways++) {
                    const int nd = int(dims.size());
                    const bool first_along_rows = ways & 1;
                    const order_t &to = orders[ways >> 1 & 1], &to_1 = orders[ways >> 2];
                    mxdnn::primitive_attr attr;
                    set_format(attr, MXDNN_ARG_DST, f, first_along_rows, nd, true);
                    set_format(attr, MXDNN_ARG_DST_1, f, !first_along_rows, nd, true);
                    if (count++ % 2) attr.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
                    const memory::desc src(dims, dt::bf16, tag_of(from, dims.size())),
                            dst = desc_in(to, dims, f), dst_1 = desc_in(to_1, dims, f);
                    expect_host_bits({target, src, target, dst, dst_1, attr},
                            {gpu(), src, gpu(), dst, dst_1, attr}, "both_axes:sm_80",
                            {{MXDNN_ARG_SRC, any_values(dt::bf16, src.get_size(), rng)}},
                            src.to_string() + " to " + dst.to_string() + " and " + dst_1.to_string());
                    if (HasFatalFailure()) return;
                }
    }
    EXPECT_GT(count, 100);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Packed descriptors without a matmul. create_packed and a destination of tag `any` give the descriptor that
// a matmul gives for `any` weights, for every format and target. Packing into it gives the same bytes.
#include <sstream>

#include "common/engine.hpp"
#include "common/formats/format_list.hpp"
#include "common/formats/named_formats.hpp"
#include "test_api_util.hpp"

using namespace api_test;
using mode = mxdnn::quantization_mode;

namespace {

using dims = memory::dims;
using mxdnn::impl::global_scale_kind_t;
using mxdnn::impl::named_format_t;
using mxdnn::impl::quant_t;
using mxdnn::impl::zero_point_kind_t;

std::vector<std::string> targets() {
    std::vector<std::string> names;
    std::istringstream all(mxdnn::impl::target_names());
    for (std::string name; all >> name;) names.push_back(name);
    return names;
}

// The named formats, and the further variants of int4 and NVFP4.
std::vector<named_format_t> formats() {
    std::vector<named_format_t> all(
            std::begin(mxdnn::impl::named_formats), std::end(mxdnn::impl::named_formats));
    quant_t q = mxdnn::impl::nvfp4_quant;
    q.global = global_scale_kind_t::one;
    all.push_back({"nvfp4 with a global scale", mxdnn_f4_e2m1, q});
    q = mxdnn::impl::int4_quant;
    q.block = 128;
    all.push_back({"s4 in groups of 128", mxdnn_s4, q});
    q.zp = zero_point_kind_t::u8;
    q.zp_dt = mxdnn_u8;
    all.push_back({"u4 with zero points", mxdnn_u4, q});
    q.scale_dt = mxdnn_f32;
    q.zp = zero_point_kind_t::float_zero;
    q.zp_dt = mxdnn_f32;
    all.push_back({"u4 with floating zero points", mxdnn_u4, q});
    q.zp = zero_point_kind_t::minimum;
    all.push_back({"u4 with minima", mxdnn_u4, q});
    return all;
}

mxdnn::primitive_attr attr_of(int arg, const named_format_t &f, int ndims, mode m) {
    mxdnn::primitive_attr a;
    const int mask = (1 << ndims) - 1;
    a.set_scales(arg, mask, {f.quant.block, 1}, dt(f.quant.scale_dt), false, m);
    if (f.quant.zp != zero_point_kind_t::none)
        a.set_zero_points(arg, mask, {f.quant.block, 1}, dt(f.quant.zp_dt));
    if (f.quant.zp == zero_point_kind_t::minimum)
        a.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
    if (f.quant.global != global_scale_kind_t::none)
        a.set_global_scale(arg, m == mode::static_sazp ? m : mode::dynamic_fp);
    return a;
}

// The zero points that are the value of code 8 are not computed.
bool can_be_computed(const named_format_t &f) { return f.quant.zp != zero_point_kind_t::float_zero; }

mode dynamic_mode(const named_format_t &f) { return mode(dynamic_mode_of(f.elem, f.quant)); }

const dims shapes[] = {{256, 33}, {70, 128}, {3, 256, 40}};

struct PackedAny : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    mxdnn_memory_desc_t out = poison<mxdnn_memory_desc_t>();
    mxdnn_primitive_desc_t pd = poison<mxdnn_primitive_desc_t>();
    void TearDown() override {
        EXPECT_EQ(out, poison<mxdnn_memory_desc_t>()) << "written by a call that failed";
        EXPECT_EQ(pd, poison<mxdnn_primitive_desc_t>()) << "written by a call that failed";
    }

    std::vector<char> bytes_of(const memory &m) const {
        const char *p = static_cast<const char *>(m.get_data_handle());
        return std::vector<char>(p, p + m.get_desc().get_size());
    }
};

} // namespace

TEST_F(PackedAny, IsWhatAMatmulGives) {
    for (const std::string &target : targets())
        for (const named_format_t &f : formats())
            for (const dims &d : shapes) {
                SCOPED_TRACE(target + " " + f.name + " " + std::to_string(d.size()));
                const mxdnn::engine e = mxdnn::engine::for_target(target);
                const int nd = int(d.size());
                const dt type = dt(f.elem);
                const mxdnn::primitive_attr wei = attr_of(MXDNN_ARG_WEIGHTS, f, nd, mode::static_sazp);
                dims src = d, dst = d;
                src[nd - 1] = d[nd - 2];
                src[nd - 2] = dst[nd - 2] = runtime;
                const tag t = nd == 2 ? tag::ab : tag::abc;
                const mxdnn::mx_matmul::primitive_desc matmul(e, memory::desc(src, dt::bf16, t),
                        memory::desc(d, type, tag::any), memory::desc(dst, dt::bf16, t), wei);
                const memory::desc want = matmul.weights_desc();
                ASSERT_EQ(want.get_format_kind(), memory::format_kind::opaque);

                const memory::desc packed = memory::desc::packed(e, d, type, wei);
                EXPECT_EQ(packed, want);
                EXPECT_EQ(packed.get_blob(), want.get_blob());
                // Of codes and scales, whose format it takes over.
                const mxdnn::mx_reorder::primitive_desc from_codes(eng, memory::desc(d, type, t), e,
                        memory::desc(d, type, tag::any), attr_of(MXDNN_ARG_SRC, f, nd, mode::static_sazp));
                EXPECT_EQ(from_codes.dst_desc(), want);
                // Of packed bytes of another target, likewise.
                const mxdnn::engine other =
                        mxdnn::engine::for_target(target[1] == 'p' ? "cuda:sm_90" : "cpu:x64:avx2");
                const mxdnn::mx_reorder::primitive_desc from_packed(
                        other, memory::desc::packed(other, d, type, wei), e, memory::desc(d, type, tag::any));
                EXPECT_EQ(from_packed.dst_desc(), want);
                if (!can_be_computed(f)) continue;
                // Of high precision, by the attributes of the destination.
                const mxdnn::mx_reorder::primitive_desc quantise(eng, memory::desc(d, dt::f32, t), e,
                        memory::desc(d, type, tag::any), attr_of(MXDNN_ARG_DST, f, nd, dynamic_mode(f)));
                EXPECT_EQ(quantise.dst_desc(), want);
                // As the second of two destinations, and as both.
                mxdnn::primitive_attr two = attr_of(MXDNN_ARG_DST, f, nd, dynamic_mode(f));
                two.set_scales(MXDNN_ARG_DST_1, (1 << nd) - 1, {32, 1}, dt::e8m0, false, mode::dynamic_mx);
                const mxdnn::mx_reorder::primitive_desc both(eng, memory::desc(d, dt::f32, t), e,
                        memory::desc(d, type, tag::any), memory::desc(d, dt::f8_e4m3, tag::any), two);
                EXPECT_EQ(both.dst_desc(0), want);
                mxdnn::primitive_attr mxfp8;
                mxfp8.set_scales(MXDNN_ARG_WEIGHTS, (1 << nd) - 1, {32, 1}, dt::e8m0);
                EXPECT_EQ(both.dst_desc(1), memory::desc::packed(e, d, dt::f8_e4m3, mxfp8));
            }
    // Experts of a grouped_matmul.
    const dims d = {4, 64, 48};
    mxdnn::primitive_attr wei;
    wei.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    const mxdnn::grouped_matmul::primitive_desc grouped(eng,
            memory::desc::grouped({runtime, 64}, dt::bf16, 0, 4), memory::desc(d, dt::f4_e2m1, tag::any),
            memory::desc::grouped({runtime, 48}, dt::bf16, 0, 4), wei);
    EXPECT_EQ(memory::desc::packed(eng, d, dt::f4_e2m1, wei), grouped.weights_desc());
}

TEST_F(PackedAny, OtherAttributesSayNothing) {
    mxdnn::primitive_attr plain = mxfp4_weights_attr(), more = mxfp4_weights_attr();
    more.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    more.set_max_rows_hint(7);
    mxdnn::post_ops ops;
    ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0, 0);
    more.set_post_ops(ops);
    EXPECT_EQ(memory::desc::packed(eng, {64, 32}, dt::f4_e2m1, plain),
            memory::desc::packed(eng, {64, 32}, dt::f4_e2m1, more));
}

TEST_F(PackedAny, TheBytesAreTheSame) {
    const unsigned seed = 11;
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (const char *target : {"cpu:x64:avx2", "cuda:sm_90"})
        for (const named_format_t &f : formats()) {
            SCOPED_TRACE(std::string(target) + " " + f.name);
            if (!can_be_computed(f)) continue;
            const mxdnn::engine e = mxdnn::engine::for_target(target);
            const dims d = {160, 37};
            std::vector<uint16_t> values = random_bf16(size_t(d[0] * d[1]), seed);
            memory from(memory::desc(d, dt::bf16, tag::ba), eng, values.data());
            const mxdnn::primitive_attr attr = attr_of(MXDNN_ARG_DST, f, 2, dynamic_mode(f));
            const memory::desc packed = memory::desc::packed(
                    e, d, dt(f.elem), attr_of(MXDNN_ARG_WEIGHTS, f, 2, mode::static_sazp));
            memory named(packed, e);
            mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, from.get_desc(), e, packed, attr))
                    .execute(mxdnn::stream(e), from, named);
            const mxdnn::mx_reorder::primitive_desc any(
                    eng, from.get_desc(), e, memory::desc(d, dt(f.elem), tag::any), attr);
            memory left(any.dst_desc(), e);
            mxdnn::mx_reorder(any).execute(mxdnn::stream(e), from, left);
            EXPECT_EQ(bytes_of(named), bytes_of(left));
        }
}

TEST_F(PackedAny, AnnotationsStay) {
    memory::desc any({64, 32}, dt::f4_e2m1, tag::any);
    any.set_annotation(dt::bf16, "recipe");
    const mxdnn::mx_reorder::primitive_desc r(
            eng, memory::desc({64, 32}, dt::bf16, tag::ba), eng, any, mxfp4_quantise_attr());
    EXPECT_EQ(r.dst_desc().get_annotation_recipe(), "recipe");
    EXPECT_EQ(r.dst_desc().get_annotation_data_type(), dt::bf16);
}

TEST_F(PackedAny, RefusalsOfCreatePacked) {
    const auto create = [&](const dims &d, dt type, const mxdnn::primitive_attr &a) {
        mxdnn_dims_t c = {};
        for (size_t i = 0; i < d.size() && i < MXDNN_MAX_NDIMS; i++) c[i] = d[i];
        return mxdnn_memory_desc_create_packed(
                &out, eng.get(), int(d.size()), c, mxdnn_data_type_t(type), a.get());
    };
    const auto bad = mxdnn_invalid_arguments;
    const mxdnn::primitive_attr wei = mxfp4_weights_attr();
    EXPECT_REFUSED(bad, create({64, 32}, dt::f4_e2m1, mxdnn::primitive_attr()), "weights", "no scales");
    EXPECT_REFUSED(mxdnn_unimplemented, create({64, 32}, dt::bf16, wei), "bf16", "quantised");
    EXPECT_REFUSED(mxdnn_invalid_shape, create({64}, dt::f4_e2m1, wei), "64", "[.., K, N]");
    EXPECT_REFUSED(mxdnn_invalid_shape, create({runtime, 64}, dt::f4_e2m1, wei), "*x64", "known");
    EXPECT_REFUSED(bad, create({}, dt::f4_e2m1, wei), "ndims");
    EXPECT_REFUSED(bad, create({-1, 32}, dt::f4_e2m1, wei), "-1");
    EXPECT_REFUSED(bad, create(dims(13, 2), dt::f4_e2m1, wei), "13");
    EXPECT_REFUSED(bad, create({1ll << 40, 1ll << 40}, dt::f4_e2m1, wei), "2^50");
    EXPECT_REFUSED(bad, create({64, 32}, dt::f4_e2m1, mxfp4_quantise_attr()), "no scales");
    mxdnn::primitive_attr a = mxfp4_weights_attr();
    a.set_scales(MXDNN_ARG_WEIGHTS, 3, {1, 32}, dt::e8m0);
    EXPECT_REFUSED(bad, create({64, 32}, dt::f4_e2m1, a), "along N", "32x1");
    a.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0, false, mode::dynamic_mx);
    EXPECT_REFUSED(bad, create({64, 32}, dt::f4_e2m1, a), "dynamic");
    a = mxfp4_weights_attr();
    a.set_scales_layout(MXDNN_ARG_WEIGHTS, mxdnn::scales_layout::swizzle_128x4);
    EXPECT_REFUSED(bad, create({64, 32}, dt::f4_e2m1, a), "scales layout", "leave them");
    mxdnn_dims_t c = {64, 32};
    a = mxfp4_weights_attr();
    EXPECT_REFUSED(
            bad, mxdnn_memory_desc_create_packed(nullptr, eng.get(), 2, c, mxdnn_f4_e2m1, a.get()), "md");
    EXPECT_REFUSED(
            bad, mxdnn_memory_desc_create_packed(&out, nullptr, 2, c, mxdnn_f4_e2m1, a.get()), "engine");
    EXPECT_REFUSED(bad, mxdnn_memory_desc_create_packed(&out, eng.get(), 2, nullptr, mxdnn_f4_e2m1, a.get()),
            "dims");
    EXPECT_REFUSED(
            bad, mxdnn_memory_desc_create_packed(&out, eng.get(), 2, c, mxdnn_f4_e2m1, nullptr), "attr");
    EXPECT_FALSE(memory::desc::packed(eng, {64}, dt::f4_e2m1, a, true));
    EXPECT_THROW(memory::desc::packed(eng, dims(20, 1), dt::f4_e2m1, a), mxdnn::error);
}

TEST_F(PackedAny, RefusalsOfReorder) {
    const auto bad = mxdnn_invalid_arguments;
    const auto reorder = [&](const memory::desc &src, const memory::desc &dst,
                                 const mxdnn::primitive_attr &a = mxdnn::primitive_attr()) {
        return mxdnn_mx_reorder_primitive_desc_create(
                &pd, src.get(), eng.get(), dst.get(), eng.get(), a.get());
    };
    const memory::desc bf16({64, 32}, dt::bf16, tag::ab), fp4({64, 32}, dt::f4_e2m1, tag::any);
    EXPECT_REFUSED(bad, reorder(bf16, fp4), "dst", "no scales");
    EXPECT_REFUSED(bad, reorder(fp4, bf16), "src", "any");
    EXPECT_REFUSED(bad, reorder(bf16, memory::desc({64, 32}, dt::f32, tag::any)), "dst", "any", "f32", "tag");
    EXPECT_REFUSED(mxdnn_invalid_shape,
            reorder(bf16, memory::desc({64, 33}, dt::f4_e2m1, tag::any), mxfp4_quantise_attr()), "64x32",
            "64x33");
    EXPECT_REFUSED(mxdnn_invalid_shape,
            reorder(memory::desc({runtime, 32}, dt::bf16, tag::ab),
                    memory::desc({runtime, 32}, dt::f4_e2m1, tag::any), mxfp4_quantise_attr()),
            "*x32", "known");
    mxdnn::primitive_attr a = mxfp4_quantise_attr();
    a.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mode::dynamic_mx);
    EXPECT_REFUSED(bad, reorder(bf16, fp4, a), "dst", "along N", "32x1");
    a.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, mode::static_sazp);
    EXPECT_REFUSED(bad, reorder(bf16, fp4, a), "dst", "static");
    // Modes of other formats, and attributes of an argument that a reorder does not have.
    a.set_scales(MXDNN_ARG_DST, 3, {16, 1}, dt::f8_e4m3, false, mode::dynamic_mx);
    a.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::floor);
    EXPECT_REFUSED(bad, reorder(bf16, fp4, a), "dst", "dynamic_mx", "dynamic_fp");
    const memory::desc nvfp4 = [&] {
        mxdnn::primitive_attr w;
        w.set_scales(MXDNN_ARG_WEIGHTS, 3, {16, 1}, dt::f8_e4m3);
        return memory::desc::packed(eng, {64, 32}, dt::f4_e2m1, w);
    }();
    EXPECT_REFUSED(bad, reorder(bf16, nvfp4, a), "dst", "dynamic_mx", "dynamic_fp");
    EXPECT_REFUSED(bad, reorder(bf16, fp4, mxfp4_weights_attr()), "attributes of src and dst");
    // Rows with a scale each have no packed layout.
    mxdnn::primitive_attr rows;
    rows.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32);
    EXPECT_REFUSED(mxdnn_unimplemented,
            reorder(memory::desc({64, 48}, dt::s8, tag::ab), memory::desc({64, 48}, dt::s8, tag::any), rows),
            "dst", "one scale per row");
}

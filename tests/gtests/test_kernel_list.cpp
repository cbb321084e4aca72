// SPDX-License-Identifier: Apache-2.0
// The list of kernels: its rows are complete, and the one for a format and an ISA is found.
#include <set>

#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

TEST(kernel_list, names_are_unique_and_begin_with_their_isa) {
    std::set<std::string> names;
    kernel_list().for_each([&](const kernel_row_t &r) {
        EXPECT_TRUE(names.insert(r.name).second) << r.name << " is listed twice";
        const char *kind = r.kind == kernel_kind_t::direct        ? "_direct"
                           : r.kind == kernel_kind_t::decode      ? "_decode"
                           : r.kind == kernel_kind_t::gemm        ? "_gemm"
                           : r.kind == kernel_kind_t::decode_int8 ? "_decode_int8"
                           : r.kind == kernel_kind_t::gemm_int8   ? "_gemm_int8"
                           : r.kind == kernel_kind_t::many        ? "_many"
                           : r.kind == kernel_kind_t::fused       ? "_fused"
                                                                  : "_gradient";
        EXPECT_EQ(std::string(r.name).find(std::string(isa_name(r.isa)) + kind), 0u) << r.name;
    });
}

TEST(kernel_list, rows_are_complete) {
    kernel_list().for_each([&](const kernel_row_t &r) {
        EXPECT_GE(r.max_rows, 1) << r.name;
        EXPECT_GE(r.panels[0], 1) << r.name;
        EXPECT_TRUE(r.takes && r.make) << r.name;
        EXPECT_TRUE(r.compute_dt == mxdnn_f32 || r.compute_dt == mxdnn_bf16
                    || (r.compute_dt == mxdnn_s8 && r.kind != kernel_kind_t::decode
                            && r.kind != kernel_kind_t::gemm && r.kind != kernel_kind_t::many
                            && r.kind != kernel_kind_t::gradient))
                << r.name;
        bool any = false;
        for (const format_t &f : all_formats()) any = any || r.takes(f.dt, f.quant);
        EXPECT_TRUE(any) << r.name << " takes no format at all";
    });
}

TEST(kernel_list, every_format_has_kernels_at_every_isa) {
    for (const isa_row_t &row : isa_list)
        for (const format_t &f : all_formats()) {
            if (decoder_of(f.dt, f.quant) == decoder_t::none) continue;
            const cpu_isa_t isa = row.isa;
            const auto *direct = find_kernel(kernel_kind_t::direct, isa, f.dt, f.quant);
            const auto *decode = find_kernel(kernel_kind_t::decode, isa, f.dt, f.quant);
            ASSERT_TRUE(direct && decode) << f.str() << " " << isa_name(isa);
            EXPECT_TRUE(includes(isa, direct->isa)) << direct->name << " " << row.name;
            const auto *gemm = find_kernel(kernel_kind_t::gemm, isa, f.dt, f.quant, decode->compute_dt);
            ASSERT_TRUE(gemm) << f.str() << " " << isa_name(isa);
            EXPECT_EQ(gemm->compute_dt, decode->compute_dt);
            const auto *f32 = find_kernel(kernel_kind_t::direct, isa, f.dt, f.quant, mxdnn_f32);
            ASSERT_TRUE(f32);
            EXPECT_EQ(f32->compute_dt, mxdnn_f32);
        }
}

TEST(kernel_list, selection_is_by_isa_and_format) {
    quant_t mx;
    mx.scale_dt = mxdnn_e8m0;
    mx.block = 32;
    const auto name = [&](kernel_kind_t kind, cpu_isa_t isa, data_type_t dt, const quant_t &q) {
        const kernel_row_t *r = find_kernel(kind, isa, dt, q, mxdnn_f32);
        return std::string(r ? r->name : "none");
    };
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f4_e2m1, mx), "avx2_direct_4bit");
    EXPECT_EQ(
            name(kernel_kind_t::direct, cpu_isa_t::avx512_core, mxdnn_f6_e3m2, mx), "avx512_core_direct_f6");
    EXPECT_EQ(name(kernel_kind_t::decode, cpu_isa_t::avx2, mxdnn_f8_e4m3, mx), "avx2_decode_f8");
    EXPECT_EQ(name(kernel_kind_t::decode, cpu_isa_t::avx2, mxdnn_s8, mx), "avx2_decode_s8");
    EXPECT_EQ(name(kernel_kind_t::gemm, cpu_isa_t::avx512_core, mxdnn_s8, mx), "avx512_core_gemm");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::none, mxdnn_f4_e2m1, mx), "none");
    mx.block = 64;
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f4_e2m1, mx), "none");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f8_e4m3, mx), "none");
}

TEST(kernel_list, kernels_of_a_family_are_found_for_it_alone) {
    quant_t mx;
    mx.scale_dt = mxdnn_e8m0;
    mx.block = 32;
    const auto name = [&](cpu_isa_t isa, data_type_t compute_dt, cpu_family_t family) {
        const kernel_row_t *r =
                find_kernel(kernel_kind_t::direct, isa, mxdnn_f4_e2m1, mx, compute_dt, family);
        return std::string(r ? r->name : "none");
    };
    constexpr cpu_isa_t bf16 = cpu_isa_t::avx512_core_bf16;
    EXPECT_EQ(name(bf16, mxdnn_bf16, cpu_family_t::any), "avx512_core_bf16_direct_4bit");
    EXPECT_EQ(name(bf16, mxdnn_bf16, cpu_family_t::zen), "avx512_core_bf16_direct_mxfp4_zen");
    EXPECT_EQ(name(bf16, mxdnn_s8, cpu_family_t::any), "avx512_core_bf16_direct_int8_f4");
    EXPECT_EQ(name(bf16, mxdnn_s8, cpu_family_t::zen), "avx512_core_bf16_direct_int8_f4_zen");
    EXPECT_EQ(name(cpu_isa_t::avx2, mxdnn_f32, cpu_family_t::zen), "avx2_direct_4bit_zen");
    EXPECT_EQ(name(cpu_isa_t::avx512_core, mxdnn_s8, cpu_family_t::zen), "avx512_core_direct_int8_f4_zen");
    // A processor family without its own kernels uses those of the others.
    for (const format_t &f : all_formats())
        EXPECT_NE(find_kernel(kernel_kind_t::direct, bf16, f.dt, f.quant, mxdnn_bf16, cpu_family_t::zen),
                nullptr)
                << f.str();
}

TEST(kernel_list, wrong_parameters_are_refused_with_a_reason) {
    const kernel_row_t *row = rows_of_kind(kernel_kind_t::direct).back();
    const format_t f = formats_of(*row).front();
    const auto refused = [&](data_type_t dt, int64_t K, int rows, int panels) {
        kernel_params_t p;
        p.wei_dt = dt;
        p.quant = f.quant;
        p.K = K;
        p.rows = rows;
        p.panels = panels;
        std::unique_ptr<jit_kernel_t> kernel;
        const char *reason = nullptr;
        const status_t status = create_kernel(*row, p, &kernel, &reason);
        return status == mxdnn_invalid_arguments && !kernel && reason && *reason;
    };
    EXPECT_TRUE(refused(f.dt, 32, 0, 1));
    EXPECT_TRUE(refused(f.dt, 32, row->max_rows + 1, 1));
    EXPECT_TRUE(refused(f.dt, 32, 1, 0));
    EXPECT_TRUE(refused(f.dt, 32, 1, 3));
    EXPECT_TRUE(refused(f.dt, 0, 1, 1));
    EXPECT_TRUE(refused(mxdnn_f32, 32, 1, 1));
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

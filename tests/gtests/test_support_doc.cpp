// SPDX-License-Identifier: Apache-2.0
// doc/reference/support.md and the tables of formats.md agree with the lists of the library. A test fails
// when a page is out of date. With MXDNN_UPDATE_DOCS=1 it writes the page again.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "common/layouts/layout_list.hpp"
#include "cpu/cpu_impl_lists.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "gpu/cuda/cuda_impl_lists.hpp"

namespace mxdnn {
namespace impl {
namespace {

std::string implementations() {
    std::string s = "## Implementations, in the order in which they are asked\n\n| primitive | engine | "
                    "implementations |\n|---|---|---|\n";
    const auto add = [&](const std::string &primitive, const char *engine, const impl_list_t &list) {
        std::string names;
        for (size_t i = 0; i < list.size; i++)
            names += std::string(i ? ", " : "") + "`" + list.items[i].name + "`";
        s += "| " + primitive + " | " + engine + " | " + (names.empty() ? "none yet" : names) + " |\n";
    };
    for (const auto kind : {mxdnn_primitive_kind_mx_matmul, mxdnn_primitive_kind_mx_reorder,
                 mxdnn_primitive_kind_grouped_matmul, mxdnn_primitive_kind_grouped_matmul_backward_weights,
                 mxdnn_primitive_kind_moe_route, mxdnn_primitive_kind_moe_permute,
                 mxdnn_primitive_kind_moe_unpermute}) {
        const std::string name = std::string("`") + primitive_kind_name(kind) + "`";
        add(name, "cpu", cpu_impl_list(kind));
        add(name, "cuda", cuda_impl_list(kind));
    }
    add("`mx_reorder` to two destinations", "cpu", cpu_two_reorders_list());
    add("`mx_reorder` to two destinations", "cuda", cuda_two_reorders_list());
    add("`mx_reorder` of rows in groups", "cpu", cpu_grouped_reorders_list());
    add("`mx_reorder` of rows in groups", "cuda", cuda_grouped_reorders_list());
    return s;
}

std::string layouts() {
    std::string s = "\n## Packed layouts\n\n| layout | id | version | target family | code bits "
                    "|\n|---|---|---|---|---|\n";
    for (const layout_t &l : layout_list) {
        s += std::string("| `") + l.name + "` | " + std::to_string(l.id) + " | " + std::to_string(l.version)
             + " | " + target_family_name(l.family) + " | " + std::to_string(l.bits) + " |\n";
    }
    return s;
}

const char *kind_name(x64::kernel_kind_t k) {
    switch (k) {
    case x64::kernel_kind_t::direct: return "direct";
    case x64::kernel_kind_t::decode: return "decode";
    case x64::kernel_kind_t::gemm: return "gemm";
    case x64::kernel_kind_t::decode_int8: return "decode_int8";
    case x64::kernel_kind_t::gemm_int8: return "gemm_int8";
    case x64::kernel_kind_t::many: return "many";
    case x64::kernel_kind_t::fused: return "fused";
    case x64::kernel_kind_t::gradient: break;
    }
    return "gradient";
}

// Weight formats with a column each, and the int4 forms that have no word of their own.
std::vector<named_format_t> formats() {
    std::vector<named_format_t> all(std::begin(named_formats), std::end(named_formats));
    quant_t zero = int4_quant;
    zero.zp = zero_point_kind_t::float_zero;
    zero.zp_dt = mxdnn_bf16;
    all.push_back({"u4", mxdnn_u4, int4_quant, decoder_t::int4});
    all.push_back({"u4 + float zero", mxdnn_u4, zero, decoder_t::int4});
    return all;
}

std::string kernels() {
    std::string
            head = "\n## Kernels of mx_matmul on x86\n\n"
                   "Kinds: `direct` decodes weights in registers and multiplies a few rows (AMX: any number, so "
                   "many at a time).\n`decode` and `gemm` work together on many rows, `decode_int8` and "
                   "`gemm_int8` on those of s8. `many` is a direct\nkernel for many rows only. `fused` multiplies "
                   "all rows of s8 in one call. Kernels that compute in bf16 have f32 sums.\n\n"
                   "| kernel | kind | ISA | computes in | rows | panels |",
            line = "|---|---|---|---|---|---|";
    for (const auto &f : formats()) {
        head += std::string(" ") + f.name + " |";
        line += "---|";
    }
    std::string s = head + "\n" + line + "\n";
    x64::kernel_list().for_each([&](const x64::kernel_row_t &r) {
        std::string panels;
        for (int p : r.panels)
            if (p) panels += (panels.empty() ? "" : " ") + std::to_string(p);
        s += std::string("| `") + r.name + "` | " + kind_name(r.kind) + " | " + x64::isa_name(r.isa) + " | "
             + data_type_name(r.compute_dt) + " | "
             + (r.kind == x64::kernel_kind_t::fused ? "any" : std::to_string(r.max_rows)) + " | " + panels
             + " |";
        for (const auto &f : formats()) s += r.takes(f.elem, f.quant) ? " x |" : " |";
        s += "\n";
    });
    return s;
}

std::string page() {
    return "# What is implemented\n\nMade from the implementation, layout and kernel lists by "
           "`tests/gtests/test_support_doc.cpp`; do not edit.\n\n"
           + implementations() + layouts() + kernels()
           + "\nSources and destinations: f32, bf16, f16, and every quantised format, which is converted before and "
             "after.\nThe bf16 kernels take f32 and f16 sources only where `fpmath_mode` allows bf16; otherwise an f32 "
             "kernel does.\n`ref:any` takes every legal problem.\n";
}

TEST(support_doc, is_what_the_lists_say) {
    const std::string path = std::string(MXDNN_TEST_DATA) + "/../../doc/reference/support.md";
    if (std::getenv("MXDNN_UPDATE_DOCS")) std::ofstream(path) << page();
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), page())
            << "doc/reference/support.md is stale: run this test with MXDNN_UPDATE_DOCS=1";
}

// 448, 0.125, 2^-9.
std::string number_text(double v) {
    if (v != 0 && std::abs(v) < 0.1 && std::ldexp(1, std::ilogb(v)) == v)
        return "2^" + std::to_string(std::ilogb(v));
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", v);
    return text;
}

std::string code_text(uint32_t code) {
    char text[16];
    std::snprintf(text, sizeof(text), "0x%02X", code);
    return text;
}

// The codes with values of this kind, as ranges: "0x7C, 0xFC", "0x7D-0x7F".
template <typename T, typename F>
std::string codes_that(F &&are) {
    std::string s;
    const uint32_t end = 1u << T::bits;
    for (uint32_t c = 0; c < end; c++) {
        if (!are(T::decode(c))) continue;
        uint32_t last = c;
        while (last + 1 < end && are(T::decode(last + 1))) last++;
        s += (s.empty() ? "" : ", ") + code_text(c) + (last > c ? "-" + code_text(last) : "");
        c = last;
    }
    return s;
}

template <typename T>
std::string no_numbers() {
    const std::string inf = codes_that<T>([](float x) { return std::isinf(x); }),
                      nan = codes_that<T>([](float x) { return std::isnan(x); });
    if (inf.empty() && nan.empty()) return "none";
    return (inf.empty() ? "" : "Inf " + inf + "; ") + "NaN " + nan;
}

std::string element_types() {
    std::string s =
            "| type | bias | largest | least normal | least subnormal | emax | mantissa bits | codes that are no "
            "numbers |\n|---|---|---|---|---|---|---|---|\n";
    for_each_type(mx_element_types(), [&](auto t) {
        using T = decltype(t);
        s += std::string("| `") + T::name + "` | ";
        if constexpr (T::is_float)
            s += std::to_string(T::bias) + " | " + number_text(T::max) + " (" + code_text(T::max_code)
                 + ") | " + number_text(T::min_normal) + " | " + number_text(T::min_subnormal) + " | "
                 + std::to_string(T::emax) + " | " + std::to_string(T::mantissa_bits) + " | "
                 + no_numbers<T>();
        else
            s += "– | " + number_text(T::max) + " (" + code_text(uint32_t(T::highest)) + ") | – | "
                 + number_text(T::decode(1)) + " | " + std::to_string(T::emax) + " | – | none";
        s += " |\n";
    });
    return s;
}

std::string named_format_table() {
    std::string s = "| name | elements | scale | block | zero point | global scale | kernels |\n"
                    "|---|---|---|---|---|---|---|\n";
    for (const named_format_t &f : named_formats)
        s += std::string("| `") + f.name + "` | `" + data_type_name(f.elem) + "` | `"
             + data_type_name(f.quant.scale_dt) + "` | " + std::to_string(f.quant.block) + " | "
             + (f.quant.zp == zero_point_kind_t::none
                             ? "none"
                             : std::string("`") + data_type_name(f.quant.zp_dt) + "`")
             + " | " + (takes_global_scale(f.elem, f.quant) ? "none, one, or one per expert" : "none") + " | "
             + (f.decoder == decoder_t::none ? "reference alone" : "all") + " |\n";
    return s;
}

// The text of a page between "<!-- name -->" and "<!-- end of name -->".
void expect_part(const std::string &page, const std::string &name, const std::string &expected) {
    const std::string path = std::string(MXDNN_TEST_DATA) + "/../../doc/reference/" + page;
    std::stringstream in;
    in << std::ifstream(path).rdbuf();
    std::string text = in.str();
    const std::string first = "<!-- " + name + " -->\n", last = "<!-- end of " + name + " -->\n";
    const size_t begin = text.find(first), end = text.find(last);
    ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << page << " has no " << first;
    const size_t from = begin + first.size();
    if (std::getenv("MXDNN_UPDATE_DOCS")) {
        text.replace(from, end - from, expected);
        std::ofstream(path) << text;
    } else {
        EXPECT_EQ(text.substr(from, end - from), expected)
                << "doc/reference/" << page << " is stale: run this test with MXDNN_UPDATE_DOCS=1";
    }
}

TEST(formats_doc, tables_are_what_the_lists_say) {
    expect_part("formats.md", "element types", element_types());
    expect_part("formats.md", "named formats", named_format_table());
}

} // namespace
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Quantising and decoding of blocks, bit for bit against results of NumPy without the library; and the list
// of legal combinations of types.
#include <gtest/gtest.h>

#include <sstream>

#include "common/formats/quantize_block.hpp"
#include "oracle/oracle.hpp"

namespace mxdnn {
namespace impl {
namespace oracle {
namespace {

#include "oracle/quantize_cases.inc"

uint32_t with_one_nan(float x) { return is_nan(x) ? f32_nan_bits : bits_of(x); }

std::vector<float> floats_of(const quantize_input_t &input) {
    std::vector<float> x;
    for (uint32_t u : from_hex(input.values, 8)) x.push_back(float_of(u));
    return x;
}

std::string format_text(data_type_t elem, const quant_t &q) {
    return std::string(data_type_name(elem)) + " " + data_type_name(q.scale_dt) + " block "
           + std::to_string(q.block) + " zp " + std::to_string(int(q.zp)) + " " + data_type_name(q.zp_dt)
           + " global " + std::to_string(int(q.global));
}

struct record_t {
    int input = 0, offset = 0, n = 0;
    uint32_t global = 0, crc = 0;
    block_params_t params;
    std::vector<uint32_t> codes;
};

std::vector<record_t> records_of(const quantize_oracle_t &row) {
    std::vector<record_t> records;
    std::istringstream lines(row.records);
    std::string codes;
    for (record_t r; lines >> std::dec >> r.input >> r.offset >> r.n >> std::hex >> r.global >> r.params.scale
                     >> r.params.zp >> codes >> r.crc;) {
        r.codes = from_hex(codes.c_str(), int(codes.size()) / r.n);
        records.push_back(r);
    }
    return records;
}

TEST(quantize, blocks_are_what_numpy_makes_of_them) {
    std::vector<std::vector<float>> inputs;
    for (const quantize_input_t &input : quantize_inputs) inputs.push_back(floats_of(input));
    int computed = 0, given = 0;
    for (const quantize_oracle_t &row : quantize_oracles) {
        ASSERT_EQ(check_quant(row.elem, row.quant), nullptr) << check_quant(row.elem, row.quant);
        for (const record_t &r : records_of(row)) {
            const std::string what = format_text(row.elem, row.quant) + " rounding "
                                     + std::to_string(int(row.rounding)) + ", input "
                                     + quantize_inputs[r.input].name + " at " + std::to_string(r.offset)
                                     + ", global " + hex(r.global);
            const float *x = inputs[size_t(r.input)].data() + r.offset;
            const float global = float_of(r.global);
            ASSERT_EQ(r.codes.size(), size_t(r.n)) << what;
            ASSERT_LE(size_t(r.offset + r.n), inputs[size_t(r.input)].size()) << what;

            if (row.computed) {
                computed++;
                ASSERT_EQ(check_dynamic_quant(row.elem, row.quant, row.rounding), nullptr) << what;
                std::vector<uint8_t> codes(size_t(r.n) + 1, 0xa5);
                const block_params_t p =
                        quantize_block(row.elem, row.quant, row.rounding, global, x, r.n, codes.data());
                EXPECT_EQ(hex(p.scale), hex(r.params.scale)) << what;
                EXPECT_EQ(p.zp, r.params.zp) << what;
                for (int i = 0; i < r.n; i++)
                    EXPECT_EQ(codes[size_t(i)], r.codes[size_t(i)])
                            << what << ", element " << i << " = " << x[i] << " " << hex(bits_of(x[i]));
                EXPECT_EQ(codes.back(), 0xa5) << what;
                // The same for one element after the other, as devices do it.
                const chosen_params_t chosen =
                        choose_params(row.elem, row.quant, row.rounding, global, x, r.n);
                EXPECT_EQ(hex(chosen.params.scale), hex(r.params.scale)) << what;
                EXPECT_EQ(chosen.params.zp, r.params.zp) << what;
                for (int i = 0; i < r.n; i++)
                    EXPECT_EQ(chosen.zeros
                                      ? chosen.params.zp
                                      : quantize_element(row.elem, row.quant, chosen.params, global, x[i]),
                            r.codes[size_t(i)])
                            << what << ", element " << i << " = " << x[i] << " " << hex(bits_of(x[i]));
            } else {
                given++;
                for (int i = 0; i < r.n; i++)
                    EXPECT_EQ(
                            quantize_element(row.elem, row.quant, r.params, global, x[i]), r.codes[size_t(i)])
                            << what << ", scale " << hex(r.params.scale) << ", element " << i << " = "
                            << x[i];
            }
            crc32_t crc;
            for (uint32_t code : r.codes)
                crc.add(with_one_nan(dequantize_element(row.elem, row.quant, r.params, global, code)));
            EXPECT_EQ(hex(crc.value()), hex(r.crc))
                    << "decoding " << what << ", scale " << hex(r.params.scale);
        }
    }
    EXPECT_GT(computed, 1500);
    EXPECT_GT(given, 300);
}

// The computed scale of a block, passed as a static scale, gives the same codes, except for NaN and Inf,
// which depend on the whole block.
TEST(quantize, given_scales_repeat_computed_ones) {
    for (const quantize_oracle_t &row : quantize_oracles) {
        if (!row.computed) continue;
        for (const record_t &r : records_of(row)) {
            const std::vector<float> x = floats_of(quantize_inputs[r.input]);
            if (block_amax_bits(x.data() + r.offset, r.n) >= f32_inf_bits) continue;
            const bool scale_replaced = quant_family(row.elem, row.quant) == quant_family_t::affine
                                        && r.params.scale == data_type_info(row.quant.scale_dt)->encode(1.f);
            if (scale_replaced) continue;
            for (int i = 0; i < r.n; i++)
                EXPECT_EQ(quantize_element(
                                  row.elem, row.quant, r.params, float_of(r.global), x[size_t(r.offset + i)]),
                        r.codes[size_t(i)])
                        << format_text(row.elem, row.quant) << " " << quantize_inputs[r.input].name << " "
                        << i;
        }
    }
}

TEST(quantize, global_scale_of_a_matrix) {
    for (const nvfp4_global_t &row : nvfp4_globals) {
        float amax = 0;
        for (float x : floats_of(quantize_inputs[row.input])) amax = nvfp4_global_amax(amax, x);
        EXPECT_EQ(hex(bits_of(nvfp4_global_scale(amax))), hex(row.bits)) << quantize_inputs[row.input].name;
    }
}

TEST(dequantize, every_code_under_every_e8m0_scale) {
    int rows = 0;
    for (const mx_decode_oracle_t &row : mx_decode_oracles) {
        rows++;
        const std::vector<uint32_t> crcs = from_hex(row.crcs, 8);
        ASSERT_EQ(crcs.size(), 256u);
        for (uint32_t scale = 0; scale < 256; scale++) {
            crc32_t crc;
            for (uint32_t code = 0; code < (1u << data_type_info(row.elem)->bits); code++)
                crc.add(with_one_nan(dequantize_element(row.elem, mx_quant, {scale, 0}, 0, code)));
            EXPECT_EQ(crc.value(), crcs[scale]) << data_type_name(row.elem) << " scale byte " << scale;
        }
    }
    EXPECT_EQ(rows, 6);
}

TEST(dequantize, every_nvfp4_code_under_every_scale) {
    for (const nvfp4_decode_oracle_t &row : nvfp4_decode_oracles) {
        quant_t q = nvfp4_quant;
        if (row.has_global) q.global = global_scale_kind_t::one;
        const std::vector<uint32_t> crcs = from_hex(row.crcs, 8);
        for (uint32_t scale = 0; scale < 256; scale++) {
            crc32_t crc;
            for (uint32_t code = 0; code < 16; code++)
                crc.add(with_one_nan(
                        dequantize_element(mxdnn_f4_e2m1, q, {scale, 0}, float_of(row.global), code)));
            EXPECT_EQ(crc.value(), crcs[scale]) << "scale " << scale << " global " << hex(row.global);
        }
    }
}

// 2^-127 and its products are subnormal. They must be exact.
TEST(dequantize, subnormals_are_not_flushed) {
    EXPECT_EQ(bits_of(mx_dequantize<f4_e2m1_t>(f4_e2m1_t::encode(1.f), 0)), 0x00400000u);
    EXPECT_EQ(bits_of(mx_dequantize<s8_t>(1, 0)), 0x00010000u);
    EXPECT_EQ(bits_of(mx_dequantize<f8_e5m2_t>(1, 0)), 0x00000040u);
}

// One rounding for the product, another for the sum.
TEST(dequantize, float_zero_rounds_twice) {
    const float scale = float_of(0x3f800001), zero = -7.f; // 7 * (1 + 2^-23) is a tie in f32
    const float product = 7 * scale;
    ASSERT_NE(double(product), 7 * double(scale));
    EXPECT_EQ(added_zero_dequantize(15, scale, zero, 8), product - 7);
    EXPECT_NE(double(added_zero_dequantize(15, scale, zero, 8)), 7 * double(scale) - 7);
    EXPECT_EQ(added_zero_dequantize(7, scale, zero, 0), product - 7);
}

TEST(quantize, what_cannot_be_computed_poisons) {
    const float x[] = {1, 2, 3};
    uint8_t codes[3];
    const auto expect = [&](data_type_t elem, const quant_t &q, scale_rounding_t rounding, uint32_t scale) {
        EXPECT_EQ(quantize_block(elem, q, rounding, 0, x, 3, codes).scale, scale);
        const chosen_params_t chosen = choose_params(elem, q, rounding, 0, x, 3);
        EXPECT_EQ(chosen.params.scale, scale);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(chosen.zeros ? chosen.params.zp : quantize_element(elem, q, chosen.params, 0, x[i]),
                    codes[i]);
    };
    expect(mxdnn_s8, mx_quant, mxdnn_scale_rounding_even, 255u);
    quant_t q = int4_quant;
    expect(mxdnn_u4, q, mxdnn_scale_rounding_floor, 0x7fc0u);
    q.zp = zero_point_kind_t::float_zero;
    q.zp_dt = mxdnn_bf16;
    expect(mxdnn_u4, q, mxdnn_scale_rounding_floor, 0x7fc0u);
    const float bad[] = {1, float_of(f32_nan_bits), -3};
    EXPECT_EQ(quantize_block(mxdnn_u4, int4_min_quant, mxdnn_scale_rounding_floor, 0, bad, 3, codes).scale,
            uint32_t(f16_t::nan_code));
    EXPECT_EQ(codes[0] | codes[1] | codes[2], 0);
    expect(mxdnn_f32, mx_quant, mxdnn_scale_rounding_floor, 0u); // no format
    EXPECT_TRUE(is_nan(dequantize_element(mxdnn_f32, mx_quant, {127, 0}, 0, 1)));
}

// ---- which formats there are ----

TEST(check_quant, legal_are_exactly_these) {
    std::vector<data_type_t> types = {mxdnn_data_type_undef};
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows) types.push_back(row.id);
    // For elements in blocks: the row of the table, with a global scale for NVFP4.
    const auto is_of_groups = [](const named_format_t &row) {
        return quant_family(row.elem, row.quant) == quant_family_t::affine;
    };
    const auto has_row = [&](data_type_t elem, const quant_t &q) {
        for (const named_format_t &row : named_formats)
            if (!is_of_groups(row) && row.elem == elem && row.quant == q) return true;
        return false;
    };
    const auto in = [](data_type_t dt, std::initializer_list<data_type_t> list) {
        for (data_type_t t : list)
            if (t == dt) return true;
        return false;
    };
    int legal = 0;
    for (data_type_t elem : types)
        for (data_type_t scale : types)
            for (dim_t block : {-32, 0, 1, 8, 16, 31, 32, 48, 64, 128, 256, 512})
                for (int zp = 0; zp < 5; zp++)
                    for (data_type_t zp_dt : types)
                        for (int global = 0; global < 4; global++) {
                            const quant_t q{
                                    scale, block, zero_point_kind_t(zp), zp_dt, global_scale_kind_t(global)};
                            const bool none = zp == 0 && zp_dt == mxdnn_data_type_undef;
                            quant_t one_level = q;
                            one_level.global = global_scale_kind_t::none;
                            const bool nvfp4 = elem == mxdnn_f4_e2m1 && scale == mxdnn_f8_e4m3 && global <= 2;
                            const bool blocks = has_row(elem, nvfp4 ? one_level : q);
                            const bool affine =
                                    in(elem, {mxdnn_s4, mxdnn_u4, mxdnn_s8})
                                    && in(scale, {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
                                    && (block == 32 || block == 64 || block == 128 || block == 256)
                                    && global == 0
                                    && (none
                                            || (elem == mxdnn_u4
                                                    && ((zp == 1 && zp_dt == mxdnn_u8)
                                                            || ((zp == 2 || zp == 3)
                                                                    && in(zp_dt, {mxdnn_bf16, mxdnn_f16,
                                                                                         mxdnn_f32})))));
                            const bool expected = blocks || affine;
                            legal += expected;
                            const char *wrong = check_quant(elem, q);
                            ASSERT_EQ(wrong == nullptr, expected)
                                    << format_text(elem, q) << ": " << (wrong ? wrong : "legal");
                            if (wrong) {
                                ASSERT_GT(std::strlen(wrong), 20u);
                            }
                        }
    int blocks = 2; // the global scales of NVFP4
    for (const named_format_t &row : named_formats) blocks += !is_of_groups(row);
    EXPECT_EQ(legal, blocks + 3 * 4 * (1 + 1 + 1 + 1 + 3 + 3)); // s8, s4, u4 alone, with u8, zeros, minima
}

TEST(check_quant, says_what_would_be_right) {
    EXPECT_NE(std::strstr(check_quant(mxdnn_f4_e2m1, {mxdnn_bf16, 32}), "e8m0"), nullptr);
    EXPECT_NE(std::strstr(check_quant(mxdnn_f8_e4m3, {mxdnn_e8m0, 16}), "32"), nullptr);
    EXPECT_NE(std::strstr(check_quant(mxdnn_f4_e2m1, {mxdnn_f8_e4m3, 32}), "16"), nullptr);
    EXPECT_NE(std::strstr(check_quant(mxdnn_u4, {mxdnn_f16, 96}), "128"), nullptr);
    EXPECT_NE(
            std::strstr(check_dynamic_quant(mxdnn_s8, mx_quant, mxdnn_scale_rounding_even), "even"), nullptr);
    EXPECT_NE(check_dynamic_quant(mxdnn_f32, mx_quant, mxdnn_scale_rounding_floor), nullptr);
    EXPECT_EQ(check_dynamic_quant(mxdnn_s8, mx_quant, mxdnn_scale_rounding_rceil), nullptr);
}

TEST(named_formats, are_legal_and_found) {
    int rows = 0;
    for (const named_format_t &row : named_formats) {
        rows++;
        EXPECT_EQ(check_quant(row.elem, row.quant), nullptr) << row.name;
        EXPECT_EQ(named_format(row.name), &row);
        EXPECT_STREQ(format_name(row.elem, row.quant), row.name);
        EXPECT_EQ(check_dynamic_quant(row.elem, row.quant, mxdnn_scale_rounding_rceil), nullptr) << row.name;
        EXPECT_EQ(data_type_from_name(row.name), mxdnn_data_type_undef) << "a word with two meanings";
    }
    EXPECT_GE(rows, 11);
    for (const char *name : {"mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4", "int4",
                 "int4_zp", "int4_min", "int8"})
        EXPECT_NE(named_format(name), nullptr) << name;
    EXPECT_EQ(named_format("mxfp4")->elem, mxdnn_f4_e2m1);
    EXPECT_EQ(named_format("mxfp6_e3m2")->elem, mxdnn_f6_e3m2);
    EXPECT_EQ(named_format("nvfp4")->quant.block, 16);
    EXPECT_EQ(named_format(nullptr), nullptr);
    EXPECT_EQ(named_format("mxfp"), nullptr);
    quant_t q = nvfp4_quant;
    q.global = global_scale_kind_t::one;
    EXPECT_EQ(format_name(mxdnn_f4_e2m1, q), nullptr);
}

} // namespace
} // namespace oracle
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Every data type against tables that were made without the library: all codes decoded, boundary and random
// values encoded, all scales, and the orders of bits and of 128x4 scales.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "common/formats/scale_rounding.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "oracle/oracle.hpp"

namespace mxdnn {
namespace impl {
namespace oracle {
namespace {

#include "oracle/bit_order_tables.inc"
#include "oracle/decode_tables.inc"
#include "oracle/encode_tables.inc"
#include "oracle/scale_tables.inc"

// The tables have one NaN. That f32 keeps its bits and narrower types make NaN quiet is checked here.
uint32_t canonical(float x) { return is_nan(x) ? f32_nan_bits : bits_of(x); }

template <typename T>
uint32_t canonical_code(uint32_t code) {
    if constexpr ((T::roles & role_high_precision) != 0) {
        const bool quiet = T::id == mxdnn_f32 || (code & T::nan_code) == T::nan_code;
        if (is_nan(T::decode(code)) && quiet) return T::nan_code;
    }
    return code;
}

template <typename oracle_t, size_t n>
const oracle_t *find(const oracle_t (&rows)[n], const char *type) {
    for (const oracle_t &row : rows)
        if (equal_names(row.type, type)) return &row;
    return nullptr;
}

template <typename T>
class numeric : public testing::Test {};
template <typename list>
struct to_gtest;
template <typename... types>
struct to_gtest<type_list<types...>> {
    using type = testing::Types<types...>;
};
struct type_names {
    template <typename T>
    static std::string GetName(int) {
        return T::name;
    }
};
TYPED_TEST_SUITE(numeric, to_gtest<numeric_types>::type, type_names);

// f32 needs no table, since its codes are its bits. Small floats without a table are compared with their
// definition only, in the test small_floats.
TYPED_TEST(numeric, decodes_every_code) {
    using T = TypeParam;
    if (const decode_oracle_t *row = find(decode_oracles, T::name)) {
        const std::vector<uint32_t> values = from_hex(row->values, 8);
        ASSERT_EQ(values.size(), size_t(1) << T::bits);
        for (uint32_t code = 0; code < values.size(); code++) {
            EXPECT_EQ(canonical(T::decode(code)), values[code]) << T::name << " code " << hex(code);
            EXPECT_EQ(bits_of(data_type_info(T::id)->decode(code)), bits_of(T::decode(code)));
        }
    } else if (const decode_crc_oracle_t *crc_row = find(decode_crc_oracles, T::name)) {
        ASSERT_EQ(T::bits, 16);
        const std::vector<uint32_t> crcs = from_hex(crc_row->crcs, 8);
        for (uint32_t chunk = 0; chunk < 256; chunk++) {
            crc32_t crc;
            for (uint32_t i = 0; i < 256; i++) crc.add(canonical(T::decode(chunk * 256 + i)));
            EXPECT_EQ(crc.value(), crcs[chunk]) << T::name << " codes from " << hex(chunk * 256);
        }
    } else if (T::id == mxdnn_f32) {
        for (uint32_t i = 0; i < 100000; i++) {
            const uint32_t u = random_bits(i, 1, 0, 255);
            EXPECT_EQ(bits_of(T::decode(u)), u);
        }
    }
}

TYPED_TEST(numeric, ignores_bits_above_the_code) {
    using T = TypeParam;
    const uint64_t end = uint64_t(1) << T::bits;
    for (uint32_t code = 0; code < end && end <= 0x10000; code++)
        for (uint32_t above : {uint32_t(end), ~uint32_t(end - 1)})
            ASSERT_EQ(bits_of(T::decode(code | above)), bits_of(T::decode(code))) << hex(code);
}

TYPED_TEST(numeric, encodes_boundaries_and_specials) {
    using T = TypeParam;
    int rows = 0;
    for (const encode_oracle_t &row : encode_oracles) {
        if (!equal_names(row.type, T::name)) continue;
        rows++;
        ASSERT_EQ(row.digits, (T::bits + 7) / 8 * 2);
        const std::vector<uint32_t> halves = from_hex(row.pairs, row.digits);
        const size_t step = size_t(8 / row.digits) + 1;
        ASSERT_EQ(halves.size() % step, 0u);
        ASSERT_GE(halves.size() / step, 300u);
        for (size_t i = 0; i < halves.size(); i += step) {
            uint32_t u = 0;
            for (size_t j = 0; j + 1 < step; j++)
                u = uint32_t(uint64_t(u) << (4 * row.digits)) | halves[i + j];
            const uint32_t expected = halves[i + step - 1];
            const float x = float_of(u);
            if (row.conversion != conversion_t::for_scales) {
                EXPECT_EQ(canonical_code<T>(T::encode(x)), expected) << T::name << " of " << hex(u);
                EXPECT_EQ(data_type_info(T::id)->encode(x), T::encode(x));
            }
            if (row.conversion != conversion_t::own) {
                EXPECT_EQ(canonical_code<T>(T::encode_saturating(x)), expected)
                        << T::name << " of " << hex(u);
                EXPECT_EQ(data_type_info(T::id)->encode_saturating(x), T::encode_saturating(x));
            }
        }
    }
    EXPECT_TRUE(rows > 0 || (T::is_float && T::bits <= 8))
            << "no table for " << T::name << ": see oracle/make_tables.py";
}

TYPED_TEST(numeric, encodes_random_values) {
    using T = TypeParam;
    for (const encode_oracle_t &row : encode_oracles) {
        if (!equal_names(row.type, T::name)) continue;
        const std::vector<uint32_t> crcs = from_hex(row.crcs, 8);
        ASSERT_EQ(crcs.size(), size_t(encode_chunks));
        for (int chunk = 0; chunk < encode_chunks; chunk++) {
            crc32_t own, for_scales;
            for (int i = 0; i < encode_chunk; i++) {
                const float x = float_of(random_bits(
                        uint32_t(chunk * encode_chunk + i), row.seed, row.field_lo, row.field_hi));
                own.add(canonical_code<T>(T::encode(x)));
                for_scales.add(canonical_code<T>(T::encode_saturating(x)));
            }
            const uint32_t expected = crcs[size_t(chunk)];
            if (row.conversion != conversion_t::for_scales) {
                EXPECT_EQ(own.value(), expected)
                        << T::name << " seed " << hex(row.seed) << " chunk " << chunk;
            }
            if (row.conversion != conversion_t::own) {
                EXPECT_EQ(for_scales.value(), expected)
                        << T::name << " seed " << hex(row.seed) << " chunk " << chunk;
            }
        }
    }
}

TYPED_TEST(numeric, encodes_every_midpoint_of_16_bits) {
    using T = TypeParam;
    const middle_oracle_t *row = find(middle_oracles, T::name);
    if (!row) {
        EXPECT_NE(T::bits, 16);
        return;
    }
    const std::vector<uint32_t> crcs = from_hex(row->crcs, 8);
    uint32_t code = 0;
    for (uint32_t expected : crcs) {
        crc32_t crc;
        const uint32_t first = code;
        for (int i = 0; i < 256 && is_finite(T::decode(code)); i++, code++) {
            const double x = T::decode(code);
            const bool last = !is_finite(T::decode(code + 1));
            const double step = last ? x - double(T::decode(code - 1)) : double(T::decode(code + 1)) - x;
            const uint32_t u = bits_of(float(x + step / 2));
            for (uint32_t v : {u, u - 1, u + 1}) crc.add(T::encode(float_of(v)));
        }
        EXPECT_EQ(crc.value(), expected) << T::name << " codes from " << hex(first);
    }
    EXPECT_FALSE(is_finite(T::decode(code))) << "the table ends before the codes do";
}

// All tables that exist, so that a missing row is noticed.
TEST(formats, tables) {
    EXPECT_EQ(std::size(decode_oracles), 10u);
    EXPECT_EQ(std::size(decode_crc_oracles), 2u);
    EXPECT_EQ(std::size(encode_oracles), 16u);
}

// Parameters define a small float: values by the formula of doc/reference/formats.md in double, codes by a
// search for the nearest value. All types of the list.
template <typename T>
void check_small_float() {
    constexpr bool has_sign = T::is_signed;
    constexpr uint32_t magnitudes = 1u << (T::bits - int(has_sign));
    std::vector<double> values; // of the codes 0, 1, 2, ... up to the largest
    for (uint32_t code = 0; code < magnitudes; code++) {
        const int field = int(code >> T::mantissa_bits),
                  mantissa = int(code & ((1u << T::mantissa_bits) - 1));
        const double v = field ? std::ldexp(1 + std::ldexp(mantissa, -T::mantissa_bits), field - T::bias)
                               : std::ldexp(mantissa, 1 - T::bias - T::mantissa_bits);
        const double decoded = T::decode(code);
        if (code <= T::max_code) {
            ASSERT_EQ(decoded, v) << T::name << " code " << hex(code);
            values.push_back(v);
        } else {
            ASSERT_FALSE(std::isfinite(decoded)) << T::name << " code " << hex(code);
        }
        if (has_sign) {
            ASSERT_EQ(bits_of(T::decode(code | magnitudes)), bits_of(T::decode(code)) | f32_sign_mask);
        }
    }
    ASSERT_EQ(double(T::max), values.back()) << T::name;
    ASSERT_EQ(T::emax, std::ilogb(values.back())) << T::name;
    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t u =
                random_bits(i, 77, uint32_t(127 + std::ilogb(values[1]) - 2), uint32_t(127 + T::emax + 1));
        const float x = float_of(u & ~f32_sign_mask);
        if (is_nan(x)) continue;
        // Ties to the even code; beyond the largest, the largest.
        const size_t above =
                size_t(std::lower_bound(values.begin(), values.end(), double(x)) - values.begin());
        size_t code = std::min(above, values.size() - 1);
        if (code > 0 && above < values.size()) {
            const double up = values[code] - x, down = x - values[code - 1];
            if (down < up || (down == up && code % 2 == 1)) code--;
        }
        ASSERT_EQ(T::encode_saturating(x), code) << T::name << " of " << x;
        if (has_sign) {
            ASSERT_EQ(T::encode_saturating(-x), code | magnitudes) << T::name << " of " << -x;
        }
    }
}

TEST(formats, small_floats_are_their_definition) {
    int seen = 0;
    for_each_type(numeric_types(), [&](auto t) {
        using T = decltype(t);
        if constexpr (T::is_float && T::bits <= 8 && T::mantissa_bits > 0) {
            check_small_float<T>();
            seen++;
        }
    });
    EXPECT_GE(seen, 5);
}

// The table of element types in doc/reference/formats.md.
TEST(formats, constants) {
    struct row_t {
        data_type_t dt;
        const char *name;
        int bits;
        float max;
        int emax;
        float min_normal, min_subnormal;
    };
    const row_t rows[] = {{mxdnn_f8_e4m3, "f8_e4m3", 8, 448, 8, 0x1p-6f, 0x1p-9f},
            {mxdnn_f8_e5m2, "f8_e5m2", 8, 57344, 15, 0x1p-14f, 0x1p-16f},
            {mxdnn_f6_e2m3, "f6_e2m3", 6, 7.5, 2, 1, 0.125f},
            {mxdnn_f6_e3m2, "f6_e3m2", 6, 28, 4, 0.25f, 0.0625f},
            {mxdnn_f4_e2m1, "f4_e2m1", 4, 6, 2, 1, 0.5f},
            {mxdnn_bf16, "bf16", 16, 0x1.fep127f, 127, 0x1p-126f, 0x1p-133f},
            {mxdnn_f16, "f16", 16, 65504, 15, 0x1p-14f, 0x1p-24f}, {mxdnn_s8, "s8", 8, 127.f / 64, 0, 0, 0},
            {mxdnn_f32, "f32", 32, 0x1.fffffep127f, 127, 0, 0}, {mxdnn_s4, "s4", 4, 7, 2, 0, 0},
            {mxdnn_u4, "u4", 4, 15, 3, 0, 0}, {mxdnn_u8, "u8", 8, 255, 7, 0, 0},
            {mxdnn_e8m0, "e8m0", 8, 0x1p127f, 127, 0, 0}};
    for (const row_t &row : rows) {
        const data_type_info_t *info = data_type_info(row.dt);
        ASSERT_NE(info, nullptr) << row.name;
        EXPECT_STREQ(info->name, row.name);
        EXPECT_STREQ(data_type_name(row.dt), row.name);
        EXPECT_EQ(data_type_from_name(row.name), row.dt);
        EXPECT_EQ(info->bits, row.bits) << row.name;
        EXPECT_EQ(info->max, row.max) << row.name;
        EXPECT_EQ(info->emax, row.emax) << row.name;
        EXPECT_EQ(
                info->is_high_precision, row.dt == mxdnn_f32 || row.dt == mxdnn_bf16 || row.dt == mxdnn_f16);
        visit_data_type(row.dt, [&](auto t) {
            using T = decltype(t);
            EXPECT_EQ(T::id, row.dt);
            if constexpr (T::is_float && T::is_signed && T::id != mxdnn_f32) {
                EXPECT_EQ(T::min_normal, row.min_normal) << row.name;
                EXPECT_EQ(T::min_subnormal, row.min_subnormal) << row.name;
            }
        });
    }
}

TEST(formats, lists) {
    int seen = 0;
    for_each_type(all_types(), [&](auto t) {
        using T = decltype(t);
        seen++;
        EXPECT_EQ(data_type_info(T::id)->id, T::id);
        EXPECT_EQ(data_type_from_name(T::name), T::id);
        EXPECT_EQ(data_type_info(T::id)->decode != nullptr, !has_role(T::id, role_index));
    });
    EXPECT_EQ(seen, all_types::size);
    EXPECT_EQ(data_type_info(mxdnn_data_type_undef), nullptr);
    EXPECT_EQ(data_type_info(data_type_t(7)), nullptr);
    EXPECT_STREQ(data_type_name(data_type_t(7)), "undef");
    for (const char *name : {"", "f", "f3", "f322", "F32", "undef", "mxfp4"})
        EXPECT_EQ(data_type_from_name(name), mxdnn_data_type_undef) << name;
    EXPECT_EQ(data_type_from_name(nullptr), mxdnn_data_type_undef);
    EXPECT_FALSE(visit_data_type(mxdnn_u64, [](auto) { FAIL(); }));
    EXPECT_FALSE(visit_data_type(mxdnn_data_type_undef, [](auto) { FAIL(); }));
    EXPECT_EQ(data_type_info(mxdnn_u64)->bits, 64);
    EXPECT_EQ(data_type_info(mxdnn_s32)->bits, 32);
    EXPECT_EQ(high_precision_types::size, 3);
}

// MXINT8 never produces -128, but decodes it.
TEST(formats, mxint8_is_symmetric) {
    EXPECT_EQ(s8_t::decode(0x80), -2.f);
    for (float x : {-2.f, -1.9999f, -1e30f, float_of(f32_sign_mask | f32_inf_bits)})
        EXPECT_EQ(s8_t::encode(x), 0x81u) << x;
    EXPECT_EQ(s8_t::to_int(0x80), -128);
    EXPECT_EQ(s8_t::from_int(-128), 0x80u);
}

// NaN of the high-precision types stays NaN, quiet, of its sign, with its upper payload bits.
TEST(formats, nan_is_kept_quiet) {
    for (uint32_t sign : {0u, f32_sign_mask})
        for (uint32_t payload = 1; payload < 0x800000; payload = payload * 3 + 1) {
            const uint32_t u = sign | f32_inf_bits | payload;
            EXPECT_EQ(bf16_t::encode(float_of(u)), (u >> 16) | 0x40) << hex(u);
            EXPECT_EQ(f16_t::encode(float_of(u)), sign >> 16 | 0x7e00 | payload >> 13) << hex(u);
            EXPECT_EQ(f16_t::encode_saturating(float_of(u)), f16_t::encode(float_of(u)));
        }
}

TEST(scales, e8m0_from_amax) {
    const std::vector<uint32_t> inputs = from_hex(scale_inputs, 8);
    int rows = 0;
    for (const scale_oracle_t &row : scale_oracles) {
        rows++;
        const std::vector<uint32_t> bytes = from_hex(row.bytes, 2), crcs = from_hex(row.crcs, 8);
        ASSERT_EQ(bytes.size(), inputs.size());
        ASSERT_EQ(crcs.size(), size_t(scale_chunks));
        const data_type_t dt = data_type_from_name(row.element);
        ASSERT_TRUE(visit_type(mx_element_types(), dt, [&](auto t) {
            using T = decltype(t);
            for (size_t i = 0; i < inputs.size(); i++) {
                EXPECT_EQ(e8m0_from_amax<T>(inputs[i], row.rounding), bytes[i])
                        << row.element << " rounding " << row.rounding << " amax " << hex(inputs[i]);
                EXPECT_EQ(e8m0_from_amax(inputs[i], e8m0_target<T>, row.rounding), bytes[i]);
            }
            for (int chunk = 0; chunk < scale_chunks; chunk++) {
                crc32_t crc;
                for (int i = 0; i < scale_chunk; i++)
                    crc.add(e8m0_from_amax<T>(
                            random_bits(uint32_t(chunk * scale_chunk + i), scale_seed, 0, 254) & 0x7fffffff,
                            row.rounding));
                EXPECT_EQ(crc.value(), crcs[size_t(chunk)])
                        << row.element << " rounding " << row.rounding << " seed " << hex(scale_seed)
                        << " chunk " << chunk;
            }
        }));
    }
    EXPECT_EQ(rows, 4 * 6 - 1); // of six types, s8 without `even`
}

TEST(scales, what_is_not_defined_is_not_data) {
    EXPECT_EQ(e8m0_from_amax<s8_t>(0x3f800000, mxdnn_scale_rounding_even), e8m0_poison);
    EXPECT_FALSE(is_scale_rounding_defined(false, mxdnn_scale_rounding_even));
    EXPECT_TRUE(is_scale_rounding_defined(true, mxdnn_scale_rounding_even));
    for_each_type(mx_element_types(), [](auto t) {
        using T = decltype(t);
        for (int r = 0; r < 4; r++) {
            if (T::id == mxdnn_s8 && r == mxdnn_scale_rounding_even) continue;
            EXPECT_LT(e8m0_from_amax<T>(f32_max_bits, scale_rounding_t(r)), 255u) << T::name;
            EXPECT_EQ(e8m0_from_amax<T>(0, scale_rounding_t(r)), 0u) << T::name;
            EXPECT_EQ(e8m0_from_amax<T>(f32_inf_bits, scale_rounding_t(r)), 255u) << T::name;
            EXPECT_EQ(e8m0_from_amax<T>(f32_nan_bits, scale_rounding_t(r)), 255u) << T::name;
        }
    });
}

TEST(scales, e8m0_inverse) {
    for (uint32_t code = 0; code < 255; code++)
        EXPECT_EQ(e8m0_t::decode(code) * e8m0_t::decode_inverse(code), 1.f) << code;
}

TEST(bit_order, rows_of_4_and_6_bits) {
    for (const dense_row_oracle_t &row : dense_row_oracles) {
        const std::vector<uint32_t> codes = from_hex(row.codes, 2), bytes = from_hex(row.bytes, 2);
        const int64_t n = int64_t(codes.size());
        const auto packing = mxdnn_element_packing_dense;
        ASSERT_EQ(plain_row_bytes(n, row.bits, packing), int64_t(bytes.size()));
        std::vector<uint8_t> memory(bytes.size() + 2, 0xa5);
        for (int64_t i = n - 1; i >= 0; i--)
            set_code(&memory[1], i, row.bits, packing, codes[size_t(i)] | 0xc0);
        // Bits after the last code are not written.
        const int used = int(n * row.bits % 8);
        for (size_t i = 0; i < bytes.size(); i++) {
            const uint32_t mask = i + 1 == bytes.size() && used ? (1u << used) - 1 : 0xff;
            EXPECT_EQ(memory[i + 1] & mask, bytes[i]) << row.bits << " bits, " << n << " codes, byte " << i;
            EXPECT_EQ(memory[i + 1] & ~mask & 0xff, 0xa5 & ~mask);
        }
        EXPECT_EQ(memory.front(), 0xa5);
        EXPECT_EQ(memory.back(), 0xa5);
        std::vector<uint8_t> exact(bytes.begin(), bytes.end()); // sanitizers see a read beyond it
        for (int64_t i = 0; i < n; i++)
            EXPECT_EQ(get_code(exact.data(), i, row.bits, packing), codes[size_t(i)]);
    }
}

TEST(bit_order, other_widths) {
    for (int bits : {4, 6, 8, 16, 32}) {
        const auto packing = mxdnn_element_packing_bytes;
        const int64_t rows = 3, cols = 5, row_bytes = plain_row_bytes(cols, bits, packing) + 1;
        EXPECT_EQ(row_bytes, 1 + (bits == 6 ? 5 : (5 * bits + 7) / 8));
        std::vector<uint8_t> memory(size_t(rows * row_bytes), 0xff);
        const uint32_t mask = uint32_t((uint64_t(1) << bits) - 1);
        const auto code = [&](int64_t r, int64_t c) {
            return random_bits(uint32_t(r * cols + c) * 2, uint32_t(bits), 0, 255) & mask;
        };
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                set_code(memory.data(), r, c, row_bytes, bits, packing, code(r, c));
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < cols; c++)
                EXPECT_EQ(get_code(memory.data(), r, c, row_bytes, bits, packing), code(r, c)) << bits;
            EXPECT_EQ(memory[size_t((r + 1) * row_bytes - 1)], 0xff);
        }
        if (bits >= 8) { // little-endian
            for (int b = 0; b < bits / 8; b++)
                EXPECT_EQ(memory[size_t(bits / 8 + b)], (code(0, 1) >> (8 * b)) & 0xff);
        }
    }
    // A 6-bit code in a byte of its own: the upper two bits are ignored.
    const uint8_t byte = 0xff;
    EXPECT_EQ(get_code(&byte, 0, 6, mxdnn_element_packing_bytes), 0x3fu);
    uint8_t out = 0xff;
    set_code(&out, 0, 6, mxdnn_element_packing_bytes, 0x15);
    EXPECT_EQ(out, 0x15);
}

TEST(bit_order, swizzle_128x4) {
    for (const swizzle_oracle_t &row : swizzle_oracles) {
        ASSERT_EQ(swizzle_128x4::size(row.rows, row.cols), row.size);
        std::vector<uint32_t> memory(size_t(row.size), 0);
        for (int r = 0; r < row.rows; r++)
            for (int c = 0; c < row.cols; c++) {
                const int64_t at = swizzle_128x4::offset(r, c, row.cols);
                ASSERT_TRUE(at >= 0 && at < row.size);
                ASSERT_EQ(memory[size_t(at)], 0u) << "taken twice";
                memory[size_t(at)] = uint32_t(r * row.cols + c + 1);
            }
        crc32_t crc;
        for (uint32_t v : memory) crc.add(v);
        EXPECT_EQ(crc.value(), row.crc) << row.rows << "x" << row.cols;
    }
}

} // namespace
} // namespace oracle
} // namespace impl
} // namespace mxdnn

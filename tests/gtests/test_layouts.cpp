// SPDX-License-Identifier: Apache-2.0
// Packed layouts: every listed map is a bijection into its bytes, and agrees with the committed golden bytes,
// which a script made without the library.
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "common/blob/blob.hpp"
#include "common/blob/xxh64.hpp"
#include "common/error.hpp"
#include "common/formats/format_list.hpp"
#include "common/formats/named_formats.hpp"
#include "common/layouts/any_n64.hpp"
#include "common/memory_desc.hpp"
#include "common/packed_desc.hpp"
#include "gtests/every_format.hpp"
#include "gtests/golden/golden.hpp"

namespace mxdnn {
namespace impl {
void PrintTo(const layout_t &layout, std::ostream *out) { *out << layout.name; }
} // namespace impl
} // namespace mxdnn

using namespace mxdnn::impl;

namespace {

// Hits of a map on the bits of a matrix; the same code runs at compile time for tiny shapes.
template <typename bitmap_t>
struct hits_t {
    bitmap_t &seen; // one entry per bit
    int64_t bytes;
    int64_t used = 0;

    constexpr bool bit(int64_t byte, int bit) {
        if (byte < 0 || byte >= bytes || bit < 0 || bit > 7) return false;
        if (seen[size_t(byte * 8 + bit)]) return false;
        seen[size_t(byte * 8 + bit)] = true;
        used++;
        return true;
    }
    constexpr bool whole(int64_t byte, int count) {
        for (int i = 0; i < count * 8; i++)
            if (!bit(byte + i / 8, i % 8)) return false;
        return true;
    }
};

// True when every code bit, scale byte, zero-point byte and the global scale has its own place inside
// [0, matrix_bytes), and each block has one scale. `used` receives the number of bits without padding.
template <typename map_t, typename bitmap_t>
constexpr bool is_bijection(
        const map_t &map, const packed_shape_t &s, bitmap_t &seen, int64_t *used = nullptr) {
    hits_t<bitmap_t> hits{seen, map.matrix_bytes(s)};
    if (s.global && !hits.whole(0, 4)) return false;
    for (int64_t k = 0; k < s.K; k++)
        for (int64_t n = 0; n < s.N; n++) {
            for (int b = 0; b < s.bits; b++) {
                const bit_pos_t p = map.elem_bit(s, k, n, b);
                if (!hits.bit(p.byte, p.bit)) return false;
            }
            if (k % s.block == 0) {
                if (!hits.whole(map.scale(s, k, n), s.scale_bytes)) return false;
                if (s.zp_bytes && !hits.whole(map.zero_point(s, k, n), s.zp_bytes)) return false;
            } else if (map.scale(s, k, n) != map.scale(s, k / s.block * s.block, n)
                       || (s.zp_bytes
                               && map.zero_point(s, k, n) != map.zero_point(s, k / s.block * s.block, n))) {
                return false;
            }
        }
    if (used) *used = hits.used;
    return true;
}

constexpr packed_shape_t shape(
        int64_t K, int64_t N, int bits, int64_t block, int scale_bytes, int zp_bytes, bool global) {
    packed_shape_t s;
    s.K = K;
    s.N = N;
    s.bits = bits;
    s.block = block;
    s.scale_bytes = scale_bytes;
    s.zp_bytes = zp_bytes;
    s.global = global;
    return s;
}

// Tiny shapes, checked at compile time.
struct tiny_bitmap_t {
    bool seen[40 * 1024] = {};
    constexpr bool &operator[](size_t i) { return seen[i]; }
};
template <typename layout>
constexpr bool is_tiny_bijection(const packed_shape_t &s) {
    tiny_bitmap_t seen;
    return is_bijection(layout(), s, seen);
}
static_assert(is_tiny_bijection<n16_b4_t>(shape(9, 17, 4, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n16_b4_t>(shape(34, 3, 4, 16, 1, 0, true)));
static_assert(is_tiny_bijection<n16_b4_t>(shape(33, 2, 4, 32, 2, 4, false)));
static_assert(is_tiny_bijection<n16_b6_t>(shape(35, 5, 6, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n16_b6_t>(shape(3, 18, 6, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n16_b8_t>(shape(37, 7, 8, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n16_b8_t>(shape(1, 1, 8, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n64_b4_t>(shape(16, 16, 4, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n64_i4_t>(shape(16, 16, 4, 32, 2, 0, false)));
static_assert(is_tiny_bijection<n64_f4_t>(shape(16, 16, 4, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n64_b6_t>(shape(35, 2, 6, 32, 1, 0, false)));
static_assert(is_tiny_bijection<n64_b8_t>(shape(16, 9, 8, 32, 1, 0, false)));

std::string words(const packed_shape_t &s) {
    return "K " + std::to_string(s.K) + ", N " + std::to_string(s.N) + ", bits " + std::to_string(s.bits)
           + ", block " + std::to_string(s.block) + ", scale bytes " + std::to_string(s.scale_bytes)
           + ", zero-point bytes " + std::to_string(s.zp_bytes) + ", global " + std::to_string(s.global);
}

// What every legal format needs of a layout with that many bits.
std::vector<packed_shape_t> widths_of(int bits) {
    std::vector<packed_shape_t> list;
    std::set<std::string> seen;
    for_each_format([&](const data_type_info_t &elem, const quant_t &q) {
        if (elem.bits != bits) return;
        const packed_shape_t s = make_packed_shape(1, 1, bits, q);
        if (seen.insert(words(s)).second) list.push_back(s);
    });
    return list;
}

class layouts : public testing::TestWithParam<layout_t> {};

TEST_P(layouts, IsABijectionForOddShapes) {
    const layout_t &layout = GetParam();
    const std::vector<packed_shape_t> all = widths_of(layout.bits);
    ASSERT_FALSE(all.empty()) << "no format has codes of " << layout.bits << " bits";
    const int64_t K[] = {1, 7, 17, 32, 33, 127, 129, 160, 257, 293};
    const int64_t N[] = {1, 15, 16, 33};
    for (packed_shape_t s : all)
        for (int64_t k : K)
            for (int64_t n : N) {
                s.K = k;
                s.N = n;
                const int64_t bytes = layout.matrix_bytes(s);
                std::vector<uint8_t> seen(size_t(bytes * 8));
                int64_t used = 0;
                ASSERT_TRUE(is_bijection(layout, s, seen, &used)) << layout.name << ": " << words(s);
                const int64_t blocks = div_up(k, s.block);
                ASSERT_EQ(
                        used, k * n * s.bits + blocks * n * (s.scale_bytes + s.zp_bytes) * 8 + s.global * 32);
                ASSERT_EQ(bytes % layout.align, 0);
            }
}

TEST_P(layouts, IsABijectionFor2880) {
    const layout_t &layout = GetParam();
    for (packed_shape_t s : widths_of(layout.bits)) {
        s.K = 2880;
        s.N = 17;
        std::vector<uint8_t> seen(size_t(layout.matrix_bytes(s) * 8));
        ASSERT_TRUE(is_bijection(layout, s, seen)) << layout.name << ": " << words(s);
        s.K = 17;
        s.N = 2880;
        seen.assign(size_t(layout.matrix_bytes(s) * 8), 0);
        ASSERT_TRUE(is_bijection(layout, s, seen)) << layout.name << ": " << words(s);
    }
}

// With one-byte scales there is almost no padding. With wider scales and zero points, at most a line per
// tile.
TEST_P(layouts, WastesLittle) {
    const layout_t &layout = GetParam();
    for (packed_shape_t s : widths_of(layout.bits)) {
        s.K = 2880;
        s.N = 5760;
        const double needed = double(s.K * s.N) * s.bits / 8
                              + double(div_up(s.K, s.block) * s.N) * (s.scale_bytes + s.zp_bytes);
        EXPECT_LE(double(layout.matrix_bytes(s)), (s.scale_bytes == 1 ? 1.005 : 1.05) * needed) << words(s);
    }
}

TEST_P(layouts, EmptyMatricesHaveNoPanels) {
    const layout_t &layout = GetParam();
    for (packed_shape_t s : widths_of(layout.bits)) {
        const int64_t prefix = s.global ? layout.align : 0;
        s.K = 0, s.N = 5;
        EXPECT_EQ(layout.matrix_bytes(s), prefix);
        s.K = 5, s.N = 0;
        EXPECT_EQ(layout.matrix_bytes(s), prefix);
    }
}

// The view reads back what it wrote, and changes nothing else.
TEST_P(layouts, ViewReadsWhatItWrites) {
    const layout_t &layout = GetParam();
    for (packed_shape_t s : widths_of(layout.bits))
        for (int fill : {0x00, 0xff}) {
            s.K = 2 * s.block + 3;
            s.N = 21;
            const int64_t bytes = layout.matrix_bytes(s);
            std::vector<uint8_t> data(size_t(bytes + 8), uint8_t(fill));
            const packed_view_t view{&layout, s, data.data()};
            const uint32_t code_mask = (1u << s.bits) - 1;
            const auto low = [](uint32_t v, int n) { return n == 4 ? v : v & ((1u << 8 * n) - 1); };
            for (int64_t k = 0; k < s.K; k++)
                for (int64_t n = 0; n < s.N; n++) {
                    view.set_code(k, n, golden::noise(1, 0, k, n) & code_mask);
                    view.set_scale(k, n, golden::noise(2, 0, k / s.block, n));
                    if (s.zp_bytes) view.set_zero_point(k, n, golden::noise(3, 0, k / s.block, n));
                }
            view.set_global(0.75f);
            for (int64_t k = 0; k < s.K; k++)
                for (int64_t n = 0; n < s.N; n++) {
                    ASSERT_EQ(view.code(k, n), golden::noise(1, 0, k, n) & code_mask) << words(s);
                    ASSERT_EQ(view.scale(k, n), low(golden::noise(2, 0, k / s.block, n), s.scale_bytes));
                    if (s.zp_bytes) {
                        ASSERT_EQ(
                                view.zero_point(k, n), low(golden::noise(3, 0, k / s.block, n), s.zp_bytes));
                    }
                }
            EXPECT_EQ(view.global(), s.global ? 0.75f : 1.f);
            for (size_t i = size_t(bytes); i < data.size(); i++) ASSERT_EQ(data[i], fill);
        }
}

// Device code gets the layout at run time. Its map is the same.
TEST_P(layouts, OfCudaAreAnyN64) {
    const layout_t &layout = GetParam();
    if (layout.family != target_family_t::cuda) GTEST_SKIP() << "not of CUDA targets";
    for (packed_shape_t s : widths_of(layout.bits)) {
        s.K = 2 * s.block + 3;
        s.N = 133;
        for (int64_t k = 0; k < s.K; k++)
            for (int64_t n = 0; n < s.N; n++) {
                for (int b = 0; b < s.bits; b++) {
                    const bit_pos_t p = any_n64_t::elem_bit(layout.id, s, k, n, b),
                                    q = layout.elem_bit(s, k, n, b);
                    ASSERT_EQ(p.byte * 8 + p.bit, q.byte * 8 + q.bit)
                            << words(s) << ", " << k << ", " << n << ", bit " << b;
                }
                ASSERT_EQ(any_n64_t::scale(s, k, n), layout.scale(s, k, n)) << words(s);
                ASSERT_EQ(any_n64_t::zero_point(s, k, n), layout.zero_point(s, k, n)) << words(s);
            }
    }
}

INSTANTIATE_TEST_SUITE_P(all, layouts, testing::ValuesIn(layout_list),
        [](const testing::TestParamInfo<layout_t> &info) { return std::string(info.param.name); });

TEST(LayoutList, IdsAndNamesAreUnique) {
    std::set<std::pair<uint32_t, uint32_t>> ids;
    std::set<std::string> names;
    for (const layout_t &l : layout_list) {
        EXPECT_TRUE(ids.insert({uint32_t(l.family), l.id}).second) << l.name;
        EXPECT_TRUE(names.insert(l.name).second) << l.name;
        EXPECT_GE(l.id, 1u);
        EXPECT_GE(l.version, 1u);
        EXPECT_GE(l.align, 16);
        EXPECT_EQ(find_layout(l.family, l.id)->name, l.name);
    }
    EXPECT_EQ(find_layout(target_family_t::cpu_x64, 0xffff), nullptr);
    EXPECT_EQ(preferred_layout(target_family_t::cpu_x64, 5, false), nullptr);
    EXPECT_STREQ(preferred_layout(target_family_t::cuda, 4, true)->name, "n64_i4");
    EXPECT_STREQ(preferred_layout(target_family_t::cuda, 4, false)->name, "n64_b4");
    EXPECT_STREQ(preferred_layout(target_family_t::cuda, 8, true)->name, "n64_b8");
}

TEST(LayoutList, LayoutsOfIntegersHoldNothingElse) {
    const dim_t dims[] = {64, 64};
    memory_desc_t md;
    const layout_t &integers = *find_layout(target_family_t::cuda, n64_i4_t::id);
    const layout_t &any = *find_layout(target_family_t::cuda, n64_b4_t::id);
    const quant_t mxfp4 = named_format("mxfp4")->quant, int4 = named_format("int4")->quant;
    EXPECT_EQ(init_packed_as(md, 2, dims, mxdnn_f4_e2m1, mxfp4, integers), mxdnn_invalid_arguments);
    EXPECT_EQ(init_packed_as(md, 2, dims, mxdnn_f4_e2m1, mxfp4, any), mxdnn_success);
    EXPECT_EQ(init_packed_as(md, 2, dims, mxdnn_s4, int4, integers), mxdnn_success);
    EXPECT_EQ(init_packed_as(md, 2, dims, mxdnn_s4, int4, any), mxdnn_success); // as it was once
}

// ---- Golden bytes ----

// The packed tensor of a golden line, made with a layout's map.
std::vector<uint8_t> pack(const golden::line_t &line, const memory_desc_t &md, const layout_t &layout) {
    const packed_shape_t s = shape_of(md);
    std::vector<uint8_t> data(size_t(md.packed.size));
    for (int64_t e = 0; e < batch_of(md); e++) {
        const packed_view_t view{&layout, s, data.data() + e * md.packed.stride};
        for (int64_t k = 0; k < s.K; k++)
            for (int64_t n = 0; n < s.N; n++) {
                view.set_code(k, n, golden::noise(1, e, k, n) >> (32 - s.bits));
                if (k % s.block == 0) {
                    view.set_scale(k, n, golden::noise(2, e, k / s.block, n));
                    if (s.zp_bytes) view.set_zero_point(k, n, golden::noise(3, e, k / s.block, n));
                }
            }
        view.set_global(1.5f + float(e));
    }
    EXPECT_EQ(line.num("stride"), md.packed.stride) << line.text;
    return data;
}

std::string whole_file(const golden::line_t &line, const packed_shape_t &s) {
    return std::string(line.has("layout")                       ? "packed/cuda_f"
                       : line.family() == target_family_t::cuda ? "packed/cuda_b"
                                                                : "packed/b")
           + std::to_string(s.bits) + "_s" + std::to_string(s.scale_bytes) + "x" + std::to_string(s.block)
           + "_z" + std::to_string(s.zp_bytes) + (s.global ? "_global" : "") + "_" + line.str("dims")
           + ".bin";
}

TEST(GoldenPacked, EveryMapMakesTheCommittedBytes) {
    int whole = 0;
    for (const golden::line_t &line : golden::read_lines("packed.txt")) {
        memory_desc_t md;
        ASSERT_EQ(golden::make_desc(line, md), mxdnn_success) << line.text << "\n" << last_error();
        ASSERT_EQ(md.packed.size, line.num("size")) << line.text;
        const std::vector<uint8_t> data = pack(line, md, *layout_of(md));
        for (const auto &sample : line.samples) {
            const std::vector<uint8_t> found(
                    data.begin() + sample.first, data.begin() + sample.first + int64_t(sample.second.size()));
            EXPECT_EQ(found, sample.second) << "at byte " << sample.first << " of " << line.text;
        }
        // Of CUDA only what differs in the order of codes.
        const bool integers =
                line.str("dt") == "s4" && line.str("scale") == "bf16" && line.num("block") == 32;
        if (line.str("dims") == "33x17"
                && (line.family() == target_family_t::cpu_x64 || line.str("scale") == "e8m0" || integers)) {
            const std::string file = whole_file(line, shape_of(md));
            const std::vector<uint8_t> expected = golden::read_file(file);
            ASSERT_EQ(data.size(), expected.size()) << file;
            for (size_t i = 0; i < data.size(); i++)
                ASSERT_EQ(data[i], expected[i]) << "byte " << i << " of " << file;
            whole++;
        }
        EXPECT_EQ(xxh64(data.data(), data.size(), 0), line.hex("xxh64")) << line.text;
        EXPECT_EQ(packed_checksum(md, data.data()), line.hex("checksum")) << line.text;
    }
    EXPECT_GT(whole, 0);
}

// A new format or layout without golden bytes fails here. make_golden.py adds them.
TEST(GoldenPacked, CoversEveryFormatAndLayout) {
    std::set<std::string> have, needed;
    std::set<std::string> layouts_seen;
    const target_family_t families[] = {target_family_t::cpu_x64, target_family_t::cuda};
    const auto key = [](target_family_t family, data_type_t elem, const quant_t &q) {
        return std::string(target_family_name(family)) + " " + data_type_name(elem) + " "
               + data_type_name(q.scale_dt) + " " + std::to_string(q.block) + " " + std::to_string(int(q.zp))
               + " " + data_type_name(q.zp_dt) + " " + std::to_string(int(q.global));
    };
    for (const char *dims : {"33x17", "291x37", "2880x33", "2x65x18"}) {
        have.clear();
        for (const golden::line_t &line : golden::read_lines("packed.txt")) {
            if (line.str("dims") != dims) continue;
            have.insert(key(line.family(), line.type("dt"), line.quant()));
            memory_desc_t md;
            if (golden::make_desc(line, md) == mxdnn_success) layouts_seen.insert(layout_of(md)->name);
        }
        for_each_format([&](const data_type_info_t &elem, const quant_t &q) {
            for (target_family_t family : families) needed.insert(key(family, elem.id, q));
        });
        for (const std::string &format : needed) EXPECT_TRUE(have.count(format)) << format << " at " << dims;
    }
    EXPECT_GT(needed.size(), 100u);
    for (const layout_t &l : layout_list) EXPECT_TRUE(layouts_seen.count(l.name)) << l.name;
}

// The checks above find these faults of a map, so they can fail.
struct crowded_t : n16_b4_t { // two rows in one place
    static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        return n16_b4_t::elem_bit(s, k % 8 == 7 ? k - 1 : k, n, b);
    }
};
struct beyond_t : n16_b8_t { // the last column of the last panel ends outside
    static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        return {n16_b8_t::elem_bit(s, k, n, b).byte + (n == s.N - 1 ? 4096 : 0), b};
    }
};
struct late_scale_t : n16_b4_t { // a block that takes its last row's scale from the next block
    static constexpr int64_t scale(const packed_shape_t &s, int64_t k, int64_t n) {
        return n16_b4_t::scale(s, k + 1 < s.K ? k + 1 : k, n);
    }
};
struct swapped_t : n16_b4_t { // still a bijection, in another order
    static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        return n16_b4_t::elem_bit(s, k, n ^ 1, b);
    }
};

TEST(PlantedFaults, BijectionCheckFindsThem) {
    const packed_shape_t b4 = shape(64, 32, 4, 32, 1, 0, false), b8 = shape(33, 7, 8, 32, 1, 0, false);
    std::vector<uint8_t> seen(1 << 17);
    EXPECT_FALSE(is_bijection(crowded_t(), b4, seen));
    seen.assign(seen.size(), 0);
    EXPECT_FALSE(is_bijection(beyond_t(), b8, seen));
    seen.assign(seen.size(), 0);
    EXPECT_FALSE(is_bijection(late_scale_t(), b4, seen));
    seen.assign(seen.size(), 0);
    EXPECT_TRUE(is_bijection(n16_b4_t(), b4, seen));
}

TEST(PlantedFaults, GoldenBytesFindAPermutation) {
    for (const golden::line_t &line : golden::read_lines("packed.txt")) {
        if (line.type("dt") != mxdnn_f4_e2m1 || line.str("dims") != "2x65x18"
                || line.family() != target_family_t::cpu_x64)
            continue;
        memory_desc_t md;
        ASSERT_EQ(golden::make_desc(line, md), mxdnn_success);
        const layout_t faulty = make_layout<swapped_t>(target_family_t::cpu_x64);
        const std::vector<uint8_t> data = pack(line, md, faulty);
        EXPECT_NE(xxh64(data.data(), data.size(), 0), line.hex("xxh64"));
    }
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Memory descriptors: legal and refused ones with their messages, sizes, strides, equality, text.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "common/memory_desc.hpp"

using namespace mxdnn::impl;

namespace {

constexpr dim_t RT = runtime_dim;
using dims_t = std::vector<dim_t>;

status_t strided(memory_desc_t &md, const dims_t &dims, data_type_t dt, const dims_t &strides) {
    return init_strided(md, int(dims.size()), dims.data(), dt, strides.data());
}
status_t tagged(memory_desc_t &md, const dims_t &dims, data_type_t dt, mxdnn_format_tag_t tag) {
    return init_with_tag(md, int(dims.size()), dims.data(), dt, tag);
}
status_t packed(memory_desc_t &md, const dims_t &dims, data_type_t dt, const quant_t &q,
        target_family_t family = target_family_t::cpu_x64) {
    return init_packed(md, int(dims.size()), dims.data(), dt, q, family);
}
dims_t strides_of(const memory_desc_t &md) { return dims_t(md.strides, md.strides + md.ndims); }

// A refusal does not change the descriptor, and its message contains `words`.
#define EXPECT_UNTOUCHED(status, call, words)                                                                \
    do {                                                                                                     \
        memory_desc_t md;                                                                                    \
        md.ndims = 77;                                                                                       \
        EXPECT_EQ(call, status);                                                                             \
        EXPECT_NE(std::string(last_error()).find(words), std::string::npos) << last_error();                 \
        EXPECT_EQ(md.ndims, 77);                                                                             \
    } while (0)

constexpr auto bad = mxdnn_invalid_arguments;

TEST(MemoryDesc, ShapesThatAreRefused) {
    EXPECT_UNTOUCHED(bad, init_strided(md, 0, dims_t{1}.data(), mxdnn_f32, nullptr), "ndims is 0");
    EXPECT_UNTOUCHED(bad, init_strided(md, -1, dims_t{1}.data(), mxdnn_f32, nullptr), "ndims is -1");
    EXPECT_UNTOUCHED(bad, tagged(md, dims_t(13, 1), mxdnn_f32, mxdnn_format_tag_any), "ndims is 13");
    EXPECT_UNTOUCHED(bad, init_strided(md, 2, nullptr, mxdnn_f32, nullptr), "dims is null");
    EXPECT_UNTOUCHED(bad, tagged(md, {4, -3}, mxdnn_f32, mxdnn_ab), "dims[1] is -3");
    EXPECT_UNTOUCHED(bad, tagged(md, {max_dim + 1}, mxdnn_f32, mxdnn_a), "dims[0] is 1099511627777");
    EXPECT_UNTOUCHED(bad, tagged(md, {INT64_MAX}, mxdnn_f32, mxdnn_a), "dims[0] is");
    EXPECT_UNTOUCHED(bad, tagged(md, {4}, mxdnn_data_type_undef, mxdnn_a), "data type 0");
    EXPECT_UNTOUCHED(bad, tagged(md, {4}, data_type_t(7), mxdnn_a), "data type 7");
    EXPECT_UNTOUCHED(bad, tagged(md, {4, 4}, mxdnn_f32, mxdnn_format_tag_undef), "format tag 0");
    EXPECT_UNTOUCHED(bad, tagged(md, {4, 4}, mxdnn_f32, mxdnn_format_tag_t(17)), "format tag 17");
    EXPECT_UNTOUCHED(bad, tagged(md, {4, 4}, mxdnn_f32, mxdnn_abc), "tag abc is for 3 dimensions");
    EXPECT_UNTOUCHED(bad, tagged(md, {4, 4, 4}, mxdnn_f32, mxdnn_ba), "tag ba is for 2 dimensions");
}

TEST(MemoryDesc, SizesThatOverflowAreRefused) {
    const dim_t big = max_dim;
    EXPECT_UNTOUCHED(bad, tagged(md, {big, big}, mxdnn_u8, mxdnn_ab), "2^50");
    EXPECT_UNTOUCHED(bad, tagged(md, {big, big}, mxdnn_u8, mxdnn_format_tag_any), "2^50");
    EXPECT_UNTOUCHED(bad, tagged(md, {0, big, big}, mxdnn_u8, mxdnn_abc), "2^50");
    EXPECT_UNTOUCHED(bad, tagged(md, {RT, big, big}, mxdnn_u8, mxdnn_abc), "2^50");
    EXPECT_UNTOUCHED(bad, tagged(md, dims_t(12, big), mxdnn_u8, mxdnn_format_tag_any), "2^50");
    EXPECT_UNTOUCHED(bad, tagged(md, {dim_t(1) << 30, dim_t(1) << 19}, mxdnn_f32, mxdnn_ab), "2^50");
    EXPECT_UNTOUCHED(bad, strided(md, {2, 2}, mxdnn_f32, {max_bytes + 1, 1}), "strides[0]");
    EXPECT_UNTOUCHED(bad, strided(md, {2, 2}, mxdnn_f32, {max_bytes, 1}), "2^50");
    EXPECT_UNTOUCHED(bad, strided(md, {big, 2}, mxdnn_f32, {max_bytes, 1}), "2^50");
    EXPECT_UNTOUCHED(bad, strided(md, {2, 1}, mxdnn_f32, {max_bytes / 2, 1}), "2^50");
    // Rows of one code begin at whole bytes, so there are half as many bytes as strides.
    for (const dim_t batch : {RT, dim_t(0), dim_t(1)})
        EXPECT_UNTOUCHED(bad, tagged(md, {batch, big, 1024, 1}, mxdnn_f4_e2m1, mxdnn_abcd), "2^50");
    memory_desc_t md;
    EXPECT_EQ(tagged(md, {big}, mxdnn_u8, mxdnn_a), mxdnn_success);
    EXPECT_EQ(size_of(md), big);
    EXPECT_EQ(tagged(md, {dim_t(1) << 25, dim_t(1) << 25}, mxdnn_u8, mxdnn_ab), mxdnn_success);
    EXPECT_EQ(size_of(md), max_bytes);
}

TEST(MemoryDesc, TagsGiveStrides) {
    const struct {
        mxdnn_format_tag_t tag;
        dims_t dims, strides;
    } rows[] = {{mxdnn_a, {7}, {1}}, {mxdnn_ab, {5, 7}, {7, 1}}, {mxdnn_ba, {5, 7}, {1, 5}},
            {mxdnn_abc, {3, 5, 7}, {35, 7, 1}}, {mxdnn_acb, {3, 5, 7}, {35, 1, 5}},
            {mxdnn_abcd, {2, 3, 5, 7}, {105, 35, 7, 1}}, {mxdnn_abdc, {2, 3, 5, 7}, {105, 35, 1, 5}}};
    for (const auto &row : rows) {
        memory_desc_t md;
        ASSERT_EQ(tagged(md, row.dims, mxdnn_f32, row.tag), mxdnn_success);
        EXPECT_EQ(strides_of(md), row.strides) << row.tag;
        EXPECT_TRUE(is_strided(md));
        EXPECT_EQ(size_of(md), row.strides[0] == 1 ? 4 * md.dims[0] * (md.ndims > 1 ? md.dims[1] : 1)
                                                   : 4 * row.strides[0] * row.dims[0]);
    }
    memory_desc_t md;
    ASSERT_EQ(tagged(md, {RT, 7}, mxdnn_f32, mxdnn_format_tag_any), mxdnn_success);
    EXPECT_TRUE(is_any(md));
    EXPECT_EQ(size_of(md), 0);
}

TEST(MemoryDesc, RowsOfSubByteTypesStartOnAByte) {
    memory_desc_t md;
    for (data_type_t dt : {mxdnn_f4_e2m1, mxdnn_s4, mxdnn_u4}) {
        ASSERT_EQ(tagged(md, {17, 33}, dt, mxdnn_ab), mxdnn_success);
        EXPECT_EQ(strides_of(md), (dims_t{34, 1}));
        EXPECT_EQ(size_of(md), 17 * 17);
        EXPECT_EQ(plain_size(2, md.dims, dt, false), 17 * 17);
        ASSERT_EQ(tagged(md, {17, 33}, dt, mxdnn_ba), mxdnn_success);
        EXPECT_EQ(strides_of(md), (dims_t{1, 18}));
        EXPECT_EQ(size_of(md), 33 * 9);
        ASSERT_EQ(tagged(md, {3, 5, 7}, dt, mxdnn_acb), mxdnn_success);
        EXPECT_EQ(strides_of(md), (dims_t{42, 1, 6}));
        ASSERT_EQ(tagged(md, {5}, dt, mxdnn_a), mxdnn_success);
        EXPECT_EQ(size_of(md), 3);
        EXPECT_EQ(strided(md, {5, 8}, dt, {48, 1}), mxdnn_success);
        EXPECT_EQ(strided(md, {5, 8}, dt, {0, 1}), mxdnn_success); // one row, five times
        EXPECT_EQ(strided(md, {5, 1}, dt, {2, 1}), mxdnn_success);
        EXPECT_EQ(strided(md, {5, 1}, dt, {1, 1}), mxdnn_success); // packed along the first dimension
        EXPECT_UNTOUCHED(bad, strided(md, {5, 8}, dt, {9, 1}), "strides[0] is 9");
        EXPECT_UNTOUCHED(bad, strided(md, {5, 8}, dt, {16, 2}), "smallest stride");
        EXPECT_UNTOUCHED(bad, strided(md, {2, 2}, dt, {1, 1}), "start on a byte");
        EXPECT_UNTOUCHED(bad, strided(md, {RT, 8}, dt, {9, 1}), "strides[0] is 9");
    }
    for (data_type_t dt : {mxdnn_f6_e2m3, mxdnn_f6_e3m2}) {
        ASSERT_EQ(tagged(md, {17, 33}, dt, mxdnn_ab), mxdnn_success);
        EXPECT_EQ(strides_of(md), (dims_t{33, 1}));
        EXPECT_EQ(size_of(md), 17 * 33);
        EXPECT_EQ(plain_size(2, md.dims, dt, true), 17 * 25); // 33 codes in 24 6/8 bytes
        EXPECT_EQ(size_of(md, mxdnn_element_packing_dense), 17 * 25);
        ASSERT_EQ(tagged(md, {17, 33}, dt, mxdnn_ba), mxdnn_success);
        EXPECT_EQ(size_of(md, mxdnn_element_packing_dense), 33 * 13); // 17 codes in 12 6/8 bytes
        ASSERT_EQ(tagged(md, {0, 33}, dt, mxdnn_ab), mxdnn_success);
        EXPECT_EQ(size_of(md, mxdnn_element_packing_dense), 0);
        // Rows of 40 codes are 30 bytes apart; the last one ends where its 33 codes do.
        ASSERT_EQ(strided(md, {17, 33}, dt, {40, 1}), mxdnn_success);
        EXPECT_EQ(size_of(md, mxdnn_element_packing_dense), 16 * 30 + 25);
        ASSERT_EQ(strided(md, {2, 3, 5}, dt, {24, 8, 1}), mxdnn_success);
        EXPECT_EQ(size_of(md, mxdnn_element_packing_dense), 18 + 2 * 6 + 4);
        EXPECT_EQ(strided(md, {5, 8}, dt, {17, 2}), mxdnn_success);
    }
}

TEST(MemoryDesc, StridesOfTheCaller) {
    memory_desc_t md;
    ASSERT_EQ(strided(md, {16, 40}, mxdnn_bf16, {48, 1}), mxdnn_success);
    EXPECT_EQ(size_of(md), (15 * 48 + 40) * 2);
    EXPECT_EQ(strided(md, {16, 40}, mxdnn_bf16, {1, 16}), mxdnn_success);
    EXPECT_EQ(strided(md, {16, 40}, mxdnn_bf16, {0, 1}), mxdnn_success);
    EXPECT_EQ(size_of(md), 80);
    EXPECT_EQ(strided(md, {1, 40}, mxdnn_bf16, {3, 1}), mxdnn_success); // a step that is never taken
    EXPECT_EQ(strided(md, {16, 0}, mxdnn_bf16, {1, 1}), mxdnn_success); // nothing there to overlap
    EXPECT_EQ(size_of(md), 0);
    EXPECT_EQ(strided(md, {RT, 40}, mxdnn_bf16, {RT, 1}), mxdnn_success);
    EXPECT_EQ(size_of(md), RT);
    EXPECT_TRUE(has_runtime_dims(md));
    EXPECT_EQ(strided(md, {4, 40}, mxdnn_bf16, {RT, 1}), mxdnn_success);
    EXPECT_TRUE(has_runtime_dims(md));
    EXPECT_UNTOUCHED(bad, strided(md, {16, 40}, mxdnn_bf16, {39, 1}), "strides[0] is 39");
    EXPECT_UNTOUCHED(bad, strided(md, {16, 40}, mxdnn_bf16, {39, 1}), "at least 40");
    EXPECT_UNTOUCHED(bad, strided(md, {16, 40}, mxdnn_bf16, {1, 15}), "strides[1] is 15");
    EXPECT_UNTOUCHED(bad, strided(md, {2, 2}, mxdnn_bf16, {1, 1}), "overlap");
    EXPECT_UNTOUCHED(bad, strided(md, {16, 40}, mxdnn_bf16, {-40, 1}), "strides[0] is -40");
}

TEST(MemoryDesc, ZeroDimsAreEmptyTensors) {
    memory_desc_t md;
    ASSERT_EQ(init_strided(md, 2, dims_t{0, 7}.data(), mxdnn_f32, nullptr), mxdnn_success);
    EXPECT_EQ(size_of(md), 0);
    EXPECT_EQ(strides_of(md), (dims_t{7, 1}));
    ASSERT_EQ(init_strided(md, 2, dims_t{7, 0}.data(), mxdnn_f32, nullptr), mxdnn_success);
    EXPECT_EQ(size_of(md), 0);
    EXPECT_EQ(strides_of(md), (dims_t{1, 1}));
    ASSERT_EQ(packed(md, {0, 33, 17}, mxdnn_f4_e2m1, mx_quant), mxdnn_success);
    EXPECT_EQ(size_of(md), 0);
    EXPECT_GT(md.packed.stride, 0);
    ASSERT_EQ(packed(md, {0, 17}, mxdnn_f4_e2m1, mx_quant), mxdnn_success);
    EXPECT_EQ(size_of(md), 0);
}

TEST(MemoryDesc, RuntimeDims) {
    memory_desc_t md;
    ASSERT_EQ(tagged(md, {RT, 7}, mxdnn_f32, mxdnn_ab), mxdnn_success);
    EXPECT_EQ(strides_of(md), (dims_t{7, 1}));
    EXPECT_TRUE(has_runtime_dims(md));
    EXPECT_EQ(size_of(md), RT);
    EXPECT_EQ(plain_size(2, md.dims, mxdnn_f32, false), RT);
    ASSERT_EQ(tagged(md, {7, RT}, mxdnn_f32, mxdnn_ab), mxdnn_success);
    EXPECT_EQ(strides_of(md), (dims_t{RT, 1}));
    ASSERT_EQ(tagged(md, {2, RT, 5, 7}, mxdnn_f32, mxdnn_abcd), mxdnn_success);
    EXPECT_EQ(strides_of(md), (dims_t{RT, 35, 7, 1}));
    EXPECT_EQ(batch_of(md), RT);
    ASSERT_EQ(tagged(md, {2, 3, 5, 7}, mxdnn_f32, mxdnn_abcd), mxdnn_success);
    EXPECT_EQ(batch_of(md), 6);
    EXPECT_FALSE(has_runtime_dims(md));
}

TEST(MemoryDesc, Grouped) {
    const auto grouped = [](memory_desc_t &md, const dims_t &dims, int variable, dim_t groups,
                                 data_type_t offsets = mxdnn_s32) {
        return init_grouped(md, int(dims.size()), dims.data(), mxdnn_bf16, variable, groups, offsets);
    };
    memory_desc_t md;
    ASSERT_EQ(grouped(md, {100, 33}, 0, 8), mxdnn_success);
    EXPECT_EQ(md.kind, mxdnn_format_kind_grouped);
    EXPECT_EQ(size_of(md), 6600);
    EXPECT_EQ(to_string(md), "bf16:grouped:8:s32:100x33");
    ASSERT_EQ(grouped(md, {RT, 33}, 0, 8), mxdnn_success);
    EXPECT_EQ(size_of(md), RT);
    EXPECT_UNTOUCHED(mxdnn_unimplemented, grouped(md, {100, 33}, 1, 8), "variable_dim 1");
    EXPECT_UNTOUCHED(bad, grouped(md, {100, 33}, 2, 8), "variable_dim is 2");
    EXPECT_UNTOUCHED(bad, grouped(md, {100, 33}, -1, 8), "variable_dim is -1");
    EXPECT_UNTOUCHED(bad, grouped(md, {100, 33}, 0, 0), "group_count is 0");
    EXPECT_UNTOUCHED(bad, grouped(md, {100, 33}, 0, dim_t(1) << 31), "group_count is 2147483648");
    EXPECT_UNTOUCHED(bad, grouped(md, {100, 33}, 0, 8, mxdnn_f32), "offsets have type f32");
    EXPECT_UNTOUCHED(bad, grouped(md, {2, 100, 33}, 0, 8), "ndims is 3");
    EXPECT_UNTOUCHED(bad, grouped(md, {dim_t(1) << 31, 33}, 0, 8), "dims[0] is 2147483648");
    EXPECT_UNTOUCHED(bad, grouped(md, {dim_t(1) << 20, dim_t(1) << 30}, 0, 8), "2^50");
}

TEST(MemoryDesc, PackedSizesComeFromTheLayout) {
    for (const named_format_t &format : named_formats)
        for (dims_t dims : {dims_t{33, 17}, dims_t{2880, 5760}, dims_t{3, 33, 17}, dims_t{2, 3, 291, 37}}) {
            memory_desc_t md;
            ASSERT_EQ(packed(md, dims, format.elem, format.quant), mxdnn_success) << format.name;
            ASSERT_TRUE(is_packed(md));
            const layout_t *layout = layout_of(md);
            ASSERT_NE(layout, nullptr);
            EXPECT_EQ(layout->bits, data_type_info(format.elem)->bits);
            const packed_shape_t s = shape_of(md);
            EXPECT_EQ(s.K, dims[dims.size() - 2]);
            EXPECT_EQ(s.N, dims[dims.size() - 1]);
            EXPECT_EQ(md.packed.stride, layout->matrix_bytes(s));
            EXPECT_EQ(md.packed.stride % md.packed.align, 0);
            EXPECT_EQ(size_of(md), batch_of(md) * md.packed.stride);
        }
}

TEST(MemoryDesc, PackedRefusals) {
    quant_t block16 = mx_quant;
    block16.block = 16;
    EXPECT_UNTOUCHED(bad, packed(md, {33}, mxdnn_f4_e2m1, mx_quant), "ndims is 1");
    EXPECT_UNTOUCHED(bad, packed(md, {RT, 33}, mxdnn_f4_e2m1, mx_quant), "dims[0] is a runtime value");
    EXPECT_UNTOUCHED(bad, packed(md, {33, 17}, mxdnn_f4_e2m1, block16), "blocks of 32");
    EXPECT_UNTOUCHED(bad, packed(md, {33, 17}, mxdnn_f32, mx_quant), "element type");
    EXPECT_UNTOUCHED(bad, packed(md, {max_dim, max_dim}, mxdnn_f4_e2m1, mx_quant), "2^50");
    EXPECT_UNTOUCHED(bad, packed(md, {dim_t(1) << 25, 1, dim_t(1) << 25}, mxdnn_f8_e4m3, mx_quant), "2^50");
    EXPECT_UNTOUCHED(mxdnn_unimplemented,
            packed(md, {33, 17}, mxdnn_f4_e2m1, mx_quant, target_family_t::none), "no layout");
}

// Dims at the limit must not overflow in the arithmetic of a layout.
TEST(MemoryDesc, PackedSizesNeverWrap) {
    for (const named_format_t &format : named_formats)
        for (int log_k = 0; log_k <= 40; log_k++)
            for (int log_n = 0; log_n <= 40; log_n++) {
                memory_desc_t md;
                const dim_t K = dim_t(1) << log_k, N = dim_t(1) << log_n;
                const status_t status = packed(md, {K, N}, format.elem, format.quant);
                if (log_k + log_n > 51) {
                    ASSERT_EQ(status, bad);
                }
                if (log_k + log_n < 40) {
                    ASSERT_EQ(status, mxdnn_success) << log_k << " " << log_n;
                }
                if (status != mxdnn_success) continue;
                ASSERT_LE(size_of(md), max_bytes);
                ASSERT_GE(size_of(md), checked_mul(K, N) / 8 * layout_of(md)->bits);
            }
}

TEST(MemoryDesc, Equality) {
    std::vector<memory_desc_t> all(1);
    const auto add = [&](auto init, auto... args) {
        memory_desc_t md;
        ASSERT_EQ(init(md, args...), mxdnn_success) << last_error();
        all.push_back(md);
    };
    add(tagged, dims_t{16, 40}, mxdnn_bf16, mxdnn_ab);
    add(tagged, dims_t{16, 40}, mxdnn_bf16, mxdnn_ba);
    add(tagged, dims_t{16, 40}, mxdnn_f16, mxdnn_ab);
    add(tagged, dims_t{16, 41}, mxdnn_bf16, mxdnn_ab);
    add(tagged, dims_t{1, 16, 40}, mxdnn_bf16, mxdnn_abc);
    add(tagged, dims_t{16, 40}, mxdnn_bf16, mxdnn_format_tag_any);
    add(tagged, dims_t{RT, 40}, mxdnn_bf16, mxdnn_ab);
    add(strided, dims_t{16, 40}, mxdnn_bf16, dims_t{48, 1});
    for (dim_t groups : {4, 8}) {
        memory_desc_t md;
        ASSERT_EQ(
                init_grouped(md, 2, dims_t{16, 40}.data(), mxdnn_bf16, 0, groups, mxdnn_s32), mxdnn_success);
        all.push_back(md);
    }
    for (const named_format_t &format : named_formats)
        for (global_scale_kind_t global : {global_scale_kind_t::none, global_scale_kind_t::one}) {
            quant_t q = format.quant;
            q.global = global;
            memory_desc_t md;
            if (!check_quant(format.elem, q))
                add(packed, dims_t{16, 40}, format.elem, q, target_family_t::cpu_x64);
        }
    std::set<std::string> words;
    for (size_t i = 0; i < all.size(); i++) {
        for (size_t j = 0; j < all.size(); j++) EXPECT_EQ(equal(all[i], all[j]), i == j) << i << " " << j;
        EXPECT_TRUE(words.insert(to_string(all[i])).second) << to_string(all[i]);
        memory_desc_t noted = all[i];
        noted.annotation.original_dt = mxdnn_f32;
        noted.annotation.recipe = "a note";
        EXPECT_TRUE(equal(all[i], noted));
    }
}

TEST(MemoryDesc, Words) {
    const auto words = [](auto init, auto... args) {
        memory_desc_t md;
        EXPECT_EQ(init(md, args...), mxdnn_success) << last_error();
        return to_string(md);
    };
    EXPECT_EQ(to_string(memory_desc_t()), "undef");
    EXPECT_EQ(words(tagged, dims_t{16, 2880}, mxdnn_bf16, mxdnn_ab), "bf16:blocked:ab:16x2880");
    EXPECT_EQ(words(tagged, dims_t{16, 2880}, mxdnn_bf16, mxdnn_ba), "bf16:blocked:ba:16x2880");
    EXPECT_EQ(words(tagged, dims_t{RT, 2880}, mxdnn_f32, mxdnn_ab), "f32:blocked:ab:*x2880");
    EXPECT_EQ(words(tagged, dims_t{2, 3, 5, 7}, mxdnn_f16, mxdnn_abdc), "f16:blocked:abdc:2x3x5x7");
    EXPECT_EQ(words(tagged, dims_t{5, 7}, mxdnn_f4_e2m1, mxdnn_ab), "f4_e2m1:blocked:ab:5x7");
    EXPECT_EQ(words(tagged, dims_t{5, 7}, mxdnn_f4_e2m1, mxdnn_format_tag_any), "f4_e2m1:any:5x7");
    EXPECT_EQ(words(strided, dims_t{16, 40}, mxdnn_bf16, dims_t{48, 1}), "bf16:blocked:ab:48x1:16x40");
    EXPECT_EQ(words(strided, dims_t{16, 40}, mxdnn_bf16, dims_t{1, 20}), "bf16:blocked:ba:1x20:16x40");
    EXPECT_EQ(words(strided, dims_t{3, 5, 7}, mxdnn_s8, dims_t{1, 3, 15}), "s8:blocked:cba:3x5x7");
    EXPECT_EQ(words(packed, dims_t{2880, 5760}, mxdnn_f4_e2m1, mx_quant, target_family_t::cpu_x64),
            "f4_e2m1:packed:cpu:x64:n16_b4v1:e8m0:32x1:2880x5760");
    quant_t q = nvfp4_quant;
    q.global = global_scale_kind_t::per_expert;
    EXPECT_EQ(words(packed, dims_t{32, 2880, 5760}, mxdnn_f4_e2m1, q, target_family_t::cpu_x64),
            "f4_e2m1:packed:cpu:x64:n16_b4v1:f8_e4m3:16x1:global:per_expert:32x2880x5760");
    q = int4_quant;
    q.block = 128;
    q.zp = zero_point_kind_t::u8;
    q.zp_dt = mxdnn_u8;
    EXPECT_EQ(words(packed, dims_t{64, 64}, mxdnn_u4, q, target_family_t::cpu_x64),
            "u4:packed:cpu:x64:n16_b4v1:bf16:128x1:zp:u8:64x64");
    q.zp = zero_point_kind_t::float_zero;
    q.zp_dt = mxdnn_f16;
    EXPECT_EQ(words(packed, dims_t{64, 64}, mxdnn_u4, q, target_family_t::cpu_x64),
            "u4:packed:cpu:x64:n16_b4v1:bf16:128x1:float_zero:f16:64x64");
}

// Random shapes: natural strides are accepted as a caller's strides, give the same descriptor, agree with
// plain_size, and no two elements share bits.
TEST(MemoryDesc, RandomShapesAgreeWithThemselves) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const mxdnn_format_tag_t tags[] = {
            mxdnn_a, mxdnn_ab, mxdnn_ba, mxdnn_abc, mxdnn_acb, mxdnn_abcd, mxdnn_abdc};
    const int ndims_of_tag[] = {1, 2, 2, 3, 3, 4, 4};
    for (int round = 0; round < 3000; round++) {
        const int t = int(rng() % 7), nd = ndims_of_tag[t];
        const auto &types = data_type_table_t<all_types>::rows;
        const data_type_info_t &type = types[rng() % (sizeof(types) / sizeof(types[0]))];
        dims_t dims;
        for (int d = 0; d < nd; d++) dims.push_back(dim_t(rng() % 6));
        memory_desc_t md, again;
        ASSERT_EQ(tagged(md, dims, type.id, tags[t]), mxdnn_success) << last_error();
        ASSERT_EQ(strided(again, dims, type.id, strides_of(md)), mxdnn_success)
                << to_string(md) << ": " << last_error();
        ASSERT_TRUE(equal(md, again));
        if (t == 0 || t == 1 || t == 3 || t == 5) {
            ASSERT_EQ(size_of(md), plain_size(nd, md.dims, type.id, false)) << to_string(md);
        }
        const int bits = storage_bits(type.bits, mxdnn_element_packing_bytes);
        std::set<int64_t> seen;
        int64_t elements = 1;
        for (dim_t d : dims) elements *= d;
        for (int64_t i = 0; i < elements; i++) {
            int64_t rest = i, at = 0;
            for (int d = nd - 1; d >= 0; d--) {
                at += rest % dims[size_t(d)] * md.strides[d];
                rest /= dims[size_t(d)];
            }
            ASSERT_TRUE(seen.insert(at).second) << to_string(md);
            ASSERT_LE((at + 1) * bits, size_of(md) * 8) << to_string(md);
        }
    }
}

} // namespace

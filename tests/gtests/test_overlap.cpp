// SPDX-License-Identifier: Apache-2.0
// Whether tensors share bytes, against sets of those bytes.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "common/overlap.hpp"

using namespace mxdnn::impl;

namespace {

memory_desc_t strided(std::vector<dim_t> dims, data_type_t dt, std::vector<dim_t> strides) {
    memory_desc_t md;
    EXPECT_EQ(init_strided(md, int(dims.size()), dims.data(), dt, strides.data()), mxdnn_success);
    return md;
}

std::set<int64_t> bytes_of(const memory_desc_t &md, int64_t begin) {
    const int64_t element = data_type_info(md.dt)->bits / 8;
    std::set<int64_t> bytes;
    for (dim_t i = 0; i < md.dims[0]; i++)
        for (dim_t j = 0; j < md.dims[1]; j++)
            for (int64_t b = 0; b < element; b++)
                bytes.insert(begin + (i * md.strides[0] + j * md.strides[1]) * element + b);
    return bytes;
}

bool overlap_at(const memory_desc_t &x, int64_t x_begin, const memory_desc_t &y, int64_t y_begin) {
    static const char memory[4096] = {};
    const tensor_bytes_t a{&x, memory + x_begin, mxdnn_element_packing_bytes};
    const tensor_bytes_t b{&y, memory + y_begin, mxdnn_element_packing_bytes};
    EXPECT_EQ(overlap(a, b), overlap(b, a));
    return overlap(a, b);
}

} // namespace

TEST(overlap, columns_side_by_side_share_nothing) {
    const memory_desc_t left = strided({5, 16}, mxdnn_bf16, {48, 1}),
                        right = strided({5, 32}, mxdnn_bf16, {48, 1});
    EXPECT_FALSE(overlap_at(left, 0, right, 32));
    EXPECT_TRUE(overlap_at(left, 0, right, 30));
    EXPECT_FALSE(overlap_at(right, 0, left, 64));
    EXPECT_TRUE(overlap_at(right, 0, left, 62));
    // Of two types, and of a row less.
    const memory_desc_t f32 = strided({4, 8}, mxdnn_f32, {24, 1});
    EXPECT_FALSE(overlap_at(left, 0, f32, 32));
    EXPECT_TRUE(overlap_at(left, 0, f32, 72));
}

TEST(overlap, what_is_found_apart_is_apart) {
    std::mt19937 rng(7);
    const auto below = [&](int n) { return int(rng() % unsigned(n)); };
    int apart = 0, missed = 0;
    for (int run = 0; run < 20000; run++) {
        memory_desc_t md[2];
        int64_t begin[2];
        const int pitch = 8 * (1 + below(4));
        for (int i = 0; i < 2; i++) {
            const data_type_t dt = below(2) ? mxdnn_f32 : mxdnn_u8;
            const dim_t element = dt == mxdnn_f32 ? 4 : 1, rows = 1 + below(5), columns = 1 + below(8);
            const dim_t stride = std::max<dim_t>(columns, below(4) ? pitch / element : 1 + below(16));
            const bool turned = below(4) == 0;
            md[i] = turned ? strided({columns, rows}, dt, {1, stride})
                           : strided({rows, columns}, dt, {stride, 1});
            begin[i] = below(64);
        }
        const auto x = bytes_of(md[0], begin[0]), y = bytes_of(md[1], begin[1]);
        bool share = false;
        for (int64_t b : x) share = share || y.count(b);
        const bool found = overlap_at(md[0], begin[0], md[1], begin[1]);
        EXPECT_TRUE(found || !share) << "run " << run;
        apart += !share;
        missed += !share && found;
    }
    EXPECT_GT(apart, 5000);
    EXPECT_LT(missed * 10, apart); // those whose rows are of different lengths
}

// All rows of a broadcast row have the same address.
TEST(overlap, broadcast_rows_lie_in_one_place) {
    const memory_desc_t row = strided({5, 8}, mxdnn_f32, {0, 1}), all = strided({5, 8}, mxdnn_f32, {16, 1});
    EXPECT_TRUE(overlap_at(row, 0, all, 0));
    EXPECT_TRUE(overlap_at(row, 28, all, 0));
    EXPECT_FALSE(overlap_at(row, 32, all, 0));
    EXPECT_FALSE(overlap_at(row, 96, all, 0));
    EXPECT_TRUE(overlap_at(row, 0, row, 0));
}

TEST(overlap, nothing_overlaps_an_empty_tensor) {
    const memory_desc_t all = strided({4, 8}, mxdnn_f32, {8, 1}), none = strided({0, 8}, mxdnn_f32, {8, 1});
    EXPECT_FALSE(overlap_at(all, 0, none, 16));
}

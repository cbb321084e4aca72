// SPDX-License-Identifier: Apache-2.0
// The rows of each expert from every grouping, and the answers to hostile index tensors.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace {

constexpr mxdnn_row_grouping_t all_groupings[] = {mxdnn_row_grouping_ends, mxdnn_row_grouping_starts,
        mxdnn_row_grouping_padded, mxdnn_row_grouping_row_ids};

row_groups_t make(
        mxdnn_row_grouping_t grouping, const std::vector<int32_t> &bounds, int64_t rows, int64_t experts) {
    row_groups_t g;
    g.grouping = grouping;
    g.bounds = bounds.data();
    g.groups = int64_t(bounds.size()) - (grouping == mxdnn_row_grouping_starts);
    g.rows = rows;
    g.ids = g.experts = experts;
    return g;
}

std::string text(const row_groups_t &g) {
    std::string s;
    for (int64_t i = 0; i < g.groups; i++) {
        const row_group_t r = g.group(i);
        s += (i ? " " : "") + std::to_string(r.first) + "+" + std::to_string(r.count) + ":"
             + std::to_string(r.expert);
    }
    return s;
}

TEST(row_groups, every_grouping) {
    const std::vector<int32_t> ends = {3, 3, 7}, starts = {1, 3, 3, 6}, counts = {2, 0, 3},
                               ids = {2, -1, 0, 2};
    EXPECT_EQ(text(make(mxdnn_row_grouping_ends, ends, 9, 3)), "0+3:0 3+0:1 3+4:2");
    EXPECT_EQ(text(make(mxdnn_row_grouping_starts, starts, 9, 3)), "1+2:0 3+0:1 3+3:2");
    EXPECT_EQ(text(make(mxdnn_row_grouping_padded, counts, 9, 3)), "0+2:0 3+0:1 6+3:2");
    EXPECT_EQ(text(make(mxdnn_row_grouping_row_ids, ids, 4, 3)), "0+1:2 1+1:-1 2+1:0 3+1:2");
    for (const auto &g : {make(mxdnn_row_grouping_ends, ends, 9, 3),
                 make(mxdnn_row_grouping_starts, starts, 9, 3), make(mxdnn_row_grouping_padded, counts, 9, 3),
                 make(mxdnn_row_grouping_row_ids, ids, 4, 3)})
        EXPECT_EQ(g.check(), mxdnn_success) << last_error();
}

TEST(row_groups, ids_map_and_range) {
    const std::vector<int32_t> ends = {1, 2, 4}, ids = {5, -1, 2}, map = {-1, 1, 0, -1, -1, 2};
    row_groups_t g = make(mxdnn_row_grouping_ends, ends, 4, 3);
    g.group_ids = ids.data();
    g.ids = 6;
    g.map = map.data();
    EXPECT_EQ(text(g), "0+1:2 1+1:-1 2+2:0");
    EXPECT_EQ(g.check(), mxdnn_success);
    g.map = nullptr;
    g.first_id = 4; // the weights hold 4, 5 and 6 of 7
    g.ids = 7;
    EXPECT_EQ(text(g), "0+1:1 1+1:-1 2+2:-1");
    EXPECT_EQ(g.check(), mxdnn_success);
}

TEST(row_groups, group_of_a_row) {
    const std::vector<int32_t> ends = {0, 3, 3, 3, 7, 7}, starts = {1, 1, 3, 3, 6}, counts = {2, 0, 3},
                               ids = {2, -1, 0, 2}, none;
    for (const auto &g : {make(mxdnn_row_grouping_ends, ends, 9, 6),
                 make(mxdnn_row_grouping_starts, starts, 9, 4), make(mxdnn_row_grouping_padded, counts, 9, 3),
                 make(mxdnn_row_grouping_row_ids, ids, 4, 3), make(mxdnn_row_grouping_ends, none, 4, 3),
                 make(mxdnn_row_grouping_padded, counts, 0, 3)})
        for (int64_t row = 0; row < 9; row++) {
            if (g.grouping == mxdnn_row_grouping_row_ids && row >= g.rows) continue;
            int64_t want = -1;
            for (int64_t i = 0; i < g.groups; i++) {
                const row_group_t r = g.group(i);
                if (row >= r.first && row < r.first + r.count) want = i;
            }
            EXPECT_EQ(g.group_of(row), want) << text(g) << ", row " << row;
        }
}

TEST(row_groups, tiles_of_scales) {
    const std::vector<int32_t> ends = {1, 1, 130, 386}, counts = {1, 5, 0};
    const row_groups_t g = make(mxdnn_row_grouping_ends, ends, 400, 4);
    const int64_t before[] = {0, 128, 128, 384, 640};
    for (int64_t i = 0; i <= 4; i++) EXPECT_EQ(g.swizzled_rows_before(i), before[i]);
    const row_groups_t p = make(mxdnn_row_grouping_padded, counts, 390, 3);
    for (int64_t i = 0; i <= 3; i++) EXPECT_EQ(p.swizzled_rows_before(i), 256 * i) << "groups of 130 rows";
}

struct hostile_t {
    mxdnn_row_grouping_t grouping;
    std::vector<int32_t> bounds;
    const char *says;
};

TEST(row_groups, hostile_bounds) {
    const hostile_t all[] = {
            {mxdnn_row_grouping_ends, {3, 2, 7}, "GROUP_OFFSETS[1] is 2, but the one before is 3"},
            {mxdnn_row_grouping_ends, {3, 3, 10}, "GROUP_OFFSETS[2] is 10; there are rows 0 to 9"},
            {mxdnn_row_grouping_ends, {-1, 3, 9}, "GROUP_OFFSETS[0] is -1"},
            {mxdnn_row_grouping_ends, {0, INT32_MIN, 9}, "GROUP_OFFSETS[1] is -2147483648"},
            {mxdnn_row_grouping_starts, {0, 3, 2, 9}, "GROUP_OFFSETS[2] is 2"},
            {mxdnn_row_grouping_starts, {0, 3, 4, INT32_MAX}, "GROUP_OFFSETS[3] is 2147483647"},
            {mxdnn_row_grouping_starts, {-5, 3, 4, 9}, "GROUP_OFFSETS[0] is -5"},
            {mxdnn_row_grouping_padded, {3, 4, 0}, "GROUP_COUNTS[1] is 4; a group has 0 to 3 rows"},
            {mxdnn_row_grouping_padded, {3, -1, 0}, "GROUP_COUNTS[1] is -1"},
            {mxdnn_row_grouping_row_ids, {0, 3, 1}, "ROW_EXPERT_IDS[1] is 3; ids are -1 (skip) and 0 to 2"},
            {mxdnn_row_grouping_row_ids, {0, 1, -2}, "ROW_EXPERT_IDS[2] is -2"},
    };
    for (const hostile_t &h : all) {
        const row_groups_t g = make(h.grouping, h.bounds, 9, 3);
        EXPECT_EQ(g.check(), mxdnn_invalid_arguments);
        EXPECT_NE(std::string(last_error()).find(h.says), std::string::npos) << last_error();
    }
    const std::vector<int32_t> ends = {3, 3, 7}, ids = {0, 3, 1}, map = {0, 1, 3};
    row_groups_t g = make(mxdnn_row_grouping_ends, ends, 9, 3);
    g.group_ids = ids.data();
    EXPECT_EQ(g.check(), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("GROUP_EXPERT_IDS[1] is 3"), std::string::npos) << last_error();
    g.group_ids = nullptr;
    g.map = map.data();
    EXPECT_EQ(g.check(), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("EXPERT_MAP[2] is 3"), std::string::npos) << last_error();
}

// With any tensors, a group is within the rows and its expert within the weights. check() refuses exactly the
// values that would have to be clamped.
TEST(row_groups, anything_stays_within) {
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    std::mt19937 rng(seed);
    const auto any = [&] {
        const int32_t odd[] = {INT32_MIN, INT32_MAX, -1, 0, 1};
        return rng() % 3 ? int32_t(rng() % 13) : rng() % 2 ? odd[rng() % 5] : int32_t(rng());
    };
    int refused = 0, accepted = 0;
    for (int round = 0; round < 20000; round++) {
        const auto grouping = all_groupings[rng() % 4];
        std::vector<int32_t> bounds(rng() % 5 + 1), ids, map;
        for (int32_t &b : bounds) b = any();
        const int64_t n = int64_t(bounds.size()), experts = rng() % 4;
        const int64_t rows = grouping == mxdnn_row_grouping_padded    ? n * int64_t(rng() % 5)
                             : grouping == mxdnn_row_grouping_row_ids ? n
                                                                      : int64_t(rng() % 12);
        row_groups_t g = make(grouping, bounds, rows, experts);
        if (rng() % 2 && grouping != mxdnn_row_grouping_row_ids) {
            ids.resize(size_t(n));
            for (int32_t &i : ids) i = any();
            g.group_ids = ids.data();
        }
        if (rng() % 2) {
            map.resize(rng() % 6);
            for (int32_t &i : map) i = any();
            g.map = map.data();
            g.ids = int64_t(map.size());
        }
        for (int64_t i = 0; i < g.groups; i++) {
            const row_group_t r = g.group(i);
            ASSERT_GE(r.first, 0);
            ASSERT_GE(r.count, 0);
            ASSERT_LE(r.first + r.count, rows);
            ASSERT_GE(r.expert, -1);
            ASSERT_LT(r.expert, experts);
        }
        const bool ok = g.check() == mxdnn_success;
        (ok ? accepted : refused)++;
        if (!ok || grouping == mxdnn_row_grouping_row_ids) continue;
        for (int64_t i = 0; i + 1 < g.groups; i++)
            ASSERT_LE(g.group(i).first + g.group(i).count, g.group(i + 1).first) << "groups do not overlap";
    }
    EXPECT_GT(accepted, 100);
    EXPECT_GT(refused, 100);
}

} // namespace
} // namespace impl
} // namespace mxdnn

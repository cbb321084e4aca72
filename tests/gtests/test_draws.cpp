// SPDX-License-Identifier: Apache-2.0
// Random problems of mxdnn-bench are the same on every machine, because the generator gives these numbers.
#include "benchdnn/common/draws.hpp"

#include <gtest/gtest.h>
#include <set>

using bench::draws_t;

TEST(draws, are_those_of_seed_and_index) {
    const struct {
        uint64_t seed, index;
        int64_t drawn[3];
    } known[] = {{1, 0, {306140132, 30750512, 962208016}}, {1, 1, {317166950, 60694545, 415311430}},
            {2, 0, {176795065, 440258626, 94473747}},
            {4294967295, 1000000, {395421454, 100512963, 283135004}}};
    for (const auto &k : known) {
        draws_t any(k.seed, k.index);
        for (int64_t want : k.drawn) EXPECT_EQ(any.below(1000000007), want) << k.seed << " " << k.index;
    }
}

TEST(draws, ranges_have_both_ends_and_lengths_have_edges) {
    draws_t any(3, 0);
    std::set<int64_t> range, one, lengths;
    for (int i = 0; i < 2000; i++) {
        range.insert(any.range(2, 9));
        one.insert(any.range(5, 5));
        lengths.insert(any.length(300));
    }
    EXPECT_EQ(range, (std::set<int64_t>{2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(one, std::set<int64_t>{5});
    EXPECT_EQ(*lengths.begin(), 1);
    EXPECT_EQ(*lengths.rbegin(), 300);
    for (int64_t edge : {16, 32, 64, 128, 256})
        for (int64_t n : {edge - 1, edge, edge + 1}) EXPECT_TRUE(lengths.count(n)) << n;
}

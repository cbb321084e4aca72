// SPDX-License-Identifier: Apache-2.0
// Batches divided into launches: every result matrix is computed once, from the matrices that broadcast to
// it.
#include <vector>

#include <gtest/gtest.h>

#include "common/memory_desc.hpp"
#include "gpu/cuda/impl/packed/batch_parts.hpp"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

using namespace mxdnn::impl;
using namespace mxdnn::impl::cuda;

namespace {

memory_desc_t tensor(const std::vector<dim_t> &dims) {
    memory_desc_t md;
    EXPECT_EQ(init_strided(md, int(dims.size()), dims.data(), mxdnn_bf16, nullptr), mxdnn_success);
    return md;
}

// Where matrix `entry` of dst has its matrix in a tensor.
int64_t broadcast(const std::vector<dim_t> &dims, const std::vector<dim_t> &dst, int64_t entry) {
    int64_t at = 0, step = 1;
    for (int i = int(dst.size()) - 3; i >= 0; i--) {
        const int64_t index = entry % dst[size_t(i)];
        entry /= dst[size_t(i)];
        if (dims[size_t(i)] > 1) at += index * step;
        step *= dims[size_t(i)];
    }
    return at;
}

struct case_t {
    std::vector<dim_t> src, weights, bias, dst;
    int64_t parts;
    bool groups;
};

TEST(batch_parts, every_matrix_is_made_once_of_its_own) {
    constexpr dim_t M = 5, K = 64, N = 40, most = packed::max_groups;
    const case_t cases[] = {
            {{M, K}, {K, N}, {1, N}, {M, N}, 1, false},
            {{3, M, K}, {1, K, N}, {1, 1, N}, {3, M, N}, 1, false},
            {{3, M, K}, {1, K, N}, {3, 1, N}, {3, M, N}, 3, false},
            {{3, M, K}, {3, K, N}, {1, 1, N}, {3, M, N}, 1, true},
            {{3, M, K}, {3, K, N}, {3, 1, N}, {3, M, N}, 1, true},
            {{1, M, K}, {3, K, N}, {1, 1, N}, {3, M, N}, 3, false},
            {{2, 3, M, K}, {2, 3, K, N}, {1, 1, 1, N}, {2, 3, M, N}, 1, true},
            {{2, 3, M, K}, {1, 3, K, N}, {2, 1, 1, N}, {2, 3, M, N}, 6, false},
            {{2, 1, M, K}, {1, 3, K, N}, {1, 3, 1, N}, {2, 3, M, N}, 6, false},
            {{most + 3, 1, K}, {most + 3, K, N}, {1, 1, N}, {most + 3, 1, N}, 2, true},
            {{0, M, K}, {0, K, N}, {1, 1, N}, {0, M, N}, 0, false},
    };
    for (const case_t &c : cases) {
        const memory_desc_t src = tensor(c.src), weights = tensor(c.weights), bias = tensor(c.bias),
                            dst = tensor(c.dst);
        const batch_parts_t batch(src, weights, &bias, dst, true, true);
        const int64_t rows_each = c.dst[c.dst.size() - 2];
        ASSERT_EQ(batch.parts(), c.parts);
        int64_t entry = 0;
        for (int64_t i = 0; i < batch.parts(); i++) {
            const batch_part_t part = batch.part(i);
            EXPECT_EQ(part.groups > 0, c.groups);
            EXPECT_LE(part.groups, int64_t(packed::max_groups));
            ASSERT_EQ(part.rows % rows_each, 0);
            EXPECT_TRUE(part.groups == 0 || part.rows == part.groups * rows_each);
            for (int64_t j = 0; j < part.rows / rows_each; j++, entry++) {
                EXPECT_EQ(part.dst_row + j * rows_each, entry * rows_each);
                EXPECT_EQ(part.src_row + j * rows_each, broadcast(c.src, c.dst, entry) * rows_each);
                EXPECT_EQ(part.src_matrix + j, broadcast(c.src, c.dst, entry));
                EXPECT_EQ(part.weights + (part.groups ? j : 0), broadcast(c.weights, c.dst, entry));
                const int64_t bias_step = part.groups && batch_of(bias) > 1 ? N : 0;
                EXPECT_EQ(part.bias + j * bias_step, broadcast(c.bias, c.dst, entry) * N);
            }
        }
        EXPECT_EQ(entry, batch_of(dst));
    }
}

TEST(batch_parts, groups_only_where_they_are_allowed) {
    const memory_desc_t src = tensor({3, 5, 64}), weights = tensor({3, 64, 40}), dst = tensor({3, 5, 40});
    EXPECT_EQ(batch_parts_t(src, weights, nullptr, dst, false, true).parts(), 3);
    // With a factor per matrix of src, rows that share weights cannot be joined.
    EXPECT_EQ(batch_parts_t(src, tensor({1, 64, 40}), nullptr, dst, true, false).parts(), 3);
}

TEST(batch_parts, groups_are_equal) {
    const row_groups_t g = equal_groups(4, 20);
    for (int64_t i = 0; i < 4; i++) {
        const row_group_t group = g.group(i);
        EXPECT_EQ(group.first, i * 5);
        EXPECT_EQ(group.count, 5);
        EXPECT_EQ(group.expert, int(i));
    }
}

} // namespace

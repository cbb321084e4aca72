// SPDX-License-Identifier: Apache-2.0
// What device/kernels/scatter_sum.cu is told: rows of results that are added up where they meet.
#pragma once

#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct scatter_sum_args_t {
    const float *rows = nullptr; // [M, row_stride], 16-byte aligned, row_stride a multiple of 4
    int64_t row_stride = 0;
    int32_t M = 0, columns = 0;
    row_groups_t groups;              // which rows exist
    const int32_t *scatter = nullptr; // [M]
    void *dst = nullptr;              // its first column is that of rows
    int64_t dst_stride = 0;
    value_type_t dst_type = value_type_t::bf16;
    int32_t dst_rows = 0;
    float old_scale = 0.f; // factor of the previous dst
    bool keeps = false;    // rows of dst without contributions do not change
    // Lists of the rows of every row of dst, which scatter_link writes: the first one, [dst_rows], and the
    // successor of each, [M]. Null: every CTA searches all rows, of which there are at most
    // max_searched_rows.
    int32_t *first = nullptr, *next = nullptr;
};

constexpr int max_searched_rows = 1024;

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/batch_parts.hpp"

#include <algorithm>

#include "gpu/cuda/impl/packed/packed_source.hpp"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The matrix of a broadcast tensor that belongs to matrix `entry` of dst, from the steps of its batch dims.
template <typename F>
int64_t place_of(const memory_desc_t &md, const memory_desc_t &dst, int64_t entry, F &&step_of) {
    int64_t at = 0;
    for (int i = dst.ndims - 3; i >= 0; i--) {
        const int d = i - (dst.ndims - md.ndims);
        if (d >= 0 && md.dims[d] > 1) at += entry % dst.dims[i] * step_of(d);
        entry /= dst.dims[i];
    }
    return at;
}

int64_t matrix_of(const memory_desc_t &md, const memory_desc_t &dst, int64_t entry) {
    return place_of(md, dst, entry, [&](int d) {
        int64_t step = 1;
        for (int i = d + 1; i < md.ndims - 2; i++) step *= md.dims[i];
        return step;
    });
}

} // namespace

batch_parts_t::batch_parts_t(const memory_desc_t &src, const memory_desc_t &weights,
        const memory_desc_t *bias, const memory_desc_t &dst, bool with_groups, bool one_factor)
    : src_(src), weights_(weights), bias_(bias && bias->ndims > 2 ? bias : nullptr), dst_(dst),
      matrices_(batch_of(dst)), each_(1) {
    const bool each_src = batch_of(src) == matrices_;
    const int64_t biases = bias_ ? batch_of(*bias_) : 1;
    if (each_src && batch_of(weights) == 1 && biases == 1 && one_factor) {
        each_ = std::max<int64_t>(matrices_, 1);
        return;
    }
    const bool even_bias = biases == 1 || (biases == matrices_ && even_row_stride(*bias_) >= 0);
    groups_ = with_groups && each_src && batch_of(weights) == matrices_ && even_bias;
    if (groups_) each_ = packed::max_groups;
}

batch_part_t batch_parts_t::part(int64_t i) const {
    const int64_t M = dim_from_end(dst_, 2), first = i * each_, count = std::min(each_, matrices_ - first);
    const int64_t src = matrix_of(src_, dst_, first);
    const int64_t bias = bias_ ? place_of(*bias_, dst_, first, [&](int d) { return bias_->strides[d]; }) : 0;
    return {src * M, first * M, count * M, src, matrix_of(weights_, dst_, first), bias, groups_ ? count : 0};
}

row_groups_t equal_groups(int64_t groups, int64_t rows) {
    row_groups_t g;
    g.grouping = mxdnn_row_grouping_padded;
    g.groups = g.ids = g.experts = groups;
    g.rows = rows;
    return g;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

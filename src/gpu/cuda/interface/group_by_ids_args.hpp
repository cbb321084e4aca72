// SPDX-License-Identifier: Apache-2.0
// What device/kernels/group_by_ids.cu is told: rows with an id each, that become the rows of groups.
#pragma once

#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct group_by_ids_args_t {
    row_groups_t rows; // by ids
    // Of the rows, each may be null: row r is row r, and all weights are 1.
    const int32_t *gather = nullptr, *scatter = nullptr;
    const void *topk = nullptr;
    data_type_t topk_dt = mxdnn_data_type_undef;
    // Made: where the rows of each expert begin, [experts + 1], and of every row of theirs, one expert's
    // after the other's and each's in order, the same as above; after the last one rows of nobody, [rows] in
    // all.
    int32_t *starts = nullptr, *gather_out = nullptr, *scatter_out = nullptr;
    float *topk_out = nullptr; // null: not asked for
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

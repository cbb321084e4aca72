// SPDX-License-Identifier: Apache-2.0
// What device/kernels/group_by_ids.cu is told: rows with an id each, that become the rows of groups.
#pragma once

#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct group_by_ids_args_t {
    row_groups_t rows; // by ids
    // For the rows; each may be null: row r is row r, and all weights are 1.
    const int32_t *gather = nullptr, *scatter = nullptr;
    const void *topk = nullptr;
    data_type_t topk_dt = mxdnn_data_type_undef;
    // Output: the first row of each expert, [experts + 1]; and the same data as above for every row in the
    // order of experts, then of rows. Rows of no expert follow at the end. [rows] in all.
    int32_t *starts = nullptr, *gather_out = nullptr, *scatter_out = nullptr;
    float *topk_out = nullptr; // null: not wanted
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

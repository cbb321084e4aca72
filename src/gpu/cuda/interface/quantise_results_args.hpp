// SPDX-License-Identifier: Apache-2.0
// What device/kernels/quantise_results.cu is told: rows of a matmul's results, in f32, that become codes
// and scales.
#pragma once

#include "common/quant.hpp"
#include "common/row_groups.hpp"
#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct quantise_results_args_t {
    const float *values = nullptr;                  // from row `first` on
    int64_t stride = 0;                             // elements, a multiple of 8
    int64_t first = 0, rows = 0;                    // rows of the destination
    int64_t columns = 0;                            // blocks run along them
    uint8_t *codes = nullptr;                       // of row 0
    int64_t row_bytes = 0;                          // from a row of codes to the next
    uint8_t *scales = nullptr;                      // of row 0, one byte each
    int64_t scale_row_step = 0, scale_col_step = 0; // bytes
    const float *global = nullptr;                  // null: none
    data_type_t dt = mxdnn_data_type_undef;
    int32_t block = 0;
    mxdnn_scale_rounding_t rounding = mxdnn_scale_rounding_floor;
    bool listed = false; // rows of no group, or of an expert that is not here, do not change
    row_groups_t groups;
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

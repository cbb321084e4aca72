// SPDX-License-Identifier: Apache-2.0
// Positions in a packed matrix of a CUDA layout that is known at run time only, for device code: the frame
// once for all layouts, and of each layout only where it puts a code within a step of 64 rows.
#pragma once

#include <type_traits>

#include "common/layouts/layout_list.hpp"

namespace mxdnn {
namespace impl {

struct any_n64_t : n64_frame_t {
    // `id` is that of one of cuda_layouts.
    MXDNN_HD static constexpr bit_pos_t elem_bit(
            uint32_t id, const packed_shape_t &s, int64_t k, int64_t n, int b) {
        bit_pos_t p{};
        visit_cuda_layout(id, [&](auto l) {
            using layout = decltype(l);
            static_assert(std::is_base_of_v<n64_frame_t, layout>, "scales are the frame's");
            // A panel that is one step of codes: 64 rows of K, 64 columns.
            const packed_shape_t step{64, columns, 64, layout::bits, 0, 0, false};
            const int64_t row = k % 64, column = n % columns;
            p = layout::elem_bit(step, row, column, b);
            p.byte -= codes(step, row, column);
        });
        p.byte += codes(s, k, n);
        return p;
    }
};

} // namespace impl
} // namespace mxdnn

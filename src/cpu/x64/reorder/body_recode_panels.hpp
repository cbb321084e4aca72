// SPDX-License-Identifier: Apache-2.0
// The panels of packed codes that become codes of another format, what all ISAs and formats share.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"
#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// One tile after the other, each with one fetched that lies so many bytes ahead. false: `tile` refused one.
template <typename recode, typename tile_fn, typename fetch_fn>
MXDNN_INLINE bool recode_each_panel(recode &r, tile_fn tile, fetch_fn fetch, const uint8_t *from,
        int64_t from_panel, uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, bool around) {
    const int bytes = recode_t::header_bytes(r.from, rows)
                      + rows * reorder_lines * data_type_info(r.from.elem)->bits / 8;
    for (int p = 0; p < panels; p++, from += from_panel, to += to_panel) {
        for (int i = 0; i < bytes; i += 64) fetch(from + ahead + i);
        if (!tile(r, from, to, rows, around)) return false;
    }
    return true;
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn

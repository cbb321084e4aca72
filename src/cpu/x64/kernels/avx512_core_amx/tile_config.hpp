// SPDX-License-Identifier: Apache-2.0
// What ldtilecfg reads, and sizes of tiles.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace x64 {

constexpr int amx_tile_rows = 16;
constexpr int amx_row_bytes =
        64; // bytes per row of every tile: 16 sums, 16 pairs of a panel or 32 source values
constexpr int amx_tile_bytes = amx_tile_rows * amx_row_bytes;

struct tile_config_t {
    uint8_t palette, start_row, reserved[14];
    uint16_t columns_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(tile_config_t) == 64, "");

// Eight full tiles.
inline tile_config_t whole_tiles() {
    tile_config_t c = {};
    c.palette = 1;
    for (int t = 0; t < 8; t++) {
        c.columns_bytes[t] = amx_row_bytes;
        c.rows[t] = amx_tile_rows;
    }
    return c;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

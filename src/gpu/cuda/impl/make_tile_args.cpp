// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/make_tile_args.hpp"

#include "common/formats/format_list.hpp"
#include "common/layouts/n64_f4.hpp"
#include "common/layouts/n64_i4.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

int log2_of(int64_t power) {
    int n = 0;
    while (int64_t(1) << n < power) n++;
    return n;
}

} // namespace

tile_side_t packed_tile_side(const memory_desc_t &packed, void *data) {
    const packed_shape_t shape = shape_of(packed);
    const int64_t rows = n64_frame_t::tile_rows(shape);
    tile_side_t s{};
    s.dt = packed.dt;
    s.data = static_cast<uint8_t *>(data);
    s.packed = true;
    s.batch_step = packed.packed.stride;
    s.panel_bytes = n64_frame_t::panel_bytes(shape);
    s.tile_bytes = int(n64_frame_t::tile_bytes(shape, rows));
    s.tile_shift = log2_of(rows);
    s.header_bytes = int(n64_frame_t::header_bytes(shape));
    s.prefix_bytes = int(n64_frame_t::prefix(shape));
    s.nibbles = packed.packed.layout_id == n64_i4_t::id   ? nibbles_t::i4
                : packed.packed.layout_id == n64_f4_t::id ? nibbles_t::f4
                                                          : nibbles_t::b4;
    return s;
}

void set_tile_problem(
        tile_args_t &a, int64_t K, int64_t N, int64_t batch, data_type_t codes, const quant_t &q) {
    a.K = K;
    a.N = N;
    a.batch = batch;
    a.k_tiles = div_up(K, tile_rows(data_type_info(codes)->bits == 4 ? 4 : 8));
    a.n_tiles = div_up(N, tile_columns);
    a.block_shift = log2_of(q.block);
    a.scale_bytes = bytes_of_scale_type(q.scale_dt);
    a.zp_bytes = q.zp == zero_point_kind_t::none ? 0 : bytes_of_scale_type(q.zp_dt);
    a.scale_dt = q.scale_dt;
    a.zp_dt = q.zp_dt;
    a.zp = q.zp;
    a.two_levels = q.global != global_scale_kind_t::none;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

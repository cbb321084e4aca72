// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/reorder/reorder_side.hpp"

#include <algorithm>
#include <cstring>

#include "common/formats/swizzle_128x4.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

int stored_bits(const reorder_side_conf_t &c) {
    if (!c.quantised) return c.bits;
    return c.storage == code_storage_t::nibbles ? 4 : c.storage == code_storage_t::dense_6 ? 6 : 8;
}

block_format_t make_format(data_type_t elem, const quant_t &q, const arg_attr_t &a) {
    block_format_t f;
    f.elem = elem;
    f.family = quant_family(elem, q);
    f.block = int(q.block);
    f.scale_dt = q.scale_dt;
    f.zp_dt = q.zp_dt;
    f.scale_bytes = bytes_of_scale_type(q.scale_dt);
    f.zp_bytes = q.zp == zero_point_kind_t::none ? 0 : bytes_of_scale_type(q.zp_dt);
    f.zp = q.zp;
    f.has_global = q.global != global_scale_kind_t::none;
    f.rounding = a.rounding;
    return f;
}

panel_shape_t n16_panels(const packed_shape_t &s) {
    using frame = n16_frame_t;
    const int64_t rows = frame::tile_rows(s), last = s.K % rows;
    return {int(frame::columns), int(rows), frame::prefix(s), frame::panel_bytes(s),
            frame::tile_bytes(s, rows), int(frame::header_bytes(s, rows)), int(frame::header_bytes(s, last)),
            int(rows / s.block), int(div_up(last, s.block))};
}
panel_shape_t n64_panels(const packed_shape_t &s) {
    using frame = n64_frame_t;
    const int64_t rows = frame::tile_rows(s);
    const int header = int(frame::header_bytes(s)), blocks = int(frame::blocks(s));
    return {int(frame::columns), int(rows), frame::prefix(s), frame::panel_bytes(s),
            frame::tile_bytes(s, rows), header, header, blocks, blocks};
}

// The number of the dim, of the last two, whose elements are contiguous, or -1. The stride of a dim of one
// element has no meaning.
int contiguous_dim(const memory_desc_t &md) {
    const int last = md.ndims - 1;
    if (md.strides[last] == 1 && md.dims[last] != 1) return last;
    return md.strides[last - 1] == 1 ? last - 1 : md.strides[last] == 1 ? last : -1;
}

} // namespace

reason_t configure_side(reorder_side_conf_t &c, const reorder_kernels_t &k, const problem_t &p, bool is_src,
        int axis_from_end) {
    const memory_desc_t &md = is_src ? p.src : p.dst;
    const arg_attr_t &a = is_src ? p.attr.src : p.attr.dst;
    const char *name = is_src ? "src" : "dst";
    c.arg = is_src ? MXDNN_ARG_SRC : MXDNN_ARG_DST;
    c.ndims = md.ndims;
    c.pos_dim = md.ndims - axis_from_end;
    c.line_dim = md.ndims - (3 - axis_from_end);
    c.dt = md.dt;
    c.bits = data_type_info(md.dt)->bits;
    c.packed = is_packed(md);
    c.quantised = c.packed || a.scales.set;
    c.mode = a.mode;
    c.global_mode = a.global;
    if (c.packed) {
        const layout_t *layout = layout_of(md);
        c.codec = layout ? find_codec(k, layout->family, layout->id) : nullptr;
        if (!c.codec) return no(name, to_string(md).c_str(), "a packed layout of cpu:x64 or cuda");
        c.format = make_format(md.dt, md.packed.quant, a);
        c.shape = shape_of(md);
        c.panels = layout->family == target_family_t::cuda ? n64_panels(c.shape) : n16_panels(c.shape);
        c.packed_stride = md.packed.stride;
        return yes();
    }
    if (c.quantised) {
        quant_t q;
        int axis = 0;
        quant_of(name, md, a, q, &axis); // accepted when the problem was prepared
        c.format = make_format(md.dt, q, a);
        c.swizzled = a.layout == mxdnn_scales_swizzle_128x4;
        if (c.bits == 4) c.storage = code_storage_t::nibbles;
        if (c.bits == 6)
            c.storage = a.packing == mxdnn_element_packing_dense ? code_storage_t::dense_6
                                                                 : code_storage_t::low_6_bits;
    }
    const int dim = contiguous_dim(md);
    if (dim < 0) return no(name, to_string(md).c_str(), "stride 1 along one of the last two dims");
    const int other = dim == md.ndims - 1 ? md.ndims - 2 : md.ndims - 1;
    if (md.strides[other] == 1 && (md.dims[dim] == runtime_dim || md.dims[other] == runtime_dim))
        return no(name, to_string(md).c_str(), "known dims where both of the last two have stride 1");
    for (int d = 0; d < md.ndims; d++) {
        if (md.dims[d] == 1) continue;
        if (!is_src && md.strides[d] == 0)
            return no(name, to_string(md).c_str(), "a place of its own for every element");
        if (d < md.ndims - 2 && md.strides[d] == 1 && stored_bits(c) < 8)
            return no(name, to_string(md).c_str(), "batch entries that share no bytes");
    }
    c.along_line = dim == c.pos_dim;
    return yes();
}

reorder_side_t::reorder_side_t(const reorder_side_conf_t &conf, const exec_ctx_t &ctx)
    : c_(conf), md_(&ctx.memory(conf.arg)->md), data_(static_cast<uint8_t *>(ctx.memory(conf.arg)->handle)),
      matrix_(data_), stored_bits_(stored_bits(conf)) {
    if (c_.packed) return;
    line_bytes_ = stride_bytes(*md_, c_.line_dim, stored_bits_);
    pos_bytes_ = stride_bytes(*md_, c_.pos_dim, stored_bits_);
    if (!c_.quantised) return;
    bind(scales_, ctx.memory(MXDNN_ARG_ATTR_SCALES | c_.arg), c_.format.scale_bytes);
    if (c_.format.zp != zero_point_kind_t::none)
        bind(zero_points_, ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | c_.arg), c_.format.zp_bytes);
    if (c_.format.has_global) global_ = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | c_.arg);
}

void reorder_side_t::bind(param_view_t &v, const memory_t *m, int bytes) const {
    v.md = &m->md;
    v.data = v.matrix = static_cast<uint8_t *>(m->handle);
    v.bytes = bytes;
    if (&v == &scales_ && c_.swizzled) return;
    v.line_bytes = v.md->strides[c_.line_dim] * bytes;
    v.block_bytes = v.md->strides[c_.pos_dim] * bytes;
}

void reorder_side_t::select(param_view_t &v) const {
    if (!v.md) return;
    v.matrix = v.data;
    if (&v == &scales_ && c_.swizzled) {
        v.matrix += batch_index_ * v.md->strides[0] * v.bytes;
        return;
    }
    for (int d = 0; d < c_.ndims - 2; d++) v.matrix += batch_[d] * v.md->strides[d] * v.bytes;
}

void reorder_side_t::set_batch(const dim_t *idx) {
    if (is_buffer_) return;
    batch_index_ = 0;
    for (int d = 0; d < c_.ndims - 2; d++) {
        batch_[d] = idx[d];
        batch_index_ = batch_index_ * md_->dims[d] + idx[d];
    }
    if (c_.packed) {
        matrix_ = data_ + batch_index_ * c_.packed_stride;
        return;
    }
    matrix_ = data_;
    for (int d = 0; d < c_.ndims - 2; d++) matrix_ += batch_[d] * stride_bytes(*md_, d, stored_bits_);
    select(scales_);
    select(zero_points_);
}

// ---- scales and zero points ----

void reorder_side_t::copy_swizzled(
        dim_t line, int n, dim_t block, int blocks, uint8_t *params, int params_pitch, bool write) const {
    const dim_t cols = div_up(length(), c_.format.block);
    for (int b = 0; b < blocks; b++)
        for (int l = 0; l < n; l++) {
            uint8_t &there = scales_.matrix[swizzle_128x4::offset(line + l, block + b, cols)];
            uint8_t &here = params[b * params_pitch + l];
            (write ? there : here) = write ? here : there;
        }
}

void reorder_side_t::copy_params(const reorder_kernels_t &k, const param_view_t &v, dim_t line, int n,
        dim_t block, int blocks, uint8_t *params, int params_pitch, bool write) const {
    if (&v == &scales_ && c_.swizzled)
        return copy_swizzled(line, n, block, blocks, params, params_pitch, write);
    uint8_t *first = v.matrix + line * v.line_bytes + block * v.block_bytes;
    const int64_t pitch = params_pitch * v.bytes;
    if (v.block_bytes == v.bytes && n > 1) {
        if (write)
            k.transpose(v.bytes, params, pitch, blocks, n, first, v.line_bytes);
        else
            k.transpose(v.bytes, first, v.line_bytes, n, blocks, params, pitch);
        return;
    }
    const bool together = v.line_bytes == v.bytes || n == 1;
    for (int b = 0; b < blocks; b++)
        for (int l = 0; l < (together ? 1 : n); l++) {
            uint8_t *there = first + b * v.block_bytes + l * v.line_bytes;
            uint8_t *here = params + b * pitch + l * v.bytes;
            const size_t bytes = size_t(together ? n * v.bytes : v.bytes);
            std::memcpy(write ? there : here, write ? here : there, bytes);
        }
}

// Calls body(first line of the panel, its lines, first position of the tile, its positions, bytes of the
// tile) for the packed tiles.
template <typename F>
void reorder_side_t::for_tiles(dim_t line, int n, dim_t pos, int length, F &&body) const {
    for (int l = 0; l < n; l += columns()) {
        uint8_t *t = tile(line + l, pos);
        for (int i = 0; i < length; i += tile_rows(), t += tile_bytes())
            body(l, std::min(columns(), n - l), i, std::min(tile_rows(), length - i), t);
    }
}

void reorder_side_t::read_params(
        const reorder_kernels_t &k, dim_t line, int n, dim_t pos, int length, const line_params_t &to) const {
    const block_format_t &f = c_.format;
    if (!c_.packed) {
        const dim_t block = pos / f.block;
        const int blocks = int(div_up(length, f.block));
        copy_params(k, scales_, line, n, block, blocks, to.scales, to.pitch, false);
        if (zero_points_.md)
            copy_params(k, zero_points_, line, n, block, blocks, to.zero_points, to.pitch, false);
        return;
    }
    for_tiles(line, n, pos, length, [&](int l, int lines, int i, int rows, const uint8_t *from) {
        const int blocks = int(div_up(rows, f.block)), places = header_blocks(rows);
        const auto read = [&](uint8_t *first, int bytes) {
            uint8_t *const there = first + (i / f.block * to.pitch + l) * bytes;
            if (lines == columns() && blocks == places) {
                c_.codec->unpack_params(bytes, from, blocks, there, to.pitch * bytes);
            } else {
                param_rows_t rows_of_all;
                const int pitch = columns() * bytes;
                c_.codec->unpack_params(bytes, from, places, rows_of_all, pitch);
                for (int b = 0; b < blocks; b++)
                    std::memcpy(there + b * to.pitch * bytes, rows_of_all + b * pitch,
                            size_t(lines) * size_t(bytes));
            }
            from += places * columns() * bytes;
        };
        read(to.scales, f.scale_bytes);
        if (f.zp_bytes) read(to.zero_points, f.zp_bytes);
    });
}

void reorder_side_t::write_params(const reorder_kernels_t &k, dim_t line, int n, dim_t pos, int length,
        const line_params_t &from, write_t how) const {
    const block_format_t &f = c_.format;
    if (!c_.packed) {
        const dim_t block = pos / f.block;
        const int blocks = int(div_up(length, f.block));
        copy_params(k, scales_, line, n, block, blocks, from.scales, from.pitch, true);
        if (zero_points_.md)
            copy_params(k, zero_points_, line, n, block, blocks, from.zero_points, from.pitch, true);
        return;
    }
    for_tiles(line, n, pos, length, [&](int l, int lines, int i, int rows, uint8_t *to) {
        // Collected first, so that whole cache lines are written at once.
        alignas(64) uint8_t header[2 * sizeof(param_rows_t)];
        const int blocks = int(div_up(rows, f.block)), places = header_blocks(rows);
        const int bytes = header_bytes(rows);
        int used = 0;
        const auto write = [&](const uint8_t *first, int size) {
            const uint8_t *const here = first + (i / f.block * from.pitch + l) * size;
            if (lines == columns() && blocks == places) {
                c_.codec->pack_params(size, here, from.pitch * size, blocks, header + used);
            } else {
                param_rows_t rows_of_all = {};
                const int pitch = columns() * size;
                for (int b = 0; b < blocks; b++)
                    std::memcpy(rows_of_all + b * pitch, here + b * from.pitch * size,
                            size_t(lines) * size_t(size));
                c_.codec->pack_params(size, rows_of_all, pitch, places, header + used);
            }
            used += places * columns() * size;
        };
        write(from.scales, f.scale_bytes);
        if (f.zp_bytes) write(from.zero_points, f.zp_bytes);
        if (used < bytes) std::memset(header + used, 0, size_t(bytes - used));
        k.pack_row(code_storage_t::bytes, header, bytes, to, how);
    });
}

void reorder_side_t::fetch_params(dim_t line, int n, dim_t pos) const {
    if (c_.swizzled) return;
    for (const param_view_t *v : {&scales_, &zero_points_}) {
        if (!v->md) continue;
        const uint8_t *first = v->matrix + line * v->line_bytes + pos / c_.format.block * v->block_bytes;
        for (dim_t l = 0; l < std::min<dim_t>(n, lines() - line); l++)
            __builtin_prefetch(first + l * v->line_bytes);
    }
}

// ---- the global scale ----

float reorder_side_t::global() const {
    if (!c_.format.has_global) return 1.f;
    if (!c_.packed)
        return static_cast<const float *>(global_->handle)[has_global_of_its_own() ? batch_index_ : 0];
    float g;
    std::memcpy(&g, matrix_, sizeof(g));
    return g;
}

uint32_t *reorder_side_t::global_bits() const {
    if (c_.packed) return reinterpret_cast<uint32_t *>(matrix_);
    return static_cast<uint32_t *>(global_->handle) + (has_global_of_its_own() ? batch_index_ : 0);
}

void reorder_side_t::set_global(float g) const {
    if (!c_.format.has_global) return;
    if (c_.packed) {
        std::memset(matrix_, 0, size_t(c_.panels.prefix));
        std::memcpy(matrix_, &g, sizeof(g));
    } else {
        static_cast<float *>(global_->handle)[has_global_of_its_own() ? batch_index_ : 0] = g;
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

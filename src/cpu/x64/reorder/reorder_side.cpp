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

// Which of the last two dims has its elements side by side: its number, or -1. The stride of a dim of one
// element says nothing.
int contiguous_dim(const memory_desc_t &md) {
    const int last = md.ndims - 1;
    if (md.strides[last] == 1 && md.dims[last] != 1) return last;
    return md.strides[last - 1] == 1 ? last - 1 : md.strides[last] == 1 ? last : -1;
}

} // namespace

reason_t configure_side(reorder_side_conf_t &c, const problem_t &p, bool is_src, int axis_from_end) {
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
        const bool known =
                md.packed.family == target_family_t::cpu_x64 && layout
                && (layout->id == n16_b4_t::id || layout->id == n16_b6_t::id || layout->id == n16_b8_t::id);
        if (!known) return no(name, to_string(md).c_str(), "a layout n16_b4, n16_b6 or n16_b8 of cpu:x64");
        c.format = make_format(md.dt, md.packed.quant, a);
        c.shape = shape_of(md);
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
    if (c_.packed) {
        prefix_ = n16_frame_t::prefix(c_.shape);
        panel_bytes_ = n16_frame_t::panel_bytes(c_.shape);
        tile_rows_ = int(c_.tile_rows());
        tile_bytes_ = n16_frame_t::tile_bytes(c_.shape, tile_rows_);
        header_bytes_ = int(n16_frame_t::header_bytes(c_.shape, tile_rows_));
        return;
    }
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

// Parameters of up to a panel's lines, side by side.
void copy_of_panel(uint8_t *to, const uint8_t *from, int lines, int bytes) {
    if (lines < reorder_lines) return void(std::memcpy(to, from, size_t(lines) * size_t(bytes)));
    for (int i = 0; i < bytes; i++)
        std::memcpy(to + i * reorder_lines, from + i * reorder_lines, reorder_lines);
}

// body(panel's first line, its lines, tile's first position, its positions, bytes of the tile) for the packed
// tiles.
template <typename F>
void reorder_side_t::for_tiles(dim_t line, int n, dim_t pos, int length, F &&body) const {
    for (int l = 0; l < n; l += reorder_lines) {
        uint8_t *t = tile(line + l, pos);
        for (int i = 0; i < length; i += tile_rows_, t += tile_bytes_)
            body(l, std::min(reorder_lines, n - l), i, std::min(tile_rows_, length - i), t);
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
        const int blocks = int(div_up(rows, f.block)), count = blocks * reorder_lines;
        for (int b = 0; b < blocks; b++) {
            const int at = (i / f.block + b) * to.pitch + l, there = b * reorder_lines;
            copy_of_panel(to.scales + at * f.scale_bytes, from + there * f.scale_bytes, lines, f.scale_bytes);
            if (f.zp_bytes)
                copy_of_panel(to.zero_points + at * f.zp_bytes,
                        from + count * f.scale_bytes + there * f.zp_bytes, lines, f.zp_bytes);
        }
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
        // Put together first, so that whole cache lines are written at once.
        alignas(64) uint8_t header[n16_frame_t::min_tile_rows / 32 * reorder_lines * 2 * sizeof(float)];
        const int blocks = int(div_up(rows, f.block)), count = blocks * reorder_lines;
        const int bytes = header_bytes(rows);
        if (lines < reorder_lines || count * (f.scale_bytes + f.zp_bytes) < bytes)
            std::memset(header, 0, size_t(bytes));
        for (int b = 0; b < blocks; b++) {
            const int at = (i / f.block + b) * from.pitch + l, there = b * reorder_lines;
            copy_of_panel(
                    header + there * f.scale_bytes, from.scales + at * f.scale_bytes, lines, f.scale_bytes);
            if (f.zp_bytes)
                copy_of_panel(header + count * f.scale_bytes + there * f.zp_bytes,
                        from.zero_points + at * f.zp_bytes, lines, f.zp_bytes);
        }
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
        std::memset(matrix_, 0, size_t(n16_frame_t::prefix_bytes));
        std::memcpy(matrix_, &g, sizeof(g));
    } else {
        static_cast<float *>(global_->handle)[has_global_of_its_own() ? batch_index_ : 0] = g;
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

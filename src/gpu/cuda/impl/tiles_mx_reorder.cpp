// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/tiles_mx_reorder.hpp"

#include <algorithm>

#include "common/formats/format_list.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/layouts/layout_list.hpp"
#include "common/problem_reorder.hpp"
#include "common/problem_util.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"
#include "gpu/cuda/impl/make_tile_args.hpp"
#include "gpu/cuda/impl/ref/ref_mx_reorder.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int64_t max_tiles = int64_t(max_grid_y) * max_grid_y; // across, and the same number down
// For values between two formats: memory, and columns that are whole packed panels and tiles of 128x4 scales.
constexpr int64_t max_panel_bytes = int64_t(64) << 20, panel_step = swizzle_128x4::tile_rows;
static_assert(panel_step % n64_frame_t::columns == 0);

// The dim that blocks run along, and the other of the last two.
struct axes_t {
    int k, n;
};
axes_t axes_of(const memory_desc_t &md, int axis_from_end) {
    return {md.ndims - axis_from_end, md.ndims - 3 + axis_from_end};
}

bool lines_along_k(const memory_desc_t &md, const axes_t &x) {
    if (data_type_info(md.dt)->bits < 8) return inner_dim(md) == x.k;
    return md.strides[x.k] == 1 && !(md.dims[x.k] == 1 && md.strides[x.n] == 1);
}

bool is_of_values(const memory_desc_t &md) { return has_role(md.dt, role_high_precision); }

// The format of the quantised side, dst's if both are quantised; empty if none is.
status_t format_of(const problem_t &p, quant_t &q, int &axis) {
    q = {};
    axis = 1;
    if (is_of_values(p.src) && is_of_values(p.dst)) return mxdnn_success;
    return is_of_values(p.dst) ? quant_of("src", p.src, p.attr.src, q, &axis)
                               : quant_of("dst", p.dst, p.attr.dst, q, &axis);
}

// The reason why tiles cannot be filled from a side; null if they can.
const char *unfit(const memory_desc_t &md, const axes_t &x, const arg_attr_t &attr) {
    if (is_packed(md)) return nullptr;
    if (md.ndims > 3) return "more than one batch dim";
    if (attr.packing == mxdnn_element_packing_dense) return "dense 6-bit codes";
    const int inner = lines_along_k(md, x) ? x.k : x.n;
    if (md.strides[inner] != 1 && md.dims[inner] != 1) return "no contiguous elements";
    if (data_type_info(md.dt)->bits < 8 && inner_dim(md) != inner)
        return "codes that share bytes across matrices";
    return nullptr;
}

tile_params_t params_of(const memory_t &m, const axes_t &x, int64_t swizzle_cols) {
    const plain_args_t p = plain_args(m);
    if (swizzle_cols) return {p.data, p.step[0], 0, 0, swizzle_cols};
    return {p.data, p.ndims == 3 ? p.step[0] : 0, p.step[x.n], p.step[x.k], 0};
}

tile_side_t side_of(
        const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr, const axes_t &x) {
    const memory_t &m = *ctx.memory(arg);
    if (is_packed(pd_md)) return packed_tile_side(pd_md, m.handle);
    tile_side_t s{};
    s.dt = pd_md.dt;
    s.data = static_cast<uint8_t *>(m.handle);
    const plain_args_t p = plain_args(m, attr.packing);
    const int batch = p.ndims == 3 ? 0 : -1;
    s.batch_step = batch == 0 ? p.step[0] : 0;
    s.lines_along_k = lines_along_k(m.md, x);
    s.line_step = p.step[s.lines_along_k ? x.n : x.k];
    s.aligned =
            (reinterpret_cast<uintptr_t>(s.data) | uint64_t(s.batch_step) | uint64_t(s.line_step)) % 16 == 0;
    quant_t q;
    int axis = 0;
    if (!attr.scales.set || quant_of("", pd_md, attr, q, &axis) != mxdnn_success) return s;
    const int64_t cols = attr.layout == mxdnn_scales_swizzle_128x4 ? div_up(m.md.dims[x.k], q.block) : 0;
    s.scales = params_of(*ctx.memory(MXDNN_ARG_ATTR_SCALES | arg), x, cols);
    if (q.zp != zero_point_kind_t::none)
        s.zero_points = params_of(*ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | arg), x, 0);
    if (q.global != global_scale_kind_t::none) {
        const memory_t &g = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg);
        s.global = static_cast<float *>(g.handle);
        s.global_step = g.md.dims[0] == 1 ? 0 : 1;
    }
    return s;
}

// A side from column `n` of a matrix on.
void begin_at(tile_side_t &s, int64_t matrix, int64_t n) {
    s.data += matrix * s.batch_step;
    if (s.packed) {
        s.data += n / n64_frame_t::columns * s.panel_bytes;
        return;
    }
    const int bits = data_type_info(s.dt)->bits;
    s.data += s.lines_along_k ? n * s.line_step : n * (bits == 4 ? 4 : round_up(bits, 8)) / 8;
    for (tile_params_t *p : {&s.scales, &s.zero_points})
        if (p->data)
            p->data += matrix * p->batch_step
                       + (p->swizzle_cols ? swizzle_128x4::offset(n, 0, p->swizzle_cols) : n * p->n_step);
    if (s.global) s.global += matrix * s.global_step;
}

// One format to another, panel by panel: to values, and from these.
status_t execute_by_way_of_values(const exec_ctx_t &ctx, const tile_args_t &a, int64_t panel) {
    const problem_t &p = ctx.pd.problem;
    quant_t from, to;
    int axis = 0;
    MXDNN_CHECK(quant_of("src", p.src, p.attr.src, from, &axis));
    MXDNN_CHECK(quant_of("dst", p.dst, p.attr.dst, to, &axis));
    tile_side_t values{};
    values.dt = mxdnn_f32;
    values.data = ctx.scratch<uint8_t>(scratch_t::values);
    values.line_step = round_up(a.K, 4) * 4;
    values.lines_along_k = values.aligned = true;
    tile_args_t decode{}, encode = a;
    decode.dst = encode.src = values;
    for (int64_t matrix = 0; matrix < a.batch; matrix++)
        for (int64_t n = 0; n < a.N; n += panel) {
            const int64_t columns = std::min(panel, a.N - n);
            set_tile_problem(decode, a.K, columns, 1, p.src.dt, from);
            decode.src = a.src;
            begin_at(decode.src, matrix, n);
            MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::dequantise_tiles, decode));
            set_tile_problem(encode, a.K, columns, 1, p.dst.dt, to);
            encode.dst = a.dst;
            begin_at(encode.dst, matrix, n);
            MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::quantise_tiles, encode));
            encode.clear_bytes = 0; // padding has been cleared
        }
    return mxdnn_success;
}

} // namespace

reason_t tiles_mx_reorder_t::pd_t::init() {
    const memory_desc_t &src = problem.src, &dst = problem.dst;
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones", "one device");
    quant_t q;
    int axis = 0;
    const bool from_values = is_of_values(src), to_values = is_of_values(dst);
    if (format_of(problem, q, axis) != mxdnn_success)
        return no("dst", to_string(dst).c_str(), "a known format");
    if (const reason_t known = check_decoders(problem); !known.ok()) return known;
    const bool of_codes = !from_values && !to_values;
    if ((from_values && to_values) || (of_codes && moves_codes(problem))) {
        kernel = kernel_id_t::move_tiles;
    } else if (to_values) {
        kernel = kernel_id_t::dequantise_tiles;
        if (has_row_scale(src.dt, q)) return no("src", "a scale per row", "blocks");
    } else {
        kernel = kernel_id_t::quantise_tiles;
        const quant_family_t family = quant_family(dst.dt, q);
        if (family != quant_family_t::mx && family != quant_family_t::nvfp4
                && (family != quant_family_t::affine || has_row_scale(dst.dt, q)))
            return no("dst", "a scale per row", "blocks");
        if (!problem.attr.dst.is_dynamic()) return no("scales of dst", "given ones", "computed ones");
        if (family == quant_family_t::affine && (dst.dt == mxdnn_s8 || q.zp == zero_point_kind_t::minimum))
            return no("dst", to_string(dst).c_str(), "MX, NVFP4, or int4 without minima");
        const reason_t r = from_values ? yes() : by_way_of_values(q, axis);
        if (!r.ok()) return r;
    }
    const axes_t x = axes_of(dst, axis);
    if (const char *why = unfit(src, x, problem.attr.src)) return no("src", why, "lines of elements");
    if (const char *why = unfit(dst, x, problem.attr.dst)) return no("dst", why, "lines of elements");
    if (kernel == kernel_id_t::quantise_tiles
            && problem.attr.dst.global == mxdnn_quantization_mode_dynamic_fp)
        scratch.book(scratch_t::amax, 4 * amax_words(batch_of(dst)));
    return yes();
}

// One format to another: `to` and `axis` are those of dst.
reason_t tiles_mx_reorder_t::pd_t::by_way_of_values(const quant_t &to, int axis) {
    const memory_desc_t &src = problem.src, &dst = problem.dst;
    quant_t from;
    int src_axis = 0;
    if (quant_of("src", src, problem.attr.src, from, &src_axis) != mxdnn_success
            || has_row_scale(src.dt, from))
        return no("src", "a scale per row", "blocks");
    if (src_axis != axis) return no("src and dst", "blocks along different dims", "along one");
    if (to.global != global_scale_kind_t::none
            || (is_packed(src) && from.global != global_scale_kind_t::none))
        return no("another format", "a global scale", "none of dst, or of packed codes");
    if (has_runtime_dims(dst)) return no("another format", "runtime dims", "known ones");
    const axes_t x = axes_of(dst, axis);
    const int64_t column_bytes = round_up(dst.dims[x.k], 4) * 4;
    panel = std::max(max_panel_bytes / std::max<int64_t>(column_bytes, 1) / panel_step, int64_t(1))
            * panel_step;
    panel = std::min(panel, round_up(dst.dims[x.n], panel_step));
    scratch.book(scratch_t::values, panel * column_bytes);
    return yes();
}

status_t tiles_mx_reorder_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    tile_args_t a{};
    a.src.dt = problem.src.dt;
    a.dst.dt = problem.dst.dt;
    a.dst.packed = is_packed(problem.dst);
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(format_of(problem, q, axis));
    set_tile_problem(a, 0, 0, 0, is_of_values(problem.dst) ? problem.src.dt : problem.dst.dt, q);
    if (panel) { // through values
        MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::dequantise_tiles, a));
        a.src.dt = mxdnn_f32;
    }
    MXDNN_CHECK(prepare_kernel(problem, kernel, a));
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_mx_reorder));
    primitive = std::make_shared<tiles_mx_reorder_t>();
    return mxdnn_success;
}

status_t reorder_tile_args(const exec_ctx_t &ctx, tile_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const memory_desc_t &md = ctx.memory(MXDNN_ARG_DST)->md;
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(format_of(p, q, axis));
    const axes_t x = axes_of(md, axis);
    a = {};
    a.src = side_of(ctx, MXDNN_ARG_SRC, p.src, p.attr.src, x);
    a.dst = side_of(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst, x);
    const data_type_t codes = is_of_values(p.dst) ? p.src.dt : p.dst.dt;
    set_tile_problem(a, md.dims[x.k], md.dims[x.n], batch_of(md), codes, q);
    a.rounding = p.attr.dst.rounding;
    if (p.attr.dst.global == mxdnn_quantization_mode_static_sazp) {
        const memory_t &g = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        a.given = static_cast<const float *>(g.handle);
        a.given_step = g.md.dims[0] == 1 ? 0 : 1;
    }
    if (ctx.pd.scratch.has(scratch_t::amax)) a.amax = ctx.scratch<uint32_t>(scratch_t::amax);
    a.amax_parts = amax_parts(a.batch);
    if (p.attr.dst.layout == mxdnn_scales_swizzle_128x4 && (a.N % 128 || div_up(a.K, q.block) % 4)) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        a.clear = static_cast<uint8_t *>(scales.handle);
        a.clear_bytes = size_of(scales.md);
    }
    if (a.k_tiles > INT32_MAX || a.n_tiles * a.batch > max_tiles)
        return fail(mxdnn_unimplemented,
                "a reorder of %lld x %lld tiles; the device takes %d x %lld at a time",
                static_cast<long long>(a.k_tiles), static_cast<long long>(a.n_tiles) * a.batch, INT32_MAX,
                static_cast<long long>(max_tiles));
    return mxdnn_success;
}

status_t tiles_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    tile_args_t a;
    MXDNN_CHECK(reorder_tile_args(ctx, a));
    // Without elements there may still be a global scale.
    if (a.k_tiles * a.n_tiles * a.batch == 0) return ref_mx_reorder_t().execute(ctx);
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    return pd.panel ? execute_by_way_of_values(ctx, a, pd.panel) : launch_kernel(ctx, pd.kernel, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

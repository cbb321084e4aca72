// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/packed_source.hpp"

#include <algorithm>

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The rows of most expert layers fit in this size together; with max_rows_hint there is room for more.
constexpr int64_t most_bytes = 128 << 20, most_hinted_bytes = int64_t(1) << 30, row_align = 64;

// Of a prepared row: its terms one after the other.
int64_t stride_of(const problem_t &p) {
    return round_up(std::max<int64_t>(dim_from_end(p.weights, 2), 1), row_align) * source_terms(p);
}

int64_t rows_of(const memory_desc_t &md) {
    int64_t rows = 1;
    for (int i = 0; i < md.ndims - 1; i++) {
        if (md.dims[i] == runtime_dim) return runtime_dim;
        rows *= md.dims[i];
    }
    return rows;
}

// All arguments but the destination of rows and their form.
packed::convert_source_args_t source_rows_args(
        const exec_ctx_t &ctx, const matrix_args_t &src, const made_rows_t &rows) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &m = *ctx.memory(MXDNN_ARG_SRC);
    const int nd = m.md.ndims;
    packed::convert_source_args_t r;
    r.elements = src.elements.data;
    r.row_step = row_byte_step(m, storage_bits(src.elements.bits, src.elements.packing));
    r.col_step = src.elements.step[nd - 1];
    r.dt = src.elements.dt;
    r.bits = src.elements.bits;
    r.packing = src.elements.packing;
    if (src.quantised) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC);
        r.quant = src.quant;
        r.scales = src.scales.data;
        r.scale_row_step = row_byte_step(scales, src.scales.bits);
        r.scale_col_step = src.scales.step[nd - 1];
        r.swizzled = src.swizzled;
        r.swizzle_cols = src.swizzle_cols;
    }
    if (rows.groups) {
        r.swizzled_by_group = true;
        r.groups = *rows.groups;
    }
    r.recipe = source_recipe(p);
    r.gather = rows.gather;
    r.src_rows = rows.src_rows;
    r.first = rows.first;
    r.rows = rows.count;
    r.K = dim_from_end(p.weights, 2);
    r.stride = stride_of(p);
    r.early = writes_no_weights(cuda_stream_of(ctx.stream).last_kernel());
    return r;
}

} // namespace

reason_t check_source(const problem_t &p) {
    const memory_desc_t &src = p.src;
    if (!makes_rows(p)) return yes();
    for (int i : {src.ndims - 2, src.ndims - 1})
        if (src.strides[i] == runtime_dim) return no("src", "strides known only at execution", "known ones");
    if (has_role(src.dt, role_high_precision)) {
        return yes();
    }
    quant_t q;
    int axis = 0;
    quant_of("src", src, p.attr.src, q, &axis);
    if (quant_family(src.dt, q) == quant_family_t::affine && !has_row_scale(src.dt, q))
        return no("src", "groups of integers", "MX, NVFP4 or scales of rows");
    const int bits = storage_bits(data_type_info(src.dt)->bits, p.attr.src.packing);
    if (bits % 8 && inner_dim(src) != src.ndims - 1)
        return no("src", "codes that share bytes along M", "along K");
    return yes();
}

packed::value_type_t source_type(const problem_t &p) {
    return p.src.dt == mxdnn_f16 && p.attr.src.is_default() && is_packed_int4(p) ? packed::value_type_t::f16
                                                                                 : packed::value_type_t::bf16;
}

int source_terms(const problem_t &p) {
    if (source_type(p) == packed::value_type_t::f16) return 1;
    const bool rounds = p.attr.src.is_dynamic() || p.attr.fpmath == mxdnn_fpmath_mode_bf16
                        || p.attr.fpmath == mxdnn_fpmath_mode_any;
    return rounds ? 1 : packed::source_terms_of(p.src.dt);
}

bool makes_rows(const problem_t &p) {
    const memory_desc_t &src = p.src;
    const int nd = src.ndims;
    constexpr int64_t elements = row_copy_bytes / 2;
    const bool in_rows = src.strides[nd - 1] == 1 || src.dims[nd - 1] == 1;
    return value_type_of(src.dt) != source_type(p) || !p.attr.src.is_default() || !in_rows
           || src.strides[nd - 2] % elements != 0 || dim_from_end(p.weights, 2) % elements != 0;
}

int64_t even_row_stride(const memory_desc_t &md) {
    const int inner = md.ndims - 2;
    int64_t rows = md.dims[inner];
    for (int i = inner - 1; i >= 0; i--) {
        if (md.dims[i] > 1 && md.strides[i] != rows * md.strides[inner]) return -1;
        rows *= md.dims[i];
    }
    return md.strides[inner];
}

int64_t row_byte_step(const memory_t &m, int bits) {
    return bits % 8 ? stride_bytes(m.md, m.md.ndims - 2, bits) : even_row_stride(m.md) * (bits / 8);
}

int64_t rows_with_room(const problem_t &p, int64_t row_bytes) {
    const int64_t most = p.attr.max_rows_hint > 0 ? most_hinted_bytes : most_bytes;
    int64_t rows = std::max(row_align, most / std::max<int64_t>(row_bytes, 1) / row_align * row_align);
    const int64_t src_rows = rows_of(p.src), dst_rows = rows_of(p.dst);
    if (p.attr.max_rows_hint > 0)
        rows = std::min(rows, round_up(p.attr.max_rows_hint, row_align));
    else if (src_rows != runtime_dim && dst_rows != runtime_dim)
        rows = std::min(rows, round_up(std::max<int64_t>({src_rows, dst_rows, 1}), row_align));
    return rows;
}

int64_t made_rows_at_once(const problem_t &p, bool fp8) {
    return rows_with_room(p, stride_of(p) * (fp8 ? 1 : 2));
}

int64_t made_rows_each(const problem_t &p, int64_t rows, bool fp8) {
    const int64_t parts = std::max<int64_t>(div_up(rows, made_rows_at_once(p, fp8)), 1);
    return round_up(div_up(rows, parts), row_align);
}

int64_t made_rows_bytes(const problem_t &p) {
    // In FP8 at most twice as many, of half the size.
    return made_rows_at_once(p) * (stride_of(p) * 2 + 8);
}

status_t prepare_convert_source(const problem_t &p) {
    packed::convert_source_args_t r;
    r.dt = p.src.dt;
    r.recipe = source_recipe(p);
    r.in_pieces = !makes_rows(p); // rows that are gathered
    int axis = 0;
    if (!has_role(p.src.dt, role_high_precision))
        MXDNN_CHECK(quant_of("src", p.src, p.attr.src, r.quant, &axis));
    return prepare_kernel(p, kernel_id_t::convert_source, r);
}

status_t make_rows(const exec_ctx_t &ctx, const made_rows_t &rows, char *space, packed::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const matrix_args_t src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    packed::convert_source_args_t r = source_rows_args(ctx, src, rows);
    r.out = reinterpret_cast<uint16_t *>(space);
    r.factors = reinterpret_cast<float *>(space + made_rows_at_once(p) * r.stride * 2);
    r.in_pieces = !makes_rows(p) && reinterpret_cast<uintptr_t>(r.elements) % row_copy_bytes == 0
                  && r.row_step % row_copy_bytes == 0;
    r.wanted = a.wanted;
    r.wanted_count = a.panel_end;
    r.terms = source_terms(p);
    r.f16 = a.src_type == packed::value_type_t::f16;
    a.src = r.out;
    a.src_stride = r.stride;
    a.row_factors = r.in_pieces || r.terms > 1 || r.f16 ? nullptr : r.factors; // which are 1
    a.src_global = src.global;
    a.src_global_step = src.one_global ? 0 : 1;
    return r.rows ? launch_kernel(ctx, kernel_id_t::convert_source, r) : mxdnn_success;
}

status_t make_rows_of_fp8(
        const exec_ctx_t &ctx, const made_rows_t &rows, char *space, packed::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    packed::convert_source_args_t r =
            source_rows_args(ctx, matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src), rows);
    r.codes = reinterpret_cast<uint8_t *>(space);
    r.order = is_for_fp8(p.weights) ? packed::fp8_order_t::plain : packed::fp8_order_t::registers;
    r.factors = reinterpret_cast<float *>(space + made_rows_at_once(p, true) * r.stride);
    a.src = r.codes;
    a.src_stride = r.stride;
    a.row_factors = r.factors;
    if (!packed::may_come(r)) a.makers = 0, a.maker_rounds = 0;
    r.makers = a.makers;
    return r.rows ? launch_kernel(ctx, kernel_id_t::convert_source, r) : mxdnn_success;
}

bool has_fp8_rows(const exec_ctx_t &ctx, packed::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    if (!is_for_fp8(p.weights) || p.src.dt != mxdnn_f8_e4m3) return false;
    const packed::convert_source_args_t r =
            source_rows_args(ctx, matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src), {});
    if (r.col_step != 1 || r.row_step % row_copy_bytes
            || reinterpret_cast<uintptr_t>(r.elements) % row_copy_bytes || r.quant.scale_dt != mxdnn_f32
            || r.scale_row_step != int64_t(sizeof(float)))
        return false;
    a.src_stride = r.row_step;
    a.row_factors = reinterpret_cast<const float *>(r.scales);
    return true;
}

status_t make_fp8_rows(const exec_ctx_t &ctx, const made_rows_t &rows, uint8_t *codes, float *scales) {
    const problem_t &p = ctx.pd.problem;
    packed::convert_source_args_t r =
            source_rows_args(ctx, matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src), rows);
    r.codes = codes;
    r.factors = scales;
    return r.rows ? launch_kernel(ctx, kernel_id_t::convert_source, r) : mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

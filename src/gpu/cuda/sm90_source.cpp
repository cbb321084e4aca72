// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sm90_source.hpp"

#include <algorithm>

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/make_tensor_args.hpp"
#include "gpu/cuda/sm90_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Many enough for whole waves of the kernels; rows of 8192 then take 64 MiB.
constexpr int64_t most_rows = 4096, most_bytes = 64 << 20, least_rows = 256, row_align = 64;

int64_t stride_of(const problem_t &p) {
    return round_up(std::max<int64_t>(dim_from_end(p.weights, 2), 1), row_align);
}

} // namespace

reason_t check_sm90_source(const problem_t &p) {
    const memory_desc_t &src = p.src;
    if (!sm90_makes_rows(p)) return yes();
    if (src.ndims != 2) return no("src", to_string(src).c_str(), "a matrix, or bf16 rows");
    for (int64_t s : {src.strides[0], src.strides[1]})
        if (s == runtime_dim) return no("src", "strides known only at execution", "known ones");
    if (has_role(src.dt, role_high_precision)) {
        const bool allowed = src.dt == mxdnn_bf16 || p.attr.src.is_dynamic()
                             || p.attr.fpmath == mxdnn_fpmath_mode_bf16
                             || p.attr.fpmath == mxdnn_fpmath_mode_any;
        if (!allowed) return no("src", data_type_name(src.dt), "bf16, codes, or fpmath mode bf16");
        return yes();
    }
    quant_t q;
    int axis = 0;
    quant_of("src", src, p.attr.src, q, &axis);
    if (quant_family(src.dt, q) == quant_family_t::affine)
        return no("src", "int4", "MX, NVFP4 or scales of rows");
    const int bits = storage_bits(data_type_info(src.dt)->bits, p.attr.src.packing);
    if (bits % 8 && inner_dim(src) != 1 && dim_from_end(src, 1) > 1)
        return no("src", "codes that share bytes along M", "along K");
    return yes();
}

bool sm90_makes_rows(const problem_t &p) {
    const memory_desc_t &src = p.src;
    const int nd = src.ndims;
    constexpr int64_t elements = sm90_copy_bytes / 2;
    const bool in_rows = src.strides[nd - 1] == 1 || src.dims[nd - 1] == 1;
    return src.dt != mxdnn_bf16 || !p.attr.src.is_default() || !in_rows || src.strides[nd - 2] % elements != 0
           || dim_from_end(p.weights, 2) % elements != 0;
}

int64_t sm90_rows_at_once(const problem_t &p) {
    const int64_t row_bytes = stride_of(p) * 2, hint = p.attr.max_rows_hint;
    const int64_t rows = std::max(least_rows, std::min(most_rows, most_bytes / row_bytes));
    return hint > 0 ? std::min(rows, round_up(hint, row_align)) : rows / row_align * row_align;
}

int64_t sm90_rows_bytes(const problem_t &p) { return sm90_rows_at_once(p) * (stride_of(p) * 2 + 4); }

status_t make_sm90_rows(
        const exec_ctx_t &ctx, int64_t first, int64_t count, char *space, sm90::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const matrix_args_t src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    sm90::source_rows_args_t r;
    r.elements = src.elements.data;
    r.row_step = src.elements.step[0];
    r.col_step = src.elements.step[1];
    r.dt = src.elements.dt;
    r.bits = src.elements.bits;
    r.packing = src.elements.packing;
    if (src.quantised) {
        r.quant = src.quant;
        r.scales = src.scales.data;
        r.scale_row_step = src.scales.step[0];
        r.scale_col_step = src.scales.step[1];
        r.swizzled = src.swizzled;
        r.swizzle_cols = src.swizzle_cols;
        a.src_global = src.global;
    }
    quant_t q;
    const data_type_t codes = source_format(p, q);
    if (p.attr.src.is_dynamic())
        r.recipe = codes == mxdnn_f8_e4m3     ? sm90::recipe_t::row_fp8
                   : q.scale_dt == mxdnn_e8m0 ? sm90::recipe_t::mx_int8
                                              : sm90::recipe_t::row_int8;
    r.rounding = p.attr.src.rounding;
    r.first = first;
    r.rows = count;
    r.K = dim_from_end(p.weights, 2);
    r.stride = stride_of(p);
    r.out = reinterpret_cast<uint16_t *>(space);
    r.factors = reinterpret_cast<float *>(space + sm90_rows_at_once(p) * stride_of(p) * 2);
    r.early = sm90_writes_no_weights(ctx.stream.cuda->last_kernel());
    a.src = r.out;
    a.src_stride = r.stride;
    a.row_factors = r.factors;
    return count ? launch_kernel(ctx, kernel_id_t::sm90_source_rows, r) : mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

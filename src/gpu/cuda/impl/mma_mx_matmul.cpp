// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/mma_mx_matmul.hpp"

#include "common/formats/format_list.hpp"
#include "common/problem_util.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t mma_mx_matmul_t::pd_t::init() {
    const memory_desc_t &src = problem.src, &wei = problem.weights, &dst = problem.dst;
    const attr_t &attr = problem.attr;
    if (!is_packed(wei)) return no("weights", "plain ones", "packed ones");
    if (const reason_t r = check_not_for_fp8(wei); !r.ok()) return r;
    if (const reason_t known = check_decoders(problem); !known.ok()) return known;
    if (attr.src.is_dynamic()) return no("src", "a recipe", "codes, or values as they are");
    if (has_role(src.dt, role_high_precision)) {
        if (src.dt == mxdnn_f32) return no("src", "f32", "bf16, f16 or a quantised type");
    } else {
        quant_t q;
        int axis = 0;
        quant_of("src", src, attr.src, q, &axis);
        if (q.zp != zero_point_kind_t::none) return no("src", "zero points", "none");
        if (data_type_info(src.dt)->bits < 8 && inner_dim(src) != src.ndims - 1)
            return no("src", "codes that share bytes along M", "along K");
    }
    const post_op_t *gated = attr.gated();
    if (gated && gated->gated_layout == mxdnn_gated_halves && dim_from_end(wei, 1) / 2 % 16)
        return no("gated halves", "N/2 that is no multiple of 16", "one");
    if (!has_role(dst.dt, role_high_precision)) {
        quant_t q;
        int axis = 0;
        quant_of("dst", dst, attr.dst, q, &axis);
        // Otherwise two threads would write halves of one byte. The number of rows may be known at execution
        // only.
        if (data_type_info(dst.dt)->bits < 8 && inner_dim(dst) != dst.ndims - 1 && dim_from_end(dst, 2) != 1)
            return no("dst", "codes that share bytes along M", "along N");
        if (q.block > (gated ? 32 : 64))
            return no("dst", "long blocks", "blocks of 32 at most, or 64 without a gate");
        if (attr.dst.global == mxdnn_quantization_mode_dynamic_fp)
            return no("dst", "a computed global scale", "a given one");
    }
    return check_post_op_count(attr);
}

status_t mma_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    matmul_args_t a;
    make_matmul_args(ctx, a);
    if (a.rows == 0 || a.columns == 0) return mxdnn_success;
    return launch_kernel(ctx, kernel_id_t::sm80_table_gemm, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Kernel arguments from memories, on the host.
#pragma once

#include "common/primitive.hpp"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

plain_args_t plain_args(const memory_t &m, mxdnn_element_packing_t packing = mxdnn_element_packing_bytes);
// `arg` is MXDNN_ARG_SRC, WEIGHTS or DST of the problem whose memories ctx holds.
matrix_args_t matrix_args(const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr);

// Whether the argument structs can hold a problem's post-ops.
inline reason_t check_post_op_count(const attr_t &attr) {
    if (attr.post_ops.ops.size() <= size_t(max_post_ops)) return yes();
    return refuse(mxdnn_unimplemented, "%zu post-ops; on a device there may be %d", attr.post_ops.ops.size(),
            max_post_ops);
}
// All arguments of an mx_matmul.
void make_matmul_args(const exec_ctx_t &ctx, matmul_args_t &a);
// All arguments of an mx_reorder.
void make_reorder_args(const exec_ctx_t &ctx, reorder_args_t &a);
void make_grouped_args(const exec_ctx_t &ctx, grouped_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

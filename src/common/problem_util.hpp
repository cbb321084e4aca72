// SPDX-License-Identifier: Apache-2.0
// What the preparation of problems of several kinds shares: checks, texts and lists of arguments.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

bool is_high_precision(data_type_t dt);
bool is_quantised_type(data_type_t dt);
bool dims_agree(dim_t a, dim_t b); // equal, as far as they are known
std::string dims_text(const memory_desc_t &md); // "runtimex2880"

status_t check_plain(const char *name, const memory_desc_t &md);

// Scales, zero points and global scale of one plain quantised argument.
void list_quant_args(pd_t &pd, int arg, const memory_desc_t &md, const arg_attr_t &a, arg_use_t use);

// Of primitives on src, weights, bias and dst: mx_matmul and mx_reorder.
void list_args_plain(pd_t &pd);
status_t check_runtime_dims_plain(const problem_t &p, const exec_ctx_t &ctx);

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// What the preparation of problems of several kinds shares: checks, texts and lists of arguments.
#pragma once

#include <initializer_list>

#include "common/formats/format_list.hpp"
#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

inline bool is_high_precision(data_type_t dt) { return has_role(dt, role_high_precision); }
inline bool is_quantised_type(data_type_t dt) { return has_role(dt, role_mx_element | role_affine_element); }

// Checks that a dynamic mode belongs to the family of the format and can compute its scales.
status_t check_dynamic(const char *name, data_type_t dt, const quant_t &q, const arg_attr_t &a);
status_t check_dynamic_mode(const char *name, data_type_t dt, const quant_t &q, const arg_attr_t &a);
// Checks that attributes beside a packed descriptor agree with it.
status_t check_matches_packed(const char *name, const memory_desc_t &md, const arg_attr_t &a);
// For one execution: checks that scales (or zero points) have the dims that belong to the rows, which are
// known now.
status_t check_params_follow(
        int arg, const memory_desc_t &params, const memory_desc_t &rows, const arg_attr_t &a);

// For implementations that have decoders: every quantised tensor has a format with a decoder.
reason_t check_decoders(const problem_t &p);

// Only the source of a matmul may have one scale per row. Other formats that quant_of() accepts have blocks.
status_t check_block_scales(const char *name, data_type_t dt, const quant_t &q);
// The global scale of a plain tensor of several matrices has the length of the batch, which must be known.
status_t check_global_scale(const char *name, const memory_desc_t &md, const arg_attr_t &a);
status_t check_plain(const char *name, const memory_desc_t &md);
// Rows of experts: in groups, in any order, or in padded groups.
status_t check_grouped_rows(const char *name, const memory_desc_t &md, mxdnn_row_grouping_t grouping);

// Whether dims are equal as far as they are known.
inline bool dims_agree(dim_t a, dim_t b) { return a == b || a == runtime_dim || b == runtime_dim; }
inline bool broadcasts_to(dim_t a, dim_t to) { return a == 1 || dims_agree(a, to); }
memory_desc_t plain_desc(data_type_t dt, std::initializer_list<dim_t> dims); // of no gaps
std::string dim_text(dim_t d);                  // "16", or "*" for a runtime value
std::string dims_text(const memory_desc_t &md); // "*x2880"
// Checks an operand that is broadcast to another shape: dims are aligned at the end, each equal or 1.
status_t check_broadcast(const char *name, const memory_desc_t &md, int ndims, const dim_t *to);

// The end of a message about weights whose K is not that of the source, but whose N is.
inline const char *hint_of_k_and_n(dim_t K, const memory_desc_t &wei) {
    return wei.dims[wei.ndims - 1] == K ? "; weights are [.., K, N], which frameworks' [.., N, K] are "
                                          "with the last two dims swapped and tag ba (or acb)"
                                        : "";
}

// Checks a sum post-op, which reads the previous values of `md`.
status_t check_sum(const char *name, const memory_desc_t &md, const post_op_t &sum);

// For a matmul: the format of the weights, `any` resolved; quantisation of source and destination.
status_t resolve_weights(problem_t &p);
status_t check_src(const problem_t &p);
status_t check_dst(const problem_t &p);

// Lists scales, zero points and global scale of one plain quantised argument.
void list_quant_args(pd_t &pd, int arg, const memory_desc_t &md, const arg_attr_t &a, arg_use_t use);

// Arguments of primitives with src, weights, bias and dst: mx_matmul and mx_reorder.
void list_args_plain(pd_t &pd);
status_t check_runtime_dims_plain(const problem_t &p, const exec_ctx_t &ctx);
// The same, also of rows in groups.
void list_args_mx_reorder(pd_t &pd);
status_t check_runtime_dims_mx_reorder(const problem_t &p, const exec_ctx_t &ctx);

// Arguments of grouped_matmul and of the gradient of its weights.
void list_grouped_matmul_args(pd_t &pd);
void list_args_grouped_backward_weights(pd_t &pd);
// Arguments of moe_route, moe_permute and moe_unpermute.
void list_args_moe_route(pd_t &pd);
void list_args_moe_permute(pd_t &pd);
void list_args_moe_unpermute(pd_t &pd);
status_t check_runtime_dims_moe_route(const problem_t &p, const exec_ctx_t &ctx);
status_t check_runtime_dims_moe_permute(const problem_t &p, const exec_ctx_t &ctx);
status_t check_runtime_dims_moe_unpermute(const problem_t &p, const exec_ctx_t &ctx);
// The parameters of such a problem beside its tensors, in the words of mxdnn-bench.
std::string moe_words(const problem_t &p);

} // namespace impl
} // namespace mxdnn

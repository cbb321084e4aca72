// SPDX-License-Identifier: Apache-2.0
// What this library registers with torch: the schema of each operator, and who implements it.
#include <torch/csrc/stable/library.h>

#include "operators.hpp"

using namespace mxdnn_torch;

STABLE_TORCH_LIBRARY(mxdnn, m) {
    m.def("packed_blob(int[] shape, str element, str scale, int block, str zero_point, str global_scale, "
          "str target, str original_type, str recipe) -> str");
    m.def("describe_blob(str blob) -> str");
    m.def("cpu_target() -> str");
    m.def("packed_checksum(Tensor packed, str blob) -> str");
    m.def("quantize_pack(Tensor weight, str blob, str rounding, Tensor? global_scale=None) -> Tensor");
    m.def("pack_codes(Tensor codes, Tensor scales, Tensor? zero_points, Tensor? global_scale, str blob, "
          "bool swizzled=False, bool dense=False) -> Tensor");
    m.def("unpack_codes(Tensor packed, str blob, bool swizzled=False, bool dense=False) "
          "-> (Tensor codes, Tensor scales, Tensor zero_points, Tensor global_scale)");
    m.def("unpack(Tensor packed, str blob, ScalarType dtype) -> Tensor");
    m.def("linear(Tensor x, Tensor packed, str blob, Tensor? bias=None, str activation=\"none\") -> Tensor");
    m.def("grouped_linear(Tensor x, Tensor packed, str blob, Tensor group_ends, Tensor? bias=None, "
          "str activation=\"none\", Tensor? gather_idx=None, Tensor? scatter_idx=None, "
          "Tensor? topk_weights=None, SymInt? dst_rows=None) -> Tensor");
    m.def("grouped_weights_gradient(Tensor x, Tensor grad, Tensor group_ends) -> Tensor");
    m.def("moe_route(Tensor logits, int topk, str scoring, bool renormalize=False, Tensor? bias=None, "
          "int expert_groups=1, int topk_groups=1, bool group_max=False, float scale=1.0) "
          "-> (Tensor topk_weights, Tensor topk_ids, Tensor group_ends, Tensor gather_idx, Tensor row_order, "
          "Tensor row_weights, Tensor counts)");
    m.def("moe_layer(Tensor x, Tensor logits, Tensor gate_up, str gate_up_blob, Tensor down, str down_blob, "
          "int topk, str scoring, str activation, Tensor? gate_up_bias=None, Tensor? down_bias=None, "
          "bool renormalize=False, Tensor? route_bias=None, int expert_groups=1, int topk_groups=1, "
          "bool group_max=False, float scale=1.0) -> Tensor");
    m.def("moe_permute(Tensor x, Tensor counts, int alignment, SymInt dst_rows) "
          "-> (Tensor rows, Tensor group_ends, Tensor permuted_idx)");
    m.def("moe_unpermute(Tensor x, Tensor permuted_idx, SymInt dst_rows, Tensor? topk_weights=None) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(mxdnn, CompositeExplicitAutograd, m) {
    m.impl("describe_blob", TORCH_BOX(&describe_blob));
    m.impl("cpu_target", TORCH_BOX(&cpu_target));
    m.impl("packed_blob", TORCH_BOX(&packed_blob));
}

// One implementation for both: a tensor says where it is.
#define MXDNN_TORCH_IMPLEMENTATIONS(m)                                                                       \
    m.impl("quantize_pack", TORCH_BOX(&quantize_pack));                                                      \
    m.impl("pack_codes", TORCH_BOX(&pack_codes));                                                            \
    m.impl("unpack_codes", TORCH_BOX(&unpack_codes));                                                        \
    m.impl("unpack", TORCH_BOX(&unpack));                                                                    \
    m.impl("linear", TORCH_BOX(&linear));                                                                    \
    m.impl("grouped_linear", TORCH_BOX(&grouped_linear));                                                    \
    m.impl("grouped_weights_gradient", TORCH_BOX(&grouped_weights_gradient));                                \
    m.impl("moe_route", TORCH_BOX(&moe_route));                                                              \
    m.impl("moe_layer", TORCH_BOX(&moe_layer));                                                              \
    m.impl("moe_permute", TORCH_BOX(&moe_permute));                                                          \
    m.impl("moe_unpermute", TORCH_BOX(&moe_unpermute))

STABLE_TORCH_LIBRARY_IMPL(mxdnn, CPU, m) {
    m.impl("packed_checksum", TORCH_BOX(&packed_checksum));
    MXDNN_TORCH_IMPLEMENTATIONS(m);
}
STABLE_TORCH_LIBRARY_IMPL(mxdnn, CUDA, m) { MXDNN_TORCH_IMPLEMENTATIONS(m); }

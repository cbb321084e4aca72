// SPDX-License-Identifier: Apache-2.0
// What this library registers with torch: the schema of each operator, and who implements it.
#include <torch/csrc/stable/library.h>

#include "operators.hpp"

using namespace mxdnn_torch;

STABLE_TORCH_LIBRARY(mxdnn, m) {
    m.def("packed_blob(int[] shape, str element, str scale, int block, str zero_point, str global_scale, "
          "str target, str original_type, str recipe) -> str");
    m.def("quantize_pack(Tensor weight, str blob, str rounding, Tensor? global_scale=None) -> Tensor");
    m.def("pack_codes(Tensor codes, Tensor scales, Tensor? zero_points, Tensor? global_scale, str blob, "
          "bool swizzled=False, bool dense=False) -> Tensor");
    m.def("unpack_codes(Tensor packed, str blob, bool swizzled=False, bool dense=False) "
          "-> (Tensor codes, Tensor scales, Tensor zero_points, Tensor global_scale)");
    m.def("unpack(Tensor packed, str blob, ScalarType dtype) -> Tensor");
    m.def("linear(Tensor x, Tensor packed, str blob, Tensor? bias=None, str activation=\"none\") -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(mxdnn, CompositeExplicitAutograd, m) {
    m.impl("packed_blob", TORCH_BOX(&packed_blob));
}

// One implementation for both: a tensor says where it is.
#define MXDNN_TORCH_IMPLEMENTATIONS(m)                                                                       \
    m.impl("quantize_pack", TORCH_BOX(&quantize_pack));                                                      \
    m.impl("pack_codes", TORCH_BOX(&pack_codes));                                                            \
    m.impl("unpack_codes", TORCH_BOX(&unpack_codes));                                                        \
    m.impl("unpack", TORCH_BOX(&unpack));                                                                    \
    m.impl("linear", TORCH_BOX(&linear))

STABLE_TORCH_LIBRARY_IMPL(mxdnn, CPU, m) { MXDNN_TORCH_IMPLEMENTATIONS(m); }
STABLE_TORCH_LIBRARY_IMPL(mxdnn, CUDA, m) { MXDNN_TORCH_IMPLEMENTATIONS(m); }

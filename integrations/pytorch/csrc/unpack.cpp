// SPDX-License-Identifier: Apache-2.0
// unpack: packed weights as a plain tensor [.., N, K] of f32, bf16 or f16.
#include "call.hpp"
#include "operators.hpp"
#include "reorder.hpp"

namespace mxdnn_torch {

Tensor unpack(const Tensor &packed, const std::string &blob, ScalarType type) {
    const auto desc = parse_blob(blob);
    const view_t src = view_of(packed, "packed");
    expect_packed(src, *desc);
    view_t wanted;
    wanted.type = type;
    const mxdnn::memory::desc dst_desc = plain_desc(desc->dims, high_precision(wanted, "the result"));
    const mxdnn::engine engine = reorder_engine(*desc, src.place);
    const mxdnn::mx_reorder::primitive_desc pd(
            engine, desc->desc, engine, dst_desc, attributes_for(src.place));
    const Tensor weight = make_tensor(desc->weight_shape(), type, src.place);
    run_reorder(pd, engine, src.place,
            {{MXDNN_ARG_FROM, {desc->desc, src.data}}, {MXDNN_ARG_TO, {dst_desc, weight.data_ptr()}}});
    return weight;
}

} // namespace mxdnn_torch

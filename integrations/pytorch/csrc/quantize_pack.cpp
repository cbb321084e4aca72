// SPDX-License-Identifier: Apache-2.0
// quantize_pack: weights [.., N, K] of f32, bf16 or f16, quantised and packed as a blob says.
#include "call.hpp"
#include "formats.hpp"
#include "operators.hpp"
#include "reorder.hpp"

namespace mxdnn_torch {

using mxdnn::quantization_mode;

Tensor quantize_pack(const Tensor &weight, const std::string &blob, const std::string &rounding,
        const std::optional<Tensor> &global_scale) {
    const auto desc = parse_blob(blob);
    const Tensor rows = make_contiguous(weight);
    const view_t src = view_of(rows, "weight");
    expect_weights(src, "weight", desc->weight_shape());
    const bool is_two_level = desc->global_scale != packed_desc_t::no_global_scale;
    if (global_scale && !is_two_level)
        refuse("a global scale was passed, but the format of the blob has none");

    mxdnn::primitive_attr attr = attributes_for(src.place);
    set_format(attr, MXDNN_ARG_DST, *desc, dynamic_mode(*desc),
            global_scale ? quantization_mode::static_sazp : quantization_mode::dynamic_fp);
    if (desc->scale == dt::e8m0) attr.set_scale_rounding(MXDNN_ARG_DST, rounding_of_word(rounding));
    const mxdnn::engine engine = reorder_engine(*desc, src.place);
    const mxdnn::memory::desc src_desc = plain_desc(desc->dims, high_precision(src, "weight"));
    const mxdnn::mx_reorder::primitive_desc pd(engine, src_desc, engine, desc->desc, attr);

    const Tensor packed = make_tensor({static_cast<int64_t>(desc->size)}, ScalarType::Byte, src.place);
    arguments_t arguments = {
            {MXDNN_ARG_FROM, {src_desc, src.data}}, {MXDNN_ARG_TO, {desc->desc, packed.data_ptr()}}};
    if (global_scale) {
        const view_t global = view_of(*global_scale, "global_scale");
        expect_type(global, "global_scale", ScalarType::Float);
        expect_place(global, "global_scale", src.place);
        expect_contiguous(global, "global_scale");
        arguments.push_back({MXDNN_ARG_TO | MXDNN_ARG_ATTR_GLOBAL_SCALE,
                {mxdnn::memory::desc({global.numel()}, dt::f32, mxdnn::memory::format_tag::a), global.data}});
    }
    run_reorder(pd, engine, src.place, arguments);
    return packed;
}

} // namespace mxdnn_torch

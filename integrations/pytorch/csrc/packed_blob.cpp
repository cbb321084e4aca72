// SPDX-License-Identifier: Apache-2.0
// packed_blob: the blob of weights [.., N, K] in a format, packed for a target.
#include "blob_cache.hpp"
#include "device.hpp"
#include "formats.hpp"
#include "operators.hpp"
#include "source.hpp"

namespace mxdnn_torch {

std::string packed_blob(std::vector<int64_t> shape, const std::string &element, const std::string &scale,
        int64_t block, const std::string &zero_point, const std::string &global_scale,
        const std::string &target, const std::string &original_type, const std::string &recipe) {
    if (shape.size() < 2 || shape.size() > 4)
        refuse("weights have shape " + to_string(shape) + "; they must be [.., N, K] with 2 to 4 dimensions");
    if (recipe.find('\0') != std::string::npos) refuse("the activation recipe has a zero byte");
    parse_recipe(recipe);
    packed_desc_t format;
    format.dims = shape;
    std::swap(format.dims[shape.size() - 2], format.dims[shape.size() - 1]);
    format.element = type_of_word(element, "the element type");
    format.scale = type_of_word(scale, "the scale type");
    const size_t suffix = zero_point.find(':');
    format.minima = suffix != std::string::npos && zero_point.substr(suffix) == minimum_suffix;
    format.zero_point = type_of_word(
            format.minima ? zero_point.substr(0, suffix) : zero_point, "the type of the zero points");
    format.block = block;
    if (global_scale != "none" && global_scale != "f32")
        refuse("global_scale is '" + global_scale + "'; it must be none or f32");
    if (global_scale == "f32") format.global_scale = packed_desc_t::one_global_scale;
    const mxdnn::engine engine = host_engine_of(target);
    mxdnn::primitive_attr attr;
    set_format(attr, MXDNN_ARG_WEIGHTS, format, mxdnn::quantization_mode::static_sazp,
            mxdnn::quantization_mode::static_sazp);
    mxdnn::memory::desc desc = mxdnn::memory::desc::packed(engine, format.dims, format.element, attr);
    desc.set_annotation(type_of_word(original_type, "the original type"), recipe);
    return to_base64(desc.get_blob());
}

} // namespace mxdnn_torch

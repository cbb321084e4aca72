// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {

// The name of a mode in verbose lines and messages, such as "dynamic_mx".
inline const char *quantization_mode_name(mxdnn_quantization_mode_t m) {
    switch (m) {
    case mxdnn_quantization_mode_static_sazp: return "static_sazp";
    case mxdnn_quantization_mode_dynamic_mx: return "dynamic_mx";
    case mxdnn_quantization_mode_dynamic_fp: return "dynamic_fp";
    case mxdnn_quantization_mode_dynamic_affine: return "dynamic_affine";
    default: return "undef";
    }
}

} // namespace impl
} // namespace mxdnn

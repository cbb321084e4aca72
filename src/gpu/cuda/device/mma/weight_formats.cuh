// SPDX-License-Identifier: Apache-2.0
// The list of weight formats that the Hopper kernels are built for.
#pragma once

#include "gpu/cuda/device/mma/decode_8bit.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/mma/decode_f6.cuh"
#include "gpu/cuda/device/mma/decode_int4.cuh"

namespace mxdnn {
namespace impl {

// The result of `get` for the type of a format. get is called with an object of it.
template <typename getter>
auto of_format(cuda::packed::format_t f, const getter &get) -> decltype(get(mxfp4_t())) {
    using cuda::packed::format_t;
    switch (f) {
    case format_t::nvfp4: return get(nvfp4_t());
    case format_t::mxfp6_e2m3: return get(mxfp6_t<2>());
    case format_t::mxfp6_e3m2: return get(mxfp6_t<3>());
    case format_t::mxfp8_e4m3: return get(mxfp8_t<4>());
    case format_t::mxfp8_e5m2: return get(mxfp8_t<5>());
    case format_t::mxint8: return get(mxint8_t());
    case format_t::int4: return get(int4_t<int4_kind_t::s4>());
    case format_t::int4_zero_points: return get(int4_t<int4_kind_t::zero_points>());
    case format_t::int4_zeros: return get(int4_t<int4_kind_t::zeros>());
    case format_t::int4_any: return get(int4_t<int4_kind_t::any>());
    default: return get(mxfp4_t());
    }
}

} // namespace impl
} // namespace mxdnn

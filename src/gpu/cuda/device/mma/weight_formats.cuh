// SPDX-License-Identifier: Apache-2.0
// The types that decode the weights of each format.
#pragma once

#include <array> // std::size
#include <utility>

#include "gpu/cuda/device/mma/decode_8bit.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/mma/decode_f6.cuh"
#include "gpu/cuda/device/mma/decode_int4.cuh"

namespace mxdnn {
namespace impl {

template <typename T>
struct decoded_by_t {
    using type = T;
};
template <decoder_t decoder, int4_kind_t kind>
struct weights_t;
// clang-format off
template <int4_kind_t kind> struct weights_t<decoder_t::mxfp4, kind> : decoded_by_t<mxfp4_t> {};
template <int4_kind_t kind> struct weights_t<decoder_t::nvfp4, kind> : decoded_by_t<nvfp4_t> {};
template <int4_kind_t kind> struct weights_t<decoder_t::mxfp6_e2m3, kind> : decoded_by_t<mxfp6_t<2>> {};
template <int4_kind_t kind> struct weights_t<decoder_t::mxfp6_e3m2, kind> : decoded_by_t<mxfp6_t<3>> {};
template <int4_kind_t kind> struct weights_t<decoder_t::mxfp8_e4m3, kind> : decoded_by_t<mxfp8_t<4>> {};
template <int4_kind_t kind> struct weights_t<decoder_t::mxfp8_e5m2, kind> : decoded_by_t<mxfp8_t<5>> {};
template <int4_kind_t kind> struct weights_t<decoder_t::mxint8, kind> : decoded_by_t<mxint8_t> {};
template <int4_kind_t kind> struct weights_t<decoder_t::int4, kind> : decoded_by_t<int4_t<kind>> {};
// clang-format on

template <typename getter, size_t... i>
auto of_format_in(cuda::packed::format_t f, const getter &get, std::index_sequence<i...>) {
    using cuda::packed::formats;
    decltype(get(mxfp4_t())) result{};
    ((f == formats[i] ? (result = get(typename weights_t<formats[i].decoder, formats[i].kind>::type()), true)
                      : false)
            || ...);
    return result;
}

// The result of `get` for the type of a format. get is called with an object of it. Null or 0 for other
// formats.
template <typename getter>
auto of_format(cuda::packed::format_t f, const getter &get) {
    return of_format_in(f, get, std::make_index_sequence<std::size(cuda::packed::formats)>());
}

} // namespace impl
} // namespace mxdnn

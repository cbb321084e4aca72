// SPDX-License-Identifier: Apache-2.0
// The formats of packed weights that matmul kernels are built for.
#pragma once

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {

// What a kernel for int4 knows of the types when it is built: s4 with 16-bit scales; u4 with these and zero
// points of 8 bits; u4 with these and floating zeros or minima of 16 bits; or nothing (any).
enum class int4_kind_t { s4, zero_points, zeros, any };

namespace cuda {
namespace packed {

// A format as kernels see it.
struct format_t {
    decoder_t decoder = decoder_t::none;
    int4_kind_t kind = int4_kind_t::any; // of int4

    friend constexpr bool operator==(const format_t &a, const format_t &b) {
        return a.decoder == b.decoder && a.kind == b.kind;
    }
    friend constexpr bool operator!=(const format_t &a, const format_t &b) { return !(a == b); }
};

constexpr format_t no_format{}, any_int4{decoder_t::int4, int4_kind_t::any};

// The type that decodes each is in device/mma/weight_formats.cuh.
inline constexpr format_t formats[] = {
        {decoder_t::mxfp4},
        {decoder_t::nvfp4},
        {decoder_t::mxfp6_e2m3},
        {decoder_t::mxfp6_e3m2},
        {decoder_t::mxfp8_e4m3},
        {decoder_t::mxfp8_e5m2},
        {decoder_t::mxint8},
        {decoder_t::int4, int4_kind_t::s4},
        {decoder_t::int4, int4_kind_t::zero_points},
        {decoder_t::int4, int4_kind_t::zeros},
        any_int4,
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

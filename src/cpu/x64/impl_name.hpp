// SPDX-License-Identifier: Apache-2.0
// Names of implementations that are a class for several ISAs: "jit:avx2" or "simd:avx2", and so on.
#pragma once

#include "cpu/x64/isa.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct impl_name_t {
    char text[40] = {};

    constexpr impl_name_t(const char *kind, const char *isa) {
        int n = 0;
        for (; *kind; kind++) text[n++] = *kind;
        for (; *isa; isa++) text[n++] = *isa;
    }
};

template <cpu_isa_t isa>
inline constexpr impl_name_t jit_name{"jit:", isa_name(isa)};
template <cpu_isa_t isa>
inline constexpr impl_name_t simd_name{"simd:", isa_name(isa)};

} // namespace x64
} // namespace impl
} // namespace mxdnn

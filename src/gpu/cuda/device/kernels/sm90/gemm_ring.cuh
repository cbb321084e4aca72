// SPDX-License-Identifier: Apache-2.0
// Walking the ring of stages of gemm.
#pragma once

#include <type_traits>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The position in the ring of stages.
template <int stages>
struct ring_t {
    int slot = 0, round = 0;
    ring_t() = default;
    __device__ explicit ring_t(int position) : slot(position % stages), round(position / stages & 1) {}
    __device__ void next() {
        if (++slot == stages) slot = 0, round ^= 1;
    }
};

// Calls stage(slot, left) for this many stages, from slot `first` on. Each slot has its own code. Returns
// whether there are more stages.
template <int stages, typename stage_t>
__device__ __forceinline__ void in_slots(const stage_t &stage, int first, int left) {
    int end = first + left; // the slot after the last stage if the ring were long enough
    const auto ends = [&](auto slot) {
        if constexpr (slot < stages)
            return !stage(slot, end - slot);
        else
            return false;
    };
    static_assert(stages <= 8, "a case for each");
    for (;; first = 0, end -= stages) {
        switch (first) {
        case 0:
            if (ends(std::integral_constant<int, 0>())) return;
            [[fallthrough]];
        case 1:
            if (ends(std::integral_constant<int, 1>())) return;
            [[fallthrough]];
        case 2:
            if (ends(std::integral_constant<int, 2>())) return;
            [[fallthrough]];
        case 3:
            if (ends(std::integral_constant<int, 3>())) return;
            [[fallthrough]];
        case 4:
            if (ends(std::integral_constant<int, 4>())) return;
            [[fallthrough]];
        case 5:
            if (ends(std::integral_constant<int, 5>())) return;
            [[fallthrough]];
        case 6:
            if (ends(std::integral_constant<int, 6>())) return;
            [[fallthrough]];
        case 7:
            if (ends(std::integral_constant<int, 7>())) return;
        }
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The architectures of CUDA devices, a row of facts each. Targets, verdicts, layouts, implementation lists
// and heuristics read the rows; nothing else in libmxdnn tells one architecture from another.
#pragma once

#include <cstring>

#include "common/layouts/layout_list.hpp"
#include "gpu/cuda/interface/cuda_types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct arch_t {
    const char *target = nullptr; // the engine target of its devices
    const char *aliases[2] = {};  // further names of that target
    int capability = 0; // the least compute capability, 90 for 9.0; the next row begins where it ends
    target_family_t layouts = target_family_t::cuda; // the family of packed layouts of its weights
    const char *build = nullptr; // the entry of MXDNN_CUDA_ARCHITECTURES that builds kernels for it alone;
                                 // null: it has none
    // Implementations of mx_matmul with kernels for this architecture alone. Packed weights that one of them
    // takes are `native`.
    const char *own_matmuls[2] = {};
    // Assumptions about a device that is described but not present.
    int sm_count = 0, shared_bytes = 0;
    int64_t l2_bytes = 0;

    const char *name() const { return target + sizeof("cuda:") - 1; }
    bool owns(const char *matmul) const {
        for (const char *own : own_matmuls)
            if (own && std::strcmp(own, matmul) == 0) return true;
        return false;
    }
};

inline constexpr arch_t sm80 = [] {
    arch_t a;
    a.target = "cuda:sm_80";
    a.aliases[0] = "cuda:sm_86", a.aliases[1] = "cuda:sm_89";
    a.capability = 80;
    a.own_matmuls[0] = "rows:sm_80", a.own_matmuls[1] = "cuda:sm_80";
    a.sm_count = 108, a.shared_bytes = 163 << 10, a.l2_bytes = 40 << 20;
    return a;
}();

inline constexpr arch_t sm90 = [] {
    arch_t a;
    a.target = "cuda:sm_90";
    a.capability = 90;
    a.build = "90a";
    a.own_matmuls[0] = "cuda:sm_90";
    a.sm_count = 132, a.shared_bytes = 227 << 10, a.l2_bytes = 50 << 20;
    return a;
}();

inline constexpr arch_t sm100 = [] {
    arch_t a;
    a.target = "cuda:sm_100";
    a.aliases[0] = "cuda:sm_103";
    a.capability = 100;
    a.sm_count = 148, a.shared_bytes = 227 << 10, a.l2_bytes = 126 << 20;
    return a;
}();

inline constexpr arch_t sm120 = [] {
    arch_t a;
    a.target = "cuda:sm_120";
    a.aliases[0] = "cuda:sm_121";
    a.capability = 120;
    a.sm_count = 170, a.shared_bytes = 99 << 10, a.l2_bytes = 96 << 20;
    return a;
}();

// In ascending order of the capability.
inline constexpr const arch_t *arch_list[] = {&sm80, &sm90, &sm100, &sm120};

// The architecture of a device; null if it is too old.
inline const arch_t *find_arch(const device_info_t &info) {
    const arch_t *found = nullptr;
    for (const arch_t *a : arch_list)
        if (info.capability() >= a->capability) found = a;
    return found;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

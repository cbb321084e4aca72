// SPDX-License-Identifier: Apache-2.0
// Which x86 instructions the machine has, which of them may be used, and how large its caches are.
#pragma once

#include <cstdint>

#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {
namespace x64 {

// CPU features that code can require, one bit each.
enum cpu_feature_t : uint32_t {
    feature_avx2 = 1u << 0,        // AVX2, FMA, F16C
    feature_avx512 = 1u << 1,      // AVX-512 F, BW, DQ, VL
    feature_avx512_vbmi = 1u << 2, // byte tables of decoders
    feature_avx512_vnni = 1u << 3,
    feature_avx512_bf16 = 1u << 4,
    feature_amx_tile = 1u << 5, // and permission of Linux to use tiles
    feature_amx_bf16 = 1u << 6,
    feature_amx_int8 = 1u << 7,
};

// Sets of features: those that a kernel requires, that a target has, or that a cap allows. Sets are not
// ordered. A set includes another one, or does not.
enum class cpu_isa_t : uint32_t {
    none = 0, // portable code only
    avx2 = feature_avx2,
    avx512_core = avx2 | feature_avx512,
    // A Cooper Lake, which has BF16 without VBMI, is avx512_core.
    avx512_core_bf16 = avx512_core | feature_avx512_vbmi | feature_avx512_vnni | feature_avx512_bf16,
    avx512_core_amx = avx512_core_bf16 | feature_amx_tile | feature_amx_bf16 | feature_amx_int8,
    all = ~0u
};

constexpr cpu_isa_t operator|(cpu_isa_t a, cpu_isa_t b) { return cpu_isa_t(uint32_t(a) | uint32_t(b)); }
constexpr cpu_isa_t operator&(cpu_isa_t a, cpu_isa_t b) { return cpu_isa_t(uint32_t(a) & uint32_t(b)); }
constexpr bool includes(cpu_isa_t set, cpu_isa_t part) { return (set & part) == part; }
bool operator<(cpu_isa_t, cpu_isa_t) = delete;
bool operator>(cpu_isa_t, cpu_isa_t) = delete;
bool operator<=(cpu_isa_t, cpu_isa_t) = delete;
bool operator>=(cpu_isa_t, cpu_isa_t) = delete;

// The sets with a name, which are targets and caps. A set follows those that it includes. If a machine has
// two of them, the later one is preferred.
struct isa_row_t {
    cpu_isa_t isa;
    const char *name, *target;
    mxdnn_cpu_isa_t api; // its public value
};
inline constexpr isa_row_t isa_list[] = {
        {cpu_isa_t::avx2, "avx2", "cpu:x64:avx2", mxdnn_cpu_isa_avx2},
        {cpu_isa_t::avx512_core, "avx512_core", "cpu:x64:avx512_core", mxdnn_cpu_isa_avx512_core},
        {cpu_isa_t::avx512_core_bf16, "avx512_core_bf16", "cpu:x64:avx512_core_bf16",
                mxdnn_cpu_isa_avx512_core_bf16},
        {cpu_isa_t::avx512_core_amx, "avx512_core_amx", "cpu:x64:avx512_core_amx",
                mxdnn_cpu_isa_avx512_core_amx},
};

// The preferred named set that `features` includes; `none` if there is none.
constexpr cpu_isa_t best_named_isa(cpu_isa_t features) {
    cpu_isa_t best = cpu_isa_t::none;
    for (const isa_row_t &row : isa_list)
        if (includes(features, row.isa)) best = row.isa;
    return best;
}

// The name of the set, such as "avx2", or of the first named set that includes it; "none".
constexpr const char *isa_name(cpu_isa_t isa) {
    if (isa == cpu_isa_t::none) return "none";
    for (const isa_row_t &row : isa_list)
        if (includes(row.isa, isa)) return row.name;
    return "none";
}

// Whether code that requires this set can run here and is within the cap. True for `none`.
bool mayiuse(cpu_isa_t isa);

// The preferred named set that may be used.
cpu_isa_t best_isa();
const char *isa_name(); // its name

// Allows no further features from now on. Existing primitives keep their code.
void set_isa_cap(cpu_isa_t cap);
cpu_isa_t isa_cap();

// False if no set has that name. "none" cannot be requested.
bool isa_from_name(const char *name, cpu_isa_t *isa);

// Processors with the same instructions differ in their cost. A kernel may be made for one family of
// processors.
enum class cpu_family_t {
    any,
    zen, // AMD, and Hygon
};
cpu_family_t cpu_family();

// Data caches, in bytes, as one core sees them.
struct cache_sizes_t {
    int64_t l1d, l2;
    int64_t l3_per_core; // a shared cache divided by the cores that share it
};
const cache_sizes_t &cache_sizes();

} // namespace x64
} // namespace impl
} // namespace mxdnn

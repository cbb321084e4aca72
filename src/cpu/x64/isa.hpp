// SPDX-License-Identifier: Apache-2.0
// Which x86 instructions the machine has, which of them may be used, and how large its caches are.
#pragma once

#include <cstdint>

#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {
namespace x64 {

// What code asks of a processor, a bit each.
enum cpu_feature_t : uint32_t {
    feature_avx2 = 1u << 0,        // AVX2, FMA, F16C
    feature_avx512 = 1u << 1,      // AVX-512 F, BW, DQ, VL
    feature_avx512_vbmi = 1u << 2, // byte tables of decoders
    feature_avx512_vnni = 1u << 3,
    feature_avx512_bf16 = 1u << 4,
    feature_amx_tile = 1u << 5, // and leave from Linux to use the tiles
    feature_amx_bf16 = 1u << 6,
    feature_amx_int8 = 1u << 7,
};

// Sets of features: what a kernel requires, what a target has, what a cap allows. Sets have no order, one
// includes another or does not.
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

// The sets that have a name: targets are made of them, and caps. A set follows those that it includes; of two
// that a machine has both of, the later one is preferred.
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

// The preferred set with a name of those that `features` includes; `none` where there is none.
constexpr cpu_isa_t best_named_isa(cpu_isa_t features) {
    cpu_isa_t best = cpu_isa_t::none;
    for (const isa_row_t &row : isa_list)
        if (includes(features, row.isa)) best = row.isa;
    return best;
}

// "avx2" and so on: of the set, or of the first one that includes it; "none".
constexpr const char *isa_name(cpu_isa_t isa) {
    if (isa == cpu_isa_t::none) return "none";
    for (const isa_row_t &row : isa_list)
        if (includes(row.isa, isa)) return row.name;
    return "none";
}

// Whether code that requires a set runs here and is within the cap. `none` always may.
bool mayiuse(cpu_isa_t isa);

// The preferred set with a name that may be used.
cpu_isa_t best_isa();
const char *isa_name(); // its name

// Nothing beyond these features is used from now on. Primitives that exist already keep their code.
void set_isa_cap(cpu_isa_t cap);
cpu_isa_t isa_cap();

// False when no set has that name; "none" is not one that can be asked for.
bool isa_from_name(const char *name, cpu_isa_t *isa);

// Processors with the same instructions differ in what these cost: kernels made for some of them are kernels
// of a family.
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

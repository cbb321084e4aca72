// SPDX-License-Identifier: Apache-2.0
// Which x86 instructions the machine has, which of them may be used, and how large its caches are.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace x64 {

// Each level has everything that the levels before it have.
enum class cpu_isa_t {
    none,        // portable code only
    avx2,        // AVX2, FMA, F16C
    avx512_core, // AVX-512 F, BW, DQ, VL
    // AVX512_BF16 and VBMI. The byte tables of this level's decoders need VBMI, so a Cooper Lake,
    // which has BF16 alone, counts as avx512_core.
    avx512_core_bf16,
    avx512_core_amx // AMX-TILE, AMX-BF16, AMX-INT8, and leave from Linux to use the tiles
};

// Whether code of that level runs here and is not above the cap. `none` always may.
bool mayiuse(cpu_isa_t isa);

// The highest level that may be used.
cpu_isa_t best_isa();

// No level above the cap is used from now on. Primitives that exist already keep their code.
void set_isa_cap(cpu_isa_t cap);
cpu_isa_t isa_cap();

// "avx2" and so on: of the best level, or of the one given.
const char *isa_name();
const char *isa_name(cpu_isa_t isa);
// False when no level has that name; "none" is not one that can be asked for.
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

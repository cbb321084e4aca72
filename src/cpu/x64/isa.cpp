// SPDX-License-Identifier: Apache-2.0
// CPUID, XGETBV and the permission that Linux wants to be asked for before tiles are touched.
#include "cpu/x64/isa.hpp"

#include <atomic>
#include <cpuid.h>
#include <cstring>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

struct regs_t {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

regs_t cpuid(uint32_t leaf, uint32_t sub = 0) {
    regs_t r;
    // On some processors, leaves above the highest one repeat another leaf.
    if (uint32_t(__get_cpuid_max(leaf & 0x80000000u, nullptr)) < leaf) return r;
    __cpuid_count(leaf, sub, r.eax, r.ebx, r.ecx, r.edx);
    return r;
}

bool has(uint32_t word, int bit) { return word >> bit & 1; }

// The register states that the operating system saves.
uint64_t os_states() {
    if (!has(cpuid(1).ecx, 27)) return 0; // OSXSAVE
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return uint64_t(hi) << 32 | lo;
}

// The features that CPUID and the operating system report, before the permission for tiles.
cpu_isa_t detect() {
    const regs_t l1 = cpuid(1), l7 = cpuid(7), l7_1 = l7.eax >= 1 ? cpuid(7, 1) : regs_t();
    const uint64_t os = os_states();
    constexpr uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;

    uint32_t found = 0;
    const auto add = [&](bool has_it, uint32_t feature) { found |= has_it ? feature : 0; };
    if ((os & ymm) == ymm) {
        const bool avx = has(l1.ecx, 28), fma = has(l1.ecx, 12), f16c = has(l1.ecx, 29);
        add(avx && fma && f16c && has(l7.ebx, 5), feature_avx2);
    }
    if ((os & zmm) == zmm) {
        const bool f = has(l7.ebx, 16), dq = has(l7.ebx, 17), bw = has(l7.ebx, 30), vl = has(l7.ebx, 31);
        add(f && dq && bw && vl, feature_avx512);
        add(has(l7.ecx, 1), feature_avx512_vbmi);
        add(has(l7.ecx, 11), feature_avx512_vnni);
        add(has(l7_1.eax, 5), feature_avx512_bf16);
    }
    if ((os & tiles) == tiles) {
        add(has(l7.edx, 24), feature_amx_tile);
        add(has(l7.edx, 22), feature_amx_bf16);
        add(has(l7.edx, 25), feature_amx_int8);
    }
    return cpu_isa_t(found);
}

cpu_isa_t detected() {
    static const cpu_isa_t isa = detect();
    return isa;
}

// Requested once per process, and only if tiles would be used: after it the kernel insists on larger signal
// stacks.
bool tiles_granted() {
    static const bool granted = [] {
#if defined(__linux__) && defined(SYS_arch_prctl)
        constexpr long arch_req_xcomp_perm = 0x1023, tile_data = 18;
        return syscall(SYS_arch_prctl, arch_req_xcomp_perm, tile_data) == 0;
#else
        return false;
#endif
    }();
    return granted;
}

std::atomic<cpu_isa_t> cap{cpu_isa_t::all};

constexpr cpu_isa_t without_tiles = cpu_isa_t(~uint32_t(feature_amx_tile));

cache_sizes_t detect_caches() {
    // Used if CPUID says nothing: small enough for every processor with AVX2.
    cache_sizes_t c = {32 << 10, 256 << 10, 1 << 20};
    const uint32_t leaf = cpu_family() == cpu_family_t::zen ? 0x8000001d : 4;
    int64_t threads_per_core = 1;
    for (uint32_t i = 0; i < 8; i++) {
        const regs_t r = cpuid(leaf, i);
        const uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
        if (type == 0) break;
        if (type == 2) continue; // instructions
        const int64_t line = (r.ebx & 0xfff) + 1, partitions = (r.ebx >> 12 & 0x3ff) + 1;
        const int64_t ways = (r.ebx >> 22) + 1, sets = int64_t(r.ecx) + 1;
        const int64_t bytes = line * partitions * ways * sets;
        const int64_t sharing = (r.eax >> 14 & 0xfff) + 1;
        if (level == 1) {
            c.l1d = bytes;
            threads_per_core = sharing;
        } else if (level == 2) {
            c.l2 = bytes;
        } else if (level == 3) {
            const int64_t cores = sharing / threads_per_core;
            c.l3_per_core = bytes / (cores > 0 ? cores : 1);
        }
    }
    return c;
}

} // namespace

bool mayiuse(cpu_isa_t isa) {
    if (!includes(detected() & isa_cap(), isa)) return false;
    return !includes(isa, cpu_isa_t(feature_amx_tile)) || tiles_granted();
}

cpu_isa_t best_isa() {
    cpu_isa_t best = best_named_isa(detected() & isa_cap());
    if (!mayiuse(best)) best = best_named_isa(detected() & isa_cap() & without_tiles);
    return best;
}

const char *isa_name() { return isa_name(best_isa()); }

void set_isa_cap(cpu_isa_t isa) { cap.store(isa, std::memory_order_relaxed); }
cpu_isa_t isa_cap() { return cap.load(std::memory_order_relaxed); }

bool isa_from_name(const char *name, cpu_isa_t *isa) {
    for (const isa_row_t &row : isa_list)
        if (!std::strcmp(name, row.name)) {
            *isa = row.isa;
            return true;
        }
    return false;
}

cpu_family_t cpu_family() {
    static const cpu_family_t family = [] {
        const uint32_t vendor = cpuid(0).ebx; // "Auth", "Hygo"
        return vendor == 0x68747541 || vendor == 0x6f677948 ? cpu_family_t::zen : cpu_family_t::any;
    }();
    return family;
}

const cache_sizes_t &cache_sizes() {
    static const cache_sizes_t c = detect_caches();
    return c;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

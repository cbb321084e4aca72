// SPDX-License-Identifier: Apache-2.0
/// @file
/// Version, verbose lines, CPU ISA, threads and the primitive cache.
#ifndef MXDNN_HPP_SERVICE_HPP
#define MXDNN_HPP_SERVICE_HPP

#include <string>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/error.hpp"

namespace mxdnn {

// Setters return their status as oneDNN's do.

/// Version, commit and threading of a library.
using version_t = mxdnn_version_t;
/// Those of the library that is loaded.
inline const version_t *version() { return mxdnn_version(); }

/// Words of MXDNN_VERBOSE, for example "dispatch,profile_exec".
inline status set_verbose(const std::string &words) {
    return static_cast<status>(mxdnn_set_verbose(words.c_str()));
}
/// True: generated code is written to mxdnn_dump_KERNEL.N.bin in the current folder.
inline status set_jit_dump(bool enable) { return static_cast<status>(mxdnn_set_jit_dump(enable ? 1 : 0)); }

/// Caps the CPU ISA; possible until the first primitive descriptor is created.
inline status set_max_cpu_isa(cpu_isa isa) {
    return static_cast<status>(mxdnn_set_max_cpu_isa(static_cast<mxdnn_cpu_isa_t>(isa)));
}
/// The best ISA that the machine has and the cap allows.
inline cpu_isa get_effective_cpu_isa() { return static_cast<cpu_isa>(mxdnn_get_effective_cpu_isa()); }

/// Threads that an execution may use, at most the smaller of the values when its descriptor was created and
/// when it begins; 0 for the machine's.
inline status set_max_concurrency(int threads) {
    return static_cast<status>(mxdnn_set_max_concurrency(threads));
}
/// What was set, or how many the machine has.
inline int get_max_concurrency() { return mxdnn_get_max_concurrency(); }

/// The number of primitives that the cache keeps.
inline int get_primitive_cache_capacity() {
    int capacity = 0;
    error::wrap_c_api(mxdnn_get_primitive_cache_capacity(&capacity),
            "could not get the capacity of the primitive cache");
    return capacity;
}
/// Primitives kept for reuse (default 1024); 0 empties and disables the cache.
inline void set_primitive_cache_capacity(int capacity) {
    error::wrap_c_api(mxdnn_set_primitive_cache_capacity(capacity),
            "could not set the capacity of the primitive cache");
}

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
/// @file
/// Version, verbose lines, CPU ISA, threads and the primitive cache.
#ifndef MXDNN_HPP_SERVICE_HPP
#define MXDNN_HPP_SERVICE_HPP

#include <string>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/error.hpp"

namespace mxdnn {

// As in oneDNN, most setters here return their status instead of throwing.

/// Version, commit and threading of the library.
using version_t = mxdnn_version_t;
/// The version of the library that is loaded.
inline const version_t *version() { return mxdnn_version(); }

/// Sets what is printed, in the words of MXDNN_VERBOSE, for example "dispatch,profile_exec".
inline status set_verbose(const std::string &words) {
    return static_cast<status>(mxdnn_set_verbose(words.c_str()));
}
/// True: every generated kernel is written to a file mxdnn_dump_KERNEL.N.bin in the current folder.
inline status set_jit_dump(bool enable) { return static_cast<status>(mxdnn_set_jit_dump(enable ? 1 : 0)); }

/// Sets the highest instruction set that CPU engines use. Possible until the first primitive descriptor is
/// created.
inline status set_max_cpu_isa(cpu_isa isa) {
    return static_cast<status>(mxdnn_set_max_cpu_isa(static_cast<mxdnn_cpu_isa_t>(isa)));
}
/// The best instruction set that the machine has and set_max_cpu_isa() allows.
inline cpu_isa get_effective_cpu_isa() { return static_cast<cpu_isa>(mxdnn_get_effective_cpu_isa()); }

/// Sets how many threads an execution may use; 0 for as many as the machine has. An execution uses at most
/// the smaller of two values: the one when its descriptor was created, and the one when it begins.
inline status set_max_concurrency(int threads) {
    return static_cast<status>(mxdnn_set_max_concurrency(threads));
}
/// The number of threads that an execution may use: what was set, or how many the machine has.
inline int get_max_concurrency() { return mxdnn_get_max_concurrency(); }

/// The number of primitives that the cache keeps.
inline int get_primitive_cache_capacity() {
    int capacity = 0;
    error::wrap_c_api(mxdnn_get_primitive_cache_capacity(&capacity),
            "could not get the capacity of the primitive cache");
    return capacity;
}
/// Sets how many primitives the cache keeps for reuse (default 1024). 0 empties the cache and turns it off.
inline void set_primitive_cache_capacity(int capacity) {
    error::wrap_c_api(mxdnn_set_primitive_cache_capacity(capacity),
            "could not set the capacity of the primitive cache");
}

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_settings.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/shown.hpp"
#include "cpu/pool_region.hpp"
#include "cpu/runtime/runtime.hpp"
#include "cpu/x64/jit/jit_dump.hpp"
#include "cpu/x64/jit/jit_profile.hpp"

namespace mxdnn {
namespace impl {

namespace {

using x64::cpu_isa_t;

std::mutex cap_mutex;
bool cap_fixed = false; // guarded by cap_mutex

void read_environment_once() {
    static const bool done = [] {
        x64::set_jit_dump(environment().jit_dump);
        x64::set_jit_profile(environment().jit_profile);
        const std::string &name = environment().max_cpu_isa;
        cpu_isa_t cap;
        if (!name.empty() && name != "default") {
            if (x64::isa_from_name(name.c_str(), &cap))
                x64::set_isa_cap(cap);
            else
                std::fprintf(stderr, "mxdnn: MXDNN_MAX_CPU_ISA is %s; possible are %s\n", shown(name).c_str(),
                        cpu_isa_names().c_str());
        }
        return true;
    }();
    (void)done;
}

std::atomic<int> concurrency{0};

} // namespace

std::string cpu_isa_names() {
    std::string all;
    for (const x64::isa_row_t &row : x64::isa_list) all.append(all.empty() ? "" : " ").append(row.name);
    return all;
}

cpu_isa_t best_cpu_isa() {
    read_environment_once();
    return x64::best_isa();
}

void fix_cpu_isa() {
    read_environment_once();
    const std::lock_guard<std::mutex> lock(cap_mutex);
    cap_fixed = true;
}

status_t set_max_cpu_isa(mxdnn_cpu_isa_t isa) {
    read_environment_once();
    const std::lock_guard<std::mutex> lock(cap_mutex);
    if (cap_fixed)
        return fail(mxdnn_invalid_arguments, "the CPU ISA cap was asked to change after the first primitive "
                                             "descriptor was created; set it before");
    if (isa == mxdnn_cpu_isa_default) {
        x64::set_isa_cap(cpu_isa_t::all);
        return mxdnn_success;
    }
    for (const x64::isa_row_t &row : x64::isa_list)
        if (row.api == isa) {
            x64::set_isa_cap(row.isa);
            return mxdnn_success;
        }
    return fail(
            mxdnn_invalid_arguments, "CPU ISA 0x%x; possible are %s", unsigned(isa), cpu_isa_names().c_str());
}

mxdnn_cpu_isa_t effective_cpu_isa() {
    const cpu_isa_t best = best_cpu_isa();
    for (const x64::isa_row_t &row : x64::isa_list)
        if (row.isa == best) return row.api;
    return mxdnn_cpu_isa_default;
}

int max_concurrency() {
    if (!runtime::has_threads && !runtime::takes_threadpools) return 1;
    const int n = concurrency.load(std::memory_order_relaxed);
    // Read once, because the affinity mask costs a system call.
    static const int machine = std::clamp(runtime::default_concurrency(), 1, max_threads);
    return n > 0 ? n : machine;
}

status_t set_max_concurrency(int threads) {
    if (threads < 0 || threads > max_threads)
        return fail(mxdnn_invalid_arguments, "max concurrency %d; possible are 0 (the machine's) to %d",
                threads, max_threads);
    concurrency.store(threads, std::memory_order_relaxed);
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn

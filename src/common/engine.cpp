// SPDX-License-Identifier: Apache-2.0
#include "common/engine.hpp"

#include <array>
#include <deque>
#include <iterator>
#include <mutex>

#include "common/cpu_settings.hpp"
#include "common/error.hpp"

namespace mxdnn {
namespace impl {

namespace {

using x64::cpu_isa_t;

constexpr target_t cuda_targets[] = {
        {"cuda:sm_80", mxdnn_cuda, target_family_t::cuda, cpu_isa_t::none, 80},
        {"cuda:sm_90", mxdnn_cuda, target_family_t::cuda, cpu_isa_t::none, 90},
        {"cuda:sm_100", mxdnn_cuda, target_family_t::cuda, cpu_isa_t::none, 100},
        {"cuda:sm_120", mxdnn_cuda, target_family_t::cuda, cpu_isa_t::none, 120},
};

// Every target that can be named. A CPU family's targets share their packed layouts.
constexpr auto target_list = [] {
    std::array<target_t, std::size(x64::isa_list) + std::size(cuda_targets)> all{};
    size_t n = 0;
    for (const x64::isa_row_t &row : x64::isa_list)
        all[n++] = {row.target, mxdnn_cpu, target_family_t::cpu_x64, row.isa, 0};
    for (const target_t &t : cuda_targets) all[n++] = t;
    return all;
}();

// Further names of such targets: the compute capabilities of devices that a target stands for.
constexpr const char *target_aliases[][2] = {
        {"cuda:sm_86", "cuda:sm_80"},
        {"cuda:sm_89", "cuda:sm_80"},
        {"cuda:sm_103", "cuda:sm_100"},
        {"cuda:sm_121", "cuda:sm_120"},
};

} // namespace

const target_t *find_target(const char *name) {
    std::string wanted = name;
    for (const auto &[alias, target] : target_aliases)
        if (wanted == alias) wanted = target;
    for (const target_t &t : target_list)
        if (wanted == t.name) return &t;
    return nullptr;
}

std::string target_names() {
    std::string s;
    for (const target_t &t : target_list) s += std::string(s.empty() ? "" : " ") + t.name;
    return s;
}

const target_t *native_cpu_target() {
    // A machine below AVX2 runs the reference under the lowest target's name.
    for (const target_t &t : target_list)
        if (t.kind == mxdnn_cpu && t.isa == best_cpu_isa()) return &t;
    return &target_list[0];
}

size_t engine_count(mxdnn_engine_kind_t kind) {
    return kind == mxdnn_cpu ? 1 : kind == mxdnn_cuda ? cuda::device_count() : 0;
}

namespace {
// Engines are values: equal ones are one object, which lives as long as the process, so that no
// stream, memory or primitive can outlive its engine.
const engine_t *intern(const engine_t &e) {
    static std::mutex mutex;
    static std::deque<engine_t> *engines = new std::deque<engine_t>;
    const std::lock_guard<std::mutex> lock(mutex);
    for (const engine_t &known : *engines)
        if (known == e) return &known;
    engines->push_back(e);
    return &engines->back();
}

status_t create_cuda_engine(const engine_t **engine, size_t index) {
    const char *why_none = "";
    const size_t count = cuda::device_count(&why_none);
    if (count == 0)
        return fail(mxdnn_device_unavailable, "cuda engine %zu; this machine has 0: %s", index, why_none);
    if (index >= count)
        return fail(mxdnn_device_unavailable, "cuda engine %zu; this machine has %zu, counted from 0", index,
                count);
    engine_t e;
    e.device = cuda::find_device(index);
    const int arch = cuda::arch_of(e.device->info);
    for (const target_t &t : target_list)
        if (t.kind == mxdnn_cuda && t.arch == arch) e.target = &t;
    if (!e.target)
        return fail(mxdnn_device_unavailable,
                "cuda engine %zu is %s of compute capability %d.%d; mxdnn needs 8.0 or newer", index,
                e.device->info.name, e.device->info.compute_major, e.device->info.compute_minor);
    const cuda::device_info_t &info = e.device->info;
    const int least = cuda::least_capability(*e.device);
    if (info.compute_major * 10 + info.compute_minor < least)
        return fail(mxdnn_device_unavailable,
                "cuda engine %zu is %s of compute capability %d.%d; libmxdnn_cuda was built for %d.%d and newer: "
                "name the device's in MXDNN_CUDA_ARCHITECTURES when you build it",
                index, info.name, info.compute_major, info.compute_minor, least / 10, least % 10);
    e.index = index;
    e.executes = true;
    *engine = intern(e);
    return mxdnn_success;
}
} // namespace

status_t create_engine(const engine_t **engine, mxdnn_engine_kind_t kind, size_t index) {
    if (kind != mxdnn_cpu && kind != mxdnn_cuda)
        return fail(mxdnn_invalid_arguments, "engine kind %d; possible are cpu (1) and cuda (2)", int(kind));
    if (kind == mxdnn_cuda) return create_cuda_engine(engine, index);
    if (index >= engine_count(kind))
        return fail(mxdnn_invalid_arguments, "cpu engine %zu; there is one, of index 0", index);
    engine_t e;
    e.target = native_cpu_target();
    e.index = index;
    e.executes = true;
    *engine = intern(e);
    return mxdnn_success;
}

status_t create_engine_for_target(const engine_t **engine, const char *name) {
    const target_t *t = find_target(name);
    if (!t)
        return fail(mxdnn_invalid_arguments, "target '%s'; possible are %s", name, target_names().c_str());
    engine_t e;
    e.target = t;
    e.executes = t->kind == mxdnn_cpu && x64::includes(native_cpu_target()->isa, t->isa);
    *engine = intern(e);
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn

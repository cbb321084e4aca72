// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda_backend.hpp"

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/blob_verdict.hpp"
#include "common/grouped_mx_reorder.hpp"
#include "common/layouts/layout_list.hpp"
#include "common/packed_desc.hpp"
#include "gpu/cuda/cuda_impl_lists.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/impl/packed/packed_grouped_matmul.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

struct cuda_target_t : target_t {
    const arch_t *arch;
    explicit cuda_target_t(const arch_t *a) : target_t{a->target, mxdnn_cuda, a->layouts}, arch(a) {}
};

// One target for each architecture.
const std::vector<cuda_target_t> &target_list() {
    static const std::vector<cuda_target_t> list(std::begin(arch_list), std::end(arch_list));
    return list;
}

class cuda_backend_t final : public backend_t {
public:
    mxdnn_engine_kind_t kind() const override { return mxdnn_cuda; }
    const char *name() const override { return "cuda"; }

    const target_t *target(size_t i) const override {
        return i < target_list().size() ? &target_list()[i] : nullptr;
    }
    const target_t *find_target(const std::string &name) const override {
        for (const cuda_target_t &t : target_list())
            for (const char *alias : t.arch->aliases)
                if (alias && name == alias) return &t;
        return backend_t::find_target(name);
    }
    bool executes(const target_t &) const override { return false; } // engines that are devices execute

    size_t engine_count() const override { return device_count(); }
    status_t describe_engine(engine_t &engine, size_t index) const override;

    impl_list_t impl_list(const problem_t &p) const override {
        if (!is_zero(p.dst_1)) return cuda_two_reorders_list();
        return is_grouped_reorder(p) ? cuda_grouped_reorders_list() : cuda_impl_list(p.kind);
    }
    const layout_t *layout_for(const problem_t &p) const override;
    mxdnn_blob_verdict_t verdict(const engine_t &engine, const memory_desc_t &packed) const override;
};

status_t cuda_backend_t::describe_engine(engine_t &engine, size_t index) const {
    const char *why_none = "";
    const size_t count = device_count(&why_none);
    if (count == 0)
        return fail(mxdnn_device_unavailable, "cuda engine %zu; this machine has 0: %s", index, why_none);
    if (index >= count)
        return fail(mxdnn_device_unavailable, "cuda engine %zu; this machine has %zu, counted from 0", index,
                count);
    const device_t &device = *find_device(index);
    const device_info_t &info = device.info;
    engine.device = &device;
    for (const cuda_target_t &t : target_list())
        if (t.arch == device.arch) engine.target = &t;
    if (!engine.target)
        return fail(mxdnn_device_unavailable,
                "cuda engine %zu is %s of compute capability %d.%d; mxdnn needs 8.0 or newer", index,
                info.name, info.compute_major, info.compute_minor);
    const int least = device.table->least_capability;
    if (info.capability() < least)
        return fail(mxdnn_device_unavailable,
                "cuda engine %zu is %s of compute capability %d.%d; libmxdnn_cuda was built for %d.%d and newer: name the device's in MXDNN_CUDA_ARCHITECTURES when you build it",
                index, info.name, info.compute_major, info.compute_minor, least / 10, least % 10);
    return mxdnn_success;
}

const layout_t *cuda_backend_t::layout_for(const problem_t &p) const {
    const bool fp8 = p.kind == mxdnn_primitive_kind_grouped_matmul && &arch_of(*p.engine) == &sm90
                     && takes_fp8_layout(p);
    return fp8 ? find_layout(target_family_t::cuda, n64_f4_t::id) : nullptr;
}

// One of the entries that multiply bf16 rows by such weights has to be one of the architecture. It need not
// be the first one: that of cuBLASLt takes many rows and leaves the others to those after it.
mxdnn_blob_verdict_t cuda_backend_t::verdict(const engine_t &engine, const memory_desc_t &md) const {
    problem_t p;
    p.kind = mxdnn_primitive_kind_mx_matmul;
    p.engine = &engine;
    const dim_t K = dim_from_end(md, 2), N = dim_from_end(md, 1);
    const dim_t src[2] = {runtime_dim, K}, wei[2] = {K, N}, dst[2] = {runtime_dim, N};
    init_strided(p.src, 2, src, mxdnn_bf16, nullptr);
    init_packed_as(p.weights, 2, wei, md.dt, md.packed.quant, *layout_of(md));
    init_strided(p.dst, 2, dst, mxdnn_bf16, nullptr);
    if (prepare_mx_matmul(p) != mxdnn_success) return mxdnn_blob_slower; // its message is the reason
    const impl_list_t list = cuda_impl_list(p.kind);
    const arch_t &arch = arch_of(engine);
    if (is_for_fp8(md) && &arch == &sm90 && decoder_of(md.dt, md.packed.quant) == decoder_t::mxfp4)
        return because(mxdnn_blob_native, "%s", "");
    std::string taken_by = "nothing", refusal;
    for (size_t i = 0; i < list.size; i++) {
        std::unique_ptr<pd_t> pd;
        const bool is_own = arch.owns(list.items[i].name);
        const reason_t r = list.items[i].create(pd, p);
        if (is_own && r.ok()) return because(mxdnn_blob_native, "%s", "");
        if (is_own) refusal = std::string("; ") + list.items[i].name + " declines: " + r.text;
        if (r.ok() && taken_by == "nothing") taken_by = list.items[i].name;
    }
    return because(mxdnn_blob_slower, "no kernel of %s's own takes %s; they run by %s%s", engine.target->name,
            to_string(md).c_str(), taken_by.c_str(), refusal.c_str());
}

} // namespace

const backend_t &cuda_backend() {
    static const cuda_backend_t b;
    return b;
}

const arch_t &arch_of(const engine_t &engine) {
    return *static_cast<const cuda_target_t *>(engine.target)->arch;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

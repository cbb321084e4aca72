// SPDX-License-Identifier: Apache-2.0
#include "common/blob_verdict.hpp"

#include <cstdarg>
#include <cstdio>

#include "common/blob/blob.hpp"
#include "common/error.hpp"
#include "common/packed_desc.hpp"
#include "common/primitive_desc.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "gpu/cuda/cuda_impl_lists.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Leaves the reason, and answers.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
mxdnn_blob_verdict_t
because(mxdnn_blob_verdict_t verdict, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    leave_reason(text);
    return verdict;
}

mxdnn_blob_verdict_t native() { return because(mxdnn_blob_native, "%s", ""); }

// One of the entries that multiply bf16 rows by such weights has to be the architecture's own. It need not be
// the first: cuBLASLt's takes many rows and leaves the others to those after it.
mxdnn_blob_verdict_t cuda_verdict(const engine_t &engine, const memory_desc_t &md) {
    problem_t p;
    p.kind = mxdnn_primitive_kind_mx_matmul;
    p.engine = &engine;
    const dim_t K = dim_from_end(md, 2), N = dim_from_end(md, 1);
    const dim_t src[2] = {runtime_dim, K}, wei[2] = {K, N}, dst[2] = {runtime_dim, N};
    init_strided(p.src, 2, src, mxdnn_bf16, nullptr);
    init_packed_as(p.weights, 2, wei, md.dt, md.packed.quant, *layout_of(md));
    init_strided(p.dst, 2, dst, mxdnn_bf16, nullptr);
    if (prepare_mx_matmul(p) != mxdnn_success) return mxdnn_blob_slower; // whose sentence is the reason
    const impl_list_t list = cuda_impl_list(p.kind);
    const std::string own = "sm_" + std::to_string(engine.target->arch);
    std::string taken_by = "nothing", refusal;
    for (size_t i = 0; i < list.size; i++) {
        std::unique_ptr<pd_t> pd;
        const bool is_own = std::string(list.items[i].name).find(own) != std::string::npos;
        const reason_t r = list.items[i].create(pd, p);
        if (is_own && r.ok()) return native();
        if (is_own) refusal = std::string("; ") + list.items[i].name + " declines: " + r.text;
        if (r.ok() && taken_by == "nothing") taken_by = list.items[i].name;
    }
    return because(mxdnn_blob_slower, "no kernel of %s's own takes %s; they run by %s%s", engine.target->name,
            to_string(md).c_str(), taken_by.c_str(), refusal.c_str());
}

// The lists answer for machines that are not here, too: of the kernels that a matmul would be made of, one
// has to use what the target has, as far as any kernel does.
mxdnn_blob_verdict_t cpu_verdict(const engine_t &engine, const memory_desc_t &md) {
    using x64::kernel_kind_t;
    const x64::cpu_isa_t isa = engine.target->isa;
    const x64::kernel_row_t *decode = x64::find_kernel(kernel_kind_t::decode, isa, md.dt, md.packed.quant);
    if (!decode)
        return because(mxdnn_blob_slower, "no kernel of %s takes %s; the reference does", engine.target->name,
                to_string(md).c_str());
    for (const kernel_kind_t kind :
            {kernel_kind_t::decode, kernel_kind_t::dense, kernel_kind_t::direct, kernel_kind_t::many}) {
        const x64::kernel_row_t *row =
                x64::find_kernel(kind, isa, md.dt, md.packed.quant, decode->compute_dt);
        if (row && requires_most(*row, isa)) return native();
    }
    return because(mxdnn_blob_slower, "no kernel of %s's own takes %s; the best is %s", engine.target->name,
            to_string(md).c_str(), decode->name);
}

} // namespace

mxdnn_blob_verdict_t blob_verdict(const engine_t &engine, const uint8_t *blob, size_t size) {
    memory_desc_t md;
    blob_fault_t fault;
    switch (classify_blob(blob, size, &md, &fault)) {
    case blob_class_t::corrupt: return because(mxdnn_blob_corrupt, "%s", fault.text);
    case blob_class_t::unknown_target:
    case blob_class_t::unknown_layout:
    case blob_class_t::newer_format: return because(mxdnn_blob_incompatible, "%s", fault.text);
    case blob_class_t::ok: break;
    }
    // Plain descriptors: the reference multiplies plain quantised weights on any engine.
    if (!is_packed(md))
        return because(mxdnn_blob_slower,
                "%s is plain, which only the reference takes as weights; mx_reorder to a destination of tag `any` "
                "packs them for %s",
                to_string(md).c_str(), engine.target->name);
    if (md.packed.family != engine.target->family)
        return because(mxdnn_blob_needs_reorder, "%s is packed for %s, and the engine is %s; mx_reorder them",
                to_string(md).c_str(), target_family_name(md.packed.family), engine.target->name);
    return engine.kind() == mxdnn_cuda ? cuda_verdict(engine, md) : cpu_verdict(engine, md);
}

} // namespace impl
} // namespace mxdnn

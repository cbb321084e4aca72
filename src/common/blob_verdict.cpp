// SPDX-License-Identifier: Apache-2.0
#include "common/blob_verdict.hpp"

#include "common/blob/blob.hpp"
#include "common/packed_desc.hpp"
#include "common/primitive_desc.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "gpu/cuda/cuda_impl_lists.hpp"

namespace mxdnn {
namespace impl {

namespace {

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
    if (prepare_mx_matmul(p) != mxdnn_success) return mxdnn_blob_slower;
    const impl_list_t list = cuda_impl_list(p.kind);
    const std::string own = "sm_" + std::to_string(engine.target->arch);
    for (size_t i = 0; i < list.size; i++) {
        std::unique_ptr<pd_t> pd;
        if (std::string(list.items[i].name).find(own) != std::string::npos
                && list.items[i].create(pd, p).ok())
            return mxdnn_blob_native;
    }
    return mxdnn_blob_slower;
}

} // namespace

mxdnn_blob_verdict_t blob_verdict(const engine_t &engine, const uint8_t *blob, size_t size) {
    memory_desc_t md;
    switch (classify_blob(blob, size, &md)) {
    case blob_class_t::corrupt: return mxdnn_blob_corrupt;
    case blob_class_t::unknown_target:
    case blob_class_t::unknown_layout:
    case blob_class_t::newer_format: return mxdnn_blob_incompatible;
    case blob_class_t::ok: break;
    }
    // Plain descriptors: the reference multiplies plain quantised weights on any engine.
    if (!is_packed(md)) return mxdnn_blob_slower;
    if (md.packed.family != engine.target->family) return mxdnn_blob_needs_reorder;
    if (engine.kind() == mxdnn_cuda) return cuda_verdict(engine, md);
    // The lists answer for machines that are not here, too: of the kernels that a matmul would be made of,
    // one has to be the target's own.
    using x64::kernel_kind_t;
    const x64::cpu_isa_t isa = engine.target->isa;
    const x64::kernel_row_t *decode = x64::find_kernel(kernel_kind_t::decode, isa, md.dt, md.packed.quant);
    if (!decode) return mxdnn_blob_slower;
    for (const kernel_kind_t kind :
            {kernel_kind_t::decode, kernel_kind_t::dense, kernel_kind_t::direct, kernel_kind_t::many}) {
        const x64::kernel_row_t *row =
                x64::find_kernel(kind, isa, md.dt, md.packed.quant, decode->compute_dt);
        if (row && row->isa == isa) return mxdnn_blob_native;
    }
    return mxdnn_blob_slower;
}

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "common/blob_verdict.hpp"

#include "common/blob/blob.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {

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
    if (engine.kind() == mxdnn_cuda) return mxdnn_blob_slower; // ref:cuda takes it
    // The lists answer for machines that are not here, too: of the kernels that a matmul would be made of,
    // one has to be the target's own (tiles multiply what the kernels of the ISA below decode).
    using x64::kernel_kind_t;
    const x64::cpu_isa_t isa = engine.target->isa;
    const x64::kernel_row_t *decode = x64::find_kernel(kernel_kind_t::decode, isa, md.dt, md.packed.quant);
    if (!decode) return mxdnn_blob_slower;
    for (const kernel_kind_t kind : {kernel_kind_t::decode, kernel_kind_t::dense, kernel_kind_t::direct}) {
        const x64::kernel_row_t *row =
                x64::find_kernel(kind, isa, md.dt, md.packed.quant, decode->compute_dt);
        if (row && row->isa == isa) return mxdnn_blob_native;
    }
    return mxdnn_blob_slower;
}

} // namespace impl
} // namespace mxdnn

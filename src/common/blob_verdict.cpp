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
    if (!is_packed(md)) return engine.kind() == mxdnn_cpu ? mxdnn_blob_slower : mxdnn_blob_needs_reorder;
    if (md.packed.family != engine.target->family) return mxdnn_blob_needs_reorder;
    // The lists answer for machines that are not here, too.
    const x64::cpu_isa_t isa = engine.target->isa;
    const x64::kernel_row_t *row = x64::find_kernel(x64::kernel_kind_t::decode, isa, md.dt, md.packed.quant);
    return row && row->isa == isa ? mxdnn_blob_native : mxdnn_blob_slower;
}

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "common/blob_verdict.hpp"

#include <cstdarg>
#include <cstdio>

#include "common/backend.hpp"
#include "common/blob/blob.hpp"
#include "common/error.hpp"

namespace mxdnn {
namespace impl {

mxdnn_blob_verdict_t because(mxdnn_blob_verdict_t verdict, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    leave_reason(text);
    return verdict;
}

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
    // Plain descriptors: the reference multiplies plain quantised weights on every engine.
    if (!is_packed(md))
        return because(mxdnn_blob_slower,
                "%s is plain, which only the reference takes as weights; mx_reorder to a destination of tag `any` "
                "packs them for %s",
                to_string(md).c_str(), engine.target->name);
    if (md.packed.family != engine.target->family)
        return because(mxdnn_blob_needs_reorder, "%s is packed for %s, and the engine is %s; mx_reorder them",
                to_string(md).c_str(), target_family_name(md.packed.family), engine.target->name);
    return find_backend(engine.kind())->verdict(engine, md);
}

} // namespace impl
} // namespace mxdnn

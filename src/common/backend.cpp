// SPDX-License-Identifier: Apache-2.0
#include "common/backend.hpp"

namespace mxdnn {
namespace impl {

const target_t *backend_t::find_target(const std::string &name) const {
    for (size_t i = 0; const target_t *t = target(i); i++)
        if (name == t->name) return t;
    for (size_t i = 0; const target_t *t = target(i); i++)
        if (name == target_family_name(t->family)) return t;
    return nullptr;
}

const backend_t *find_backend(mxdnn_engine_kind_t kind) {
    for (size_t i = 0; const backend_t *b = backend(i); i++)
        if (b->kind() == kind) return b;
    return nullptr;
}

const backend_t &exec_backend(const problem_t &p) {
    const engine_t &engine = exec_engine(p);
    const bool on_host = p.kind == mxdnn_primitive_kind_mx_reorder && !engine.device;
    return on_host ? *backend(0) : *find_backend(engine.kind());
}

impl_list_t impl_list(const problem_t &p) { return exec_backend(p).impl_list(p); }

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// What stands behind an engine kind. src/backend_list.cpp names all backends; src/common knows none of them.
#pragma once

#include <string>

#include "common/layouts/layout_list.hpp"
#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

class backend_t {
public:
    virtual ~backend_t() = default;
    virtual mxdnn_engine_kind_t kind() const = 0;
    virtual const char *name() const = 0; // the name of the kind, for messages

    // Target number `index` of those that engines can be created for; null beyond the last.
    virtual const target_t *target(size_t index) const = 0;
    // The target with that name or alias; null if there is none. The name of a family is that of its first
    // target.
    virtual const target_t *find_target(const std::string &name) const;
    // Whether engines of a target can execute primitives on this machine.
    virtual bool executes(const target_t &target) const = 0;

    // The engines that this machine has.
    virtual size_t engine_count() const = 0;
    virtual status_t describe_engine(engine_t &engine, size_t index) const = 0;

    // The implementations of the problem's kind of primitive, best first.
    virtual impl_list_t impl_list(const problem_t &problem) const = 0;
    // The layout for weights of a problem that may have any, and that are packed in the family's own now.
    // Null: that one.
    virtual const layout_t *layout_for(const problem_t &) const { return nullptr; }
    // What an engine can do with packed weights of its family. Leaves the reason as the last error.
    virtual mxdnn_blob_verdict_t verdict(const engine_t &engine, const memory_desc_t &packed) const = 0;

    // Settings that decide about implementations do not change from now on.
    virtual void fix_settings() const {}
    // The number of threads that an execution may use. Scratchpads are sized for it.
    virtual int max_concurrency() const { return 1; }
};

// Backend number `index`, the host's first; null beyond the last.
const backend_t *backend(size_t index);

// The backend of an engine kind; null if there is none.
const backend_t *find_backend(mxdnn_engine_kind_t kind);

// The backend whose implementations execute a problem. If there is no device, the host executes reorders for
// every target: packing needs no device.
const backend_t &exec_backend(const problem_t &problem);

} // namespace impl
} // namespace mxdnn

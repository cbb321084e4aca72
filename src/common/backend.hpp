// SPDX-License-Identifier: Apache-2.0
// What stands behind an engine kind. src/backend_list.cpp names all backends; src/common knows none of them.
#pragma once

#include <string>

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

class backend_t {
public:
    virtual ~backend_t() = default;
    virtual mxdnn_engine_kind_t kind() const = 0;
    virtual const char *name() const = 0; // of the kind, in sentences

    // The targets that engines can be created for; null beyond the last.
    virtual const target_t *target(size_t index) const = 0;
    // By its name, or by another name for it; a family's name is its first target. Null where there is none.
    virtual const target_t *find_target(const std::string &name) const;
    // Whether engines of a target execute primitives on this machine.
    virtual bool executes(const target_t &target) const = 0;

    // This machine's engines.
    virtual size_t engine_count() const = 0;
    virtual status_t describe_engine(engine_t &engine, size_t index) const = 0;

    // The implementations of a problem's primitive, best first.
    virtual impl_list_t impl_list(const problem_t &problem) const = 0;
    // What an engine does with packed weights of its family. The reason is left as the last error.
    virtual mxdnn_blob_verdict_t verdict(const engine_t &engine, const memory_desc_t &packed) const = 0;

    // From now on, settings by which implementations are chosen do not change.
    virtual void fix_settings() const {}
    // Threads that an execution may use, which scratchpads are sized for.
    virtual int max_concurrency() const { return 1; }
};

// All of them, the host's first; null beyond the last.
const backend_t *backend(size_t index);

// Null where nothing stands behind the kind.
const backend_t *find_backend(mxdnn_engine_kind_t kind);

// Whose implementations execute a problem: where no device is, reorders run on the host for every target,
// since packing needs none.
const backend_t &exec_backend(const problem_t &problem);

} // namespace impl
} // namespace mxdnn

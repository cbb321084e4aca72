// SPDX-License-Identifier: Apache-2.0
/// @file
/// Engines: where primitives run, or what weights are packed for.
#ifndef MXDNN_HPP_ENGINE_HPP
#define MXDNN_HPP_ENGINE_HPP

#include <string>
#include <vector>

#include "mxdnn/hpp/handle.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_engine_t> {
    static void destroy(mxdnn_engine_t p) { mxdnn_engine_destroy(p); }
};

/// Where primitives run, or what weights are packed for.
struct engine : public handle<mxdnn_engine_t> {
    /// Kinds of engines.
    enum class kind {
        any = mxdnn_any_engine,
        cpu = mxdnn_cpu,
        cuda = mxdnn_cuda,
    };

    /// Empty.
    engine() = default;
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit engine(mxdnn_engine_t e, bool weak = false) : handle(e, weak) {}

    /// The engine of device `index` of a kind, below get_count().
    engine(kind akind, size_t index) {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_engine_create(&e, static_cast<mxdnn_engine_kind_t>(akind), index),
                "could not create an engine");
        reset(e);
    }

    /// An engine for a named target, such as "cpu:x64:avx2" or "cuda:sm_90". The machine need not have the
    /// target. The family of a packed descriptor, memory::desc::get_target(), is a name, too.
    static engine for_target(const std::string &target) {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_engine_create_for_target(&e, target.c_str()),
                "could not create an engine for a target");
        return engine(e);
    }

    /// Number of engines of a kind that this machine can execute on.
    static size_t get_count(kind akind) {
        return mxdnn_engine_get_count(static_cast<mxdnn_engine_kind_t>(akind));
    }

    /// The names of all targets that this release knows, present or not.
    static std::vector<std::string> get_target_names() {
        std::vector<std::string> names(mxdnn_engine_get_target_count());
        for (size_t i = 0; i < names.size(); i++) {
            const char *name = nullptr;
            error::wrap_c_api(mxdnn_engine_get_target_name(i, &name), "could not get the name of a target");
            names[i] = name;
        }
        return names;
    }

    /// The kind.
    kind get_kind() const {
        mxdnn_engine_kind_t k = mxdnn_any_engine;
        error::wrap_c_api(mxdnn_engine_get_kind(get(), &k), "could not get the kind of an engine");
        return static_cast<kind>(k);
    }

    /// The target's name, for example "cpu:x64:avx2".
    std::string get_target() const {
        const char *target = nullptr;
        error::wrap_c_api(mxdnn_engine_get_target(get(), &target), "could not get the target of an engine");
        return target;
    }

    /// Whether it is the same engine. Two engines of one target are equal.
    bool operator==(const engine &other) const { return is_same(other); }
    /// Whether it is another engine.
    bool operator!=(const engine &other) const { return !is_same(other); }
};

} // namespace mxdnn

#endif

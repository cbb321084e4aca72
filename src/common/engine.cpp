// SPDX-License-Identifier: Apache-2.0
#include "common/engine.hpp"

#include <deque>
#include <mutex>

#include "common/backend.hpp"
#include "common/error.hpp"
#include "common/shown.hpp"

namespace mxdnn {
namespace impl {

namespace {

// "cpu (1), cuda (2)"
std::string kind_names() {
    std::string s;
    for (size_t i = 0; const backend_t *b = backend(i); i++)
        s += std::string(i ? ", " : "") + b->name() + " (" + std::to_string(int(b->kind())) + ")";
    return s;
}

// Two equal engines are one object. It lives as long as the process, so that no stream, memory or primitive
// can outlive its engine.
const engine_t *intern(const engine_t &e) {
    static std::mutex mutex;
    static std::deque<engine_t> *engines = new std::deque<engine_t>;
    const std::lock_guard<std::mutex> lock(mutex);
    for (const engine_t &known : *engines)
        if (known == e) return &known;
    engines->push_back(e);
    return &engines->back();
}

} // namespace

const target_t *target(size_t index) {
    for (size_t i = 0; const backend_t *b = backend(i); i++)
        for (size_t j = 0; const target_t *t = b->target(j); j++)
            if (index-- == 0) return t;
    return nullptr;
}

std::string target_names() {
    std::string s;
    for (size_t i = 0; const target_t *t = target(i); i++) s += std::string(i ? " " : "") + t->name;
    return s;
}

size_t engine_count(mxdnn_engine_kind_t kind) {
    const backend_t *b = find_backend(kind);
    return b ? b->engine_count() : 0;
}

status_t create_engine(const engine_t **engine, mxdnn_engine_kind_t kind, size_t index) {
    const backend_t *b = find_backend(kind);
    if (!b)
        return fail(
                mxdnn_invalid_arguments, "engine kind %d; possible are %s", int(kind), kind_names().c_str());
    engine_t e;
    MXDNN_CHECK(b->describe_engine(e, index));
    e.index = index;
    e.executes = true;
    *engine = intern(e);
    return mxdnn_success;
}

status_t create_engine_for_target(const engine_t **engine, const char *name) {
    for (size_t i = 0; const backend_t *b = backend(i); i++) {
        engine_t e;
        e.target = b->find_target(name);
        if (!e.target) continue;
        e.executes = b->executes(*e.target);
        *engine = intern(e);
        return mxdnn_success;
    }
    return fail(mxdnn_invalid_arguments, "target %s; possible are %s", shown(name).c_str(),
            target_names().c_str());
}

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "common/engine.hpp"
#include "common/api/api.hpp"

using namespace mxdnn::impl;

size_t mxdnn_engine_get_count(mxdnn_engine_kind_t kind) { return engine_count(kind); }

mxdnn_status_t mxdnn_engine_create(mxdnn_engine_t *engine, mxdnn_engine_kind_t kind, size_t index) {
    MXDNN_CHECK_ARG(engine);
    return guarded(__func__, [&] {
        const engine_t *e = nullptr;
        MXDNN_CHECK(create_engine(&e, kind, index));
        *engine = const_cast<engine_t *>(e);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_engine_create_for_target(mxdnn_engine_t *engine, const char *target) {
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(target);
    return guarded(__func__, [&] {
        const engine_t *e = nullptr;
        MXDNN_CHECK(create_engine_for_target(&e, target));
        *engine = const_cast<engine_t *>(e);
        return mxdnn_success;
    });
}

size_t mxdnn_engine_get_target_count(void) {
    size_t count = 0;
    while (target(count)) count++;
    return count;
}

mxdnn_status_t mxdnn_engine_get_target_name(size_t index, const char **target) {
    MXDNN_CHECK_ARG(target);
    return guarded(__func__, [&] {
        const target_t *t = mxdnn::impl::target(index);
        if (!t)
            return fail(mxdnn_invalid_arguments, "target %zu; there are %zu, counted from 0", index,
                    mxdnn_engine_get_target_count());
        *target = t->name;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_engine_get_kind(mxdnn_engine_t engine, mxdnn_engine_kind_t *kind) {
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(kind);
    *kind = engine->kind();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_engine_get_target(mxdnn_engine_t engine, const char **target) {
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(target);
    *target = engine->target->name;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_engine_destroy(mxdnn_engine_t) { return mxdnn_success; } // engines are never freed

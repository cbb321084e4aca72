// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"
#include "common/primitive.hpp"
#include "common/shown.hpp"
#include "common/verbose.hpp"

using namespace mxdnn::impl;

const char *mxdnn_status2str(mxdnn_status_t status) {
    switch (status) {
    case mxdnn_success: return "success";
    case mxdnn_out_of_memory: return "out_of_memory";
    case mxdnn_invalid_arguments: return "invalid_arguments";
    case mxdnn_unimplemented: return "unimplemented";
    case mxdnn_last_impl_reached: return "last_impl_reached";
    case mxdnn_runtime_error: return "runtime_error";
    case mxdnn_not_required: return "not_required";
    case mxdnn_invalid_shape: return "invalid_shape";
    case mxdnn_invalid_data_type: return "invalid_data_type";
    case mxdnn_corrupt_blob: return "corrupt_blob";
    case mxdnn_incompatible_version: return "incompatible_version";
    case mxdnn_incompatible_target: return "incompatible_target";
    case mxdnn_device_unavailable: return "device_unavailable";
    }
    return "unknown status";
}

const char *mxdnn_get_last_error(void) { return last_error(); }

mxdnn_status_t mxdnn_set_verbose(const char *words) {
    MXDNN_CHECK_ARG(words);
    return guarded(__func__, [&] {
        const char *bad = nullptr;
        if (!set_verbose_words(words, &bad))
            return fail(mxdnn_invalid_arguments, "verbose word %s; possible are %s", shown(bad).c_str(),
                    verbose_words);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_get_primitive_cache_capacity(int *capacity) {
    MXDNN_CHECK_ARG(capacity);
    *capacity = primitive_cache_capacity();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_set_primitive_cache_capacity(int capacity) {
    if (capacity < 0)
        return fail(mxdnn_invalid_arguments, "primitive cache capacity %d; it is 0 (off) or more", capacity);
    set_primitive_cache_capacity(capacity);
    return mxdnn_success;
}

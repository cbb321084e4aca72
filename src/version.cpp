// SPDX-License-Identifier: Apache-2.0
// The version. All that knows the commit, so that a new one compiles nothing else.
#include "cpu/runtime/runtime.hpp"
#include "mxdnn/mxdnn.h"
#include "mxdnn_commit.h" // made by cmake/write_commit.cmake

const mxdnn_version_t *mxdnn_version(void) {
    static const mxdnn_version_t v = {MXDNN_VERSION_MAJOR, MXDNN_VERSION_MINOR, MXDNN_VERSION_PATCH,
            MXDNN_COMMIT, mxdnn::impl::runtime::kind};
    return &v;
}

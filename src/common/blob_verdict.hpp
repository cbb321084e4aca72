// SPDX-License-Identifier: Apache-2.0
// What an engine can do with the weights that a blob describes.
#pragma once

#include "common/engine.hpp"

namespace mxdnn {
namespace impl {

// Leaves the reason as the last error, and returns the verdict.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
mxdnn_blob_verdict_t
because(mxdnn_blob_verdict_t verdict, const char *format, ...);

// Leaves the reason as the last error; "" for native.
mxdnn_blob_verdict_t blob_verdict(const engine_t &engine, const uint8_t *blob, size_t size);

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// What an engine can do with the weights that a blob describes.
#pragma once

#include "common/engine.hpp"

namespace mxdnn {
namespace impl {

// The reason is left as the last error; empty for native.
mxdnn_blob_verdict_t blob_verdict(const engine_t &engine, const uint8_t *blob, size_t size);

} // namespace impl
} // namespace mxdnn

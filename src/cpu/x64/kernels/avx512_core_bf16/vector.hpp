// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mxdnn {
namespace impl {
namespace x64 {

constexpr int vec_bytes = 64; // of a vector, and of a row of a panel: 16 dwords

} // namespace x64
} // namespace impl
} // namespace mxdnn

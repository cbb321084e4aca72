// SPDX-License-Identifier: Apache-2.0
// Threads of a CTA of the references.
#pragma once

namespace mxdnn {
namespace impl {
namespace cuda {

constexpr int threads = 128;

} // namespace cuda
} // namespace impl
} // namespace mxdnn

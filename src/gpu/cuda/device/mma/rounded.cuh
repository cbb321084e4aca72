// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mxdnn {
namespace impl {

// Whether weights are rounded to the type of the source, which is also that of their scales and floating
// zeros. decode() does not take special weights, and special() tells of those of all 64 columns; sums of them
// are added with exact(panel, tiling, thread, k), the weights of row k of a step in f32.
template <typename format>
inline constexpr bool is_rounded = false;

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The primitive cache: what was compiled once is shared by every primitive of the same problem.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

// The cached implementation, or a new one that is put into the cache. `hit` says which. If several threads
// want the same new primitive, one compiles it and the others wait.
status_t get_or_create_primitive(
        std::shared_ptr<const primitive_impl_t> &impl, const primitive_desc_t &pd, bool &hit);

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The primitive cache: what was compiled once is shared by every primitive of the same problem.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

// The cached implementation, or a new one put into the cache. `hit` says which. When several
// threads ask for the same new primitive at once, one compiles and the others wait for it.
status_t get_or_create_primitive(
        std::shared_ptr<const primitive_impl_t> &impl, const primitive_desc_t &pd, bool &hit);

} // namespace impl
} // namespace mxdnn

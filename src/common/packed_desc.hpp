// SPDX-License-Identifier: Apache-2.0
// The packed descriptor of one given layout, for init_packed(), which chooses the layout, and for the
// blob reader, which is told.
#pragma once

#include "common/memory_desc.hpp"

namespace mxdnn {
namespace impl {

// Fails if the layout cannot have these dims, this quantisation or codes of this width.
status_t init_packed_as(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const quant_t &quant,
        const layout_t &layout);

} // namespace impl
} // namespace mxdnn

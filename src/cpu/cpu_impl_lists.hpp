// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

impl_list_t cpu_impl_list(mxdnn_primitive_kind_t kind);
// For mx_reorder with two destinations.
impl_list_t cpu_two_reorders_list();
// For mx_reorder of rows in groups.
impl_list_t cpu_grouped_reorders_list();

} // namespace impl
} // namespace mxdnn

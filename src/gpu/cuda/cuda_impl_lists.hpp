// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

impl_list_t cuda_impl_list(mxdnn_primitive_kind_t kind);
// For mx_reorder with two destinations.
impl_list_t cuda_two_reorders_list();
// For one of rows in groups, to one destination.
impl_list_t cuda_grouped_reorders_list();

} // namespace impl
} // namespace mxdnn

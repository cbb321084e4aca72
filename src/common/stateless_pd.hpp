// SPDX-License-Identifier: Apache-2.0
// What the descriptors of implementations without a state share: the name, and a primitive that holds
// nothing.
#pragma once

#include <memory>

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

template <typename primitive_t>
struct stateless_pd_t : pd_t {
    using pd_t::pd_t;
    const char *name() const override { return primitive_t::impl_name; }
    status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
        primitive = std::make_shared<primitive_t>();
        return mxdnn_success;
    }
};

} // namespace impl
} // namespace mxdnn

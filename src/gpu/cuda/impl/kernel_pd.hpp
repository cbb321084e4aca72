// SPDX-License-Identifier: Apache-2.0
// What the descriptors of implementations by kernels share: the name, and a primitive that holds nothing and
// is there once its kernels are loaded.
#pragma once

#include <initializer_list>
#include <memory>

#include "common/primitive_desc.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

template <typename primitive_t, kernel_id_t... kernels>
struct kernel_pd_t : impl::pd_t {
    using impl::pd_t::pd_t;
    const char *name() const override { return primitive_t::impl_name; }
    status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
        for (const kernel_id_t id : std::initializer_list<kernel_id_t>{kernels...})
            MXDNN_CHECK(prepare_kernel(problem, id));
        primitive = std::make_shared<primitive_t>();
        return mxdnn_success;
    }
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
/// @file
/// mx_matmul: a matrix times packed weights.
#ifndef MXDNN_HPP_MX_MATMUL_HPP
#define MXDNN_HPP_MX_MATMUL_HPP

#include "mxdnn/hpp/primitive_desc.hpp"

namespace mxdnn {

/// dst = post_ops(src * weights + bias).
struct mx_matmul : public primitive {
    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A descriptor of its own: next_impl() of a copy moves the original, too.
        primitive_desc clone() const { return clone_of(*this); }

        /// Without a bias.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &dst_desc, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(aengine, src_desc, weights_desc, memory::desc(), dst_desc, attr, allow_empty) {}

        /// src {.., M, K}, weights {.., K, N}, bias that broadcasts to dst (empty: none), dst {.., M, N}. M
        /// and batch dims may be MXDNN_RUNTIME_DIM_VAL. With `allow_empty` a refused problem gives an empty
        /// object instead of an exception.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &bias_desc, const memory::desc &dst_desc,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_matmul_primitive_desc_create(&pd, aengine.get(),
                    src_desc.get(), weights_desc.get(), bias_desc.get(true), dst_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_matmul");
        }
    };

    /// Empty.
    mx_matmul() = default;
    /// Compiles, or fetches from the cache.
    explicit mx_matmul(const primitive_desc &pd) : primitive(pd) {}
};

} // namespace mxdnn

#endif

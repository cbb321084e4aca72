// SPDX-License-Identifier: Apache-2.0
/// @file
/// mx_matmul: a matrix times packed weights (doc/reference/mx_matmul.md).
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
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// Without a bias.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &dst_desc, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(aengine, src_desc, weights_desc, memory::desc(), dst_desc, attr, allow_empty) {}

        /// src is {.., M, K}, weights {.., K, N}, dst {.., M, N}; with a gated post-op dst has N/2 columns.
        /// The bias broadcasts to dst; an empty descriptor stands for none. M and the batch dims may be
        /// MXDNN_RUNTIME_DIM_VAL. With `allow_empty` a refused problem gives an empty object instead of an
        /// exception.
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
    /// Generates the code, or takes it from the cache.
    explicit mx_matmul(const primitive_desc &pd) : primitive(pd) {}
};

} // namespace mxdnn

#endif

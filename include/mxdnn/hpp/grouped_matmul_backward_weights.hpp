// SPDX-License-Identifier: Apache-2.0
/// @file
/// grouped_matmul_backward_weights: the gradient of the weights of grouped_matmul
/// (doc/reference/grouped_matmul_backward_weights.md).
#ifndef MXDNN_HPP_GROUPED_MATMUL_BACKWARD_WEIGHTS_HPP
#define MXDNN_HPP_GROUPED_MATMUL_BACKWARD_WEIGHTS_HPP

#include "mxdnn/hpp/primitive_desc.hpp"

namespace mxdnn {

/// The gradient of the weights of an expert layer: for each group the transposed source times the gradient of
/// the destination.
struct grouped_matmul_backward_weights : public primitive {
    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// src is {R, K} and diff_dst {R, N}, in groups of rows; diff_weights are {G, K, N}. R may be
        /// MXDNN_RUNTIME_DIM_VAL. With `allow_empty` a refused problem gives an empty object instead of an
        /// exception.
        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &diff_dst_desc,
                const memory::desc &diff_weights_desc, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_grouped_matmul_backward_weights_primitive_desc_create(&pd,
                    aengine.get(), src_desc.get(), diff_dst_desc.get(), diff_weights_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of grouped_matmul_backward_weights");
        }
    };

    /// Empty.
    grouped_matmul_backward_weights() = default;
    /// Generates the code, or takes it from the cache.
    explicit grouped_matmul_backward_weights(const primitive_desc &pd) : primitive(pd) {}
};

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
// A primitive is made from its own kind of descriptor.
#include <mxdnn/mxdnn.hpp>

mxdnn::primitive make(
        const mxdnn::mx_matmul::primitive_desc &matmul, const mxdnn::mx_reorder::primitive_desc &reorder) {
    (void)matmul;
    (void)reorder;
#ifdef MXDNN_WRONG
    return mxdnn::mx_matmul(reorder);
#else
    return mxdnn::mx_matmul(matmul);
#endif
}

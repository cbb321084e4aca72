/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that is borrowed from a primitive descriptor can be read, not changed or destroyed. */
#include <mxdnn/mxdnn.h>

mxdnn_status_t copy_weights_desc(mxdnn_primitive_desc_t pd, mxdnn_memory_desc_t *copy) {
    const_mxdnn_memory_desc_t borrowed = mxdnn_primitive_desc_query_md(pd, mxdnn_query_weights_md, 0);
#ifdef MXDNN_WRONG
    mxdnn_memory_desc_destroy(borrowed);
#endif
    return mxdnn_memory_desc_clone(copy, borrowed);
}

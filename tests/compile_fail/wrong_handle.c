/* SPDX-License-Identifier: Apache-2.0 */
/* Handles are pointers to different types: one kind does not pass for another, in C either. */
#include <mxdnn/mxdnn.h>

mxdnn_status_t release(mxdnn_engine_t engine, mxdnn_stream_t stream) {
    (void)engine;
#ifdef MXDNN_WRONG
    return mxdnn_stream_destroy(engine);
#else
    return mxdnn_stream_destroy(stream);
#endif
}

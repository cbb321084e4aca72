// SPDX-License-Identifier: Apache-2.0
// Executing on an engine would make a stream that nobody waits on; a stream has to be made by name.
#include <mxdnn/mxdnn.hpp>

void run(const mxdnn::mx_matmul &matmul, const mxdnn::engine &engine, const mxdnn::memory &src,
        const mxdnn::memory &dst) {
#ifdef MXDNN_WRONG
    matmul.execute(engine, {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DST, dst}});
#else
    matmul.execute(mxdnn::stream(engine), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DST, dst}});
#endif
}

// SPDX-License-Identifier: Apache-2.0
// Bytes are parsed only where the code says so.
#include <mxdnn/mxdnn.hpp>

#include <vector>

mxdnn::memory::desc parse(const std::vector<uint8_t> &blob) {
#ifdef MXDNN_WRONG
    mxdnn::memory::desc md = blob;
    return md;
#else
    return mxdnn::memory::desc(blob);
#endif
}

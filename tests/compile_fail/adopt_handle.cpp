// SPDX-License-Identifier: Apache-2.0
// A C handle becomes an owner only where the code says so: silent adoption would destroy it twice.
#include <mxdnn/mxdnn.hpp>

mxdnn::engine adopt(mxdnn_engine_t handle) {
#ifdef MXDNN_WRONG
    mxdnn::engine adopted = handle;
    return adopted;
#else
    return mxdnn::engine(handle);
#endif
}

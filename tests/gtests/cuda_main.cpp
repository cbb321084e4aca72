// SPDX-License-Identifier: Apache-2.0
// main() of tests that need a CUDA device: skips, and says why, where there is none.
#include <cstdio>

#include <gtest/gtest.h>

#include "mxdnn/mxdnn.h"

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    if (mxdnn_engine_get_count(mxdnn_cuda) == 0) {
        mxdnn_engine_t e = nullptr;
        mxdnn_engine_create(&e, mxdnn_cuda, 0);
        std::printf("MXDNN_SKIP_ALL: %s\n", mxdnn_get_last_error());
        return 0;
    }
    return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
// The CPU runtime that a program of test_runtimes.cpp is linked with.
#include <mxdnn/mxdnn_types.h>

extern const int tested_runtime;
const int tested_runtime = MXDNN_TEST_RUNTIME;

// SPDX-License-Identifier: Apache-2.0
// A kernel as a caller may have it: it lets the kernel after it start at once, and writes only later.
#pragma once

#include <cuda_runtime.h>

namespace cuda_test {

// Copies `bytes`, a multiple of 16, once it has let its dependents start and `microseconds` have passed.
cudaError_t write_late(cudaStream_t stream, void *to, const void *from, size_t bytes, int microseconds);

} // namespace cuda_test

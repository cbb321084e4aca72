// SPDX-License-Identifier: Apache-2.0
// A caller's kernel that lets the next kernel start at once and writes its result later.
#pragma once

#include <cuda_runtime.h>

namespace cuda_test {

// Copies `bytes`, a multiple of 16, once it has let its dependents start and `microseconds` have passed.
cudaError_t write_late(cudaStream_t stream, void *to, const void *from, size_t bytes, int microseconds);

} // namespace cuda_test

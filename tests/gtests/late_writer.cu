// SPDX-License-Identifier: Apache-2.0
#include "late_writer.hpp"

namespace cuda_test {

namespace {

__device__ long long nanoseconds() {
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void late_writer(uint4 *to, const uint4 *from, size_t n, int microseconds) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    const long long end = nanoseconds() + microseconds * 1000LL;
    while (nanoseconds() < end) __nanosleep(1000);
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * size_t(blockDim.x))
        to[i] = from[i];
}

} // namespace

cudaError_t write_late(cudaStream_t stream, void *to, const void *from, size_t bytes, int microseconds) {
    // Few threads, so that the kernel after it finds room on every multiprocessor.
    late_writer<<<16, 64, 0, stream>>>(
            static_cast<uint4 *>(to), static_cast<const uint4 *>(from), bytes / 16, microseconds);
    return cudaGetLastError();
}

} // namespace cuda_test

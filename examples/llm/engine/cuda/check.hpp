// SPDX-License-Identifier: Apache-2.0
// Failures of CUDA and cuBLAS as exceptions.
#pragma once

#include <stdexcept>
#include <string>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace llm::cuda {

inline void check(cudaError_t e, const char *what) {
    if (e != cudaSuccess)
        throw std::runtime_error(std::string("cannot ") + what + ": " + cudaGetErrorString(e));
}
inline void check(cublasStatus_t e, const char *what) {
    if (e != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string("cannot ") + what + ": " + cublasGetStatusString(e));
}

} // namespace llm::cuda

// SPDX-License-Identifier: Apache-2.0
// Matmuls of plain weights by cuBLASLt, which adds the bias as well.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <cublasLt.h>

#include "kernels.hpp"

namespace llm::cuda {

// cuBLASLt, and the memory that it works in: nothing is allocated while a graph is captured.
class lt_t {
public:
    lt_t();
    ~lt_t();
    lt_t(const lt_t &) = delete;
    lt_t &operator=(const lt_t &) = delete;

    cublasLtHandle_t handle() const { return handle_; }
    void *workspace() const { return workspace_; }
    static constexpr size_t workspace_size = size_t(32) << 20;

private:
    cublasLtHandle_t handle_ = nullptr;
    void *workspace_ = nullptr;
};

// y = x * w^T, with a bias or none, added to y or not; x and w of one type, y of f32.
class lt_matmul_t {
public:
    struct spec_t {
        int64_t in, out, y_stride;
        type_t type;
        const float *bias;
        bool adds;
    };
    lt_matmul_t(const lt_t &lt, const spec_t &spec);
    ~lt_matmul_t();
    lt_matmul_t(const lt_matmul_t &) = delete;
    lt_matmul_t &operator=(const lt_matmul_t &) = delete;

    void run(stream_t s, int64_t rows, const void *x, const void *w, float *y);

private:
    // cuBLASLt has columns first: y^T [out, rows] = w [out, in] * x^T.
    struct plan_t {
        cublasLtMatrixLayout_t x = nullptr, y = nullptr;
        cublasLtMatmulAlgo_t algorithm;
    };
    const lt_t &lt_;
    const spec_t spec_;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t w_ = nullptr;
    std::map<std::pair<int64_t, uint32_t>, plan_t> plans_; // by rows, and alignment of what is written

    const plan_t &plan_for(int64_t rows, uint32_t alignment);
    void forget_plans();
};

} // namespace llm::cuda

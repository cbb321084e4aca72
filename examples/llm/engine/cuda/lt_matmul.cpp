// SPDX-License-Identifier: Apache-2.0
#include "lt_matmul.hpp"

#include "check.hpp"

namespace llm::cuda {

namespace {

constexpr size_t most_plans = 16; // of a layer; row counts repeat

cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride) {
    cublasLtMatrixLayout_t l = nullptr;
    check(cublasLtMatrixLayoutCreate(&l, type, uint64_t(rows), uint64_t(columns), stride), "use cuBLASLt");
    return l;
}

template <typename T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const T &value) {
    check(cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof(value)), "use cuBLASLt");
}

} // namespace

lt_t::lt_t() {
    check(cublasLtCreate(&handle_), "use cuBLASLt");
    check(cudaMalloc(&workspace_, workspace_size), "allocate memory for cuBLASLt");
}

lt_t::~lt_t() {
    (void)cudaFree(workspace_);
    (void)cublasLtDestroy(handle_);
}

lt_matmul_t::lt_matmul_t(const lt_t &lt, const spec_t &spec) : lt_(lt), spec_(spec) {
    const cudaDataType_t type = spec.type == type_t::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "use cuBLASLt");
    set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (spec.bias) {
        set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, spec.bias);
        set(operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    }
    w_ = layout(type, spec.in, spec.out, spec.in);
}

lt_matmul_t::~lt_matmul_t() {
    forget_plans();
    (void)cublasLtMatrixLayoutDestroy(w_);
    (void)cublasLtMatmulDescDestroy(operation_);
}

void lt_matmul_t::forget_plans() {
    for (auto &[key, p] : plans_) {
        (void)cublasLtMatrixLayoutDestroy(p.x);
        (void)cublasLtMatrixLayoutDestroy(p.y);
    }
    plans_.clear();
}

const lt_matmul_t::plan_t &lt_matmul_t::plan_for(int64_t rows, uint32_t alignment) {
    const auto found = plans_.find({rows, alignment});
    if (found != plans_.end()) return found->second;
    if (plans_.size() == most_plans) forget_plans();
    plan_t &p = plans_[{rows, alignment}];
    p.x = layout(spec_.type == type_t::bf16 ? CUDA_R_16BF : CUDA_R_32F, spec_.in, rows, spec_.in);
    p.y = layout(CUDA_R_32F, spec_.out, rows, spec_.y_stride);
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "use cuBLASLt");
    const size_t size = lt_t::workspace_size;
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
        (void)cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, size);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    const cublasStatus_t e = cublasLtMatmulAlgoGetHeuristic(
            lt_.handle(), operation_, w_, p.x, p.y, p.y, preference, 1, &best, &count);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    check(e, "choose a matmul of cuBLASLt");
    if (count == 0) check(CUBLAS_STATUS_NOT_SUPPORTED, "choose a matmul of cuBLASLt");
    p.algorithm = best.algo;
    return p;
}

void lt_matmul_t::run(stream_t s, int64_t rows, const void *x, const void *w, float *y) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(spec_.bias) | 256;
    const plan_t &p = plan_for(rows, uint32_t(bits & (~bits + 1)));
    const float one = 1, beta = spec_.adds ? 1.f : 0.f;
    check(cublasLtMatmul(lt_.handle(), operation_, &one, w, w_, x, p.x, &beta, y, p.y, y, p.y, &p.algorithm,
                  lt_.workspace(), lt_t::workspace_size, s),
            "multiply with cuBLASLt");
}

} // namespace llm::cuda

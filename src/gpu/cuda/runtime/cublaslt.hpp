// SPDX-License-Identifier: Apache-2.0
// cuBLASLt by its functions' addresses: the library is opened when it is first asked for, and nothing
// needs it to link or to start.
#pragma once

#include <cublasLt.h>

namespace mxdnn {
namespace impl {
namespace cuda {

struct cublaslt_t {
    decltype(&cublasLtGetVersion) version;
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtGetStatusString) status_text;
    decltype(&cublasLtMatmul) matmul;
    decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic;
    decltype(&cublasLtMatmulAlgoCheck) check;
    decltype(&cublasLtMatmulDescInit_internal) init_desc;
    decltype(&cublasLtMatmulDescSetAttribute) set_desc;
    decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
    decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
    decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
};

// Null, with what is missing, if there is none.
const cublaslt_t *open_cublaslt(const char **why_not);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

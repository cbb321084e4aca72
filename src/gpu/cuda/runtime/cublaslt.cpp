// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/runtime/cublaslt.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

struct opened_t {
    cublaslt_t functions{};
    bool complete = false;
    char why_not[300] = "";
};

opened_t open() {
    opened_t o;
    char file[32]; // of the release of the header
    std::snprintf(file, sizeof(file), "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        std::snprintf(o.why_not, sizeof(o.why_not), "%s cannot be opened (%s)", file, text ? text : "");
        return o;
    }
    o.complete = true;
    const auto find = [&](auto &function, const char *name) {
        using function_t = std::remove_reference_t<decltype(function)>;
        function = reinterpret_cast<function_t>(dlsym(library, name));
        if (function) return;
        o.complete = false;
        std::snprintf(o.why_not, sizeof(o.why_not), "%s has no %s", file, name);
    };
    find(o.functions.version, "cublasLtGetVersion");
    find(o.functions.create, "cublasLtCreate");
    find(o.functions.status_text, "cublasLtGetStatusString");
    find(o.functions.matmul, "cublasLtMatmul");
    find(o.functions.get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(o.functions.check, "cublasLtMatmulAlgoCheck");
    find(o.functions.init_desc, "cublasLtMatmulDescInit_internal");
    find(o.functions.set_desc, "cublasLtMatmulDescSetAttribute");
    find(o.functions.init_layout, "cublasLtMatrixLayoutInit_internal");
    find(o.functions.init_preference, "cublasLtMatmulPreferenceInit_internal");
    find(o.functions.set_preference, "cublasLtMatmulPreferenceSetAttribute");
    return o;
}

} // namespace

const cublaslt_t *open_cublaslt(const char **why_not) {
    static const opened_t o = open();
    *why_not = o.why_not;
    return o.complete ? &o.functions : nullptr;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

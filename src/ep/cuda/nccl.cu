// SPDX-License-Identifier: Apache-2.0
// NCCL is neither linked nor loaded: who has a communicator has loaded it.
#include "ep/cuda/nccl.hpp"

#include <dlfcn.h>

#include <string>

#include "mxdnn/mxdnn.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

struct loaded_t {
    nccl_t functions = {};
    std::string missing;

    loaded_t() {
        // A library that was loaded for a part of the program alone is found by its name. Otherwise it may be
        // in the program itself.
        void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
        if (!library) library = dlopen(nullptr, RTLD_NOW);
        const auto find = [&](auto &function, const char *name) {
            using function_t = std::remove_reference_t<decltype(function)>;
            function = reinterpret_cast<function_t>(library ? dlsym(library, name) : nullptr);
            if (!function && missing.empty()) missing = name;
        };
        find(functions.count, "ncclCommCount");
        find(functions.user_rank, "ncclCommUserRank");
        find(functions.device, "ncclCommCuDevice");
        find(functions.split, "ncclCommSplit");
        find(functions.destroy, "ncclCommDestroy");
        find(functions.abort, "ncclCommAbort");
        find(functions.async_error, "ncclCommGetAsyncError");
        find(functions.error_string, "ncclGetErrorString");
        find(functions.last_error, "ncclGetLastError");
        find(functions.group_start, "ncclGroupStart");
        find(functions.group_end, "ncclGroupEnd");
        find(functions.send, "ncclSend");
        find(functions.recv, "ncclRecv");
    }
};

} // namespace

const nccl_t &nccl() {
    static const loaded_t loaded;
    if (!loaded.missing.empty())
        throw mxdnn::error(mxdnn_unimplemented,
                "this process has no " + loaded.missing
                        + "; load the libnccl.so.2 of the communicator, version 2.18 or newer, before");
    return loaded.functions;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn

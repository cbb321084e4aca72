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

void *library_of_process() {
    // A library that was loaded for a part of the program alone is found by its name. Otherwise it may be in
    // the program itself.
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    return library ? library : dlopen(nullptr, RTLD_NOW);
}

// The functions that `find_all` asks for, which are looked up once. Throws if one is missing.
template <typename functions_t, typename find_all_t>
const functions_t &functions(const char *version, find_all_t &&find_all) {
    static const auto found = [&] {
        std::pair<functions_t, std::string> f; // and the first name that is missing
        void *library = library_of_process();
        find_all(f.first, [&](auto &function, const char *name) {
            void *const address = library ? dlsym(library, name) : nullptr;
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
            if (!address && f.second.empty()) f.second = name;
        });
        return f;
    }();
    if (!found.second.empty())
        throw mxdnn::error(
                mxdnn_unimplemented, "this process has no " + found.second
                                             + "; load the libnccl.so.2 of the communicator, version "
                                             + version + " or newer, before");
    return found.first;
}

} // namespace

const nccl_t &nccl() {
    return functions<nccl_t>("2.18", [](nccl_t &f, auto &&find) {
        find(f.count, "ncclCommCount");
        find(f.user_rank, "ncclCommUserRank");
        find(f.device, "ncclCommCuDevice");
        find(f.split, "ncclCommSplit");
        find(f.destroy, "ncclCommDestroy");
        find(f.abort, "ncclCommAbort");
        find(f.async_error, "ncclCommGetAsyncError");
        find(f.error_string, "ncclGetErrorString");
        find(f.group_start, "ncclGroupStart");
        find(f.group_end, "ncclGroupEnd");
        find(f.send, "ncclSend");
        find(f.recv, "ncclRecv");
    });
}

#if MXDNN_EP_NCCL_DEVICE
const nccl_device_t &nccl_device() {
    // Named, since g++ 13 takes a reference from a call with a temporary for one to that temporary.
    const auto find_all = [](nccl_device_t &f, auto &&find) {
        find(f.version, "ncclGetVersion");
        find(f.allocate, "ncclMemAlloc");
        find(f.release, "ncclMemFree");
        find(f.window_register, "ncclCommWindowRegister");
        find(f.window_deregister, "ncclCommWindowDeregister");
        find(f.team, "ncclTeamLsa");
    };
    const nccl_device_t &found = functions<nccl_device_t>("2.28", find_all);
    int version = 0;
    found.version(&version);
    if (version / 100 != NCCL_VERSION_CODE / 100)
        throw mxdnn::error(mxdnn_unimplemented,
                "the process has NCCL " + std::to_string(version) + ", and kernels were built for "
                        + std::to_string(NCCL_VERSION_CODE) + "; both have to be of one minor version");
    return found;
}
#endif

} // namespace impl
} // namespace ep
} // namespace mxdnn

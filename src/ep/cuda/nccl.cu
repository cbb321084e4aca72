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

// Finds functions, and remembers the first that is missing.
class finder_t {
public:
    std::string missing;

    finder_t() {
        // A library that was loaded for a part of the program alone is found by its name. Otherwise it may be
        // in the program itself.
        library_ = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
        if (!library_) library_ = dlopen(nullptr, RTLD_NOW);
    }
    template <typename function_t>
    void find(function_t &function, const char *name) {
        function = reinterpret_cast<function_t>(library_ ? dlsym(library_, name) : nullptr);
        if (!function && missing.empty()) missing = name;
    }
    void require(const char *version) const {
        if (missing.empty()) return;
        throw mxdnn::error(mxdnn_unimplemented,
                "this process has no " + missing + "; load the libnccl.so.2 of the communicator, version "
                        + version + " or newer, before");
    }

private:
    void *library_;
};

} // namespace

const nccl_t &nccl() {
    static const auto loaded = [] {
        std::pair<nccl_t, finder_t> l;
        nccl_t &f = l.first;
        l.second.find(f.count, "ncclCommCount");
        l.second.find(f.user_rank, "ncclCommUserRank");
        l.second.find(f.device, "ncclCommCuDevice");
        l.second.find(f.split, "ncclCommSplit");
        l.second.find(f.destroy, "ncclCommDestroy");
        l.second.find(f.abort, "ncclCommAbort");
        l.second.find(f.async_error, "ncclCommGetAsyncError");
        l.second.find(f.error_string, "ncclGetErrorString");
        l.second.find(f.group_start, "ncclGroupStart");
        l.second.find(f.group_end, "ncclGroupEnd");
        l.second.find(f.send, "ncclSend");
        l.second.find(f.recv, "ncclRecv");
        return l;
    }();
    loaded.second.require("2.18");
    return loaded.first;
}

#if MXDNN_EP_NCCL_DEVICE
const nccl_device_t &nccl_device() {
    static const auto loaded = [] {
        std::pair<nccl_device_t, finder_t> l;
        nccl_device_t &f = l.first;
        l.second.find(f.version, "ncclGetVersion");
        l.second.find(f.allocate, "ncclMemAlloc");
        l.second.find(f.release, "ncclMemFree");
        l.second.find(f.window_register, "ncclCommWindowRegister");
        l.second.find(f.window_deregister, "ncclCommWindowDeregister");
        l.second.find(f.team, "ncclTeamLsa");
        return l;
    }();
    loaded.second.require("2.28");
    int version = 0;
    loaded.first.version(&version);
    if (version / 100 != NCCL_VERSION_CODE / 100)
        throw mxdnn::error(mxdnn_unimplemented,
                "the process has NCCL " + std::to_string(version) + ", and kernels were built for "
                        + std::to_string(NCCL_VERSION_CODE) + "; both have to be of one minor version");
    return loaded.first;
}
#endif

} // namespace impl
} // namespace ep
} // namespace mxdnn

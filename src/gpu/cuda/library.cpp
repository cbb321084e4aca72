// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/library.hpp"

#include <dlfcn.h>

#include <vector>

#include "common/shown.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr const char *file_name = "libmxdnn_cuda.so";

// The folder of the library (or program) that this function is in.
std::string own_folder() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<const void *>(&own_folder), &info) || !info.dli_fname) return "";
    const std::string path = info.dli_fname;
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

} // namespace

std::string why_not_ours(const table_t *table) {
    const std::string release = std::to_string(MXDNN_VERSION_MAJOR) + "."
                                + std::to_string(MXDNN_VERSION_MINOR) + "."
                                + std::to_string(MXDNN_VERSION_PATCH);
    if (table && table->version == table_version && table->kernels == uint32_t(kernel_id_t::count)
            && release == table->release)
        return "";
    return std::string(file_name) + (table ? std::string(" of mxdnn ") + table->release : std::string())
           + " belongs to another release of mxdnn than this libmxdnn, " + release
           + "; install both from one build";
}

const table_t *open_library(const std::string &path, std::string &why_not) {
    std::vector<std::string> candidates;
    if (!path.empty()) {
        candidates = {path};
    } else {
        if (!own_folder().empty()) candidates.push_back(own_folder() + file_name);
        candidates.push_back(file_name);
    }
    void *library = nullptr;
    for (const std::string &c : candidates) {
        library = dlopen(c.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library) break;
        const char *text = dlerror();
        why_not =
                std::string(file_name) + " cannot be opened (" + shown_path(text ? text : c)
                + "); install mxdnn's component cuda beside libmxdnn, or name the file in MXDNN_CUDA_LIBRARY";
    }
    if (!library) return nullptr;
    const auto get_table = reinterpret_cast<get_table_t>(dlsym(library, get_table_name));
    const table_t *table = get_table ? get_table(table_version) : nullptr;
    why_not = why_not_ours(table);
    return why_not.empty() ? table : nullptr;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

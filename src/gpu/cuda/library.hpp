// SPDX-License-Identifier: Apache-2.0
// Opening libmxdnn_cuda.
#pragma once

#include <string>

#include "gpu/cuda/interface/cuda_table.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// The table of the library in the file `path` (empty: libmxdnn_cuda beside libmxdnn, else the system's), or
// null and what is missing. The library stays open.
const table_t *open_library(const std::string &path, std::string &why_not);

// Empty for a table of this build's release, otherwise a message. Null is a table of an unknown release.
std::string why_not_ours(const table_t *table);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

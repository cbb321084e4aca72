// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// A kernel parameter, because the copy engine reads the tensor map of source rows there: boxes of 128 bytes
// of box_rows rows.
struct mapped_args_t {
    matmul_args_t matmul;
    alignas(64) uint8_t source_map[128]; // CUtensorMap
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

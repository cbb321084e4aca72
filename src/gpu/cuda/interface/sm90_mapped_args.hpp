// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Kernel parameter, where the copy engine finds the tensor map of neighbouring source rows: boxes of
// 128 bytes of box_rows rows.
struct mapped_args_t {
    matmul_args_t matmul;
    alignas(64) uint8_t source_map[128]; // CUtensorMap
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn

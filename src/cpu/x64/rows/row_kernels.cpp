// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/rows/row_kernels.hpp"

#include "cpu/x64/isa.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

const row_kernels_t &row_kernels() {
    return mayiuse(cpu_isa_t::avx512_core) ? row_kernels_avx512 : row_kernels_avx2;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

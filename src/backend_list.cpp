// SPDX-License-Identifier: Apache-2.0
// The backends of the library.
#include <iterator>

#include "cpu/cpu_backend.hpp"
#include "gpu/cuda/cuda_backend.hpp"

namespace mxdnn {
namespace impl {

const backend_t *backend(size_t index) {
    static const backend_t *const list[] = {&cpu_backend(), &cuda::cuda_backend()};
    return index < std::size(list) ? list[index] : nullptr;
}

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include <mxdnn/mxdnn_container.hpp>

namespace aot {

uint64_t front_checksum(const void *bytes, uint64_t size) {
    mxdnn::checksum sum = mxdnn::checksum_for_tensor("U8", {static_cast<int64_t>(size)});
    sum.add(bytes, size);
    return sum.value();
}

} // namespace aot

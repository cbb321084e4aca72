// SPDX-License-Identifier: Apache-2.0
// packed_checksum: 16 hexadecimal digits that tie packed bytes to their descriptor, as containers have them.
#include <cstdio>

#include "blob_cache.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

std::string packed_checksum(const Tensor &packed, const std::string &blob) {
    const auto desc = parse_blob(blob);
    const view_t bytes = view_of(packed, "packed");
    expect_place(bytes, "packed", {});
    expect_packed(bytes, *desc);
    uint64_t checksum = 0;
    mxdnn::error::wrap_c_api(mxdnn_packed_checksum(desc->desc.get(), bytes.data, &checksum),
            "could not get the checksum of packed weights");
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(checksum));
    return digits;
}

} // namespace mxdnn_torch

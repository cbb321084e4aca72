// SPDX-License-Identifier: Apache-2.0
// A checksum of bytes that come in parts.
#pragma once

#include "common/blob/xxh64.hpp"

struct mxdnn_checksum {
    mxdnn::impl::xxh64_t sum;
    uint64_t size; // bytes that belong to the checksum
};

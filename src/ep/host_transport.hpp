// SPDX-License-Identifier: Apache-2.0
// A transport whose memory is the host's: rows move within a rank at once.
#pragma once

#include <cstring>

#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

class host_transport_t : public transport_t {
public:
    status_t copy(void *dst, const void *src, size_t bytes, mxdnn_stream_t) override {
        if (bytes > 0) std::memcpy(dst, src, bytes);
        return mxdnn_success;
    }

    status_t clear(void *dst, size_t bytes, mxdnn_stream_t) override {
        if (bytes > 0) std::memset(dst, 0, bytes);
        return mxdnn_success;
    }

    // Indices have been checked.
    status_t gather(const row_format_t &f, const array_t &dst, const array_t &src, const int32_t *indices,
            dim_t rows, dim_t, mxdnn_stream_t) override {
        gather(dst.codes, src.codes, f.codes, indices, rows);
        if (f.quantised()) gather(dst.scales, src.scales, f.scales, indices, rows);
        return mxdnn_success;
    }

private:
    static void gather(
            uint8_t *dst, const uint8_t *src, size_t row_bytes, const int32_t *indices, dim_t rows) {
        for (dim_t r = 0; r < rows; r++)
            std::memcpy(dst + size_t(r) * row_bytes, src + size_t(indices[r]) * row_bytes, row_bytes);
    }
};

} // namespace impl
} // namespace ep
} // namespace mxdnn

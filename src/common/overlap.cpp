// SPDX-License-Identifier: Apache-2.0
#include "common/overlap.hpp"

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {

namespace {

// The bytes that a strided tensor uses in each step of `pitch` bytes, from its first byte on. 0 if the tensor
// does not repeat with the pitch: a longer stride is not a multiple of it, or a step reaches into the next.
int64_t bytes_of_step(const memory_desc_t &md, int64_t pitch) {
    const int bits = data_type_info(md.dt)->bits;
    int64_t bytes = bits / 8;
    for (int i = 0; i < md.ndims; i++) {
        if (md.dims[i] <= 1) continue;
        const int64_t stride = stride_bytes(md, i, bits);
        if (stride < pitch)
            bytes += (md.dims[i] - 1) * stride;
        else if (stride % pitch)
            return 0;
    }
    return bytes <= pitch ? bytes : 0;
}

bool has_whole_bytes(const tensor_bytes_t &t) {
    return is_strided(*t.md) && t.packing == mxdnn_element_packing_bytes
           && data_type_info(t.md->dt)->bits % 8 == 0;
}

} // namespace

bool overlap(const tensor_bytes_t &x, const tensor_bytes_t &y) {
    const int64_t x_bytes = size_of(*x.md, x.packing), y_bytes = size_of(*y.md, y.packing);
    if (!x_bytes || !y_bytes || x.begin >= y.begin + y_bytes || y.begin >= x.begin + x_bytes) return false;
    if (!has_whole_bytes(x) || !has_whole_bytes(y)) return true;
    for (const memory_desc_t *md : {x.md, y.md})
        for (int i = 0; i < md->ndims; i++) {
            if (md->dims[i] <= 1) continue;
            const int64_t pitch = stride_bytes(*md, i, data_type_info(md->dt)->bits);
            if (pitch == 0) continue; // repeated values
            const int64_t in_x = bytes_of_step(*x.md, pitch), in_y = bytes_of_step(*y.md, pitch);
            if (!in_x || !in_y) continue;
            const int64_t ahead = (y.begin - x.begin) % pitch, from_x = ahead < 0 ? ahead + pitch : ahead;
            if (from_x >= in_x && from_x + in_y <= pitch) return false;
        }
    return true;
}

} // namespace impl
} // namespace mxdnn

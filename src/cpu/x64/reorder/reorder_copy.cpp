// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/reorder/reorder_copy.hpp"

#include <algorithm>

#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// The bytes that one call of a kernel copies: a whole number of cache lines that fits in an int.
constexpr int64_t bytes_at_once = 1 << 20;

int64_t elements_of(const memory_desc_t &md) {
    int64_t n = 1;
    for (int d = 0; d < md.ndims; d++) n *= md.dims[d];
    return n;
}

// Whether packed matrices have bytes without codes or parameters. These are zero in a destination, whatever
// the source has there.
bool is_padded(const packed_shape_t &s, int64_t matrices, int64_t bytes) {
    return 8 * bytes
           != matrices * (s.K * s.N * s.bits + 8 * div_up(s.K, s.block) * s.N * (s.scale_bytes + s.zp_bytes));
}

} // namespace

reorder_copy_t::reorder_copy_t(const reorder_conf_t &c, const exec_ctx_t &ctx) : k_(*c.kernels) {
    // If codes are in the low bits of bytes, the other bits are not copied. Neither is the padding of 128x4
    // scales.
    if (!c.moves || c.src.packed != c.dst.packed || c.src.storage != c.dst.storage || c.src.swizzled
            || c.dst.swizzled || c.src.storage == code_storage_t::low_6_bits)
        return;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &dst = *ctx.memory(MXDNN_ARG_DST);
    if (c.src.packed) {
        if (equal(src.md, dst.md) && !is_padded(c.dst.shape, batch_of(dst.md), size_of(dst.md)))
            add(src, dst, size_of(dst.md));
        return;
    }
    const mxdnn_element_packing_t packing = c.dst.storage == code_storage_t::dense_6
                                                    ? mxdnn_element_packing_dense
                                                    : mxdnn_element_packing_bytes;
    const block_format_t &f = c.dst.format;
    const bool same = add_if_same(ctx, 0, c.dst.bits, packing)
                      && add_if_same(ctx, MXDNN_ARG_ATTR_SCALES, 8 * f.scale_bytes, packing)
                      && (f.zp == zero_point_kind_t::none
                              || add_if_same(ctx, MXDNN_ARG_ATTR_ZERO_POINTS, 8 * f.zp_bytes, packing));
    if (!same) parts_ = 0;
}

void reorder_copy_t::add(const memory_t &src, const memory_t &dst, int64_t bytes) {
    part_[parts_++] = {static_cast<const uint8_t *>(src.handle), static_cast<uint8_t *>(dst.handle), bytes};
}

// Only tensors without gaps, because gaps belong to others.
bool reorder_copy_t::add_if_same(const exec_ctx_t &ctx, int arg, int bits, mxdnn_element_packing_t packing) {
    const memory_t &src = *ctx.memory(arg | MXDNN_ARG_SRC), &dst = *ctx.memory(arg | MXDNN_ARG_DST);
    const int64_t bytes = size_of(dst.md, packing);
    if (!equal(src.md, dst.md) || 8 * bytes != elements_of(dst.md) * bits) return false;
    add(src, dst, bytes);
    return true;
}

void reorder_copy_t::run(int ithr, int nthr, write_t how) const {
    for (int i = 0; i < parts_; i++) {
        const part_t &p = part_[i];
        int64_t begin, end;
        balance(div_up(p.bytes, 64), nthr, ithr, begin, end);
        begin *= 64;
        end = std::min(64 * end, p.bytes);
        for (; begin < end; begin += bytes_at_once)
            k_.pack_row(code_storage_t::bytes, p.from + begin, int(std::min(end - begin, bytes_at_once)),
                    p.to + begin, how);
    }
    written_later_t nothing;
    k_.finish(nothing);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

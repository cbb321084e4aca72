// SPDX-License-Identifier: Apache-2.0
// Reorders whose destination is, byte for byte, what the source is.
#pragma once

#include "cpu/x64/reorder/reorder_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class reorder_copy_t {
public:
    reorder_copy_t(const reorder_conf_t &c, const exec_ctx_t &ctx);

    // Whether a copy does what is asked for, except for global scales of plain tensors.
    bool suffices() const { return parts_ > 0; }
    // The part of one thread.
    void run(int ithr, int nthr, write_t how) const;

private:
    // Elements (if packed, with all that belongs to them); scales; zero points.
    struct part_t {
        const uint8_t *from;
        uint8_t *to;
        int64_t bytes;
    };
    const reorder_kernels_t &k_;
    part_t part_[3];
    int parts_ = 0;

    void add(const memory_t &src, const memory_t &dst, int64_t bytes);
    bool add_if_same(const exec_ctx_t &ctx, int arg, int bits, mxdnn_element_packing_t packing);
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

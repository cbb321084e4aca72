// SPDX-License-Identifier: Apache-2.0
// What the f32 generators need to know of a vector register file, and who uses which register.
#pragma once

#include <cassert>

#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct avx2_vec_t {
    using reg_t = Xbyak::Ymm;
    using half_t = Xbyak::Xmm;
    static constexpr bool zmm = false;
    static constexpr int bytes = 32, lanes = 8, regs = 16;
};

struct avx512_vec_t {
    using reg_t = Xbyak::Zmm;
    using half_t = Xbyak::Ymm;
    static constexpr bool zmm = true;
    static constexpr int bytes = 64, lanes = 16, regs = 32;
};

// Hands out vector registers, first to last, while a generator is set up.
class vregs_t {
public:
    explicit vregs_t(int count) : count_(count) {}
    int take(int n = 1) {
        const int first = used_;
        used_ += n;
        assert(used_ <= count_);
        return first;
    }
    int left() const { return count_ - used_; }

private:
    int count_, used_ = 0;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

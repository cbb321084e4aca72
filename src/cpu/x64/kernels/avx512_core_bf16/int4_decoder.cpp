// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/kernels/avx512_core_bf16/int4_decoder.hpp"

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

using Xbyak::RegExp;
using Xbyak::Zmm;

void int4_decoder_t::take_registers(zmm_pool_t &pool) {
    for (Zmm *of_halves : {twice_, scale_, zero_, codes_, value_})
        for (int h = 0; h < 2; h++) of_halves[h] = pool.take();
    table_ = pool.take();
}

void int4_decoder_t::load_constants() {
    float table[16];
    for (uint32_t i = 0; i < 16; i++)
        table[i] = data_type_info(wei_dt_)->decode(i) - float(code_of_added(zp_));
    j_.vmovups(table_, j_.constant(table, sizeof(table)));
    for (int h = 0; h < 2; h++) {
        uint32_t twice[16];
        for (uint32_t i = 0; i < 16; i++) twice[i] = uint32_t(h) * 8 + i / 2;
        j_.vmovdqu32(twice_[h], j_.constant(twice, sizeof(twice)));
    }
}

void int4_decoder_t::load_params(const RegExp &scales, const RegExp &zero_points) {
    for (int h = 0; h < 2; h++) {
        j_.vpermd(scale_[h], twice_[h], j_.ptr[scales]);
        if (zp_ != zero_point_kind_t::none) j_.vpermd(zero_[h], twice_[h], j_.ptr[zero_points]);
    }
}

// A dword of codes is a column. Its low word has the first codes of four pairs, its high word the second
// ones. The permute ignores the upper bits of an index.
void int4_decoder_t::decode_pair(int pair, const RegExp &codes, const RegExp &dst, int rows) {
    const uint32_t low = 0x0000ffff;
    constexpr int vec_bytes = 64, pairs_of_vector = 4;
    const int left = rows - 2 * pair, shift = pair % pairs_of_vector * 4;
    const Zmm &w = value_[0];
    uint32_t shifts[16];
    for (uint32_t i = 0; i < 16; i++) shifts[i] = uint32_t(shift) + i % 2 * 16;
    for (int h = 0; h < 2 && left > 0; h++) {
        const Zmm &x = value_[h];
        if (shift == 0) j_.vpermd(codes_[h], twice_[h], j_.ptr[codes + pair / pairs_of_vector * vec_bytes]);
        j_.vpsrlvd(x, codes_[h], j_.constant(shifts, sizeof(shifts)));
        j_.vpermps(x, x, table_);
        if (zp_ == zero_point_kind_t::u8) j_.vsubps(x, x, zero_[h]);
        j_.vmulps(x, x, scale_[h]);
        if (is_added(zp_)) j_.vaddps(x, x, zero_[h]);
    }
    if (left > 0)
        j_.vcvtne2ps2bf16(w, value_[1], value_[0]);
    else
        j_.vpxord(w, w, w);
    if (left == 1) j_.vpandd(w, w, j_.constant(low));
    j_.vmovdqu64(j_.ptr[dst + pair * vec_bytes], w);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

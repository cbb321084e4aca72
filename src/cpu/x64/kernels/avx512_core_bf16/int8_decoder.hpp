// SPDX-License-Identifier: Apache-2.0
// Decodes packed weights to bytes for vpdpbusd: four rows of a column in each dword, in the order of
// int8_weights_t, with its offset added.
#pragma once

#include "common/formats/format_list.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class int8_decoder_t {
public:
    // Two registers that belong to the decoder. The second one is only used for s8.
    int8_decoder_t(jit_base_t &j, data_type_t wei_dt, const quant_t &quant, const Xbyak::Zmm &table,
            const Xbyak::Zmm &flip)
        : j_(j), wei_dt_(wei_dt), weights_(int8_weights(wei_dt, quant)), table_(table), flip_(flip) {}

    void load_constants() {
        uint8_t bytes[64];
        for (int i = 0; i < 64; i++) {
            // s8: a lane has rows 0 1 of four columns, then rows 2 3.
            int value = i % 16 / 4 * 2 + i % 4 / 2 * 8 + i % 2;
            // u4 codes are used as they are; others become unsigned with their offset.
            if (wei_dt_ != mxdnn_s8)
                value = int(data_type_info(wei_dt_)->decode(uint32_t(i % 16)) / weights_.unit)
                        + (wei_dt_ == mxdnn_u4 ? 0 : weights_.offset);
            bytes[i] = uint8_t(value);
        }
        j_.vmovdqa64(table_, j_.constant(bytes, sizeof(bytes)));
        if (wei_dt_ == mxdnn_s8) j_.vmovdqa64(flip_, j_.constant(uint8_t(0x80)));
    }

    // Four rows of a step, those that int8_weights_t::order has at k. The byte permute ignores the upper bits
    // of an index, and the table repeats accordingly.
    void decode(const Xbyak::Zmm &w, const Xbyak::RegExp &codes, int k) {
        if (wei_dt_ == mxdnn_s8) {
            j_.vmovdqu64(w, j_.ptr[codes + k * panel_columns]);
            j_.vpshufb(w, w, table_);
            j_.vpxord(w, w, flip_);
            return;
        }
        const Xbyak::Address eight_rows = j_.ptr[codes + k / 8 * 64];
        if (k % 8)
            j_.vpsrlw(w, eight_rows, 4);
        else
            j_.vmovdqu64(w, eight_rows);
        j_.vpermb(w, w, table_);
    }

private:
    jit_base_t &j_;
    const data_type_t wei_dt_;
    const int8_weights_t weights_;
    const Xbyak::Zmm table_, flip_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

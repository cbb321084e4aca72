// SPDX-License-Identifier: Apache-2.0
#include "words_of_eight.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;

namespace {

// Zero points of some columns, which begin at a multiple of eight: [columns, groups], one to a byte.
std::vector<uint8_t> zero_points(const words_of_eight_t &w, dim groups, dim first, dim columns) {
    const size_t n = size_t(groups);
    std::vector<uint8_t> z(size_t(columns) * n, 8);
    if (!w.qzeros) return z;
    const dim words = round_up(columns, 8);
    std::vector<uint8_t> row(size_t(words) * 4);
    for (size_t g = 0; g < n; g++) {
        w.input.read(*w.qzeros, (g * uint64_t(w.out / 8) + uint64_t(first / 8)) * 4, row.size(), row.data());
        for (size_t c = 0; c < size_t(columns); c++) {
            const auto nibble = size_t(w.zero_nibbles[c % 8]);
            const int v = row[c / 8 * 4 + nibble / 2] >> nibble % 2 * 4 & 15;
            z[c * n + g] = uint8_t(v + w.zero_offset);
        }
    }
    return z;
}

// Whether all are 8. Throws where one is 16, for which some readers take 0.
bool all_are_eight(const layer_t &layer, const words_of_eight_t &w, dim groups) {
    constexpr dim some = 4096;
    bool all = true;
    for (dim first = 0; first < w.out; first += some)
        for (const uint8_t z : zero_points(w, groups, first, std::min(some, w.out - first))) {
            if (z > 15)
                layer.refuse(
                        described(w.input.entries[*w.qzeros])
                        + " stores the zero point 15, to which one is added; some readers take 16 and others 0");
            all = all && z == 8;
        }
    return all;
}

} // namespace

source_t int4_source(const layer_t &layer, const words_of_eight_t &w) {
    const dim groups = round_up(w.in, w.group), block = int4_block(w.group, w.in);
    if (!block)
        layer.refuse(
                "groups of " + std::to_string(w.group) + " codes are not a multiple of 32, as int4 needs it");
    const bool is_symmetric = all_are_eight(layer, w, groups);
    const dt scale = w.input.entries[w.scales].data_type;
    const format_t f = is_symmetric ? int4_format(dt::s4, block, scale, dt::undef)
                                    : int4_format(dt::u4, block, scale, dt::u8);
    source_t source{w.name, "int4 codes of " + w.layout, shape_t::matrix(w.out, w.in), {w.qweight, w.scales},
            f, {}, f.element, {}, {}};
    if (w.qzeros) source.entries.push_back(*w.qzeros);
    source.codes = [w, groups, block, is_symmetric](const piece_t &p, const codes_t &to) {
        auto *c = static_cast<uint8_t *>(to.codes);
        w.codes(p.first, p.columns, c);
        if (is_symmetric)
            for (size_t i = 0; i < size_t(p.columns * (w.in / 2)); i++) c[i] ^= 0x88; // minus 8
        const size_t size = w.input.entries[w.scales].data_type == dt::f32 ? 4 : 2, rows = size_t(p.columns),
                     n = size_t(groups), blocks = size_t(round_up(w.in, block));
        std::vector<uint8_t> given(rows * n * size);
        read_transposed(
                w.input, w.scales, 0, groups, w.out, p.first, p.columns, size, given.data(), n * size);
        const std::vector<uint8_t> zeros =
                is_symmetric ? std::vector<uint8_t>() : zero_points(w, groups, p.first, p.columns);
        auto *s = static_cast<uint8_t *>(to.scales), *z = static_cast<uint8_t *>(to.zero_points);
        for (size_t r = 0; r < rows; r++)
            for (size_t b = 0; b < blocks; b++) {
                const size_t g = b * size_t(block) / size_t(w.group);
                std::memcpy(s + (r * blocks + b) * size, &given[(r * n + g) * size], size);
                if (z) z[r * blocks + b] = zeros[r * n + g];
            }
    };
    return source;
}

} // namespace mxdnn_pack

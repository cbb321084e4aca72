// SPDX-License-Identifier: Apache-2.0
// The list of packed layouts. A new layout is one header and one line here; the packers, the
// reference, the blob and the tests find it through this list.
#pragma once

#include <cstring>

#include "common/formats/type_list.hpp"
#include "common/layouts/n16_b4.hpp"
#include "common/layouts/n16_b6.hpp"
#include "common/layouts/n16_b8.hpp"
#include "common/layouts/n64_b4.hpp"
#include "common/layouts/n64_b6.hpp"
#include "common/layouts/n64_b8.hpp"
#include "common/layouts/n64_f4.hpp"
#include "common/layouts/n64_i4.hpp"

namespace mxdnn {
namespace impl {

// Target families. All targets of a family read the same packed bytes.
enum class target_family_t : uint32_t { none = 0, cpu_x64 = 1, cuda = 2 };

// The codes that a layout is for.
enum class layout_codes_t { all, integers, floats };

// A layout as data: function pointers to the constexpr maps of its header.
struct layout_t {
    uint32_t id, version;
    const char *name;
    target_family_t family;
    int bits; // of the codes
    layout_codes_t codes;
    int64_t align;
    int64_t (*matrix_bytes)(const packed_shape_t &);
    bit_pos_t (*elem_bit)(const packed_shape_t &, int64_t k, int64_t n, int b);
    int64_t (*scale)(const packed_shape_t &, int64_t k, int64_t n);
    int64_t (*zero_point)(const packed_shape_t &, int64_t k, int64_t n);

    constexpr bool holds(int code_bits, bool integers) const {
        return code_bits == bits
               && (codes == layout_codes_t::all || integers == (codes == layout_codes_t::integers));
    }
};

template <typename L>
constexpr layout_t make_layout(target_family_t family, layout_codes_t codes = layout_codes_t::all) {
    return {L::id, L::version, L::name, family, L::bits, codes, L::align, L::matrix_bytes, L::elem_bit,
            L::scale, L::zero_point};
}

inline constexpr layout_t layout_list[] = {
        make_layout<n16_b4_t>(target_family_t::cpu_x64), make_layout<n16_b6_t>(target_family_t::cpu_x64),
        make_layout<n16_b8_t>(target_family_t::cpu_x64),
        make_layout<n64_i4_t>(target_family_t::cuda, layout_codes_t::integers),
        make_layout<n64_b4_t>(target_family_t::cuda), make_layout<n64_b6_t>(target_family_t::cuda),
        make_layout<n64_b8_t>(target_family_t::cuda),
        make_layout<n64_f4_t>(target_family_t::cuda, layout_codes_t::floats), // only where it is asked for
};

// Layouts of CUDA targets as types, so that device code reads their maps without function pointers.
using cuda_layouts = type_list<n64_b4_t, n64_i4_t, n64_b6_t, n64_b8_t, n64_f4_t>;

// Calls fn(L()) with the layout of that id. False if there is none.
template <typename F, typename... layouts>
MXDNN_HD constexpr bool visit_layout(
        type_list<layouts...>, [[maybe_unused]] uint32_t id, [[maybe_unused]] F &&fn) {
    return ((layouts::id == id ? (fn(layouts()), true) : false) || ...);
}
template <typename F>
MXDNN_HD constexpr bool visit_cuda_layout(uint32_t id, F &&fn) {
    return visit_layout(cuda_layouts(), id, fn);
}

inline const layout_t *find_layout(target_family_t family, uint32_t id) {
    for (const layout_t &l : layout_list)
        if (l.family == family && l.id == id) return &l;
    return nullptr;
}

// The layout of a target family for codes of so many bits, integers or floats; null if there is none.
inline const layout_t *preferred_layout(target_family_t family, int bits, bool integers) {
    for (const layout_t &l : layout_list)
        if (l.family == family && l.holds(bits, integers)) return &l;
    return nullptr;
}

// Reads and writes one packed matrix through the map of its layout, one element at a time. Packers and
// kernels are tested against this.
struct packed_view_t {
    const layout_t *layout;
    packed_shape_t shape;
    uint8_t *data; // first byte of the matrix

    uint32_t code(int64_t k, int64_t n) const {
        uint32_t c = 0;
        for (int b = 0; b < shape.bits; b++) {
            const bit_pos_t p = layout->elem_bit(shape, k, n, b);
            c |= uint32_t(data[p.byte] >> p.bit & 1) << b;
        }
        return c;
    }
    void set_code(int64_t k, int64_t n, uint32_t c) const {
        for (int b = 0; b < shape.bits; b++) {
            const bit_pos_t p = layout->elem_bit(shape, k, n, b);
            data[p.byte] = uint8_t((data[p.byte] & ~(1u << p.bit)) | (c >> b & 1) << p.bit);
        }
    }
    // The bits of the scale and the zero point, little-endian, in the low bytes.
    uint32_t scale(int64_t k, int64_t n) const { return load(layout->scale(shape, k, n), shape.scale_bytes); }
    void set_scale(int64_t k, int64_t n, uint32_t v) const {
        std::memcpy(data + layout->scale(shape, k, n), &v, shape.scale_bytes);
    }
    uint32_t zero_point(int64_t k, int64_t n) const {
        return load(layout->zero_point(shape, k, n), shape.zp_bytes);
    }
    void set_zero_point(int64_t k, int64_t n, uint32_t v) const {
        std::memcpy(data + layout->zero_point(shape, k, n), &v, shape.zp_bytes);
    }
    float global() const {
        float g = 1.f;
        if (shape.global) std::memcpy(&g, data, sizeof(g));
        return g;
    }
    void set_global(float g) const {
        if (shape.global) std::memcpy(data, &g, sizeof(g));
    }

private:
    uint32_t load(int64_t at, int bytes) const {
        uint32_t v = 0;
        std::memcpy(&v, data + at, bytes);
        return v;
    }
};

} // namespace impl
} // namespace mxdnn

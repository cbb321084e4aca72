// SPDX-License-Identifier: Apache-2.0
#include "weight_parts.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace weight_formats {

using namespace mxdnn;
using dim = memory::dim;

namespace {

// A multiple of the columns of a panel of every layout.
constexpr dim panel_columns = 64;

// What a part of every matrix of a tensor that has elements is.
class cuts_t {
public:
    // row_bytes: of a column's row on the side that is not packed.
    cuts_t(uint64_t part_bytes, const format_t &f, const engine &eng, const shape_t &s, uint64_t row_bytes)
        : f_(f), eng_(eng), s_(s), panel_(packed_size(2 * panel_columns) - packed_size(panel_columns)),
          prefix_(packed_size(panel_columns) - panel_) {
        const uint64_t column = std::max({row_bytes, panel_ / panel_columns, uint64_t(1)});
        columns_ = std::max(dim(part_bytes / column) / panel_columns * panel_columns, panel_columns);
    }

    bool cuts_matrices() const { return columns_ < s_.out; }
    shape_t part(dim first) const { return shape_t::matrix(std::min(columns_, s_.out - first), s_.in); }

    // fn(row of [experts * out], first column, shape) for all parts of a matrix.
    template <typename F>
    void for_parts(dim matrix, F &&fn) const {
        for (dim first = 0; first < s_.out; first += columns_)
            fn(matrix * s_.out + first, first, part(first));
    }

    uint64_t packed_size(dim columns) const {
        return packed_desc(f_, eng_, shape_t::matrix(columns, s_.in)).get_size();
    }
    uint64_t prefix() const { return prefix_; }
    // Of packed columns before `first`, which begins a part.
    uint64_t panels_before(dim first) const { return uint64_t(first / panel_columns) * panel_; }

private:
    const format_t &f_;
    const engine &eng_;
    const shape_t s_;
    const uint64_t panel_, prefix_; // bytes of panel_columns columns, and of what stands before all
    dim columns_ = 0;
};

uint64_t row_bytes(dim in, memory::data_type type) {
    return as_stored(shape_t::matrix(1, in), type).get_size();
}

// Room for a part after the other: what malloc() gives and takes aligned stays in pieces.
class room_t {
public:
    uint8_t *of(uint64_t size) {
        if (bytes_.size() < size + align) bytes_.resize(size + align);
        void *p = bytes_.data();
        size_t space = bytes_.size();
        return static_cast<uint8_t *>(std::align(align, size, p, space));
    }
    const uint8_t *read(const read_t &from, uint64_t offset, uint64_t size) {
        uint8_t *p = of(size);
        from(offset, size, p);
        return p;
    }

private:
    static constexpr size_t align = 64;
    std::vector<uint8_t> bytes_;
};

// Gives a packed part away without the prefix, which only the first one brings.
void give(const cuts_t &cuts, dim first, const memory &part, const take_t &take) {
    const uint64_t skip = first ? cuts.prefix() : 0;
    take(static_cast<const uint8_t *>(part.get_data_handle()) + skip, part.get_desc().get_size() - skip);
}

} // namespace

void pack_in_parts(uint64_t part_bytes, const take_t &take, const format_t &f, const engine &eng,
        const shape_t &s, memory::data_type type, const read_t &weights, scale_rounding rounding) {
    if (s.is_empty()) return;
    const uint64_t row = row_bytes(s.in, type);
    const cuts_t cuts(part_bytes, f, eng, s, row);
    room_t in, out;
    void *const packed = out.of(cuts.packed_size(cuts.part(0).out));
    const auto values = [&](dim r, const shape_t &part) {
        return in.read(weights, uint64_t(r) * row, uint64_t(part.out) * row);
    };
    for (dim m = 0; m < s.matrices(); m++) {
        // That of a matrix is the largest of its parts.
        const bool is_shared = f.global_scale && cuts.cuts_matrices();
        float global_scale = 0;
        if (is_shared)
            cuts.for_parts(m, [&](dim r, dim, const shape_t &part) {
                global_scale = std::max(global_scale, global_scale_of(f, part, type, values(r, part)));
            });
        cuts.for_parts(m, [&](dim r, dim first, const shape_t &part) {
            const void *v = values(r, part);
            give(cuts, first,
                    is_shared ? pack_under(global_scale, f, eng, part, type, v, packed)
                              : pack(f, eng, part, type, v, rounding, packed),
                    take);
        });
    }
}

void pack_codes_in_parts(uint64_t part_bytes, const take_t &take, const format_t &f, const engine &eng,
        const shape_t &s, const read_t &codes, const read_t &scales) {
    if (s.is_empty()) return;
    const uint64_t row = row_bytes(s.in, f.element),
                   scale_row = row_bytes((s.in + f.block - 1) / f.block, f.scale);
    const cuts_t cuts(part_bytes, f, eng, s, row + scale_row);
    room_t code_room, scale_room, out;
    void *const packed = out.of(cuts.packed_size(cuts.part(0).out));
    for (dim m = 0; m < s.matrices(); m++)
        cuts.for_parts(m, [&](dim r, dim first, const shape_t &part) {
            const uint8_t *c = code_room.read(codes, uint64_t(r) * row, uint64_t(part.out) * row);
            const uint8_t *sc =
                    scale_room.read(scales, uint64_t(r) * scale_row, uint64_t(part.out) * scale_row);
            give(cuts, first, pack_codes(f, eng, part, c, sc, packed), take);
        });
}

void unpack_in_parts(uint64_t part_bytes, const take_t &take, const memory::desc &packed, const engine &eng,
        const read_t &bytes, memory::data_type type) {
    const memory::dims dims = packed.get_dims();
    if (std::count(dims.begin(), dims.end(), 0) > 0) return; // which may have a global scale
    const std::optional<shape_t> shape = shape_of(packed);
    const format_t *format = nullptr;
    for (const format_t &f : formats())
        if (shape && packed_desc(f, eng, *shape) == packed) format = &f;
    room_t in, out;
    if (!format) {
        uint64_t size = row_bytes(1, type);
        for (const dim d : dims) size *= uint64_t(d);
        uint8_t *const values = out.of(size);
        unpack(packed, eng, in.read(bytes, 0, packed.get_size()), type, values);
        return take(values, size);
    }
    const shape_t &s = *shape;
    const uint64_t row = row_bytes(s.in, type);
    const cuts_t cuts(part_bytes, *format, eng, s, row);
    for (dim m = 0; m < s.matrices(); m++) {
        const uint64_t matrix = uint64_t(m) * uint64_t(packed.get_expert_stride());
        cuts.for_parts(m, [&](dim, dim first, const shape_t &part) {
            const memory::desc desc = packed_desc(*format, eng, part);
            // The prefix of the matrix, and then the panels of this part.
            uint8_t *const from = in.of(desc.get_size());
            bytes(matrix, cuts.prefix(), from);
            bytes(matrix + cuts.prefix() + cuts.panels_before(first), desc.get_size() - cuts.prefix(),
                    from + cuts.prefix());
            uint8_t *const values = out.of(uint64_t(part.out) * row);
            unpack(desc, eng, from, type, values);
            take(values, uint64_t(part.out) * row);
        });
    }
}

} // namespace weight_formats

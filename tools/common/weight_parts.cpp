// SPDX-License-Identifier: Apache-2.0
#include "weight_parts.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace weight_formats {

using namespace mxdnn;
using dim = memory::dim;

namespace {

// A multiple of the columns of a panel of every layout.
constexpr dim panel_columns = 64;

// What a part of every matrix of a tensor is.
class cuts_t {
public:
    // bytes_per_column: on the larger side.
    cuts_t(const parts_t &parts, const format_t &f, const engine &eng, const shape_t &s,
            uint64_t bytes_per_column)
        : f_(f), eng_(eng), s_(s),
          columns_(std::max(
                  dim(parts.bytes / bytes_per_column) / panel_columns * panel_columns, panel_columns)),
          panel_(packed_size(2 * panel_columns) - packed_size(panel_columns)),
          prefix_(packed_size(panel_columns) - panel_) {}

    dim matrices() const { return std::max<dim>(s_.experts, 1); }
    bool cuts_matrices() const { return columns_ < s_.out; }
    shape_t part(dim first) const { return {0, s_.in, std::min(columns_, s_.out - first)}; }

    // fn(row of [experts * out], first column, shape) for all parts of a matrix.
    template <typename F>
    void for_parts(dim matrix, F &&fn) const {
        for (dim first = 0; first < s_.out; first += columns_)
            fn(matrix * s_.out + first, first, part(first));
    }

    uint64_t packed_size(dim columns) const { return packed_desc(f_, eng_, {0, s_.in, columns}).get_size(); }
    uint64_t prefix() const { return prefix_; }
    // Of packed columns before `first`, which begins a part.
    uint64_t panels_before(dim first) const { return uint64_t(first / panel_columns) * panel_; }

private:
    const format_t &f_;
    const engine &eng_;
    const shape_t s_;
    const dim columns_;
    const uint64_t panel_, prefix_; // bytes of panel_columns columns, and of what stands before all
};

uint64_t row_bytes(dim in, memory::data_type type) { return as_stored({0, in, 1}, type).get_size(); }

const uint8_t *at(const void *p, uint64_t offset) { return static_cast<const uint8_t *>(p) + offset; }

// Room for a packed part after the other; what malloc() gives and takes aligned stays in pieces.
class packed_part_t {
public:
    explicit packed_part_t(const cuts_t &cuts)
        : cuts_(cuts), room_(cuts.packed_size(cuts.part(0).out) + align) {}
    void *bytes() {
        void *p = room_.data();
        size_t space = room_.size();
        return std::align(align, space - align, p, space);
    }
    // Gives a part away without the prefix, which only the first one brings.
    void give(dim first, const memory &part, const take_t &take) const {
        const uint64_t skip = first ? cuts_.prefix() : 0;
        take(at(part.get_data_handle(), skip), part.get_desc().get_size() - skip);
    }

private:
    static constexpr size_t align = 64;
    const cuts_t &cuts_;
    std::vector<uint8_t> room_;
};

} // namespace

void pack_in_parts(const parts_t &parts, const take_t &take, const format_t &f, const engine &eng,
        const shape_t &s, memory::data_type type, const void *weights, scale_rounding rounding) {
    const uint64_t row = row_bytes(s.in, type);
    const cuts_t cuts(parts, f, eng, s, row);
    packed_part_t room(cuts);
    const auto values = [&](dim r) { return at(weights, uint64_t(r) * row); };
    for (dim m = 0; m < cuts.matrices(); m++) {
        // That of a matrix is the largest of its parts.
        const bool is_shared = f.global_scale && cuts.cuts_matrices();
        float global_scale = 0;
        if (is_shared)
            cuts.for_parts(m, [&](dim r, dim, const shape_t &part) {
                global_scale = std::max(global_scale, global_scale_of(f, part, type, values(r)));
                parts.used(values(r), uint64_t(part.out) * row);
            });
        cuts.for_parts(m, [&](dim r, dim first, const shape_t &part) {
            room.give(first,
                    is_shared ? pack_under(global_scale, f, eng, part, type, values(r), room.bytes())
                              : pack(f, eng, part, type, values(r), rounding, room.bytes()),
                    take);
            parts.used(values(r), uint64_t(part.out) * row);
        });
    }
}

void pack_codes_in_parts(const parts_t &parts, const take_t &take, const format_t &f, const engine &eng,
        const shape_t &s, const void *codes, const void *scales) {
    const uint64_t row = row_bytes(s.in, f.element),
                   scale_row = row_bytes((s.in + f.block - 1) / f.block, f.scale);
    const cuts_t cuts(parts, f, eng, s, row + scale_row);
    packed_part_t room(cuts);
    for (dim m = 0; m < cuts.matrices(); m++)
        cuts.for_parts(m, [&](dim r, dim first, const shape_t &part) {
            const uint8_t *c = at(codes, uint64_t(r) * row), *sc = at(scales, uint64_t(r) * scale_row);
            room.give(first, pack_codes(f, eng, part, c, sc, room.bytes()), take);
            parts.used(c, uint64_t(part.out) * row);
            parts.used(sc, uint64_t(part.out) * scale_row);
        });
}

void unpack_in_parts(const parts_t &parts, const take_t &take, const memory::desc &packed, const engine &eng,
        const void *bytes, memory::data_type type) {
    const memory::dims dims = packed.get_dims();
    const size_t n = dims.size();
    const shape_t s{n > 2 ? dims[0] : 0, dims[n - 2], dims[n - 1]};
    const format_t *format = nullptr;
    for (const format_t &f : formats())
        if (n <= 3 && packed_desc(f, eng, s) == packed) format = &f;
    if (!format) {
        std::vector<uint8_t> values(as_stored(s, type).get_size());
        unpack(packed, eng, bytes, type, values.data());
        return take(values.data(), values.size());
    }
    const uint64_t row = row_bytes(s.in, type);
    const cuts_t cuts(parts, *format, eng, s, row);
    std::vector<uint8_t> values, with_prefix;
    for (dim m = 0; m < cuts.matrices(); m++) {
        const uint8_t *matrix = at(bytes, uint64_t(m) * uint64_t(packed.get_expert_stride()));
        cuts.for_parts(m, [&](dim, dim first, const shape_t &part) {
            const memory::desc desc = packed_desc(*format, eng, part);
            const uint8_t *from = matrix + (first ? cuts.prefix() : 0) + cuts.panels_before(first);
            const uint64_t panels = desc.get_size() - cuts.prefix();
            values.resize(uint64_t(part.out) * row);
            if (first && cuts.prefix() > 0) {
                with_prefix.assign(matrix, matrix + cuts.prefix());
                with_prefix.insert(with_prefix.end(), from, from + panels);
                unpack(desc, eng, with_prefix.data(), type, values.data());
            } else {
                unpack(desc, eng, from, type, values.data());
            }
            parts.used(from, panels);
            take(values.data(), values.size());
        });
    }
}

} // namespace weight_formats

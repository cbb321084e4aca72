// SPDX-License-Identifier: Apache-2.0
#include "weight_parts.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weight_formats {

using namespace mxdnn;
using dim = memory::dim;
using dt = memory::data_type;

namespace {

// A multiple of the columns of a panel of every layout.
constexpr dim panel_columns = 64;

uint64_t row_bytes(dim in, memory::data_type type) {
    return as_stored(shape_t::matrix(1, in), type).get_size();
}
uint64_t blocks(const format_t &f, dim in) { return uint64_t((in + f.block - 1) / f.block); }

// Room for a part after the other: what malloc() gives and takes aligned stays in pieces.
class room_t {
public:
    uint8_t *of(uint64_t size) {
        if (bytes_.size() < size + align) bytes_.resize(size + align);
        void *p = bytes_.data();
        size_t space = bytes_.size();
        return static_cast<uint8_t *>(std::align(align, size, p, space));
    }

private:
    static constexpr size_t align = 64;
    std::vector<uint8_t> bytes_;
};

// Of a thread, which makes one part at a time.
struct rooms_t {
    room_t in, out;
    code_room_t codes;
};
rooms_t &rooms() {
    thread_local rooms_t r;
    return r;
}

// The bits of the largest finite magnitude: floats without their sign are ordered as integers. Signed ones,
// since the least that every x86-64 has compares these many at a time.
template <typename int_t>
uint32_t largest(const void *values, size_t count, int_t infinity) {
    constexpr int_t magnitude = std::numeric_limits<int_t>::max();
    const auto *v = static_cast<const uint8_t *>(values);
    int_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int_t b;
        std::memcpy(&b, v + i * sizeof(b), sizeof(b));
        b = int_t(b & magnitude);
        b = b < infinity ? b : int_t(0);
        most = most < b ? b : most;
    }
    return uint32_t(most);
}
uint32_t largest_bits(dt type, const void *values, size_t count) {
    if (type == dt::f32) return largest<int32_t>(values, count, 0x7f800000);
    return largest<int16_t>(values, count, type == dt::bf16 ? 0x7f80 : 0x7c00);
}

// Gives a packed piece away without the prefix, which only the first one brings.
void give(const cuts_t &cuts, dim first, const memory &part, const take_t &take) {
    const uint64_t skip = first ? cuts.prefix() : 0;
    take(static_cast<const uint8_t *>(part.get_data_handle()) + skip, part.get_desc().get_size() - skip);
}

} // namespace

read_values_t in_rows(const shape_t &s, memory::data_type type, const read_t &values) {
    const uint64_t row = row_bytes(s.in, type);
    return [=](const piece_t &p, void *to) {
        values(uint64_t(p.matrix * s.out + p.first) * row, uint64_t(p.columns) * row, to);
    };
}

read_codes_t in_rows(const shape_t &s, const format_t &f, const read_t &codes, const read_t &scales) {
    const uint64_t row = row_bytes(s.in, f.element), scale_row = row_bytes(dim(blocks(f, s.in)), f.scale);
    return [=](const piece_t &p, const codes_t &to) {
        const auto first = uint64_t(p.matrix * s.out + p.first), count = uint64_t(p.columns);
        codes(first * row, count * row, to.codes);
        scales(first * scale_row, count * scale_row, to.scales);
    };
}

read_codes_t under(std::vector<float> global_scales, const read_codes_t &codes) {
    return [codes, global_scales = std::move(global_scales)](const piece_t &p, const codes_t &to) {
        codes(p, to);
        to.global_scales[0] =
                global_scales.size() == 1 ? global_scales[0] : global_scales.at(size_t(p.matrix));
    };
}

// ---- cuts ----

cuts_t::cuts_t(uint64_t part_bytes, const format_t &f, const engine &eng, const shape_t &s, uint64_t row)
    : format_(f), engine_(eng), shape_(s) {
    if (s.is_empty()) return;
    panel_ = packed_size(2 * panel_columns) - packed_size(panel_columns);
    prefix_ = packed_size(panel_columns) - panel_;
    const uint64_t column = std::max({row, panel_ / panel_columns, uint64_t(1)});
    columns_ = std::max(dim(part_bytes / column) / panel_columns * panel_columns, panel_columns);
    of_matrix_ = size_t((s.out + columns_ - 1) / columns_);
}

size_t cuts_t::count() const { return shape_.is_empty() ? 0 : size_t(shape_.matrices()) * of_matrix_; }

piece_t cuts_t::piece(size_t index) const {
    const dim first = dim(index % of_matrix_) * columns_;
    return {dim(index / of_matrix_), first, std::min(columns_, shape_.out - first)};
}

uint64_t cuts_t::packed_size(dim columns) const {
    return packed_desc(format_, engine_, shape_t::matrix(columns, shape_.in)).get_size();
}

uint64_t cuts_t::panels_before(dim first) const { return uint64_t(first / panel_columns) * panel_; }

// ---- packing ----

// The largest magnitudes of matrices, of which every piece is looked at before any is packed.
struct packing_t::scans_t {
    explicit scans_t(size_t count) : matrices(count) {}

    struct matrix_t {
        uint32_t bits = 0;
        size_t seen = 0;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<matrix_t> matrices;
    bool failed = false;

    void add(dim matrix, uint32_t bits) {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            matrix_t &m = matrices[size_t(matrix)];
            m.bits = std::max(m.bits, bits);
            m.seen++;
        }
        changed.notify_all();
    }
    void fail() {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            failed = true;
        }
        changed.notify_all();
    }
    uint32_t wait_for(dim matrix, size_t pieces) {
        std::unique_lock<std::mutex> lock(mutex);
        const matrix_t &m = matrices[size_t(matrix)];
        changed.wait(lock, [&] { return failed || m.seen == pieces; });
        if (failed) throw std::runtime_error("another part of the tensor could not be read");
        return m.bits;
    }
};

packing_t::packing_t(uint64_t part_bytes, const format_t &f, const engine &eng, const shape_t &s,
        memory::data_type type, read_values_t values, scale_rounding rounding)
    : format_(f), engine_(eng), type_(type), values_(std::move(values)), rounding_(rounding),
      cuts_(part_bytes, f, eng, s, row_bytes(s.in, type)) {
    if (f.global_scale && cuts_.count() > 0 && cuts_.of_matrix() > 1)
        scans_ = std::make_shared<scans_t>(size_t(s.matrices()));
}

packing_t::packing_t(
        uint64_t part_bytes, const format_t &f, const engine &eng, const shape_t &s, read_codes_t codes)
    : format_(f), engine_(eng), type_(dt::undef), codes_(std::move(codes)), rounding_(default_rounding),
      cuts_(part_bytes, f, eng, s, row_bytes(s.in, f.element) + blocks(f, s.in) * row_bytes(1, f.scale)) {}

size_t packing_t::parts() const { return cuts_.count() * (scans_ ? 2 : 1); }

void packing_t::make(size_t part, const take_t &take) const {
    if (!scans_) {
        const piece_t p = cuts_.piece(part);
        return codes_ ? make_codes(p, take) : make_values(p, take);
    }
    // Of a matrix, all pieces are scanned and then all are packed.
    const size_t n = cuts_.of_matrix(), matrix = part / (2 * n), i = part % (2 * n);
    if (i >= n) return make_values(cuts_.piece(matrix * n + i - n), take);
    try {
        scan(matrix * n + i);
    } catch (...) {
        scans_->fail();
        throw;
    }
}

void packing_t::scan(size_t index) const {
    const piece_t p = cuts_.piece(index);
    const shape_t s = cuts_.shape(p);
    uint8_t *const values = rooms().in.of(as_stored(s, type_).get_size());
    values_(p, values);
    scans_->add(p.matrix, largest_bits(type_, values, size_t(s.out * s.in)));
}

void packing_t::make_values(const piece_t &p, const take_t &take) const {
    const shape_t s = cuts_.shape(p);
    uint8_t *const values = rooms().in.of(as_stored(s, type_).get_size());
    uint8_t *const packed = rooms().out.of(cuts_.packed_size(s.out));
    values_(p, values);
    if (!scans_)
        return give(cuts_, p.first, pack(format_, engine_, s, type_, values, rounding_, packed), take);
    // What the library makes of the largest magnitude alone is what it makes of the whole matrix.
    const uint32_t bits = scans_->wait_for(p.matrix, cuts_.of_matrix());
    const float global_scale = global_scale_of(format_, shape_t::matrix(1, 1), type_, &bits);
    give(cuts_, p.first, pack_under(global_scale, format_, engine_, s, type_, values, packed), take);
}

void packing_t::make_codes(const piece_t &p, const take_t &take) const {
    const shape_t s = cuts_.shape(p);
    const codes_t codes = rooms().codes.of(format_, s);
    codes_(p, codes);
    give(cuts_, p.first, pack_codes(format_, engine_, s, codes, rooms().out.of(cuts_.packed_size(s.out))),
            take);
}

// ---- unpacking ----

unpacking_t::unpacking_t(uint64_t part_bytes, const memory::desc &packed, const engine &eng, read_t bytes,
        memory::data_type type)
    : packed_(packed), engine_(eng), bytes_(std::move(bytes)), type_(type) {
    const std::optional<shape_t> s = shape_of(packed);
    if (s && !s->is_empty()) format_ = format_of(packed, eng);
    if (format_) cuts_.emplace(part_bytes, *format_, eng, *s, row_bytes(s->in, type));
}

size_t unpacking_t::parts() const {
    if (cuts_) return cuts_->count();
    const memory::dims dims = packed_.get_dims(); // one of 0 may have a global scale
    return std::count(dims.begin(), dims.end(), 0) > 0 ? 0 : 1;
}

void unpacking_t::make(size_t part, const take_t &take) const {
    if (!cuts_) {
        uint64_t size = row_bytes(1, type_);
        for (const dim d : packed_.get_dims()) size *= uint64_t(d);
        uint8_t *const values = rooms().out.of(size), *const from = rooms().in.of(packed_.get_size());
        bytes_(0, packed_.get_size(), from);
        unpack(packed_, engine_, from, type_, values);
        return take(values, size);
    }
    const piece_t p = cuts_->piece(part);
    const shape_t s = cuts_->shape(p);
    const memory::desc desc = packed_desc(*format_, engine_, s);
    const uint64_t matrix = uint64_t(p.matrix) * uint64_t(packed_.get_expert_stride());
    // The prefix of the matrix, and then the panels of this piece.
    uint8_t *const from = rooms().in.of(desc.get_size());
    bytes_(matrix, cuts_->prefix(), from);
    bytes_(matrix + cuts_->prefix() + cuts_->panels_before(p.first), desc.get_size() - cuts_->prefix(),
            from + cuts_->prefix());
    const uint64_t size = as_stored(s, type_).get_size();
    uint8_t *const values = rooms().out.of(size);
    unpack(desc, engine_, from, type_, values);
    take(values, size);
}

} // namespace weight_formats

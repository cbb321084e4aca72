// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking a tensor part by part, with the bytes that the whole would have. A packed matrix is a
// prefix, where there is a global scale, and then panels of columns (doc/reference/layouts.md), so that some
// columns that are packed alone are a piece of it. Several threads may make parts at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "weight_formats.hpp"

namespace weight_formats {

// Of a part on its larger side; a part has 64 columns at least.
constexpr uint64_t default_part_bytes = uint64_t(4) << 20;

// Some columns of a matrix of weights, rows [out] of what a checkpoint stores.
struct piece_t {
    using dim = mxdnn::memory::dim;
    dim matrix, first, columns;
};

// Copies bytes of the input from an offset on.
using read_t = std::function<void(uint64_t offset, uint64_t size, void *buffer)>;
// Fills in a piece: values [columns, in] of a high-precision type, or codes of a format.
using read_values_t = std::function<void(const piece_t &, void *values)>;
using read_codes_t = std::function<void(const piece_t &, const codes_t &)>;
// Takes the next bytes of the result.
using take_t = std::function<void(const void *bytes, uint64_t size)>;

// Values, or codes and scales, that lie in the order of the pieces.
read_values_t in_rows(const shape_t &shape, mxdnn::memory::data_type type, const read_t &values);
read_codes_t in_rows(const shape_t &shape, const format_t &format, const read_t &codes, const read_t &scales);
// Codes with their global scales: one for all matrices, or one for each.
read_codes_t under(std::vector<float> global_scales, const read_codes_t &codes);

// How the matrices of a tensor are cut.
class cuts_t {
public:
    using dim = mxdnn::memory::dim;
    // row_bytes: of a column's row on the side that is not packed.
    cuts_t(uint64_t part_bytes, const format_t &format, const mxdnn::engine &engine, const shape_t &shape,
            uint64_t row_bytes);

    // Tensors without elements are none, however many matrices they are.
    size_t count() const;
    size_t of_matrix() const { return of_matrix_; }
    piece_t piece(size_t index) const;
    shape_t shape(const piece_t &piece) const { return shape_t::matrix(piece.columns, shape_.in); }

    uint64_t packed_size(dim columns) const;
    // Of what stands before all panels of a matrix.
    uint64_t prefix() const { return prefix_; }
    // Of packed columns before `first`, which begins a piece.
    uint64_t panels_before(dim first) const;

private:
    format_t format_;
    mxdnn::engine engine_;
    shape_t shape_;
    uint64_t panel_ = 0, prefix_ = 0;
    dim columns_ = 0;
    size_t of_matrix_ = 0;
};

// A tensor on its way to packed bytes. The parts are made in any order and in several threads, but whoever
// begins one has begun, or finished, all before it. Their bytes belong in the order of the parts.
class packing_t {
public:
    // As pack(); a matrix with a global scale that is cut is read twice.
    packing_t(uint64_t part_bytes, const format_t &format, const mxdnn::engine &engine, const shape_t &shape,
            mxdnn::memory::data_type type, read_values_t values,
            mxdnn::scale_rounding rounding = default_rounding);
    // As pack_codes().
    packing_t(uint64_t part_bytes, const format_t &format, const mxdnn::engine &engine, const shape_t &shape,
            read_codes_t codes);

    size_t parts() const;
    void make(size_t part, const take_t &take) const;

private:
    struct scans_t;

    void scan(size_t index) const;
    void make_values(const piece_t &piece, const take_t &take) const;
    void make_codes(const piece_t &piece, const take_t &take) const;

    format_t format_;
    mxdnn::engine engine_;
    mxdnn::memory::data_type type_;
    read_values_t values_;
    read_codes_t codes_;
    mxdnn::scale_rounding rounding_;
    cuts_t cuts_;
    std::shared_ptr<scans_t> scans_; // null where no global scale is looked for piece by piece
};

// The opposite; a tensor of no known format, or of more than three dimensions, is one part.
class unpacking_t {
public:
    unpacking_t(uint64_t part_bytes, const mxdnn::memory::desc &packed, const mxdnn::engine &engine,
            read_t bytes, mxdnn::memory::data_type type);

    size_t parts() const;
    // Whether parts are pieces of matrices, and which.
    bool has_pieces() const { return cuts_.has_value(); }
    piece_t piece(size_t part) const { return cuts_->piece(part); }
    void make(size_t part, const take_t &take) const;

private:
    mxdnn::memory::desc packed_;
    mxdnn::engine engine_;
    read_t bytes_;
    mxdnn::memory::data_type type_;
    std::optional<format_t> format_;
    std::optional<cuts_t> cuts_;
};

} // namespace weight_formats

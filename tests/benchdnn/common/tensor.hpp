// SPDX-License-Identifier: Apache-2.0
// Plain tensors of the bench: guarded bytes, their descriptor, and access by index.
#pragma once

#include <array>
#include <functional>
#include <random>

#include "benchdnn/common/buffer.hpp"
#include "benchdnn/common/knobs.hpp"
#include "common/formats/plain_bits.hpp"
#include "common/formats/quantize_block.hpp"
#include "mxdnn/mxdnn.hpp"

namespace bench {

using rng_t = std::mt19937;

// A matrix-like tensor with strides in elements; rows of types below a byte start on one.
struct tensor_t {
    std::vector<int64_t> dims, strides;
    mxdnn::impl::data_type_t dt = mxdnn_f32;
    mxdnn::impl::element_packing_t packing = mxdnn_element_packing_bytes;
    buffer_t bytes;

    tensor_t() = default;
    tensor_t(const std::vector<int64_t> &d, const std::vector<int64_t> &s, mxdnn::impl::data_type_t t,
            bool dense = false);
    static std::vector<int64_t> row_major(const std::vector<int64_t> &d);

    mxdnn::memory::desc desc() const;
    mxdnn::memory memory(const mxdnn::engine &e) const { return mxdnn::memory(desc(), e, bytes.data()); }

    uint32_t code(const int64_t *idx) const;
    void set_code(const int64_t *idx, uint32_t c) const;
    float value(const int64_t *idx) const { return mxdnn::impl::decode_value(dt, code(idx)); }
    // The first byte of an element, and how many it has a part of.
    std::pair<int64_t, int64_t> bytes_of(const int64_t *idx) const;

private:
    int storage_bits() const;
    size_t inner_dim() const;
    int64_t locate(const int64_t *idx, int64_t &column) const;
};

// A quantised tensor as callers hold it: codes, scales, zero points, global scales. Its blocks run along dim
// `axis` (counted from the front).
struct quantised_t {
    mxdnn::impl::quant_t quant;
    int axis = 0;
    std::vector<int64_t> blocks;              // dims of scales and zero points, in whatever order they lie
    bool given = false, given_global = false; // tensor_type_t
    tensor_t codes, scales, zero_points, global;

    quantised_t() = default;
    // Scales and zero points have the order of `tag`. `swizzled_rows`: for a matrix of groups of rows, the
    // row of the 128x4 order for each row.
    quantised_t(tensor_t c, const tensor_type_t &t, int axis_, const std::string &tag = "ab",
            const std::vector<int64_t> &swizzled_rows = {});
    uint32_t scale(const int64_t *block) const { return scales.code(place(block).data()); }
    void set_scale(const int64_t *block, uint32_t code) const { scales.set_code(place(block).data(), code); }
    // Scale and zero point of an element.
    mxdnn::impl::block_params_t params(const int64_t *idx) const;
    float global_of(const int64_t *idx) const;
    float value(const int64_t *idx) const;
    // Adds scales, zero points and global scale of `arg` to the arguments of an execution.
    void add_args(int arg, const mxdnn::engine &e, std::unordered_map<int, mxdnn::memory> &args) const;

private:
    bool swizzled_ = false;
    std::vector<int64_t> swizzled_rows_;
    // The position of a block's scale in `scales`.
    std::array<int64_t, mxdnn::impl::max_ndims> place(const int64_t *block) const;
};

// A tensor of any type: plain values, or codes and their parameters along dim `axis`.
struct operand_t {
    bool is_quantised = false;
    tensor_t plain;
    quantised_t quantised;

    operand_t() = default;
    operand_t(tensor_t t, const tensor_type_t &type, int axis, const std::string &scales_tag = "ab",
            const std::vector<int64_t> &swizzled_rows = {});
    const tensor_t &codes() const { return is_quantised ? quantised.codes : plain; }
    float value(const int64_t *idx) const { return is_quantised ? quantised.value(idx) : plain.value(idx); }
    // The magnitude of the factor of an element's code.
    double scale(const int64_t *idx) const;
    // Except given parameters.
    void poison() const;
    void fill_given(rng_t &rng) const;
    // Of codes, scales and zero points.
    double size() const;
    void add_args(int arg, const mxdnn::engine &e, std::unordered_map<int, mxdnn::memory> &args) const;
};

// Calls fn(idx) for every index, the last dim fastest.
void for_each(const std::vector<int64_t> &dims, const std::function<void(const int64_t *)> &fn);

// Strides of a tensor whose last two dims are in `tag` order (ab or ba) with `pad` elements between
// rows; rows of 4-bit types are padded to whole bytes. `batch`: matrices lie one after the other ("outer"),
// row beside row ("inner"), or in one place ("same").
std::vector<int64_t> strides_of(const std::vector<int64_t> &dims, const std::string &tag,
        mxdnn::impl::data_type_t dt, int64_t pad = 0, const std::string &batch = "outer");

// Random finite codes under scales of a middling size; `special`: see mx_matmul's problem_t.
void fill_random(const quantised_t &q, rng_t &rng, const std::string &special);
// Values of mixed signs around 1, exact in the type.
void fill_random(const tensor_t &t, rng_t &rng);
void fill_random(const operand_t &t, rng_t &rng);
// One row in eight gets a NaN or an Inf somewhere: in its values, or as a scale.
void poison_rows(const operand_t &t, rng_t &rng);
tensor_t random_tensor(
        const std::vector<int64_t> &dims, mxdnn::impl::data_type_t dt, rng_t &rng); // row-major

} // namespace bench

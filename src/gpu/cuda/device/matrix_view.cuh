// SPDX-License-Identifier: Apache-2.0
// One matrix of a tensor, in any form, element by element, on the device: what the device's reference is
// written in.
#pragma once

#include "common/formats/plain_bits.hpp"
#include "common/formats/quantize_block.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/layouts/any_n64.hpp"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// `idx` has nd dims. The tensor's dims are aligned with the last of them.
__device__ inline const uint8_t *row_of(const plain_args_t &t, const int64_t *idx, int nd, int64_t &col) {
    const uint8_t *p = t.data;
    col = 0;
#pragma unroll 1
    for (int i = 0; i < t.ndims; i++) {
        const int64_t x = idx[nd - t.ndims + i];
        if (i == t.inner)
            col = x;
        else
            p += x * t.step[i];
    }
    return p;
}

__device__ inline uint32_t load_bytes(const uint8_t *p, int n) {
    uint32_t v = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) v |= uint32_t(p[i]) << (8 * i);
    return v;
}
__device__ inline void store_bytes(uint8_t *p, int n, uint32_t v) {
#pragma unroll 1
    for (int i = 0; i < n; i++) p[i] = uint8_t(v >> (8 * i));
}

__device__ __noinline__ static uint32_t load_code(const plain_args_t &t, const int64_t *idx, int nd) {
    int64_t col;
    const uint8_t *p = row_of(t, idx, nd, col);
    if (t.bits < 8) return get_code(p, col, t.bits, t.packing);
    return load_bytes(p, t.bits / 8);
}

__device__ __noinline__ static void store_code(
        const plain_args_t &t, const int64_t *idx, int nd, uint32_t code) {
    int64_t col;
    auto *p = const_cast<uint8_t *>(row_of(t, idx, nd, col));
    if (t.bits < 8) return set_code(p, col, t.bits, t.packing, code);
    store_bytes(p, t.bits / 8, code);
}

// Sets bits of a packed matrix that are 0. Threads may own neighbouring bits of one byte; packed matrices are
// a whole number of words.
__device__ inline void set_bits(uint8_t *p, uint32_t bits) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(p);
    atomicOr(reinterpret_cast<unsigned *>(at & ~uintptr_t(3)), bits << (at & 3) * 8);
}

// Each of these has code for every type and format. They are functions, not inlined, because they are large.
__device__ __noinline__ static float decode(data_type_t dt, uint32_t code) { return decode_value(dt, code); }
__device__ __noinline__ static uint32_t encode(data_type_t dt, float x) { return encode_value(dt, x); }
__device__ __noinline__ static float dequantize(
        data_type_t dt, const quant_t &q, const block_params_t &p, float global, uint32_t code) {
    return dequantize_element(dt, q, p, global, code);
}
__device__ __noinline__ static uint32_t quantize(
        data_type_t dt, const quant_t &q, const block_params_t &p, float global, float x) {
    return quantize_element(dt, q, p, global, x);
}
__device__ __noinline__ static block_params_t quantize_all(data_type_t dt, const quant_t &q,
        scale_rounding_t rounding, float global, const float *x, int n, uint8_t *codes) {
    const chosen_params_t c = choose_params(dt, q, rounding, global, x, n);
#pragma unroll 1
    for (int i = 0; i < n; i++)
        codes[i] = uint8_t(c.zeros ? c.params.zp : quantize(dt, q, c.params, global, x[i]));
    return c.params;
}

__device__ inline float load_value(const plain_args_t &t, const int64_t *idx, int nd) {
    return decode(t.dt, load_code(t, idx, nd));
}

// The matrix at an index (of at least the leading dims).
class matrix_view_t {
public:
    __device__ matrix_view_t(const matrix_args_t &a, const int64_t *idx) : a_(a), nd_(a.ndims) {
        for (int i = 0; i < nd_ - 2; i++) {
            idx_[i] = idx[i];
            entry_ += idx[i] * a.batch_step[i];
        }
        global_index_ = entry_;
        packed_ = a.packed_data + entry_ * a.packed_stride;
    }

    __device__ __noinline__ uint32_t code(int64_t row, int64_t col) const {
        if (!a_.packed) return load_code(a_.elements, at(row, col), nd_);
        uint32_t c = 0;
#pragma unroll 1
        for (int b = 0; b < a_.shape.bits; b++) {
            const bit_pos_t p = any_n64_t::elem_bit(a_.layout_id, a_.shape, row, col, b);
            c |= uint32_t(packed_[p.byte] >> p.bit & 1) << b;
        }
        return c;
    }
    __device__ __noinline__ void set_code(int64_t row, int64_t col, uint32_t code) const {
        if (!a_.packed) return store_code(a_.elements, at(row, col), nd_, code);
#pragma unroll 1
        for (int b = 0; b < a_.shape.bits; b++) {
            const bit_pos_t p = any_n64_t::elem_bit(a_.layout_id, a_.shape, row, col, b);
            set_bits(packed_ + p.byte, (code >> b & 1) << p.bit);
        }
    }
    __device__ __noinline__ block_params_t params(int64_t row, int64_t col) const {
        block_params_t p;
        if (a_.packed) {
            p.scale = load_bytes(packed_ + any_n64_t::scale(a_.shape, row, col), a_.shape.scale_bytes);
            if (a_.shape.zp_bytes)
                p.zp = load_bytes(packed_ + any_n64_t::zero_point(a_.shape, row, col), a_.shape.zp_bytes);
            return p;
        }
        int nd;
        const int64_t *s = scale_at(row, col, nd);
        p.scale = load_code(a_.scales, s, nd);
        if (a_.zero_points.data) p.zp = load_code(a_.zero_points, s, nd);
        return p;
    }
    __device__ __noinline__ void set_params(int64_t row, int64_t col, const block_params_t &p) const {
        if (a_.packed) {
            store_bytes(packed_ + any_n64_t::scale(a_.shape, row, col), a_.shape.scale_bytes, p.scale);
            if (a_.shape.zp_bytes)
                store_bytes(packed_ + any_n64_t::zero_point(a_.shape, row, col), a_.shape.zp_bytes, p.zp);
            return;
        }
        int nd;
        const int64_t *s = scale_at(row, col, nd);
        store_code(a_.scales, s, nd, p.scale);
        if (a_.zero_points.data) store_code(a_.zero_points, s, nd, p.zp);
    }
    // The address of the global scale; null if the format has none.
    __device__ float *global_at() const {
        if (a_.packed) return a_.shape.global ? reinterpret_cast<float *>(packed_) : nullptr;
        return a_.global ? a_.global + (a_.one_global ? 0 : global_index_) : nullptr;
    }
    __device__ float global() const {
        const float *g = global_at();
        return g ? *g : 1.f;
    }
    __device__ __noinline__ float value(int64_t row, int64_t col, float global) const {
        if (!a_.quantised) return decode(a_.dt, code(row, col));
        return dequantize(a_.dt, a_.quant, params(row, col), global, code(row, col));
    }
    // For packed matrices that are not consecutive; and for rows of groups: the expert that the global scale
    // belongs to, and how many rows the 128x4 scales are ahead of the values.
    __device__ void set_packed_data(uint8_t *data) { packed_ = data; }
    __device__ void set_global_index(int64_t i) { global_index_ = i; }
    __device__ void set_scale_row_shift(int64_t rows) { scale_row_shift_ = rows; }
    // The first byte of a packed matrix.
    __device__ const uint8_t *packed_data() const { return packed_; }

private:
    __device__ const int64_t *at(int64_t row, int64_t col) const {
        idx_[nd_ - 2] = row;
        idx_[nd_ - 1] = col;
        return idx_;
    }
    __device__ const int64_t *scale_at(int64_t row, int64_t col, int &nd) const {
        (a_.axis_from_end == 2 ? row : col) /= a_.quant.block;
        nd = nd_;
        if (!a_.swizzled) return at(row, col);
        nd = 2;
        if (a_.axis_from_end == 1) row += scale_row_shift_;
        swizzled_[0] = entry_;
        swizzled_[1] = a_.axis_from_end == 2 ? swizzle_128x4::offset(col, row, a_.swizzle_cols)
                                             : swizzle_128x4::offset(row, col, a_.swizzle_cols);
        return swizzled_;
    }

    const matrix_args_t &a_;
    int nd_;
    int64_t entry_ = 0, global_index_ = 0, scale_row_shift_ = 0;
    uint8_t *packed_;
    mutable int64_t idx_[max_ndims] = {}, swizzled_[2] = {};
};

// The part of a destination that one thread computes begins at idx. Codes below a byte may be neighbours
// along another dim than the blocks. Each byte of a plain tensor has one writer, so the thread of the first
// code in a byte also computes the others of this byte: body() is called for each of them, or for none.
template <typename F>
__device__ void for_sharers(const matrix_args_t &dst, const int64_t *dims, int64_t *idx, F &&body) {
    const int inner = dst.packed ? -1 : dst.elements.inner;
    if (inner < 0 || inner == dst.ndims - dst.axis_from_end) return body();
    const int together = dst.elements.bits == 4 ? 2 : 4; // codes in one byte, or in three bytes
    if (idx[inner] % together) return;
    for (int i = 0; i < together && idx[inner] < dims[inner]; i++, idx[inner]++) body();
}

constexpr int max_block = 256; // elements that share a scale

// Stores results from column `first` of row m on, at most a block's, to the destination.
__device__ __noinline__ static void store_block(const matmul_args_t &a, const matrix_view_t &dst, int64_t m,
        int64_t first, int count, const float *x) {
    if (!a.dst.quantised) {
#pragma unroll 1
        for (int j = 0; j < count; j++) dst.set_code(m, first + j, encode(a.dst.dt, x[j]));
        return;
    }
    uint8_t codes[max_block];
    const float global = dst.global();
    if (a.dynamic) {
        dst.set_params(m, first, quantize_all(a.dst.dt, a.dst.quant, a.rounding, global, x, count, codes));
    } else {
        const block_params_t p = dst.params(m, first);
#pragma unroll 1
        for (int j = 0; j < count; j++) codes[j] = uint8_t(quantize(a.dst.dt, a.dst.quant, p, global, x[j]));
    }
#pragma unroll 1
    for (int j = 0; j < count; j++) dst.set_code(m, first + j, codes[j]);
}

// The values of a row of a matmul's source as they are multiplied, in the order of K.
class source_values_t {
public:
    __device__ source_values_t(
            const matrix_view_t &src, const source_recipe_t &recipe, int64_t row, int64_t K, float global)
        : src_(src), recipe_(recipe), row_(row), K_(K), global_(global) {}

    __device__ __noinline__ double next() {
        if (recipe_.kind != recipe_kind_t::none && k_ % recipe_.block(K_) == 0) begin_block();
        return recipe_.value(at(k_++), scale_);
    }

private:
    __device__ float at(int64_t k) const { return src_.value(row_, k, global_); }
    __device__ void begin_block() {
        uint32_t amax = 0;
        const int64_t end = k_ + recipe_.block(K_);
        for (int64_t k = k_; k < end && k < K_; k++) {
            const uint32_t bits = magnitude_bits(at(k));
            if (bits > amax) amax = bits;
        }
        scale_ = recipe_.scale(amax);
    }

    const matrix_view_t &src_;
    const source_recipe_t &recipe_;
    int64_t row_, K_, k_ = 0;
    float global_;
    uint32_t scale_ = 0;
};

// The leading indices of the i-th matrix of a tensor of such dims.
__device__ inline void batch_index(int64_t i, int ndims, const int64_t *dims, int64_t *idx) {
    for (int d = ndims - 3; d >= 0; d--) {
        idx[d] = i % dims[d];
        i /= dims[d];
    }
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

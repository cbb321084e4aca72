// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "benchdnn/common/settings.hpp"
#include "common/formats/swizzle_128x4.hpp"

namespace bench {

using namespace mxdnn::impl;

std::vector<int64_t> tensor_t::row_major(const std::vector<int64_t> &d) {
    std::vector<int64_t> s(d.size(), 1);
    for (size_t i = d.size() - 1; i-- > 0;) s[i] = s[i + 1] * std::max<int64_t>(d[i + 1], 1);
    return s;
}

tensor_t::tensor_t(const std::vector<int64_t> &d, const std::vector<int64_t> &s, data_type_t t, bool dense)
    : dims(d), strides(s), dt(t), packing(dense ? mxdnn_element_packing_dense : mxdnn_element_packing_bytes) {
    size_t size = desc().get_size();
    // A device is sent as many bytes as the descriptor has, which does not know of dense codes.
    if (dense && size > 0 && settings.engine.compare(0, 4, "cuda") != 0) {
        std::vector<int64_t> last = dims;
        for (int64_t &i : last) i--;
        const auto end = bytes_of(last.data());
        size = size_t(end.first + end.second);
    }
    bytes = buffer_t(size, size_t(std::max(1, data_type_info(dt)->bits / 8)));
}

mxdnn::memory::desc tensor_t::desc() const {
    return mxdnn::memory::desc(dims, static_cast<mxdnn::memory::data_type>(dt), strides);
}

int tensor_t::storage_bits() const { return mxdnn::impl::storage_bits(data_type_info(dt)->bits, packing); }

// The dim along which codes share bytes: of stride 1, and of more than one element where there are several.
size_t tensor_t::inner_dim() const {
    size_t inner = dims.size() - 1;
    for (size_t i = dims.size(); i-- > 0;)
        if (strides[i] == 1 && (strides[inner] != 1 || dims[inner] <= 1)) inner = i;
    return inner;
}

// First byte of the row; for codes that share bytes the column along the dim of stride 1.
int64_t tensor_t::locate(const int64_t *idx, int64_t &column) const {
    const int bits = storage_bits();
    int64_t at = 0;
    column = 0;
    if (bits >= 8) {
        for (size_t i = 0; i < dims.size(); i++) at += idx[i] * strides[i];
        return at * bits / 8;
    }
    const size_t inner = inner_dim();
    int64_t row = 0; // elements from one row to the next; larger strides are of whole rows
    for (size_t i = 0; i < dims.size(); i++)
        if (i != inner && dims[i] > 1 && strides[i] > 0) row = row ? std::min(row, strides[i]) : strides[i];
    int64_t rows = 0;
    for (size_t i = 0; i < dims.size(); i++)
        if (i != inner && idx[i] * strides[i] > 0) rows += idx[i] * strides[i] / row;
    column = idx[inner];
    return rows * div_up(row * bits, 8);
}

std::pair<int64_t, int64_t> tensor_t::bytes_of(const int64_t *idx) const {
    int64_t column;
    const int bits = storage_bits();
    const int64_t row = locate(idx, column), first = column * bits / 8;
    return {row + first, div_up((column + 1) * bits, 8) - first};
}

std::vector<int64_t> strides_of(const std::vector<int64_t> &d, const std::string &tag, data_type_t dt,
        int64_t pad, const std::string &batch) {
    const size_t nd = d.size(), inner = tag == "ba" ? nd - 2 : nd - 1, outer = tag == "ba" ? nd - 1 : nd - 2;
    std::vector<int64_t> s(nd, 0);
    s[inner] = 1;
    int64_t next = round_up(std::max<int64_t>(d[inner], 1) + pad, data_type_info(dt)->bits == 4 ? 2 : 1);
    const auto step = [&](size_t dim) {
        s[dim] = next;
        next *= std::max<int64_t>(d[dim], 1);
    };
    if (batch != "inner") step(outer);
    for (size_t i = nd - 2; i-- > 0;)
        if (batch != "same") step(i);
    if (batch == "inner") step(outer);
    return s;
}

uint32_t tensor_t::code(const int64_t *idx) const {
    int64_t column;
    const int bits = data_type_info(dt)->bits;
    const uint8_t *p = bytes.data() + locate(idx, column);
    if (bits < 8) return get_code(p, column, bits, packing);
    uint32_t c = 0;
    std::memcpy(&c, p, size_t(bits / 8));
    return c;
}

void tensor_t::set_code(const int64_t *idx, uint32_t c) const {
    int64_t column;
    const int bits = data_type_info(dt)->bits;
    uint8_t *p = bytes.data() + locate(idx, column);
    if (bits < 8) return mxdnn::impl::set_code(p, column, bits, packing, c);
    std::memcpy(p, &c, size_t(bits / 8));
}

quantised_t::quantised_t(tensor_t c, const tensor_type_t &t, int axis_, const std::string &tag,
        const std::vector<int64_t> &swizzled_rows)
    : quant(t.quant), axis(axis_), blocks(c.dims), given(t.given), given_global(t.given || t.given_global),
      codes(std::move(c)), swizzled_(t.swizzled), swizzled_rows_(swizzled_rows) {
    const size_t nd = blocks.size();
    blocks[size_t(axis)] = div_up(blocks[size_t(axis)], quant.block);
    int64_t batch = 1;
    for (size_t i = 0; i + 2 < nd; i++) batch *= blocks[i];
    if (swizzled_) {
        int64_t rows = blocks[size_t(axis) == nd - 1 ? nd - 2 : nd - 1];
        if (!swizzled_rows.empty()) rows = swizzled_rows.back() + 1;
        const std::vector<int64_t> flat = {batch, swizzle_128x4::size(rows, blocks[size_t(axis)])};
        scales = tensor_t(flat, tensor_t::row_major(flat), quant.scale_dt);
    } else {
        scales = tensor_t(blocks, strides_of(blocks, tag, quant.scale_dt), quant.scale_dt);
    }
    if (quant.zp != zero_point_kind_t::none)
        zero_points = tensor_t(blocks, strides_of(blocks, tag, quant.zp_dt), quant.zp_dt);
    if (quant.global != global_scale_kind_t::none) {
        const std::vector<int64_t> one = {quant.global == global_scale_kind_t::one ? 1 : batch};
        global = tensor_t(one, {1}, mxdnn_f32);
    }
}

std::array<int64_t, max_ndims> quantised_t::place(const int64_t *block) const {
    std::array<int64_t, max_ndims> idx{};
    const size_t nd = blocks.size();
    if (!swizzled_) {
        std::copy(block, block + nd, idx.begin());
        return idx;
    }
    for (size_t i = 0; i + 2 < nd; i++) idx[0] = idx[0] * blocks[i] + block[i];
    const size_t rows = size_t(axis) == nd - 1 ? nd - 2 : nd - 1;
    const int64_t row = swizzled_rows_.empty() ? block[rows] : swizzled_rows_[size_t(block[rows])];
    idx[1] = swizzle_128x4::offset(row, block[axis], blocks[size_t(axis)]);
    return idx;
}

block_params_t quantised_t::params(const int64_t *idx) const {
    int64_t b[max_ndims];
    std::copy(idx, idx + codes.dims.size(), b);
    b[axis] /= quant.block;
    block_params_t p;
    p.scale = scale(b);
    if (!zero_points.dims.empty()) p.zp = zero_points.code(b);
    return p;
}

float quantised_t::global_of(const int64_t *idx) const {
    if (global.dims.empty()) return 1.f;
    int64_t entry = 0;
    for (size_t i = 0; i + 2 < codes.dims.size(); i++) entry = entry * codes.dims[i] + idx[i];
    if (global.dims[0] == 1) entry = 0;
    return global.value(&entry);
}

float quantised_t::value(const int64_t *idx) const {
    return dequantize_element(codes.dt, quant, params(idx), global_of(idx), codes.code(idx));
}

void quantised_t::add_args(
        int arg, const mxdnn::engine &e, std::unordered_map<int, mxdnn::memory> &args) const {
    args[MXDNN_ARG_ATTR_SCALES | arg] = scales.memory(e);
    if (!zero_points.dims.empty()) args[MXDNN_ARG_ATTR_ZERO_POINTS | arg] = zero_points.memory(e);
    if (!global.dims.empty()) args[MXDNN_ARG_ATTR_GLOBAL_SCALE | arg] = global.memory(e);
}

operand_t::operand_t(tensor_t t, const tensor_type_t &type, int axis, const std::string &scales_tag,
        const std::vector<int64_t> &swizzled_rows)
    : is_quantised(type.quantised) {
    if (is_quantised)
        quantised = quantised_t(std::move(t), type, axis, scales_tag, swizzled_rows);
    else
        plain = std::move(t);
}

void operand_t::poison() const {
    const quantised_t &q = quantised;
    for (const tensor_t *t : {&plain, &q.codes, q.given ? &plain : &q.scales,
                 q.given ? &plain : &q.zero_points, q.given_global ? &plain : &q.global})
        if (!t->dims.empty()) t->bytes.poison();
}

double operand_t::scale(const int64_t *idx) const {
    if (!is_quantised) return 1;
    const double scale = decode_value(quantised.quant.scale_dt, quantised.params(idx).scale);
    return std::fabs(scale * quantised.global_of(idx));
}

void operand_t::fill_given(rng_t &rng) const {
    if (quantised.given || quantised.given_global) fill_random(quantised, rng, "");
}

double operand_t::size() const {
    return double(codes().bytes.size() + quantised.scales.bytes.size() + quantised.zero_points.bytes.size());
}

void operand_t::add_args(
        int arg, const mxdnn::engine &e, std::unordered_map<int, mxdnn::memory> &args) const {
    args[arg] = codes().memory(e);
    if (is_quantised) quantised.add_args(arg, e, args);
}

void for_each(const std::vector<int64_t> &dims, const std::function<void(const int64_t *)> &fn) {
    int64_t idx[max_ndims] = {};
    for (int64_t d : dims)
        if (d == 0) return;
    for (;;) {
        fn(idx);
        size_t i = dims.size();
        while (i > 0 && ++idx[i - 1] == dims[i - 1]) idx[--i] = 0;
        if (i == 0) return;
    }
}

void fill_random(const quantised_t &q, rng_t &rng, const std::string &special) {
    const data_type_info_t *info = data_type_info(q.codes.dt), *scale = data_type_info(q.quant.scale_dt);
    std::uniform_int_distribution<uint32_t> any_code(0, (1u << info->bits) - 1);
    for_each(q.codes.dims, [&](const int64_t *idx) {
        uint32_t c;
        do c = any_code(rng);
        while (!std::isfinite(info->decode(c)));
        q.codes.set_code(idx, c);
    });
    std::uniform_real_distribution<float> exponent(special == "narrow" ? -2 : -5, 1);
    std::uniform_int_distribution<uint32_t> zp(0, 15), bit(0, 1), byte(0, 254);
    for_each(q.blocks, [&](const int64_t *idx) {
        const float s = std::exp2(exponent(rng));
        // A negative scale is legal where the type has a sign.
        const float sign = q.quant.scale_dt != mxdnn_e8m0 && bit(rng) && special == "ends" ? -1.f : 1.f;
        uint32_t code = scale->encode_saturating(sign * s);
        if (special == "ends" && q.quant.scale_dt == mxdnn_e8m0) code = byte(rng) % 100; // down to 2^-127
        q.set_scale(idx, code);
    });
    if (special == "nan" && !q.blocks.empty()) {
        // One block of the tensor, in the middle of every dim.
        int64_t idx[max_ndims];
        for (size_t i = 0; i < q.blocks.size(); i++) idx[i] = q.blocks[i] / 2;
        q.set_scale(idx, q.quant.scale_dt == mxdnn_e8m0 ? 255 : scale->encode(NAN));
    }
    if (!q.zero_points.dims.empty())
        for_each(q.zero_points.dims, [&](const int64_t *idx) {
            const uint32_t code =
                    q.quant.zp == zero_point_kind_t::u8
                            ? zp(rng)
                            : data_type_info(q.quant.zp_dt)
                                      ->encode(std::exp2(exponent(rng)) * (bit(rng) ? 1.f : -1.f));
            q.zero_points.set_code(idx, code);
        });
    if (!q.global.dims.empty())
        for_each(q.global.dims,
                [&](const int64_t *idx) { q.global.set_code(idx, bits_of(std::exp2(exponent(rng)))); });
}

void fill_random(const tensor_t &t, rng_t &rng) {
    std::normal_distribution<float> normal(0, 1);
    const data_type_info_t *info = data_type_info(t.dt);
    for_each(t.dims, [&](const int64_t *idx) { t.set_code(idx, info->encode(normal(rng))); });
}

void fill_random(const operand_t &t, rng_t &rng) {
    if (t.is_quantised) return fill_random(t.quantised, rng, "");
    fill_random(t.plain, rng);
}

void poison_rows(const operand_t &t, rng_t &rng) {
    const std::vector<int64_t> &dims = t.is_quantised ? t.quantised.blocks : t.plain.dims;
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for_each(dims, [&](const int64_t *idx) {
        int64_t at[max_ndims];
        const size_t last = dims.size() - 1;
        if (idx[last] != 0 || rng() % 8) return;
        std::copy(idx, idx + last, at);
        at[last] = int64_t(rng() % uint32_t(dims[last]));
        if (!t.is_quantised) return t.plain.set_code(at, data_type_info(t.plain.dt)->encode(odd[rng() % 3]));
        const data_type_t dt = t.quantised.quant.scale_dt;
        t.quantised.set_scale(at, dt == mxdnn_e8m0 ? 255 : data_type_info(dt)->encode(NAN));
    });
}

tensor_t random_tensor(const std::vector<int64_t> &dims, data_type_t dt, rng_t &rng) {
    tensor_t t(dims, tensor_t::row_major(dims), dt);
    fill_random(t, rng);
    return t;
}

} // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/tensor.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

using namespace mxdnn::impl;

std::vector<int64_t> tensor_t::row_major(const std::vector<int64_t> &d) {
    std::vector<int64_t> s(d.size(), 1);
    for (size_t i = d.size() - 1; i-- > 0;) s[i] = s[i + 1] * std::max<int64_t>(d[i + 1], 1);
    return s;
}

tensor_t::tensor_t(const std::vector<int64_t> &d, const std::vector<int64_t> &s, data_type_t t)
    : dims(d), strides(s), dt(t) {
    bytes = buffer_t(desc().get_size(), size_t(std::max(1, data_type_info(dt)->bits / 8)));
}

mxdnn::memory::desc tensor_t::desc() const {
    return mxdnn::memory::desc(dims, static_cast<mxdnn::memory::data_type>(dt), strides);
}

// First byte of the row; for codes that share bytes the column along the dim of stride 1.
int64_t tensor_t::locate(const int64_t *idx, int64_t &column) const {
    const int bits = storage_bits(data_type_info(dt)->bits, mxdnn_element_packing_bytes);
    int64_t at = 0;
    column = 0;
    if (bits >= 8) {
        for (size_t i = 0; i < dims.size(); i++) at += idx[i] * strides[i];
        return at * bits / 8;
    }
    size_t inner = dims.size() - 1;
    if (strides[inner] != 1 && dims.size() > 1) inner--;
    for (size_t i = 0; i < dims.size(); i++)
        if (i != inner) at += idx[i] * div_up(strides[i] * bits, 8);
    column = idx[inner];
    return at;
}

std::vector<int64_t> strides_of(
        const std::vector<int64_t> &d, const std::string &tag, data_type_t dt, int64_t pad) {
    std::vector<int64_t> s(d.size(), 1);
    const size_t inner = tag == "ba" ? d.size() - 2 : d.size() - 1,
                 outer = tag == "ba" ? d.size() - 1 : d.size() - 2;
    s[inner] = 1;
    s[outer] = round_up(std::max<int64_t>(d[inner], 1) + pad, data_type_info(dt)->bits == 4 ? 2 : 1);
    int64_t next = s[outer] * std::max<int64_t>(d[outer], 1);
    for (size_t i = d.size() - 2; i-- > 0;) {
        s[i] = next;
        next *= std::max<int64_t>(d[i], 1);
    }
    return s;
}

uint32_t tensor_t::code(const int64_t *idx) const {
    int64_t column;
    const int bits = data_type_info(dt)->bits;
    const uint8_t *p = bytes.data() + locate(idx, column);
    if (bits < 8) return get_code(p, column, bits, mxdnn_element_packing_bytes);
    uint32_t c = 0;
    std::memcpy(&c, p, size_t(bits / 8));
    return c;
}

void tensor_t::set_code(const int64_t *idx, uint32_t c) const {
    int64_t column;
    const int bits = data_type_info(dt)->bits;
    uint8_t *p = bytes.data() + locate(idx, column);
    if (bits < 8) return mxdnn::impl::set_code(p, column, bits, mxdnn_element_packing_bytes, c);
    std::memcpy(p, &c, size_t(bits / 8));
}

quantised_t::quantised_t(tensor_t c, const tensor_type_t &t, int axis_, const std::string &tag)
    : quant(t.quant), axis(axis_), codes(std::move(c)) {
    std::vector<int64_t> d = codes.dims;
    d[size_t(axis)] = div_up(d[size_t(axis)], quant.block);
    scales = tensor_t(d, strides_of(d, tag, quant.scale_dt), quant.scale_dt);
    if (quant.zp != zero_point_kind_t::none)
        zero_points = tensor_t(d, strides_of(d, tag, quant.zp_dt), quant.zp_dt);
    int64_t batch = 1;
    for (size_t i = 0; i + 2 < d.size(); i++) batch *= d[i];
    if (quant.global != global_scale_kind_t::none) {
        const std::vector<int64_t> one = {quant.global == global_scale_kind_t::one ? 1 : batch};
        global = tensor_t(one, {1}, mxdnn_f32);
    }
}

block_params_t quantised_t::params(const int64_t *idx) const {
    int64_t b[max_ndims];
    std::copy(idx, idx + codes.dims.size(), b);
    b[axis] /= quant.block;
    block_params_t p;
    p.scale = scales.code(b);
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

operand_t::operand_t(tensor_t t, const tensor_type_t &type, int axis, const std::string &scales_tag)
    : is_quantised(type.quantised) {
    if (is_quantised)
        quantised = quantised_t(std::move(t), type, axis, scales_tag);
    else
        plain = std::move(t);
}

void operand_t::poison() const {
    for (const tensor_t *t :
            {&plain, &quantised.codes, &quantised.scales, &quantised.zero_points, &quantised.global})
        if (!t->dims.empty()) t->bytes.poison();
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
    for_each(q.scales.dims, [&](const int64_t *idx) {
        const float s = std::exp2(exponent(rng));
        // A negative scale is legal where the type has a sign.
        const float sign = q.quant.scale_dt != mxdnn_e8m0 && bit(rng) && special == "ends" ? -1.f : 1.f;
        uint32_t code = scale->encode_saturating(sign * s);
        if (special == "ends" && q.quant.scale_dt == mxdnn_e8m0) code = byte(rng) % 100; // down to 2^-127
        q.scales.set_code(idx, code);
    });
    if (special == "nan" && !q.scales.dims.empty()) {
        // One block of the tensor, in the middle of every dim.
        int64_t idx[max_ndims];
        for (size_t i = 0; i < q.scales.dims.size(); i++) idx[i] = q.scales.dims[i] / 2;
        q.scales.set_code(idx, q.quant.scale_dt == mxdnn_e8m0 ? 255 : scale->encode(NAN));
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
    const tensor_t &to = t.is_quantised ? t.quantised.scales : t.plain;
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for_each(to.dims, [&](const int64_t *idx) {
        int64_t at[max_ndims];
        const size_t last = to.dims.size() - 1;
        if (idx[last] != 0 || rng() % 8) return;
        std::copy(idx, idx + last, at);
        at[last] = int64_t(rng() % uint32_t(to.dims[last]));
        const float x = t.is_quantised ? NAN : odd[rng() % 3];
        to.set_code(at, to.dt == mxdnn_e8m0 ? 255 : data_type_info(to.dt)->encode(x));
    });
}

tensor_t random_tensor(const std::vector<int64_t> &dims, data_type_t dt, rng_t &rng) {
    tensor_t t(dims, tensor_t::row_major(dims), dt);
    fill_random(t, rng);
    return t;
}

} // namespace bench

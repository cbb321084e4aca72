// SPDX-License-Identifier: Apache-2.0
// A row per type. Numbers of two bytes are f16. Codes of four bits are stored in pairs whose elements are
// half a block, or half of 16 elements, apart; the pairs of mxdnn are neighbours.
#include "gguf_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/formats/format_list.hpp"
#include "safetensors.hpp"

namespace gguf {

using namespace weight_formats;
using mxdnn::impl::e8m0_t;
using mxdnn::impl::f16_t;
using mxdnn::impl::f4_e2m1_t;
using mxdnn::impl::f8_e4m3_t;
using dim = mxdnn::memory::dim;
using dt = mxdnn::memory::data_type;

namespace {

float half(const uint8_t *p) { return f16_t::decode(uint32_t(p[0] | p[1] << 8)); }

// Code `i` of 2 * `half_count`, where a byte has code j in its low half and code j + half_count in the other.
unsigned nibble(const uint8_t *p, unsigned i, unsigned half_count) {
    return i < half_count ? p[i] & 15u : p[i - half_count] >> 4;
}

// The same codes as neighbours.
void pair_neighbours(const uint8_t *from, unsigned half_count, uint8_t *to) {
    for (unsigned j = 0; j < half_count / 2; j++) {
        const unsigned a = from[2 * j], b = from[2 * j + 1];
        to[j] = uint8_t((a & 15) | (b & 15) << 4);
        to[half_count / 2 + j] = uint8_t(a >> 4 | (b & 0xf0));
    }
}

// ---- blocks of 32 ----

void decode_q4_0(const uint8_t *b, float *v) {
    const float d = half(b);
    for (unsigned i = 0; i < 32; i++) v[i] = d * float(int(nibble(b + 2, i, 16)) - 8);
}
void split_q4_0(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *) {
    std::memcpy(scales, b, 2);
    pair_neighbours(b + 2, 16, codes);
    for (unsigned j = 0; j < 16; j++) codes[j] ^= 0x88; // less 8
}

void decode_q4_1(const uint8_t *b, float *v) {
    const float d = half(b), m = half(b + 2);
    for (unsigned i = 0; i < 32; i++) v[i] = d * float(nibble(b + 4, i, 16)) + m;
}
void split_q4_1(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *minima) {
    std::memcpy(scales, b, 2);
    std::memcpy(minima, b + 2, 2);
    pair_neighbours(b + 4, 16, codes);
}

// The fifth bits of all codes stand together.
unsigned code_of_five(const uint8_t *high, const uint8_t *low, unsigned i) {
    return nibble(low, i, 16) | (high[i / 8] >> i % 8 & 1u) << 4;
}
void decode_q5_0(const uint8_t *b, float *v) {
    const float d = half(b);
    for (unsigned i = 0; i < 32; i++) v[i] = d * float(int(code_of_five(b + 2, b + 6, i)) - 16);
}
void split_q5_0(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *) {
    std::memcpy(scales, b, 2);
    for (unsigned i = 0; i < 32; i++) codes[i] = uint8_t(code_of_five(b + 2, b + 6, i) - 16);
}
void decode_q5_1(const uint8_t *b, float *v) {
    const float d = half(b), m = half(b + 2);
    for (unsigned i = 0; i < 32; i++) v[i] = d * float(code_of_five(b + 4, b + 8, i)) + m;
}

void decode_q8_0(const uint8_t *b, float *v) {
    const float d = half(b);
    for (unsigned i = 0; i < 32; i++) v[i] = d * float(int8_t(b[2 + i]));
}
void split_q8_0(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *) {
    std::memcpy(scales, b, 2);
    std::memcpy(codes, b + 2, 32);
}

void decode_mxfp4(const uint8_t *b, float *v) {
    const float d = e8m0_t::decode(b[0]);
    for (unsigned i = 0; i < 32; i++) v[i] = d * f4_e2m1_t::decode(nibble(b + 1, i, 16));
}
void split_mxfp4(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *) {
    scales[0] = b[0];
    pair_neighbours(b + 1, 16, codes);
}

// ---- blocks of 64, of four times 16 ----

void decode_nvfp4(const uint8_t *b, float *v) {
    for (unsigned s = 0; s < 4; s++) {
        const float d = f8_e4m3_t::decode(b[s]);
        for (unsigned i = 0; i < 16; i++) v[s * 16 + i] = d * f4_e2m1_t::decode(nibble(b + 4 + s * 8, i, 8));
    }
}
void split_nvfp4(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *) {
    std::memcpy(scales, b, 4);
    for (unsigned s = 0; s < 4; s++) pair_neighbours(b + 4 + s * 8, 8, codes + s * 8);
}

// ---- blocks of 256: scales of 16 or 32 elements are codes themselves ----

// Codes of two bits: four elements that are 32 apart share a byte, 128 elements have 32 bytes.
unsigned code_of_two(const uint8_t *p, unsigned i) {
    return p[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3u;
}
// Of four bits: two elements that are 32 apart.
unsigned code_of_four(const uint8_t *p, unsigned i) {
    return p[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15u;
}

void decode_q2_k(const uint8_t *b, float *v) {
    const float d = half(b + 80), m = half(b + 82);
    for (unsigned i = 0; i < 256; i++) {
        const unsigned both = b[i / 16];
        v[i] = d * float(both & 15) * float(code_of_two(b + 16, i)) - m * float(both >> 4);
    }
}

void decode_q3_k(const uint8_t *b, float *v) {
    const uint8_t *const high = b, *const low = b + 32, *const scales = b + 96;
    const float d = half(b + 108);
    for (unsigned i = 0; i < 256; i++) {
        const unsigned s = i / 16;
        const unsigned scale = nibble(scales, s, 8) | (scales[8 + s % 4] >> s / 4 * 2 & 3u) << 4;
        const bool has_high = high[i % 32] >> i / 32 & 1;
        v[i] = d * float(int(scale) - 32) * float(int(code_of_two(low, i)) - (has_high ? 0 : 4));
    }
}

// Eight scales and eight minima of six bits in twelve bytes.
struct scale_and_minimum_t {
    unsigned scale, minimum;
};
scale_and_minimum_t six_bits(const uint8_t *p, unsigned s) {
    if (s < 4) return {p[s] & 63u, p[s + 4] & 63u};
    return {(p[s + 4] & 15u) | p[s - 4] >> 6 << 4, unsigned(p[s + 4] >> 4 | p[s] >> 6 << 4)};
}

void decode_q4_k(const uint8_t *b, float *v) {
    const float d = half(b), m = half(b + 2);
    for (unsigned i = 0; i < 256; i++) {
        const scale_and_minimum_t s = six_bits(b + 4, i / 32);
        v[i] = d * float(s.scale) * float(code_of_four(b + 16, i)) - m * float(s.minimum);
    }
}

// The codes as they are. Scales and minima become f16, which has eleven bits of their seventeen.
void split_q4_k(const uint8_t *b, uint8_t *codes, uint8_t *scales, uint8_t *minima) {
    const float d = half(b), m = half(b + 2);
    const auto put = [](float x, uint8_t *to) {
        const auto code = uint16_t(f16_t::encode(x));
        std::memcpy(to, &code, 2);
    };
    for (unsigned i = 0; i < 8; i++) {
        const scale_and_minimum_t s = six_bits(b + 4, i);
        put(d * float(s.scale), scales + 2 * i);
        put(-(m * float(s.minimum)), minima + 2 * i);
        for (unsigned j = 0; j < 16; j++)
            codes[i * 16 + j] = uint8_t(
                    code_of_four(b + 16, i * 32 + 2 * j) | code_of_four(b + 16, i * 32 + 2 * j + 1) << 4);
    }
}

void decode_q5_k(const uint8_t *b, float *v) {
    const float d = half(b), m = half(b + 2);
    for (unsigned i = 0; i < 256; i++) {
        const scale_and_minimum_t s = six_bits(b + 4, i / 32);
        const unsigned code = code_of_four(b + 48, i) | (b[16 + i % 32] >> i / 32 & 1u) << 4;
        v[i] = d * float(s.scale) * float(code) - m * float(s.minimum);
    }
}

void decode_q6_k(const uint8_t *b, float *v) {
    const float d = half(b + 208);
    for (unsigned i = 0; i < 256; i++) {
        // Four bits: elements that are 64 apart share a byte, 128 elements have 64 bytes.
        const unsigned low = b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15u;
        const unsigned code = low | code_of_two(b + 128, i) << 4;
        v[i] = d * float(int8_t(b[192 + i / 16])) * float(int(code) - 32);
    }
}

// ---- the table ----

format_t s4_f16() { return int4_format(dt::s4, 32, dt::f16, dt::undef); }
format_t mxfp4() { return find_format("mxfp4"); }
format_t int8() { return find_format("int8"); }
format_t int4_min() { return find_format("int4_min"); }

constexpr const char *small_scales = "scales that are codes themselves";

const blocks_t all[] = {
        {"Q4_0", decode_q4_0, s4_f16, split_q4_0, nullptr},
        {"Q4_1", decode_q4_1, int4_min, split_q4_1, nullptr},
        {"Q5_0", decode_q5_0, int8, split_q5_0, nullptr},
        {"Q5_1", decode_q5_1, int8, nullptr, "codes of five bits with minima"},
        {"Q8_0", decode_q8_0, int8, split_q8_0, nullptr},
        {"Q2_K", decode_q2_k, int8, nullptr, small_scales},
        {"Q3_K", decode_q3_k, int8, nullptr, small_scales},
        {"Q4_K", decode_q4_k, int4_min, split_q4_k, small_scales},
        {"Q5_K", decode_q5_k, int8, nullptr, small_scales},
        {"Q6_K", decode_q6_k, int8, nullptr, small_scales},
        // ggml gives 255 the worth 2^128, which is NaN in MX.
        {"MXFP4", decode_mxfp4, mxfp4, split_mxfp4, nullptr, 1, 254},
        // ggml ignores the sign of a scale, and gives 127 the worth 0, which is NaN in f8_e4m3.
        {"NVFP4", decode_nvfp4, nvfp4_without_global_scale, split_nvfp4, nullptr, 4, 126},
};

// Blocks of a tensor.
struct bytes_t {
    const uint8_t *at;
    const element_t &element;
    const blocks_t &blocks;
};

bytes_t read_blocks(const file_t &file, const tensor_t &t, uint64_t first, uint64_t count) {
    thread_local std::vector<uint8_t> bytes;
    const blocks_t &how = *find_blocks(*t.element);
    const uint64_t size = t.element->bytes;
    if (bytes.size() < count * size) bytes.resize(size_t(count * size));
    file.read(t, first * size, count * size, bytes.data());
    for (uint64_t b = 0; b < count; b++)
        for (unsigned s = 0; s < how.scales; s++)
            if (bytes[size_t(b * size + s)] > how.last_scale)
                throw std::runtime_error("tensor " + safetensors::shown(t.name) + ": block "
                                         + std::to_string(first + b) + " has the scale code "
                                         + std::to_string(bytes[size_t(b * size + s)]) + "; for " + how.name
                                         + " 0 to " + std::to_string(how.last_scale) + " are read");
    return {bytes.data(), *t.element, how};
}

} // namespace

const blocks_t *find_blocks(const element_t &element) {
    for (const blocks_t &b : all)
        if (std::strcmp(b.name, element.name) == 0) return &b;
    return nullptr;
}

void read_values(const file_t &file, const tensor_t &t, uint64_t first, uint64_t count, float *values) {
    if (count == 0) return;
    const uint64_t block = t.element->block, from = first / block, until = (first + count - 1) / block + 1;
    const bytes_t b = read_blocks(file, t, from, until - from);
    float room[256];
    for (uint64_t i = from; i < until; i++) {
        const uint8_t *at = b.at + size_t(i - from) * b.element.bytes;
        const uint64_t begin = std::max(first, i * block), end = std::min(first + count, (i + 1) * block);
        if (end - begin == block) {
            b.blocks.decode(at, values + (begin - first));
            continue;
        }
        b.blocks.decode(at, room);
        std::copy(room + (begin - i * block), room + (end - i * block), values + (begin - first));
    }
}

read_codes_t codes_of(const file_t &file, const tensor_t &t, const format_t &format) {
    const size_t n = t.dims.size();
    const auto out = uint64_t(t.dims[n - 2]), in = uint64_t(t.dims[n - 1]);
    const auto bytes_of = [](dim elements, dt type) {
        return size_t(as_stored(shape_t::matrix(1, elements), type).get_size());
    };
    const dim block = t.element->block, groups = block / format.block;
    const size_t code_bytes = bytes_of(block, format.element), scale_bytes = bytes_of(groups, format.scale),
                 zero_bytes = format.has_zero_points() ? bytes_of(groups, format.zero_point) : 0;
    return [=, &file, &t](const piece_t &p, const codes_t &to) {
        const uint64_t row = in / uint64_t(block),
                       first = (uint64_t(p.matrix) * out + uint64_t(p.first)) * row,
                       count = uint64_t(p.columns) * row;
        const bytes_t b = read_blocks(file, t, first, count);
        auto *codes = static_cast<uint8_t *>(to.codes), *scales = static_cast<uint8_t *>(to.scales),
             *zeros = static_cast<uint8_t *>(to.zero_points);
        for (size_t i = 0; i < count; i++)
            b.blocks.split(b.at + i * b.element.bytes, codes + i * code_bytes, scales + i * scale_bytes,
                    zeros + i * zero_bytes);
    };
}

} // namespace gguf

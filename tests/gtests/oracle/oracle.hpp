// SPDX-License-Identifier: Apache-2.0
// Reading what the scripts beside this file wrote: the shapes of its tables, hexadecimal text, checksums
// and the random f32 patterns that both sides make from the same seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/quant.hpp"

namespace mxdnn {
namespace impl {
namespace oracle {

enum class conversion_t { own, for_scales, both };

struct decode_oracle_t {
    const char *type, *values;
};
struct decode_crc_oracle_t {
    const char *type, *crcs;
};
struct encode_oracle_t {
    const char *type;
    conversion_t conversion;
    int digits; // of a code
    uint32_t seed, field_lo, field_hi;
    const char *crcs, *pairs;
};
struct middle_oracle_t {
    const char *type, *crcs;
};
struct scale_oracle_t {
    const char *element;
    mxdnn_scale_rounding_t rounding;
    const char *crcs, *bytes;
};
struct dense_row_oracle_t {
    int bits;
    const char *codes, *bytes;
};
struct swizzle_oracle_t {
    int rows, cols, size;
    uint32_t crc;
};
struct quantize_input_t {
    const char *name, *values;
};
struct nvfp4_global_t {
    int input;
    uint32_t bits;
};
struct quantize_oracle_t {
    data_type_t elem;
    quant_t quant;
    mxdnn_scale_rounding_t rounding;
    bool computed; // scale and zero point follow from the block; else they are given
    const char *records;
};
struct mx_decode_oracle_t {
    data_type_t elem;
    const char *crcs;
};
struct nvfp4_decode_oracle_t {
    bool has_global;
    uint32_t global;
    const char *crcs;
};

// Numbers of `digits` hexadecimal digits each, without separators.
inline std::vector<uint32_t> from_hex(const char *text, int digits) {
    std::vector<uint32_t> numbers(std::strlen(text) / size_t(digits));
    for (size_t i = 0; i < numbers.size(); i++)
        for (int d = 0; d < digits; d++) {
            const char c = text[i * size_t(digits) + size_t(d)];
            numbers[i] = numbers[i] << 4 | uint32_t(c <= '9' ? c - '0' : c - 'a' + 10);
        }
    return numbers;
}

// CRC-32 as zlib has it, of little-endian 32-bit values.
class crc32_t {
public:
    void add(uint32_t value) {
        for (int byte = 0; byte < 4; byte++) {
            state_ ^= (value >> (8 * byte)) & 0xff;
            for (int bit = 0; bit < 8; bit++) state_ = (state_ >> 1) ^ (state_ & 1 ? 0xedb88320u : 0);
        }
    }
    uint32_t value() const { return ~state_; }

private:
    uint32_t state_ = ~0u;
};

// Pattern i: anything for even i, an exponent field within [lo, hi] for odd ones.
inline uint32_t random_bits(uint32_t i, uint32_t seed, uint32_t lo, uint32_t hi) {
    const auto mix = [i](uint32_t seed) {
        uint32_t h = i * 0x9e3779b1u + seed;
        h = (h ^ (h >> 15)) * 0x2c1b3c6du;
        h = (h ^ (h >> 12)) * 0x297a2d39u;
        return h ^ (h >> 15);
    };
    const uint32_t h = mix(seed), field = lo + mix(seed + 1) % (hi - lo + 1);
    return i % 2 == 0 ? h : (h & 0x807fffffu) | field << 23;
}

inline std::string hex(uint32_t value) {
    std::string text = "0x00000000";
    for (int i = 0; i < 8; i++) text[size_t(9 - i)] = "0123456789abcdef"[(value >> (4 * i)) & 15];
    return text;
}

} // namespace oracle
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Tensors that are packed and unpacked part by part have the bytes that the whole has at once.
#include "../../tools/common/weight_parts.hpp"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

using namespace mxdnn;
using namespace weight_formats;
using dt = memory::data_type;

namespace {

// Blocks and panels that are not whole, several parts of a matrix, experts whose magnitudes differ.
constexpr shape_t shapes[] = {{0, 200, 150}, {3, 200, 150}, {2, 96, 64}, {0, 31, 1}};

std::vector<float> values_of(const shape_t &s) {
    std::mt19937 rng(7);
    std::normal_distribution<float> normal;
    std::vector<float> v(size_t(std::max<memory::dim>(s.experts, 1) * s.in * s.out));
    for (size_t i = 0; i < v.size(); i++) v[i] = normal(rng) * (1 + 3 * float(i) / float(v.size()));
    return v;
}

struct taken_t {
    std::vector<uint8_t> bytes;
    int parts = 0;
    take_t take() {
        return [this](const void *p, uint64_t n) {
            const auto *b = static_cast<const uint8_t *>(p);
            bytes.insert(bytes.end(), b, b + n);
            parts++;
        };
    }
};

bool equal(const taken_t &t, const void *whole, size_t size) {
    return t.bytes.size() == size && std::memcmp(t.bytes.data(), whole, size) == 0;
}

void check(const format_t &f, const engine &eng, const shape_t &s, uint64_t part_bytes) {
    SCOPED_TRACE(std::string(f.name) + " for " + eng.get_target() + ", " + std::to_string(s.experts) + " x "
                 + std::to_string(s.in) + " x " + std::to_string(s.out));
    const std::vector<float> values = values_of(s);
    uint64_t used = 0;
    parts_t parts;
    parts.bytes = part_bytes;
    parts.used = [&](const void *, uint64_t size) { used += size; };
    const memory whole = pack(f, eng, s, dt::f32, values.data());
    const size_t size = whole.get_desc().get_size();
    const int matrices = int(std::max<memory::dim>(s.experts, 1)),
              cuts = part_bytes == 1 ? int((s.out + 63) / 64) : 1;

    taken_t packed;
    pack_in_parts(parts, packed.take(), f, eng, s, dt::f32, values.data(), scale_rounding::rceil);
    EXPECT_TRUE(equal(packed, whole.get_data_handle(), size));
    EXPECT_EQ(packed.parts, matrices * cuts);
    EXPECT_EQ(used, values.size() * sizeof(float) * (f.global_scale && cuts > 1 ? 2 : 1));

    if (!f.zero_points && !f.global_scale) { // codes and scales, from random bytes
        std::mt19937 rng(11);
        const memory::dim blocks = (s.in + f.block - 1) / f.block;
        std::vector<uint8_t> codes(as_stored(s, f.element).get_size()),
                scales(size_t(matrices * blocks * s.out));
        for (auto *bytes : {&codes, &scales})
            for (uint8_t &b : *bytes) b = uint8_t(rng());
        const memory at_once = pack_codes(f, eng, s, codes.data(), scales.data());
        taken_t in_parts;
        pack_codes_in_parts(parts, in_parts.take(), f, eng, s, codes.data(), scales.data());
        EXPECT_TRUE(equal(in_parts, at_once.get_data_handle(), size));
    }

    taken_t unpacked;
    used = 0;
    unpack_in_parts(parts, unpacked.take(), whole.get_desc(), eng, whole.get_data_handle(), dt::f32);
    std::vector<float> at_once = unpack(whole.get_desc(), eng, whole.get_data_handle());
    EXPECT_TRUE(equal(unpacked, at_once.data(), at_once.size() * sizeof(float)));
    EXPECT_EQ(unpacked.parts, matrices * cuts);
    EXPECT_GE(used + uint64_t(matrices) * 64, size); // all but the prefixes
}

} // namespace

TEST(weight_parts, are_the_bytes_of_the_whole) {
    for (const engine &eng : {engine(engine::kind::cpu, 0), engine::for_target("cuda:sm_90")})
        for (const format_t &f : formats())
            for (const shape_t &s : shapes)
                for (const uint64_t bytes : {uint64_t(1), uint64_t(1) << 24}) check(f, eng, s, bytes);
}

// A format that no name stands for is unpacked at once.
TEST(weight_parts, formats_without_a_name) {
    const engine eng(engine::kind::cpu, 0);
    format_t int4 = find_format("int4");
    int4.block = 64;
    const shape_t s = shapes[0];
    const std::vector<float> values = values_of(s);
    const memory whole = pack(int4, eng, s, dt::f32, values.data());
    taken_t unpacked;
    parts_t parts;
    parts.bytes = 1;
    unpack_in_parts(parts, unpacked.take(), whole.get_desc(), eng, whole.get_data_handle(), dt::f32);
    const std::vector<float> at_once = unpack(whole.get_desc(), eng, whole.get_data_handle());
    EXPECT_TRUE(equal(unpacked, at_once.data(), at_once.size() * sizeof(float)));
    EXPECT_EQ(unpacked.parts, 1);
}

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
const shape_t shapes[] = {shape_t::matrix(150, 200), shape_t::batch(3, 150, 200), shape_t::batch(2, 64, 96),
        shape_t::matrix(1, 31)};

std::vector<float> values_of(const shape_t &s) {
    std::mt19937 rng(7);
    std::normal_distribution<float> normal;
    std::vector<float> v(size_t(s.matrices() * s.in * s.out));
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

// From memory, counting what is read.
read_t reader(const void *from, uint64_t &count) {
    return [from, &count](uint64_t offset, uint64_t size, void *to) {
        std::memcpy(to, static_cast<const uint8_t *>(from) + offset, size_t(size));
        count += size;
    };
}

bool equal(const taken_t &t, const void *whole, size_t size) {
    return t.bytes.size() == size && std::memcmp(t.bytes.data(), whole, size) == 0;
}

void check(const format_t &f, const engine &eng, const shape_t &s, uint64_t part_bytes) {
    SCOPED_TRACE(std::string(f.name) + " for " + eng.get_target() + ", " + std::to_string(s.matrices())
                 + " x " + std::to_string(s.in) + " x " + std::to_string(s.out));
    const std::vector<float> values = values_of(s);
    uint64_t used = 0;
    const memory whole = pack(f, eng, s, dt::f32, values.data());
    const size_t size = whole.get_desc().get_size();
    const int matrices = int(s.matrices()), cuts = part_bytes == 1 ? int((s.out + 63) / 64) : 1;

    taken_t packed;
    pack_in_parts(part_bytes, packed.take(), f, eng, s, dt::f32, reader(values.data(), used));
    EXPECT_TRUE(equal(packed, whole.get_data_handle(), size));
    EXPECT_EQ(packed.parts, matrices * cuts);
    EXPECT_EQ(used, values.size() * sizeof(float) * (f.global_scale && cuts > 1 ? 2 : 1));

    if (!f.zero_points && !f.global_scale) { // codes and scales, from random bytes
        std::mt19937 rng(11);
        const memory::dim blocks = (s.in + f.block - 1) / f.block;
        std::vector<uint8_t> codes(as_stored(s, f.element).get_size()),
                scales(size_t(matrices * blocks * s.out) * (f.scale == dt::e8m0 ? 1 : 2));
        for (auto *bytes : {&codes, &scales})
            for (uint8_t &b : *bytes) b = uint8_t(rng());
        const memory at_once = pack_codes(f, eng, s, codes.data(), scales.data());
        taken_t in_parts;
        pack_codes_in_parts(part_bytes, in_parts.take(), f, eng, s, reader(codes.data(), used),
                reader(scales.data(), used));
        EXPECT_TRUE(equal(in_parts, at_once.get_data_handle(), size));
    }

    taken_t unpacked;
    used = 0;
    unpack_in_parts(part_bytes, unpacked.take(), whole.get_desc(), eng, reader(whole.get_data_handle(), used),
            dt::f32);
    std::vector<float> at_once = unpack(whole.get_desc(), eng, whole.get_data_handle());
    EXPECT_TRUE(equal(unpacked, at_once.data(), at_once.size() * sizeof(float)));
    EXPECT_EQ(unpacked.parts, matrices * cuts);
    EXPECT_GE(used + uint64_t(matrices) * 64, size); // all but the padding of matrices
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
    uint64_t used = 0;
    unpack_in_parts(
            1, unpacked.take(), whole.get_desc(), eng, reader(whole.get_data_handle(), used), dt::f32);
    const std::vector<float> at_once = unpack(whole.get_desc(), eng, whole.get_data_handle());
    EXPECT_TRUE(equal(unpacked, at_once.data(), at_once.size() * sizeof(float)));
    EXPECT_EQ(unpacked.parts, 1);
}

// No experts are none, not a matrix; and what has no elements has no bytes and takes no time.
TEST(weight_parts, tensors_without_elements_are_not_touched) {
    const engine eng(engine::kind::cpu, 0);
    const memory::dim many = memory::dim(1) << 40;
    const shape_t empty[] = {shape_t::batch(0, 150, 200), shape_t::batch(many, 0, 32),
            shape_t::batch(many, 64, 0), shape_t::matrix(64, 0), shape_t::matrix(0, 64),
            shape_t::matrix(many, 0)};
    const take_t take = [](const void *, uint64_t) { ADD_FAILURE(); };
    const read_t read = [](uint64_t, uint64_t, void *) { ADD_FAILURE(); };
    for (const format_t &f : formats())
        for (const shape_t &s : empty) {
            pack_in_parts(default_part_bytes, take, f, eng, s, dt::bf16, read);
            pack_codes_in_parts(default_part_bytes, take, f, eng, s, read, read);
            unpack_in_parts(default_part_bytes, take, packed_desc(f, eng, s), eng, read, dt::f32);
        }
}

// Codes and scales of rows of one element take far more room packed: the larger side counts.
TEST(weight_parts, parts_are_measured_on_the_larger_side) {
    const engine eng(engine::kind::cpu, 0);
    const shape_t s = shape_t::matrix(1 << 20, 1);
    const read_t zeros = [](uint64_t, uint64_t size, void *to) { std::memset(to, 0, size_t(size)); };
    uint64_t largest = 0;
    pack_in_parts(
            1 << 20, [&](const void *, uint64_t size) { largest = std::max(largest, size); },
            find_format("mxfp8"), eng, s, dt::f16, zeros);
    EXPECT_GT(largest, 0u);
    EXPECT_LE(largest, uint64_t(1 << 20) + (1 << 14));
}

// More dimensions than experts have are unpacked as a whole, the last two in the order of checkpoints.
TEST(weight_parts, more_dimensions) {
    const engine eng(engine::kind::cpu, 0);
    primitive_attr attr, quantise;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 15, {32, 1}, dt::e8m0);
    quantise.set_scales(MXDNN_ARG_DST, 15, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
    const memory::dims dims = {2, 3, 40, 5};
    const memory::desc any(dims, dt::f8_e4m3, memory::format_tag::any);
    const mx_matmul::primitive_desc pd(eng, memory::desc({2, 3, 4, 40}, dt::f32, memory::format_tag::abcd),
            any, memory::desc({2, 3, 4, 5}, dt::f32, memory::format_tag::abcd), attr);
    std::vector<float> values(2 * 3 * 40 * 5);
    for (size_t i = 0; i < values.size(); i++) values[i] = float(int(i * 7 % 15) - 7); // exact
    const memory from(memory::desc(dims, dt::f32, memory::format_tag::abdc), eng, values.data()),
            to(pd.weights_desc(), eng);
    stream st(eng);
    mx_reorder(from, to, quantise).execute(st, from, to);
    st.wait();
    taken_t unpacked;
    uint64_t used = 0;
    unpack_in_parts(1, unpacked.take(), to.get_desc(), eng, reader(to.get_data_handle(), used), dt::f32);
    EXPECT_TRUE(equal(unpacked, values.data(), values.size() * sizeof(float)));
}

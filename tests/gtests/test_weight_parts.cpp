// SPDX-License-Identifier: Apache-2.0
// Tensors that are packed or unpacked part by part have the same bytes as tensors that are processed whole.
#include "../../tools/common/weight_parts.hpp"

#include <cmath>
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

// All parts, one after the other.
template <typename parts_t>
void make_all(const parts_t &parts, const take_t &take) {
    for (size_t i = 0; i < parts.parts(); i++) parts.make(i, take);
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
    make_all(packing_t(part_bytes, f, eng, s, dt::f32, in_rows(s, dt::f32, reader(values.data(), used))),
            packed.take());
    EXPECT_TRUE(equal(packed, whole.get_data_handle(), size));
    EXPECT_EQ(packed.parts, matrices * cuts);
    EXPECT_EQ(used, values.size() * sizeof(float) * (f.global_scale && cuts > 1 ? 2 : 1));

    // Codes, scales, zero points and global scales of random bits; the pieces are copied from the whole.
    std::mt19937 rng(11);
    const memory::dim blocks = (s.in + f.block - 1) / f.block;
    code_room_t room;
    const codes_t codes = room.of(f, s);
    const shape_t row = shape_t::matrix(1, s.in), scale_row = shape_t::matrix(1, blocks);
    const size_t code_size = as_stored(row, f.element).get_size(),
                 scale_size = as_stored(scale_row, f.scale).get_size(),
                 zero_size = f.has_zero_points() ? as_stored(scale_row, f.zero_point).get_size() : 0;
    const auto fill = [&](void *to, size_t row_size) {
        auto *p = static_cast<uint8_t *>(to);
        for (size_t i = 0; i < row_size * size_t(s.matrices() * s.out); i++) p[i] = uint8_t(rng());
    };
    fill(codes.codes, code_size);
    fill(codes.scales, scale_size);
    fill(codes.zero_points, zero_size);
    for (int m = 0; f.global_scale && m < matrices; m++) codes.global_scales[m] = 0.5f + float(m);
    const memory codes_at_once = pack_codes(f, eng, s, codes);
    taken_t in_parts;
    const auto copy = [&](const piece_t &p, void *to, const void *from, size_t row_size) {
        std::memcpy(to, static_cast<const uint8_t *>(from) + size_t(p.matrix * s.out + p.first) * row_size,
                size_t(p.columns) * row_size);
    };
    make_all(packing_t(part_bytes, f, eng, s,
                     [&](const piece_t &p, const codes_t &to) {
                         copy(p, to.codes, codes.codes, code_size);
                         copy(p, to.scales, codes.scales, scale_size);
                         if (zero_size) copy(p, to.zero_points, codes.zero_points, zero_size);
                         if (f.global_scale) to.global_scales[0] = codes.global_scales[p.matrix];
                     }),
            in_parts.take());
    EXPECT_TRUE(equal(in_parts, codes_at_once.get_data_handle(), codes_at_once.get_desc().get_size()));
    // The codes and their packed bytes have the same values.
    std::vector<float> decoded(values.size());
    decode(f, s, codes, decoded.data());
    const std::vector<float> of_packed =
            unpack(codes_at_once.get_desc(), eng, codes_at_once.get_data_handle());
    for (size_t i = 0; i < decoded.size(); i++) { // which NaN a product of two is, is up to the compiler
        const float a = decoded[i], b = of_packed[i];
        ASSERT_TRUE((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b)))
                << i << ": " << a << ", " << b;
    }

    taken_t unpacked;
    used = 0;
    make_all(unpacking_t(part_bytes, whole.get_desc(), eng, reader(whole.get_data_handle(), used), dt::f32),
            unpacked.take());
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

// Every format of packed weights is recognised, so it can be unpacked in parts.
TEST(weight_parts, formats_are_known_by_their_descriptors) {
    std::vector<format_t> all = formats();
    all.push_back(nvfp4_without_global_scale());
    for (const auto scale : {dt::bf16, dt::f16, dt::f32})
        for (const memory::dim group : {32, 64, 128, 256}) {
            all.push_back(int4_format(dt::s4, group, scale, dt::undef));
            for (const auto zero_point : {dt::undef, dt::u8, scale})
                all.push_back(int4_format(dt::u4, group, scale, zero_point));
        }
    for (const engine &eng : {engine(engine::kind::cpu, 0), engine::for_target("cuda:sm_90")})
        for (const format_t &f : all)
            for (const shape_t &s : shapes) {
                const std::optional<format_t> found = format_of(packed_desc(f, eng, s), eng);
                ASSERT_TRUE(found) << f.name;
                EXPECT_EQ(found->name, f.name);
            }
    for (const format_t &f : all)
        if (f.element == dt::s4 || f.element == dt::u4 || f.element == dt::f4_e2m1) {
            if (f.element == dt::u4 && f.zero_point != dt::u8) continue; // scales are not computed
            check(f, engine(engine::kind::cpu, 0), shapes[1], 1);
        }
}

// Zero experts are not a matrix. Tensors without elements have no bytes and take no time.
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
            make_all(packing_t(default_part_bytes, f, eng, s, dt::bf16, in_rows(s, dt::bf16, read)), take);
            make_all(packing_t(default_part_bytes, f, eng, s, in_rows(s, f, read, read)), take);
            make_all(unpacking_t(default_part_bytes, packed_desc(f, eng, s), eng, read, dt::f32), take);
        }
}

// Rows of one element take far more space packed than plain. The larger size counts.
TEST(weight_parts, parts_are_measured_on_the_larger_side) {
    const engine eng(engine::kind::cpu, 0);
    const shape_t s = shape_t::matrix(1 << 20, 1);
    const read_t zeros = [](uint64_t, uint64_t size, void *to) { std::memset(to, 0, size_t(size)); };
    uint64_t largest = 0;
    make_all(packing_t(1 << 20, find_format("mxfp8"), eng, s, dt::f16, in_rows(s, dt::f16, zeros)),
            [&](const void *, uint64_t size) { largest = std::max(largest, size); });
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
    make_all(
            unpacking_t(1, to.get_desc(), eng, reader(to.get_data_handle(), used), dt::f32), unpacked.take());
    EXPECT_TRUE(equal(unpacked, values.data(), values.size() * sizeof(float)));
}

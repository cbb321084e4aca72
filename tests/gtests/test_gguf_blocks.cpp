// SPDX-License-Identifier: Apache-2.0
// The values of blocks, compared with another implementation. For each tensor X golden_gguf/blocks.gguf has
// X.values.
#include "common/gguf_blocks.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/formats/f16.hpp"
#include "gtests/gguf_writer.hpp"

using namespace gguf_test;
using namespace weight_formats;

namespace {

std::vector<float> golden_values(const gguf::file_t &file, const gguf::tensor_t &t) {
    const gguf::tensor_t &values = *file.find_tensor(t.name + ".values");
    std::vector<float> v(values.size / 4);
    file.read(values, 0, values.size, v.data());
    return v;
}

// Inf where a scale is large, and zeros of either sign.
void expect_equal(const std::vector<float> &a, const float *b, size_t count, const std::string &what) {
    for (size_t i = 0; i < count; i++) ASSERT_EQ(a[i], b[i]) << what << " element " << i;
}

class GgufBlocks : public testing::Test {
protected:
    const gguf::file_t file{MXDNN_TEST_DATA "/golden_gguf/blocks.gguf"};
};

TEST_F(GgufBlocks, EveryTypeIsWorthWhatAnotherImplementationSays) {
    size_t checked = 0;
    for (const gguf::tensor_t &t : file.tensors()) {
        if (!gguf::find_blocks(*t.element) || t.name.rfind("scaled", 0) == 0) continue;
        const std::vector<float> due = golden_values(file, t);
        std::vector<float> v(due.size());
        gguf::read_values(file, t, 0, v.size(), v.data());
        expect_equal(v, due.data(), v.size(), t.name);
        // Within blocks.
        for (const size_t first : {1u, 31u, 255u, 300u})
            for (const size_t count : {0u, 1u, 33u, 290u}) {
                std::vector<float> part(count);
                gguf::read_values(file, t, first, count, part.data());
                expect_equal(part, due.data() + first, count, t.name);
            }
        checked++;
    }
    EXPECT_EQ(checked, 24u); // twelve types, as matrix and as experts
}

TEST_F(GgufBlocks, CodesOfAFormatAreWorthTheSame) {
    size_t checked = 0;
    for (const gguf::tensor_t &t : file.tensors()) {
        const gguf::blocks_t *blocks = gguf::find_blocks(*t.element);
        if (!blocks || blocks->loss || t.name.rfind("scaled", 0) == 0) continue;
        const std::vector<float> due = golden_values(file, t);
        const format_t format = blocks->format();
        const read_codes_t read = gguf::codes_of(file, t, format);
        const int64_t in = t.dims.back(), out = t.dims[t.dims.size() - 2];
        // Of the last matrix all rows but the first.
        const piece_t piece{t.dims.size() == 3 ? t.dims[0] - 1 : 0, 1, out - 1};
        const shape_t shape = shape_t::matrix(piece.columns, in);
        code_room_t room;
        const codes_t codes = room.of(format, shape);
        read(piece, codes);
        std::vector<float> v(size_t(piece.columns * in));
        decode(format, shape, codes, v.data());
        expect_equal(v, due.data() + (piece.matrix * out + piece.first) * in, v.size(), t.name);
        checked++;
    }
    EXPECT_EQ(checked, 12u); // six types
}

// Codes are kept. Scale and minimum are rounded to f16, by at most half a unit of 11 bits, or 2^-25.
TEST_F(GgufBlocks, NearestCodesOfQ4K) {
    const gguf::tensor_t &t = *file.find_tensor("Q4_K.weight");
    const std::vector<float> due = golden_values(file, t);
    const format_t format = gguf::find_blocks(*t.element)->format();
    const shape_t shape = shape_t::matrix(3, 256);
    code_room_t room;
    const codes_t codes = room.of(format, shape);
    gguf::codes_of(file, t, format)({0, 0, 3}, codes);
    std::vector<float> v(due.size());
    decode(format, shape, codes, v.data());
    const auto half = [](const void *from, size_t i) {
        uint16_t code;
        std::memcpy(&code, static_cast<const uint8_t *>(from) + 2 * i, 2);
        return std::fabs(mxdnn::impl::f16_t::decode(code));
    };
    for (size_t i = 0; i < v.size(); i++) {
        const float size = 15 * half(codes.scales, i / 32) + half(codes.zero_points, i / 32);
        EXPECT_LE(std::fabs(v[i] - due[i]), size * std::ldexp(1.f, -11) * 1.01f + 16 * std::ldexp(1.f, -25))
                << i;
    }
}

// In MX 255 is NaN; ggml takes it as 2^128.
TEST(GgufScales, OnesThatTwoFormatsReadInTwoWaysAreRefused) {
    const struct {
        uint32_t type, block;
        size_t bytes, at;
        char last;
    } all[] = {{39, 32, 17, 0, char(254)}, {40, 64, 36, 3, char(126)}};
    for (const auto &c : all)
        for (const int more : {0, 1}) {
            writer_t w;
            w.tensors = {{"w", c.type, {c.block, 2}, std::string(2 * c.bytes, '\0')}};
            w.tensors[0].data[c.bytes + c.at] = char(c.last + more);
            const memory_file_t bytes(w.bytes());
            const gguf::file_t f(bytes.path());
            std::vector<float> v(2 * c.block);
            if (more)
                EXPECT_THROW(gguf::read_values(f, f.tensors()[0], 0, v.size(), v.data()), std::runtime_error);
            else
                EXPECT_NO_THROW(gguf::read_values(f, f.tensors()[0], 0, v.size(), v.data()));
            EXPECT_NO_THROW(gguf::read_values(f, f.tensors()[0], 0, c.block, v.data()));
        }
}

} // namespace

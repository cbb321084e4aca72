// SPDX-License-Identifier: Apache-2.0
// Packed weights in a container: they come back as they went in, and whatever was altered is refused by name.
#include "../../tools/common/container.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <unistd.h>

#include <gtest/gtest.h>

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr memory::dim K = 70, N = 37;

memory pack(const engine &eng, unsigned seed, memory::dim k = K) {
    primitive_attr of_weights, quantise;
    of_weights.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    quantise.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
    const mx_matmul::primitive_desc pd(eng, memory::desc({MXDNN_RUNTIME_DIM_VAL, k}, dt::f32, tag::ab),
            memory::desc({k, N}, dt::f4_e2m1, tag::any),
            memory::desc({MXDNN_RUNTIME_DIM_VAL, N}, dt::f32, tag::ab), of_weights);
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<float> w(size_t(k * N));
    for (float &v : w) v = normal(rng);
    const memory from({{k, N}, dt::f32, tag::ba}, eng, w.data()), to(pd.weights_desc(), eng);
    stream s(eng);
    mx_reorder(from, to, quantise).execute(s, from, to);
    s.wait();
    return to;
}

class container_test : public testing::Test {
protected:
    engine eng{engine::kind::cpu, 0};
    memory a = pack(eng, 1), b = pack(eng, 2);
    std::string path = testing::TempDir() + "/container-" + std::to_string(getpid()) + ".safetensors", bytes;

    void SetUp() override {
        container::contents_t c;
        c.add_packed("a", a.get_desc(), a.get_data_handle());
        c.add_packed("b", b.get_desc(), b.get_data_handle());
        const auto s = safetensors::write(path, c.tensors, c.metadata);
        ASSERT_TRUE(s.ok()) << s.message;
        std::ifstream f(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(f), {});
    }
    void TearDown() override { unlink(path.c_str()); }

    // Where a tensor's bytes are in the file.
    size_t place(const char *name) {
        safetensors::index_t index;
        const auto *begin = reinterpret_cast<const uint8_t *>(bytes.data());
        EXPECT_TRUE(safetensors::parse(begin, bytes.size(), index).ok());
        return size_t(index.find(name)->data - begin);
    }
    // The sentence with which weights "a" of an altered file are refused; empty when they are taken.
    std::string refusal(const std::string &altered) {
        std::ofstream(path, std::ios::binary) << altered;
        return refusal();
    }
    // ... of the file as it is.
    std::string refusal() {
        safetensors::file_t file;
        const auto s = safetensors::file_t::open(path, file);
        if (!s.ok()) return s.message;
        try {
            container::get_packed(file, "a", eng);
        } catch (const std::runtime_error &e) {
            return e.what();
        }
        return "";
    }
    std::string refusal(const container::contents_t &c) {
        EXPECT_TRUE(safetensors::write(path, c.tensors, c.metadata).ok());
        return refusal();
    }
    std::string replaced(const std::string &from, const std::string &to) {
        std::string s = bytes;
        const size_t at = s.find(from);
        EXPECT_NE(at, s.npos) << from;
        return at == s.npos ? s : s.replace(at, from.size(), to);
    }
};

} // namespace

TEST_F(container_test, returns_what_was_packed) {
    safetensors::file_t file;
    ASSERT_TRUE(safetensors::file_t::open(path, file).ok());
    for (const auto &m : {std::pair<const char *, const memory &>("a", a), {"b", b}}) {
        const container::packed_t p = container::get_packed(file, m.first, eng);
        EXPECT_EQ(p.desc, m.second.get_desc());
        EXPECT_EQ(p.size, p.desc.get_size());
        EXPECT_EQ(memcmp(p.bytes, m.second.get_data_handle(), p.size), 0);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p.bytes) % 64, 0u);
        EXPECT_TRUE(p.verdict == blob_verdict::native || p.verdict == blob_verdict::slower);
    }
}

TEST_F(container_test, every_altered_byte_of_the_weights_is_noticed) {
    const size_t at = place("a.mxdnn_packed"), size = a.get_desc().get_size();
    std::mt19937 rng(3);
    for (size_t i = 0; i < size; i += 1 + rng() % 16) {
        std::string s = bytes;
        s[at + i] = char(s[at + i] ^ (1 << rng() % 8));
        const std::string why = refusal(s);
        ASSERT_NE(why.find("packed tensor 'a' is damaged: its checksum is"), why.npos) << i << ": " << why;
    }
}

TEST_F(container_test, every_altered_byte_of_the_description_is_noticed) {
    const size_t at = place("a.mxdnn_desc"), size = a.get_desc().get_blob().size();
    for (size_t i = 0; i < size; i++) {
        std::string s = bytes;
        s[at + i] = char(s[at + i] ^ 0x10);
        const std::string why = refusal(s);
        ASSERT_NE(why.find("packed tensor 'a'"), why.npos) << i << ": " << why;
    }
}

TEST_F(container_test, the_bytes_of_another_layer_do_not_pass) {
    std::string s = bytes;
    s.replace(place("a.mxdnn_packed"), b.get_desc().get_size(), bytes, place("b.mxdnn_packed"),
            b.get_desc().get_size());
    EXPECT_NE(refusal(s).find("checksum"), std::string::npos);
}

TEST_F(container_test, padding_checksum_and_names_are_checked) {
    EXPECT_EQ(refusal(bytes), "");
    const size_t size = a.get_desc().get_size();
    if (size % 64) {
        std::string s = bytes;
        s[place("a.mxdnn_packed") + size] = 1;
        EXPECT_NE(refusal(s).find("padding"), std::string::npos);
    }
    EXPECT_NE(refusal(replaced("\"a.mxdnn_checksum\"", "\"A.mxdnn_checksum\"")).find("has no checksum"),
            std::string::npos);
    EXPECT_NE(refusal(replaced("\"a.mxdnn_desc\"", "\"A.mxdnn_desc\"")).find("no tensor 'a.mxdnn_desc'"),
            std::string::npos);
    EXPECT_NE(
            refusal(replaced("\"a.mxdnn_packed\":{\"dtype\":\"U8\"", "\"a.mxdnn_packed\":{\"dtype\":\"I8\""))
                    .find("not U8"),
            std::string::npos);
}

TEST_F(container_test, a_description_of_another_shape_is_refused) {
    const memory longer = pack(eng, 1, K + 64);
    container::contents_t c;
    c.add_packed("a", longer.get_desc(), longer.get_data_handle());
    // The tensor of the right name and checksum, but with the bytes of a smaller one.
    c.tensors[0] = safetensors::from_memory("a.mxdnn_packed", safetensors::dtype_t::u8,
            {int64_t(a.get_desc().get_size())}, a.get_data_handle());
    EXPECT_NE(refusal(c).find("its description asks for"), std::string::npos);
}

TEST_F(container_test, a_description_of_a_plain_tensor_is_refused) {
    const std::vector<uint8_t> plain = memory::desc({K, N}, dt::f32, tag::ab).get_blob();
    container::contents_t c;
    c.add_packed("a", a.get_desc(), a.get_data_handle());
    c.tensors[1] = safetensors::from_memory(
            "a.mxdnn_desc", safetensors::dtype_t::u8, {int64_t(plain.size())}, plain.data());
    EXPECT_NE(refusal(c).find("is described as f32:blocked:ab:70x37"), std::string::npos);
}

TEST_F(container_test, another_targets_layout_is_named) {
    const memory w = pack(engine::for_target("cuda:sm_100"), 1);
    container::contents_t c;
    c.add_packed("a", w.get_desc(), w.get_data_handle());
    EXPECT_NE(refusal(c).find("is packed for cuda, not for cpu:x64"), std::string::npos);
}

// SPDX-License-Identifier: Apache-2.0
// Containers through mxdnn_container.hpp: contents are read back as written, and altered tensors are refused
// by name.
#include "../../tools/common/contents.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/blob/xxh64.hpp"
#include "common/container/safetensors.hpp"
#include "gtests/test_container_c.h"

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr memory::dim K = 70, N = 37;

// After so many reads the library's next ones fail, or find no more bytes; -1: they do not.
int reads_before_failure = -1;
bool read_ends = false;

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
        safetensors::contents_t c;
        c.add_packed("a", a.get_desc(), a.get_data_handle());
        c.add_packed("b", b.get_desc(), b.get_data_handle());
        const auto s = safetensors::write(path, c.tensors, c.metadata);
        ASSERT_TRUE(s.ok()) << s.message;
        std::ifstream f(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(f), {});
    }
    void TearDown() override { unlink(path.c_str()); }

    // The offset of a tensor's bytes in the file.
    size_t place(const char *name) {
        safetensors::index_t index;
        const auto *begin = reinterpret_cast<const uint8_t *>(bytes.data());
        EXPECT_TRUE(safetensors::parse(begin, bytes.size(), index).ok());
        return size_t(index.data_offset + index.find(name)->begin);
    }
    // The sentence that refuses weights "a" of an altered file. Empty if they are accepted.
    std::string refusal(const std::string &altered) {
        std::ofstream(path, std::ios::binary) << altered;
        return refusal();
    }
    // ... of the file as it is.
    std::string refusal() {
        try {
            const container file(path);
            const size_t i = file.find("a");
            file.verify(i);
            safetensors::check_usable("packed tensor 'a'", file.get_desc(i), eng);
        } catch (const std::exception &e) {
            return e.what();
        }
        return "";
    }
    std::string refusal(const safetensors::contents_t &c) {
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

extern "C" ssize_t pread(int file, void *to, size_t n, off_t offset) {
    if (reads_before_failure == 0 && read_ends) return 0;
    if (reads_before_failure == 0) {
        errno = EIO;
        return -1;
    }
    if (reads_before_failure > 0) reads_before_failure--;
    return syscall(SYS_pread64, file, to, n, offset);
}

TEST_F(container_test, returns_what_was_packed) {
    const container file(path);
    ASSERT_EQ(file.size(), 2u);
    for (const auto &m : {std::pair<const char *, const memory &>("a", a), {"b", b}}) {
        const size_t i = file.find(m.first);
        const container::entry e = file.get_entry(i);
        EXPECT_TRUE(e.is_packed && e.has_checksum);
        EXPECT_EQ(e.name, m.first);
        EXPECT_EQ(e.dtype, "U8");
        EXPECT_NO_THROW(file.verify(i));
        const memory::desc desc = file.get_desc(i);
        EXPECT_EQ(desc, m.second.get_desc());
        EXPECT_EQ(e.size, desc.get_size());
        EXPECT_EQ(e.size % 64, 0u);
        const memory w = file.get_memory(i, eng);
        EXPECT_EQ(memcmp(w.get_data_handle(), m.second.get_data_handle(), desc.get_size()), 0);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(w.get_data_handle()) % 64, 0u);
        const memory copy = file.load(i, eng);
        EXPECT_EQ(copy.get_desc(), desc);
        EXPECT_NE(copy.get_data_handle(), w.get_data_handle());
        EXPECT_EQ(memcmp(copy.get_data_handle(), w.get_data_handle(), desc.get_size()), 0);
        std::vector<uint8_t> part(17);
        file.read(i, 5, part.size(), part.data());
        EXPECT_EQ(memcmp(part.data(), static_cast<const uint8_t *>(w.get_data_handle()) + 5, part.size()), 0);
        EXPECT_THROW(file.read(i, e.size - 16, part.size(), part.data()), error);
        EXPECT_THROW(file.read(i, UINT64_MAX, part.size(), part.data()), error);
    }
    EXPECT_THROW(file.find("c"), error);
    EXPECT_THROW(file.get_entry(2), error);
    // A file that lies in memory is the same.
    const container in_memory(bytes.data(), bytes.size());
    EXPECT_NO_THROW(in_memory.verify(in_memory.find("b")));
    EXPECT_EQ(in_memory.get_data(0), bytes.data() + in_memory.get_entry(0).offset);
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

TEST_F(container_test, checksum_and_names_are_checked) {
    EXPECT_EQ(refusal(bytes), "");
    EXPECT_NE(refusal(replaced("\"a.mxdnn_checksum\"", "\"A.mxdnn_checksum\"")).find("has no checksum"),
            std::string::npos);
    EXPECT_NE(refusal(replaced("\"a.mxdnn_desc\"", "\"A.mxdnn_desc\""))
                      .find("no descriptor: there is no tensor 'a.mxdnn_desc'"),
            std::string::npos);
    EXPECT_NE(
            refusal(replaced("\"a.mxdnn_packed\":{\"dtype\":\"U8\"", "\"a.mxdnn_packed\":{\"dtype\":\"I8\""))
                    .find("not U8"),
            std::string::npos);
}

TEST_F(container_test, a_description_of_another_shape_is_refused) {
    const memory longer = pack(eng, 1, K + 64);
    safetensors::contents_t c;
    c.add_packed("a", longer.get_desc(), longer.get_data_handle());
    // The tensor of the right name and checksum, but with the bytes of a smaller one.
    c.tensors[0] = safetensors::from_memory(
            "a.mxdnn_packed", "U8", {int64_t(a.get_desc().get_size())}, a.get_data_handle());
    EXPECT_NE(refusal(c).find("its descriptor asks for"), std::string::npos);
}

TEST_F(container_test, a_description_of_a_plain_tensor_is_refused) {
    const std::vector<uint8_t> plain = memory::desc({K, N}, dt::f32, tag::ab).get_blob();
    safetensors::contents_t c;
    c.add_packed("a", a.get_desc(), a.get_data_handle());
    c.tensors[1] = safetensors::from_memory("a.mxdnn_desc", "U8", {int64_t(plain.size())}, plain.data());
    EXPECT_NE(refusal(c).find("is described as f32:blocked:ab:70x37"), std::string::npos);
}

TEST_F(container_test, another_targets_layout_is_named) {
    const memory w = pack(engine::for_target("cuda:sm_100"), 1);
    safetensors::contents_t c;
    c.add_packed("a", w.get_desc(), w.get_data_handle());
    EXPECT_NE(refusal(c).find("is packed for cuda, not for cpu:x64"), std::string::npos);
}

TEST_F(container_test, plain_tensors_have_checksums_and_descriptors) {
    const std::vector<float> f = {1, 2, 3, 4, 5, 6};
    const std::vector<int64_t> n = {7, 8};
    const std::vector<uint8_t> codes = {0x21, 0x43, 0x65};
    safetensors::contents_t given, c;
    given.tensors = {safetensors::from_memory("f", "F32", {2, 3}, f.data()),
            safetensors::from_memory("n", "I64", {2}, n.data()),
            safetensors::from_memory("s", "F32", {}, f.data()),
            safetensors::from_memory("c", "F4", {2, 3}, codes.data()),
            safetensors::from_memory("v", "F4", {6}, codes.data()),
            safetensors::from_memory("d", "U8", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, codes.data())};
    ASSERT_TRUE(safetensors::write(path, given.tensors, {{"k", "v"}}).ok());
    const std::string copy = path + "-copy";
    {
        const container file(path);
        EXPECT_THROW(file.verify(file.find("f")), error); // no checksum
        for (size_t i = 0; i < file.size(); i++) c.add_copy(file, i);
        ASSERT_TRUE(safetensors::write(copy, c.tensors, c.metadata).ok());
    }
    {
        const container file(copy);
        unlink(copy.c_str());
        ASSERT_EQ(file.size(), 6u);
        for (size_t i = 0; i < file.size(); i++) EXPECT_NO_THROW(file.verify(i));
        EXPECT_EQ(file.get_desc(file.find("f")), memory::desc({2, 3}, dt::f32, tag::ab));
        EXPECT_EQ(file.get_desc(file.find("s")), memory::desc({1}, dt::f32, tag::a));
        EXPECT_EQ(file.get_entry(file.find("s")).dims.size(), 0u);
        EXPECT_EQ(file.get_desc(file.find("v")), memory::desc({6}, dt::f4_e2m1, tag::a));
        const auto status = [&](const char *name) {
            try {
                file.get_desc(file.find(name));
            } catch (const error &e) {
                return e.status;
            }
            return mxdnn_success;
        };
        EXPECT_EQ(status("n"), mxdnn_unimplemented); // no such type
        EXPECT_EQ(status("c"), mxdnn_unimplemented); // rows of half bytes
        EXPECT_EQ(status("d"), mxdnn_unimplemented); // 13 dimensions
        EXPECT_EQ(file.get_entry(file.find("n")).data_type, dt::undef);
    }
    // Type and dims are part of the checksum.
    const uint64_t sum = [&] {
        checksum s = checksum_for_tensor("F32", {2, 3});
        s.add(f.data(), 24);
        return s.value();
    }();
    for (const auto &other : {checksum_for_tensor("I32", {2, 3}), checksum_for_tensor("F32", {3, 2}),
                 checksum_for_tensor("F32", {6})}) {
        checksum s = other;
        s.add(f.data(), 24);
        EXPECT_NE(s.value(), sum);
    }
    EXPECT_THROW(checksum_for_tensor("F33", {1}), error);
    EXPECT_EQ(get_last_error(),
            "mxdnn_checksum_create_for_tensor: dtype is 'F33', which safetensors does not have");
    EXPECT_THROW(checksum_for_tensor("F32", {-1}), error);
    EXPECT_THROW(checksum_for_tensor("F32", std::vector<int64_t>(33, 1)), error);
    EXPECT_THROW(checksum_for_tensor("F32", {INT64_MAX, 2}), error);
}

// The value of a checksum is part of the format: computed by hand, XXH64 of the bytes 0 to 5 under the seed
// that is XXH64 of "U8[2, 3]".
TEST_F(container_test, the_checksum_of_a_plain_tensor_is_the_documented_one) {
    const std::vector<uint8_t> bytes6 = {0, 1, 2, 3, 4, 5};
    checksum s = checksum_for_tensor("U8", {2, 3});
    s.add(bytes6.data(), 6);
    EXPECT_EQ(s.value(), mxdnn::impl::xxh64(bytes6.data(), 6, mxdnn::impl::xxh64("U8[2, 3]", 8, 0)));
}

TEST_F(container_test, what_is_loaded_is_verified_and_outlives_the_container) {
    const auto status = [&](const std::string &altered, size_t i) {
        std::ofstream(path, std::ios::binary) << altered;
        mxdnn_container_t c = nullptr;
        EXPECT_EQ(mxdnn_container_create(&c, path.c_str()), mxdnn_success);
        mxdnn_memory_t m = nullptr;
        const mxdnn_status_t s = mxdnn_container_load(c, i, eng.get(), &m);
        EXPECT_EQ(m == nullptr, s != mxdnn_success);
        mxdnn_memory_destroy(m);
        mxdnn_container_destroy(c);
        return s;
    };
    const size_t i = container(path).find("a");
    EXPECT_EQ(status(bytes, i), mxdnn_success);
    EXPECT_EQ(status(bytes, 2), mxdnn_invalid_arguments);
    std::string altered = bytes;
    altered[place("a.mxdnn_packed") + 70] ^= 1;
    EXPECT_EQ(status(altered, i), mxdnn_corrupt_blob);
    EXPECT_EQ(status(altered, 1 - i), mxdnn_success);
    altered = bytes;
    altered.replace(altered.find("a.mxdnn_checksum"), 16, "a.mxdnn_checksuM");
    EXPECT_EQ(status(altered, i), mxdnn_corrupt_blob);
    // A plain tensor may have no checksum.
    altered = std::string("\x38\0\0\0\0\0\0\0", 8)
              + R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )" + "abcd";
    EXPECT_EQ(status(altered, 0), mxdnn_success);

    std::ofstream(path, std::ios::binary) << bytes;
    memory copy;
    {
        const container file(path);
        copy = file.load(i, eng);
    }
    unlink(path.c_str());
    EXPECT_EQ(memcmp(copy.get_data_handle(), a.get_data_handle(), a.get_desc().get_size()), 0);
}

TEST_F(container_test, a_file_that_changes_is_refused_and_never_a_signal) {
    const container file(path);
    const size_t i = file.find("a");
    const auto refused = [&](const char *part) {
        try {
            file.verify(i);
        } catch (const error &e) {
            EXPECT_EQ(e.status, mxdnn_runtime_error);
            EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
            return true;
        }
        return false;
    };
    EXPECT_FALSE(refused(""));
    ASSERT_EQ(truncate(path.c_str(), off_t(file.get_entry(i).offset)), 0);
    EXPECT_TRUE(refused("was written to while it was read"));
    EXPECT_THROW(file.get_data(i), error); // not mapped any more
    EXPECT_THROW(file.load(i, eng), error);
    EXPECT_THROW(file.get_desc(i), error);
    // The same size again, other bytes.
    std::ofstream(path, std::ios::binary) << bytes;
    const timespec times[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(0, path.c_str(), times, 0), 0);
    EXPECT_TRUE(refused("was written to while it was read"));
}

// What the system refuses or does not give is said, and no byte of it is used.
TEST_F(container_test, a_file_that_cannot_be_read_is_refused) {
    const auto refusal_at = [&](int read, bool ends) {
        reads_before_failure = read;
        read_ends = ends;
        const std::string why = refusal();
        reads_before_failure = -1;
        return why;
    };
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const bool ends : {false, true}) {
        const std::string why = ends ? ": it ends at byte " : ": Input/output error";
        int reads = 0;
        for (std::string found; !(found = refusal_at(reads, ends)).empty() && reads < 20; reads++) {
            EXPECT_NE(found.find("cannot read "), found.npos) << reads << ": " << found;
            EXPECT_NE(found.find(name + why), found.npos) << reads << ": " << found;
        }
        EXPECT_GE(reads, 4); // length, header, descriptor, weights
        EXPECT_LT(reads, 20);
    }
    const container file(path);
    const size_t i = file.find("a");
    // A buffer that is not there.
    void *const nothing = mmap(nullptr, 64, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(nothing, MAP_FAILED);
    EXPECT_EQ(mxdnn_container_read(file.get(), i, 0, 64, nothing), mxdnn_runtime_error);
    EXPECT_NE(get_last_error().find(name + ": Bad address"), std::string::npos) << get_last_error();
    munmap(nothing, 64);
}

// A file of holes may be larger than the address space.
TEST(container, a_file_that_is_too_large_to_be_mapped_can_be_read) {
    const int64_t size = int64_t(1) << 50;
    std::string header = R"({"w":{"dtype":"U8","shape":[)" + std::to_string(size) + R"(],"data_offsets":[0,)"
                         + std::to_string(size) + "]}}";
    header.resize(120, ' ');
    header.insert(0, std::string("\x78\0\0\0\0\0\0\0", 8));
    const int fd = memfd_create("container", 0);
    ASSERT_EQ(write(fd, header.data(), header.size()), ssize_t(header.size()));
    ASSERT_EQ(ftruncate(fd, off_t(header.size()) + size), 0);
    const container file("/proc/self/fd/" + std::to_string(fd));
    close(fd);
    char last = 1;
    file.read(0, uint64_t(size) - 1, 1, &last);
    EXPECT_EQ(last, 0);
    const void *data = &file;
    EXPECT_EQ(mxdnn_container_get_data(file.get(), 0, &data), mxdnn_runtime_error);
    EXPECT_NE(get_last_error().find("cannot map "), std::string::npos) << get_last_error();
    EXPECT_EQ(data, &file);
}

TEST_F(container_test, writing_ends_where_it_is_told_to) {
    safetensors::contents_t c;
    c.add_packed("a", a.get_desc(), a.get_data_handle());
    c.tensors.resize(1); // without the descriptor, whose bytes are there already
    const auto s = safetensors::write(
            path + "-new", c.tensors, c.metadata, [](uint64_t, uint64_t) -> safetensors::status_t {
                return {safetensors::kind_t::io, "that is enough"};
            });
    EXPECT_EQ(s.message, "that is enough");
    EXPECT_NE(access((path + "-new").c_str(), F_OK), 0);
}

TEST_F(container_test, only_regular_files_are_opened) {
    const std::string pipe = path + "-pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string &p : {pipe, std::string("/dev/null"), testing::TempDir(), path + "-absent"}) try {
            container file(p);
            ADD_FAILURE() << p;
        } catch (const error &e) {
            EXPECT_EQ(e.status, mxdnn_runtime_error) << e.what();
            const std::string why = e.what();
            EXPECT_EQ(why.find("cannot open ") == why.npos, p != path + "-absent") << why;
            EXPECT_GT(why.size(), 10u);
        }
    unlink(pipe.c_str());
    std::ofstream(path).close();
    EXPECT_NE(refusal().find("at least 8 bytes"), std::string::npos);
}

TEST_F(container_test, hostile_entries_are_refused_in_bounded_time) {
    const auto refusal_of = [&](const std::vector<uint8_t> &blob, const std::string &weights) {
        safetensors::contents_t c;
        c.tensors = {
                safetensors::from_memory("a.mxdnn_packed", "U8", {int64_t(weights.size())}, weights.data()),
                safetensors::from_memory("a.mxdnn_desc", "U8", {int64_t(blob.size())}, blob.data())};
        c.metadata["a.mxdnn_checksum"] = "0000000000000000";
        return refusal(c);
    };
    EXPECT_NE(refusal_of({}, "").find("the shortest has 24"), std::string::npos);
    EXPECT_NE(refusal_of(std::vector<uint8_t>(5000), "").find("at most 4096"), std::string::npos);
    // Weights that begin between two multiples of 64.
    std::string shifted = bytes;
    uint64_t header = 0;
    memcpy(&header, bytes.data(), 8);
    shifted.insert(8 + header, 8, ' ');
    header += 8;
    memcpy(&shifted[0], &header, 8);
    EXPECT_NE(refusal(shifted).find("packed tensor 'a' does not begin at a multiple of 64 bytes"),
            std::string::npos)
            << refusal();
    // A name for a tensor and for packed weights.
    safetensors::contents_t c;
    c.add_packed("a", a.get_desc(), a.get_data_handle());
    c.tensors.push_back(safetensors::from_memory("a", "U8", {0}, nullptr));
    EXPECT_NE(refusal(c).find("a tensor 'a' and packed weights of that name"), std::string::npos);
    // A name alone or a suffix alone does not mean packed weights.
    c = {};
    c.tensors = {safetensors::from_memory(".mxdnn_packed", "U8", {0}, nullptr),
            safetensors::from_memory("b.mxdnn_desc", "U8", {0}, nullptr)};
    ASSERT_TRUE(safetensors::write(path, c.tensors, {}).ok());
    const container file(path);
    for (size_t i = 0; i < file.size(); i++) EXPECT_FALSE(file.get_entry(i).is_packed);
}

TEST(container, null_and_empty_arguments) {
    mxdnn_container_t c = nullptr;
    EXPECT_EQ(mxdnn_container_create(nullptr, "x"), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_create(&c, nullptr), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_create_from_bytes(&c, nullptr, 8), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_create_from_bytes(&c, nullptr, 0), mxdnn_corrupt_blob);
    EXPECT_EQ(c, nullptr);
    EXPECT_EQ(mxdnn_container_destroy(nullptr), mxdnn_success);
    size_t n = 0;
    EXPECT_EQ(mxdnn_container_get_count(nullptr, &n), mxdnn_invalid_arguments);
    const std::string empty("\2\0\0\0\0\0\0\0{}", 10);
    ASSERT_EQ(mxdnn_container_create_from_bytes(&c, empty.data(), empty.size()), mxdnn_success);
    mxdnn_container_entry_t e;
    EXPECT_EQ(mxdnn_container_get_count(c, nullptr), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_get_count(c, &n), mxdnn_success);
    EXPECT_EQ(n, 0u);
    EXPECT_EQ(mxdnn_container_get_entry(c, 0, &e), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_get_entry(c, 0, nullptr), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_find(c, "a", &n), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_verify(c, 0), mxdnn_invalid_arguments);
    const engine eng(engine::kind::cpu, 0);
    mxdnn_memory_t m = nullptr;
    EXPECT_EQ(mxdnn_container_load(c, 0, eng.get(), &m), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_load(c, 0, nullptr, &m), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_load(c, 0, eng.get(), nullptr), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_load(nullptr, 0, eng.get(), &m), mxdnn_invalid_arguments);
    EXPECT_EQ(m, nullptr);
    const char *key = nullptr, *value = "";
    EXPECT_EQ(mxdnn_container_get_metadata(c, 0, &key, &value), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_container_find_metadata(c, "k", &value), mxdnn_success);
    EXPECT_EQ(value, nullptr);
    EXPECT_EQ(mxdnn_container_destroy(c), mxdnn_success);
}

TEST_F(container_test, from_c) {
    std::vector<float> values(64), found(64, -1);
    for (size_t i = 0; i < 64; i++) values[i] = float(int(i * 5 % 13) - 6); // exact in f8_e4m3
    primitive_attr of_weights, quantise;
    of_weights.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    quantise.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
    const mx_matmul::primitive_desc pd(eng, memory::desc({1, 32}, dt::f32, tag::ab),
            memory::desc({32, 2}, dt::f8_e4m3, tag::any), memory::desc({1, 2}, dt::f32, tag::ab), of_weights);
    const memory from({{32, 2}, dt::f32, tag::ba}, eng, values.data()), to(pd.weights_desc(), eng);
    stream st(eng);
    mx_reorder(from, to, quantise).execute(st, from, to);
    st.wait();
    safetensors::contents_t plain, c;
    const std::vector<float> bias = {1, 2};
    plain.tensors = {safetensors::from_memory("bias", "F32", {2}, bias.data())};
    ASSERT_TRUE(safetensors::write(path, plain.tensors, {}).ok());
    const container file(path);
    c.add_copy(file, 0);
    c.add_packed("w", to.get_desc(), to.get_data_handle());
    ASSERT_TRUE(safetensors::write(path, c.tensors, c.metadata).ok());
    EXPECT_EQ(container_from_c(path.c_str(), found.data()), 0) << "line of test_container_c.c";
    EXPECT_EQ(found, values);
}

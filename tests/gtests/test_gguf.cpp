// SPDX-License-Identifier: Apache-2.0
// The reader of GGUF files: the contents of valid files, and refusals with a sentence for all others.
#include "common/gguf.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gtests/gguf_writer.hpp"

using namespace gguf_test;

namespace {

std::string numbered(size_t size) {
    std::string s(size, '\0');
    for (size_t i = 0; i < size; i++) s[i] = char(i * 7 + 1);
    return s;
}

writer_t good() {
    writer_t w;
    w.add("general.architecture", "llama");
    w.add("llama.block_count", 4, uint32_t(30));
    w.add("llama.rope.freq_base", 6, 1e5f);
    w.add("a.u8", 0, uint8_t(255));
    w.add("a.i8", 1, int8_t(-128));
    w.add("a.u16", 2, uint16_t(65535));
    w.add("a.i16", 3, int16_t(-32768));
    w.add("a.i32", 5, int32_t(INT32_MIN));
    w.add("a.bool", 7, uint8_t(1));
    w.add("a.u64", 10, uint64_t(UINT64_MAX));
    w.add("a.i64", 11, int64_t(INT64_MIN));
    w.add("a.f64", 12, 0.1);
    w.add_array("tokenizer.ggml.tokens", {"<s>", "", "\xc4\xa0the", std::string("a\0b", 3)});
    w.add_array<float>("tokenizer.ggml.scores", 6, {0.5f, -1.f});
    w.add_array<int32_t>("tokenizer.ggml.token_type", 5, {3, 1, 1, -6});
    w.add_array<uint8_t>("a.bools", 7, {0, 1});
    w.add_array<uint64_t>("a.none", 10, {});
    w.tensors = {{"token_embd.weight", 8, {64, 3}, numbered(3 * 2 * 34)},
            {"output_norm.weight", 0, {5}, numbered(20)}, {"scalar", 0, {}, numbered(4)},
            {"experts", 2, {32, 3, 2}, numbered(6 * 18)}, {"empty", 0, {0, 7}, ""}};
    return w;
}

// The error of opening it; empty if it opens.
std::string refusal(const std::string &bytes) {
    const memory_file_t file(bytes);
    EXPECT_TRUE(file.is_written());
    try {
        const gguf::file_t f(file.path());
        return "";
    } catch (const std::runtime_error &e) {
        EXPECT_NE(std::string(e.what()), "");
        return e.what();
    }
}

TEST(Gguf, SaysWhatIsInAFile) {
    const memory_file_t file(good().bytes());
    ASSERT_TRUE(gguf::is_gguf(file.path()));
    const gguf::file_t f(file.path());
    EXPECT_EQ(f.metadata().size(), 17u);
    EXPECT_EQ(f.get("general.architecture").string(), "llama");
    EXPECT_EQ(f.get("llama.block_count").integer(), 30);
    EXPECT_EQ(f.get("llama.rope.freq_base").number(), 1e5);
    EXPECT_EQ(f.get("a.u8").integer(), 255);
    EXPECT_EQ(f.get("a.i8").integer(), -128);
    EXPECT_EQ(f.get("a.u16").integer(), 65535);
    EXPECT_EQ(f.get("a.i16").integer(), -32768);
    EXPECT_EQ(f.get("a.i32").integer(), INT32_MIN);
    EXPECT_EQ(f.get("a.i64").integer(), INT64_MIN);
    EXPECT_EQ(f.get("a.u64").number(), std::pow(2., 64));
    EXPECT_EQ(f.get("a.u64").unsigned_integer(), UINT64_MAX);
    EXPECT_EQ(f.get("a.u8").unsigned_integer(), 255u);
    EXPECT_EQ(f.get("a.f64").number(), 0.1);
    EXPECT_EQ(f.get("llama.block_count").number(), 30.);
    EXPECT_TRUE(f.get("a.bool").boolean());

    const gguf::value_t &tokens = f.get("tokenizer.ggml.tokens");
    ASSERT_TRUE(tokens.is_array());
    ASSERT_EQ(tokens.size(), 4u);
    EXPECT_EQ(tokens.string(0), "<s>");
    EXPECT_EQ(tokens.string(1), "");
    EXPECT_EQ(tokens.string(2), "\xc4\xa0the");
    EXPECT_EQ(tokens.string(3), std::string_view("a\0b", 3));
    EXPECT_EQ(f.get("tokenizer.ggml.scores").number(1), -1.);
    EXPECT_EQ(f.get("tokenizer.ggml.token_type").integer(3), -6);
    EXPECT_FALSE(f.get("a.bools").boolean(0));
    EXPECT_TRUE(f.get("a.bools").boolean(1));
    EXPECT_EQ(f.get("a.none").size(), 0u);
    EXPECT_EQ(f.find("absent"), nullptr);

    ASSERT_EQ(f.tensors().size(), 5u);
    const gguf::tensor_t &e = *f.find_tensor("experts");
    EXPECT_STREQ(e.element->name, "Q4_0");
    EXPECT_EQ(e.dims, (std::vector<int64_t>{2, 3, 32}));
    EXPECT_EQ(e.size, 6u * 18);
    std::string bytes(e.size - 5, '\0');
    f.read(e, 5, bytes.size(), bytes.data());
    EXPECT_EQ(bytes, numbered(e.size).substr(5));
    EXPECT_EQ(f.find_tensor("scalar")->size, 4u);
    EXPECT_EQ(f.find_tensor("empty")->size, 0u);
    EXPECT_EQ(f.find_tensor("absent"), nullptr);
}

TEST(Gguf, VersionTwoAndAFileWithoutTensors) {
    writer_t w = good();
    w.version = 2;
    EXPECT_EQ(refusal(w.bytes()), "");
    // Only a tokeniser, without padding at its end.
    w.tensors.clear();
    w.alignment = 1;
    EXPECT_EQ(refusal(w.bytes()), "");
}

TEST(Gguf, AnAlignmentOfItsOwn) {
    for (const uint32_t alignment : {1u, 8u, 4096u}) {
        writer_t w = good();
        w.alignment = alignment;
        w.add("general.alignment", 4, alignment);
        const memory_file_t file(w.bytes());
        const gguf::file_t f(file.path());
        const gguf::tensor_t &e = *f.find_tensor("experts");
        EXPECT_EQ(e.offset % alignment, 0u);
        std::string bytes(e.size, '\0');
        f.read(e, 0, e.size, bytes.data());
        EXPECT_EQ(bytes, numbered(e.size));
    }
}

TEST(Gguf, RefusesAWrongUseOfAValue) {
    const memory_file_t file(good().bytes());
    const gguf::file_t f(file.path());
    EXPECT_THROW((void)f.get("absent"), std::runtime_error);
    EXPECT_THROW((void)f.get("general.architecture").integer(), std::runtime_error);
    EXPECT_THROW((void)f.get("general.architecture").number(), std::runtime_error);
    EXPECT_THROW((void)f.get("general.architecture").string(1), std::runtime_error);
    EXPECT_THROW((void)f.get("llama.block_count").string(), std::runtime_error);
    EXPECT_THROW((void)f.get("llama.block_count").boolean(), std::runtime_error);
    EXPECT_THROW((void)f.get("llama.rope.freq_base").integer(), std::runtime_error);
    EXPECT_THROW((void)f.get("a.u64").integer(), std::runtime_error);
    EXPECT_THROW((void)f.get("a.i8").unsigned_integer(), std::runtime_error);
    EXPECT_THROW((void)f.get("a.none").integer(), std::runtime_error);
    EXPECT_THROW((void)f.get("tokenizer.ggml.tokens").string(4), std::runtime_error);
    EXPECT_THROW((void)f.get("tokenizer.ggml.scores").number(2), std::runtime_error);
    const gguf::tensor_t &t = *f.find_tensor("scalar");
    char byte = 0;
    EXPECT_THROW(f.read(t, 4, 1, &byte), std::runtime_error);
    EXPECT_THROW(f.read(t, UINT64_MAX, 2, &byte), std::runtime_error);
}

struct wrong_t {
    const char *what;
    std::string bytes;
    const char *part; // of the sentence
};

std::string with(void (*change)(writer_t &)) {
    writer_t w = good();
    change(w);
    return w.bytes();
}
std::string with_key(const std::string &key) {
    writer_t w = good();
    w.keys.push_back(key);
    return w.bytes();
}
std::string with_tensor(const tensor_t &t) {
    writer_t w = good();
    w.tensors.push_back(t);
    return w.bytes();
}
std::string with_alignment(uint32_t alignment) {
    writer_t w = good();
    w.add("general.alignment", 4, alignment);
    return w.bytes();
}

TEST(Gguf, RefusesWhatIsWrong) {
    const std::string any = text("k"), u32 = raw(uint32_t(4)), array = raw(uint32_t(9));
    const uint64_t large = uint64_t(1) << 62;
    const wrong_t all[] = {
            {"nothing", "", "magic"},
            {"another magic", with([](writer_t &w) { w.magic = "GGML"; }), "does not begin"},
            {"version 1", with([](writer_t &w) { w.version = 1; }), "version 1"},
            {"version 4", with([](writer_t &w) { w.version = 4; }), "version 4"},
            {"big-endian", with([](writer_t &w) { w.version = 3u << 24; }), "big-endian"},
            {"a key too many", with([](writer_t &w) { w.more_keys = 1; }), ""},
            {"many keys", with([](writer_t &w) { w.more_keys = UINT64_MAX / 2; }), "keys; up to"},
            {"many tensors", with([](writer_t &w) { w.more_tensors = UINT64_MAX / 2; }), "tensors; up to"},
            {"a tensor too many", with([](writer_t &w) { w.more_tensors = 1; }), ""},
            {"a key of no bytes", with_key(text("") + u32 + raw(1)), "0 bytes"},
            {"a key that is no UTF-8", with_key(text("\xff") + u32 + raw(1)), "UTF-8"},
            {"a key with a NUL", with_key(text(std::string("a\0b", 3)) + u32 + raw(1)), "NUL"},
            {"a long key", with_key(raw(UINT64_MAX) + "k"), "18446744073709551615 bytes"},
            {"a key twice", with_key(text("a.u8") + u32 + raw(1)), "twice"},
            {"an unknown type", with_key(any + raw(uint32_t(13)) + raw(1)), "type 13"},
            {"a long string", with_key(any + raw(uint32_t(8)) + raw(UINT64_MAX)), "ends within"},
            {"a bool of 2", with_key(any + raw(uint32_t(7)) + raw(uint8_t(2))), "bool 2"},
            {"arrays of arrays", with_key(any + array + array + raw(uint64_t(0))), "arrays"},
            {"an array of no type", with_key(any + array + raw(uint32_t(77)) + raw(uint64_t(0))), "type 77"},
            {"a long array", with_key(any + array + u32 + raw(UINT64_MAX)), "elements"},
            {"an array of many strings", with_key(any + array + raw(uint32_t(8)) + raw(uint64_t(1000))),
                    "elements"},
            {"no alignment", with_alignment(0), "power of two"},
            {"an alignment of 48", with_alignment(48), "power of two"},
            {"an alignment beyond the file", with_alignment(1u << 31), ""},
            {"an alignment as a string", with([](writer_t &w) { w.add("general.alignment", "32"); }), "u32"},
            {"a tensor without a name", with_tensor({"", 0, {1}, "1234"}), "0 bytes"},
            {"a tensor twice", with_tensor({"scalar", 0, {1}, "1234"}), "twice"},
            {"five dims", with_tensor({"t", 0, {1, 1, 1, 1, 1}, "1234"}), "5 dims"},
            {"many dims", with_tensor({"t", 0, std::vector<uint64_t>(1000, 1), "1234"}), "1000 dims"},
            {"a negative dim", with_tensor({"t", 0, {UINT64_MAX}, ""}), "dim -1"},
            {"an unknown type of elements", with_tensor({"t", 4, {1}, ""}), "type 4"},
            {"half a block", with_tensor({"t", 2, {48}, numbered(27)}), "blocks of 32"},
            {"a scalar in blocks", with_tensor({"t", 2, {}, numbered(18)}), "blocks of 32"},
            {"a large product", with_tensor({"t", 0, {large, 4}, ""}), "larger"},
            {"a product that comes back to 0", with_tensor({"t", 0, {large, 4, large, 4}, ""}), "larger"},
            {"a large product with a zero", with_tensor({"t", 0, {0, large, large, 4}, ""}), "larger"},
            {"a size beyond 2^63", with_tensor({"t", 0, {large}, ""}), "larger"},
            {"beyond the end", with_tensor({"t", 0, {1000}, "1234"}), "begins at byte"},
            {"an offset beyond the end", with_tensor({"t", 0, {1}, "1234", 1u << 20}), "begins at byte"},
            {"a large offset", with_tensor({"t", 0, {1}, "1234", UINT64_MAX - 31}), "begins at byte"},
            {"no multiple of the alignment", with_tensor({"t", 0, {1}, "1234", 4}), "multiple of 32"},
            {"an overlap", with_tensor({"t", 0, {8}, numbered(32), 32}), "overlap"},
            {"the same place", with_tensor({"t", 0, {8}, numbered(32), 0}), "overlap"},
    };
    ASSERT_EQ(refusal(good().bytes()), "");
    for (const wrong_t &w : all) {
        const std::string said = refusal(w.bytes);
        EXPECT_NE(said, "") << w.what;
        EXPECT_NE(said.find(w.part), said.npos) << w.what << ": " << said;
    }
}

// Every truncation is noticed, because the file ends with the padding of the last tensor.
TEST(Gguf, RefusesEveryTruncation) {
    writer_t w = good();
    w.tensors.pop_back();
    w.tensors.back().data = numbered(6 * 18);
    const std::string bytes = w.bytes();
    const size_t padding = 32 - 6 * 18 % 32;
    for (size_t n = 0; n < bytes.size() - padding; n++) EXPECT_NE(refusal(bytes.substr(0, n)), "") << n;
    EXPECT_EQ(refusal(bytes.substr(0, bytes.size() - padding)), "");
}

// A file of holes may be larger than memory.
TEST(Gguf, RefusesAHeaderThatIsTooLong) {
    writer_t w;
    w.keys.push_back(text("k") + raw(uint32_t(9)) + raw(uint32_t(0)) + raw(uint64_t(1) << 29));
    const memory_file_t file(w.bytes());
    ASSERT_EQ(ftruncate(file.fd(), off_t(1) << 30), 0);
    try {
        const gguf::file_t f(file.path());
        ADD_FAILURE();
    } catch (const std::runtime_error &e) {
        EXPECT_NE(std::string(e.what()).find("headers of up to 268435456 bytes are read"), std::string::npos)
                << e.what();
    }
}

TEST(Gguf, RefusesAFileThatShrinks) {
    const memory_file_t file(good().bytes());
    const gguf::file_t f(file.path());
    const gguf::tensor_t &t = *f.find_tensor("experts");
    std::string bytes(t.size, '\0');
    f.read(t, 0, t.size, bytes.data());
    const auto refused = [&](void *to) -> std::string {
        try {
            f.read(t, 0, t.size, to);
        } catch (const std::runtime_error &e) {
            return e.what();
        }
        return "";
    };
    // A buffer that is not there.
    void *const nothing = mmap(nullptr, t.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(nothing, MAP_FAILED);
    EXPECT_EQ(refused(nothing), "cannot read " + file.path() + ": Bad address");
    munmap(nothing, t.size);
    const std::string written = "cannot read " + file.path() + ": it was written to meanwhile";
    ASSERT_EQ(ftruncate(file.fd(), off_t(t.offset + 3)), 0);
    EXPECT_EQ(refused(bytes.data()).rfind(written, 0), 0u) << refused(bytes.data());
    ASSERT_EQ(ftruncate(file.fd(), off_t(t.offset + t.size + 1000)), 0);
    EXPECT_EQ(refused(bytes.data()).rfind(written, 0), 0u) << refused(bytes.data());
}

// Files of the kernel have another size than it says.
TEST(Gguf, RefusesAFileThatEndsBeforeItsSize) {
    const std::string path = "/sys/kernel/uevent_seqnum";
    struct stat st;
    if (stat(path.c_str(), &st) != 0 || st.st_size < 64) GTEST_SKIP() << "there is no " << path;
    try {
        const gguf::file_t f(path);
        ADD_FAILURE();
    } catch (const std::runtime_error &e) {
        EXPECT_EQ(std::string(e.what()).rfind("cannot read " + path + ": it ends at byte ", 0), 0u)
                << e.what();
    }
}

// A pipe that nobody writes into is no file without bytes, and is not waited for.
TEST(Gguf, RefusesWhatIsNoFile) {
    const std::string pipe = testing::TempDir() + "mxdnn-gguf-pipe-" + std::to_string(getpid());
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(gguf::is_gguf(pipe));
    for (const std::string &path : {std::string("/"), std::string("/dev/zero"), pipe}) {
        try {
            const gguf::file_t file(path);
            ADD_FAILURE() << path;
        } catch (const std::runtime_error &e) {
            EXPECT_EQ(e.what(), "cannot read " + path + ": it is not a regular file");
        }
    }
    unlink(pipe.c_str());
    EXPECT_THROW(gguf::file_t("/nowhere/x.gguf"), std::runtime_error);
    EXPECT_TRUE(gguf::is_gguf("/nowhere/x.gguf"));
    EXPECT_FALSE(gguf::is_gguf("/nowhere/x"));
    EXPECT_FALSE(gguf::is_gguf("/"));
    for (const char *bytes : {"", "GGU", "GGML"})
        EXPECT_FALSE(gguf::is_gguf(memory_file_t(bytes).path())) << bytes;
    EXPECT_TRUE(gguf::is_gguf(memory_file_t("GGUF").path()));
}

} // namespace

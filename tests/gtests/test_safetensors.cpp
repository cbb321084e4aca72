// SPDX-License-Identifier: Apache-2.0
// The safetensors reader against hostile bytes, and the writer against failing disks.
#include "../../tools/common/safetensors.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include <csignal>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace st = safetensors;
using st::kind_t;

namespace {

std::string length_bytes(uint64_t n) {
    std::string s(8, '\0');
    for (int i = 0; i < 8; i++) s[size_t(i)] = char(n >> 8 * i);
    return s;
}

// A container of this header and `data_size` bytes 0, 1, 2, …
std::string container(const std::string &header, size_t data_size) {
    std::string s = length_bytes(header.size()) + header;
    for (size_t i = 0; i < data_size; i++) s += char(i);
    return s;
}

// Parses from a heap buffer of exactly the right size, so that a sanitizer sees every byte read beyond it.
st::status_t parse(const std::string &bytes, st::index_t &index) {
    std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    exact.shrink_to_fit();
    const st::status_t s = st::parse(exact.data(), exact.size(), index);
    for (auto &t : index.tensors) // the buffer dies here; tests that need data look at its place in `bytes`
        t.data = s.ok() ? reinterpret_cast<const uint8_t *>(bytes.data()) + (t.data - exact.data()) : nullptr;
    return s;
}

struct bad_t {
    const char *what;
    std::string bytes;
    kind_t kind;
    const char *part; // of the message
};

std::string tensor(const char *name, const char *dtype, const char *shape, const char *offsets) {
    return std::string("\"") + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape
           + ",\"data_offsets\":" + offsets + "}";
}

std::string one(const char *dtype, const char *shape, const char *offsets, size_t data = 8) {
    return container("{" + tensor("w", dtype, shape, offsets) + "}", data);
}

std::string two(const char *first, const char *second, size_t data) {
    return container(
            "{" + tensor("a", "U8", "[4]", first) + "," + tensor("b", "U8", "[4]", second) + "}", data);
}

std::vector<bad_t> bad_inputs() {
    const std::string deep(100'000, '[');
    std::string objects;
    for (int i = 0; i < 100'000; i++) objects += "{\"a\":";
    return {
            {"empty", "", kind_t::too_short, "has 0"},
            {"seven bytes", std::string(7, '\0'), kind_t::too_short, "has 7"},
            {"length past end", length_bytes(3) + "{}", kind_t::header_past_end, "only 2 follow"},
            {"huge length", length_bytes(UINT64_MAX) + "{}", kind_t::header_too_long, "18446744073709551615"},
            {"length above the cap", length_bytes(st::max_header_size + 1) + "{}", kind_t::header_too_long,
                    "100000001"},
            {"length at the cap", length_bytes(st::max_header_size) + "{}", kind_t::header_past_end,
                    "100000000"},
            {"no header", length_bytes(0), kind_t::bad_json, "'{'"},
            {"byte order mark", container("\xef\xbb\xbf{}", 0), kind_t::bad_json, "'{'"},
            {"leading space", container(" {}", 0), kind_t::bad_json, "'{'"},
            {"array", container("[]", 0), kind_t::bad_json, "'{'"},
            {"cut header", container("{\"a\":", 0), kind_t::bad_json, "byte"},
            {"second value", container("{}{}", 0), kind_t::bad_json, "byte"},
            {"NUL padding", container(std::string("{}\0", 3), 0), kind_t::bad_json, "byte"},
            {"comment", container("{/**/}", 0), kind_t::bad_json, "byte"},
            {"lone surrogate", container("{\"\\ud800\":1}", 0), kind_t::bad_json, "byte"},
            {"array bomb", container("{\"w\":" + deep, 0), kind_t::wrong_type, "an array, not an object"},
            {"array bomb in shape", container("{\"w\":{\"shape\":" + deep, 0), kind_t::wrong_type,
                    "a dimension of tensor 'w' is an array"},
            {"object bomb", container(objects, 0), kind_t::unknown_field, "'a'"},
            {"not UTF-8", container("{\"\xff\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"overlong UTF-8", container("{\"\xc0\x80\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"surrogate in UTF-8", container("{\"\xed\xa0\x80\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"tensor is a number", container("{\"w\":1}", 0), kind_t::wrong_type,
                    "'w' is a number, not an object"},
            {"tensor is null", container("{\"w\":null}", 0), kind_t::wrong_type, "'w' is null"},
            {"metadata is a string", container("{\"__metadata__\":\"x\"}", 0), kind_t::wrong_type,
                    "__metadata__ is"},
            {"metadata of numbers", container("{\"__metadata__\":{\"k\":1}}", 0), kind_t::wrong_type, "'k'"},
            {"metadata twice", container("{\"__metadata__\":{},\"__metadata__\":{}}", 0),
                    kind_t::duplicate_name, "__metadata__"},
            {"metadata key twice", container("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0),
                    kind_t::duplicate_name, "'k'"},
            {"tensor twice",
                    container("{" + tensor("w", "U8", "[0]", "[0,0]") + ","
                                      + tensor("w", "U8", "[0]", "[0,0]") + "}",
                            0),
                    kind_t::duplicate_name, "'w'"},
            {"tensor twice, escaped",
                    container("{" + tensor("w", "U8", "[0]", "[0,0]") + ","
                                      + tensor("\\u0077", "U8", "[0]", "[0,0]") + "}",
                            0),
                    kind_t::duplicate_name, "'w'"},
            {"field twice", container("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0),
                    kind_t::duplicate_name, "dtype"},
            {"unknown field", container("{\"w\":{\"strides\":[1]}}", 0), kind_t::unknown_field, "'strides'"},
            {"no fields", container("{\"w\":{}}", 0), kind_t::missing_field, "no dtype"},
            {"no shape", container("{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0),
                    kind_t::missing_field, "no shape"},
            {"no offsets", container("{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0), kind_t::missing_field,
                    "no data_offsets"},
            {"dtype unknown", one("F33", "[2]", "[0,8]"), kind_t::unknown_dtype, "'F33'"},
            {"dtype in small letters", one("f32", "[2]", "[0,8]"), kind_t::unknown_dtype, "'f32'"},
            {"dtype is a number", container("{\"w\":{\"dtype\":3}}", 0), kind_t::wrong_type, "not a string"},
            {"shape is a number", one("F32", "2", "[0,8]"), kind_t::wrong_type, "not an array"},
            {"shape negative", one("F32", "[-2]", "[0,8]"), kind_t::bad_shape, "-2"},
            {"shape broken", one("F32", "[2.5]", "[0,8]"), kind_t::bad_shape, "2.5"},
            {"shape with exponent", one("F32", "[2e0]", "[0,8]"), kind_t::bad_shape, "2e0"},
            {"shape above 2^63", one("F32", "[9223372036854775808]", "[0,8]"), kind_t::bad_shape,
                    "9223372036854775808"},
            {"shape above 2^64", one("F32", "[99999999999999999999]", "[0,8]"), kind_t::bad_shape, "integer"},
            {"shape true", one("F32", "[true]", "[0,8]"), kind_t::wrong_type, "boolean"},
            {"shape overflows", one("F32", "[4294967296,4294967296]", "[0,8]"), kind_t::bad_shape,
                    "larger than"},
            {"bits overflow", one("F64", "[2305843009213693952]", "[0,8]"), kind_t::bad_shape, "larger than"},
            {"too many dimensions",
                    one("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]",
                            1),
                    kind_t::bad_shape, "more than 32"},
            {"half a byte", one("F4", "[3]", "[0,1]", 1), kind_t::bad_shape, "whole number of bytes"},
            {"offset negative", one("F32", "[2]", "[-8,0]"), kind_t::bad_offsets, "-8"},
            {"offset broken", one("F32", "[2]", "[0,8.0]"), kind_t::bad_offsets, "8.0"},
            {"one offset", one("F32", "[2]", "[0]"), kind_t::bad_offsets, "1 data_offsets"},
            {"three offsets", one("F32", "[2]", "[0,8,8]"), kind_t::bad_offsets, "more than two"},
            {"offsets reversed", one("F32", "[2]", "[8,0]"), kind_t::bad_offsets, "before its begin"},
            {"offset past the end", one("F32", "[3]", "[0,12]"), kind_t::past_end, "12"},
            {"offset far past the end", one("U8", "[18446744073709551615]", "[0,18446744073709551615]"),
                    kind_t::bad_shape, "18446744073709551615"},
            {"offsets wrap", one("U8", "[8]", "[18446744073709551608,16]"), kind_t::bad_offsets,
                    "before its begin"},
            {"too few bytes", one("F32", "[3]", "[0,8]"), kind_t::wrong_size, "needs 12 bytes"},
            {"too many bytes", one("F32", "[]", "[0,8]"), kind_t::wrong_size, "needs 4 bytes"},
            {"dtype of another size", one("F16", "[2]", "[0,8]"), kind_t::wrong_size, "needs 4 bytes"},
            {"overlap", two("[0,4]", "[2,6]", 6), kind_t::overlap, "'b' begins at byte 2"},
            {"the same bytes", two("[0,4]", "[0,4]", 4), kind_t::overlap, "'b' begins at byte 0"},
            {"gap", two("[0,4]", "[5,9]", 9), kind_t::gap, "'b' begins at byte 5"},
            {"gap at the start", two("[1,5]", "[5,9]", 9), kind_t::gap, "'a' begins at byte 1"},
            {"bytes at the end", two("[0,4]", "[4,8]", 9), kind_t::gap, "1 bytes at the end"},
            {"data without tensors", container("{}", 1), kind_t::gap, "1 bytes at the end"},
    };
}

std::string read_all(const std::string &path) {
    std::ifstream f(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

// A directory of its own that is gone with the test.
struct folder_t {
    std::string path;
    folder_t() {
        std::string name = testing::TempDir() + "/safetensors-XXXXXX";
        path = mkdtemp(&name[0]) ? name : "";
    }
    ~folder_t() {
        for (const auto &n : names()) unlink((path + "/" + n).c_str());
        rmdir(path.c_str());
    }
    std::vector<std::string> names() const {
        std::vector<std::string> v;
        DIR *d = opendir(path.c_str());
        while (const dirent *e = d ? readdir(d) : nullptr)
            if (e->d_name[0] != '.') v.push_back(e->d_name);
        if (d) closedir(d);
        return v;
    }
};

st::out_tensor_t bytes_of(const char *name, const std::string &bytes) {
    return st::from_memory(name, st::dtype_t::u8, {int64_t(bytes.size())}, bytes.data());
}

} // namespace

TEST(safetensors, refuses_by_name) {
    for (const auto &b : bad_inputs()) {
        st::index_t index;
        const st::status_t s = parse(b.bytes, index);
        EXPECT_EQ(s.kind, b.kind) << b.what << ": got " << to_string(s.kind) << ", wanted "
                                  << to_string(b.kind) << ": " << s.message;
        EXPECT_NE(s.message.find(b.part), std::string::npos) << b.what << ": " << s.message;
        EXPECT_TRUE(index.tensors.empty()) << b.what;
    }
}

TEST(safetensors, reads_what_is_well_formed) {
    const std::string header = "{\"__metadata__\":{\"k\":\"v\"}," + tensor("second", "F32", "[1,1]", "[2,6]")
                               + "," + tensor("f\\u00e9", "F4", "[2,2]", "[0,2]") + ","
                               + tensor("empty", "I64", "[3,0]", "[2,2]") + ","
                               + tensor("scalar", "BF16", "[]", "[6,8]") + "}   ";
    const std::string bytes = container(header, 8);
    st::index_t index;
    const st::status_t s = parse(bytes, index);
    ASSERT_TRUE(s.ok()) << s.message;
    ASSERT_EQ(index.tensors.size(), 4u);
    EXPECT_EQ(index.metadata.at("k"), "v");
    const st::tensor_t *t = index.find("second");
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(t->dtype, st::dtype_t::f32);
    EXPECT_EQ(t->shape, (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(t->size(), 4u);
    EXPECT_EQ(t->data[0], 2);
    ASSERT_NE(index.find("f\xc3\xa9"), nullptr);
    EXPECT_EQ(index.find("empty")->size(), 0u);
    EXPECT_EQ(index.find("scalar")->size(), 2u);
    EXPECT_EQ(index.find("missing"), nullptr);
    st::index_t nothing;
    EXPECT_TRUE(parse(container("{}", 0), nothing).ok());
}

TEST(safetensors, every_truncation_is_refused) {
    const std::string whole = two("[0,4]", "[4,8]", 8);
    st::index_t index;
    ASSERT_TRUE(parse(whole, index).ok());
    for (size_t n = 0; n < whole.size(); n++) {
        st::index_t none;
        EXPECT_FALSE(parse(whole.substr(0, n), none).ok()) << n;
    }
}

TEST(safetensors, mutations_never_escape_the_buffer) {
    const std::string whole =
            container("{\"__metadata__\":{\"a\":\"b\"}," + tensor("a", "F32", "[1,2]", "[0,8]") + ","
                              + tensor("b", "U8", "[4]", "[8,12]") + "}",
                    12);
    const unsigned seed = std::random_device()();
    RecordProperty("seed", std::to_string(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const std::string alphabet = "{}[]\":,0123456789-eE.\\u\xff tf";
    for (int i = 0; i < 20'000; i++) {
        std::string m = whole;
        for (unsigned k = 1 + rng() % 4; k; k--) {
            const size_t at = rng() % m.size();
            if (rng() % 3 == 0)
                m.erase(at, 1 + rng() % 4);
            else
                m[at] = rng() % 2 ? alphabet[rng() % alphabet.size()] : char(rng());
            if (m.empty()) break;
        }
        st::index_t index;
        const st::status_t s = parse(m, index);
        if (!s.ok()) {
            ASSERT_FALSE(s.message.empty());
            continue;
        }
        const auto *begin = reinterpret_cast<const uint8_t *>(m.data()), *end = begin + m.size();
        for (const auto &t : index.tensors)
            ASSERT_TRUE(t.data >= begin && t.data <= end && t.size() <= uint64_t(end - t.data));
    }
}

TEST(safetensors, names_are_shown_harmless) {
    EXPECT_EQ(st::shown("a.b"), "'a.b'");
    EXPECT_EQ(st::shown("\x1b[31m"), "'\\x1b[31m'");
    EXPECT_LT(st::shown(std::string(100'000, 'x')).size(), 200u);
}

TEST(safetensors, writes_packed_tensors_aligned_and_first) {
    const folder_t folder;
    const std::string path = folder.path + "/w.safetensors";
    const std::string packed(100, 'p'), desc(37, 'd'), other_packed(64, 'q');
    const std::vector<float> bias = {1, 2, 3};
    const uint16_t half[3] = {1, 2, 3};
    std::vector<st::out_tensor_t> tensors = {bytes_of("l.weight.mxdnn_desc", desc),
            st::from_memory("half", st::dtype_t::bf16, {3}, half),
            st::from_memory("l.bias", st::dtype_t::f32, {3, 1}, bias.data()),
            bytes_of("l.weight.mxdnn_packed", packed), bytes_of("k.weight.mxdnn_packed", other_packed)};
    uint64_t last = 0, of = 0;
    st::status_t s = st::write(path, tensors, {{"l.weight.mxdnn_checksum", "0123456789abcdef"}},
            [&](uint64_t done, uint64_t total) {
                EXPECT_GT(done, last);
                last = done;
                of = total;
            });
    ASSERT_TRUE(s.ok()) << s.message;
    EXPECT_EQ(last, of);
    st::file_t file;
    s = st::file_t::open(path, file);
    ASSERT_TRUE(s.ok()) << s.message;
    const st::tensor_t *t = nullptr;
    for (const char *name : {"l.weight.mxdnn_packed", "k.weight.mxdnn_packed"}) {
        ASSERT_TRUE(file.get(name, t).ok());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data) % 64, 0u) << name;
        EXPECT_EQ(t->size() % 64, 0u) << name;
    }
    ASSERT_TRUE(file.get("l.weight.mxdnn_packed", t).ok());
    EXPECT_EQ(t->shape, (std::vector<int64_t>{128}));
    EXPECT_EQ(std::string(t->data, t->data + 100), packed);
    EXPECT_EQ(std::string(t->data + 100, t->data + 128), std::string(28, '\0'));
    EXPECT_EQ(file.index().tensors[2].name, "l.bias");
    ASSERT_TRUE(file.get("l.bias", t).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data) % 4, 0u);
    const auto *values = reinterpret_cast<const float *>(t->data);
    EXPECT_EQ(std::vector<float>(values, values + 3), bias);
    ASSERT_TRUE(file.get("half", t).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data) % 2, 0u);
    EXPECT_EQ(file.index().metadata.at("l.weight.mxdnn_checksum"), "0123456789abcdef");
    s = file.get("nobody", t);
    EXPECT_EQ(s.kind, kind_t::not_found);
    EXPECT_NE(s.message.find("'nobody'"), std::string::npos);
    EXPECT_EQ(folder.names().size(), 1u);
    // Moving keeps the mapping.
    st::file_t moved = std::move(file);
    ASSERT_TRUE(moved.get("half", t).ok());
    EXPECT_EQ(t->data[0], 1);
}

TEST(safetensors, refuses_to_write_nonsense) {
    const folder_t folder;
    const std::string path = folder.path + "/w.safetensors", b(4, 'b');
    const auto kind = [&](const std::vector<st::out_tensor_t> &t,
                              const std::map<std::string, std::string> &m = {}) {
        const st::status_t s = st::write(path, t, m);
        EXPECT_TRUE(folder.names().empty()) << s.message;
        return s.kind;
    };
    EXPECT_EQ(kind({bytes_of("a", b), bytes_of("a", b)}), kind_t::duplicate_name);
    EXPECT_EQ(kind({bytes_of("__metadata__", b)}), kind_t::duplicate_name);
    EXPECT_EQ(kind({bytes_of("\xff", b)}), kind_t::bad_utf8);
    EXPECT_EQ(kind({bytes_of("a", b)}, {{"k", "\xff"}}), kind_t::bad_utf8);
    EXPECT_EQ(kind({st::from_memory("a", st::dtype_t::f4, {3}, b.data())}), kind_t::bad_shape);
    EXPECT_EQ(kind({st::from_memory("a", st::dtype_t::u8, {-1}, b.data())}), kind_t::bad_shape);
    EXPECT_EQ(kind({st::from_memory("a.mxdnn_packed", st::dtype_t::f32, {1}, b.data())}), kind_t::bad_shape);
    const auto gives = [&](uint64_t n) {
        return st::out_tensor_t{
                "a", st::dtype_t::u8, {4}, [&b, n](const st::sink_t &to) { return to(b.data(), n); }};
    };
    EXPECT_EQ(kind({gives(3)}), kind_t::wrong_size);
    EXPECT_EQ(kind({gives(5)}), kind_t::wrong_size);
    EXPECT_EQ(st::write(folder.path + "/no/such", {bytes_of("a", b)}, {}).kind, kind_t::io);
}

TEST(safetensors, replaces_files_only) {
    const folder_t folder;
    const std::string pipe = folder.path + "/pipe", link = folder.path + "/link";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    ASSERT_EQ(symlink(pipe.c_str(), link.c_str()), 0);
    for (const std::string &path : {folder.path, pipe, link}) {
        const st::status_t s = st::write(path, {bytes_of("a", "abcd")}, {});
        EXPECT_EQ(s.kind, kind_t::io) << path;
        EXPECT_NE(s.message.find("no regular file"), std::string::npos) << s.message;
    }
    struct stat there;
    ASSERT_EQ(stat(pipe.c_str(), &there), 0);
    EXPECT_TRUE(S_ISFIFO(there.st_mode));
}

TEST(safetensors, a_checksum_may_follow_its_data) {
    const folder_t folder;
    const std::string path = folder.path + "/w.safetensors", b(4, 'b');
    std::map<std::string, std::string> metadata = {{"sum", "0000"}};
    const auto with = [&](const char *value) {
        return std::vector<st::out_tensor_t>{{"a", st::dtype_t::u8, {4}, [&, value](const st::sink_t &to) {
                                                  metadata["sum"] = value;
                                                  return to(b.data(), 4);
                                              }}};
    };
    ASSERT_TRUE(st::write(path, with("beef"), metadata).ok());
    st::file_t file;
    ASSERT_TRUE(st::file_t::open(path, file).ok());
    EXPECT_EQ(file.index().metadata.at("sum"), "beef");
    const std::string before = read_all(path);
    EXPECT_EQ(st::write(path, with(std::string(200, 'x').c_str()), metadata).kind, kind_t::wrong_size);
    EXPECT_EQ(read_all(path), before);
}

TEST(safetensors, a_failed_write_leaves_the_old_file_whole) {
    const folder_t folder;
    const std::string path = folder.path + "/w.safetensors";
    ASSERT_TRUE(st::write(path, {bytes_of("a", "old bytes")}, {}).ok());
    ASSERT_EQ(chmod(path.c_str(), 0640), 0);
    const std::string before = read_all(path);

    // A tensor that cannot be produced.
    const std::string big(1 << 20, 'x');
    const st::status_t given = st::write(path,
            {bytes_of("b", big), {"c", st::dtype_t::u8, {1},
                                         [](const st::sink_t &) {
                                             return st::status_t{kind_t::io, "no c"};
                                         }}},
            {});
    EXPECT_EQ(given.message, "no c");
    EXPECT_EQ(read_all(path), before);

    // A disk that is full after 64 KiB.
    rlimit old_limit, limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    limit = old_limit;
    limit.rlim_cur = 64 << 10;
    auto *old_handler = signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const st::status_t full = st::write(path, {bytes_of("b", big)}, {});
    setrlimit(RLIMIT_FSIZE, &old_limit);
    signal(SIGXFSZ, old_handler);
    EXPECT_EQ(full.kind, kind_t::io);
    EXPECT_NE(full.message.find("cannot write"), std::string::npos) << full.message;
    EXPECT_EQ(read_all(path), before);
    EXPECT_EQ(folder.names().size(), 1u) << "a temporary file was left behind";

    // One that works replaces it and keeps its mode.
    ASSERT_TRUE(st::write(path, {bytes_of("b", big)}, {}).ok());
    EXPECT_NE(read_all(path), before);
    struct stat s;
    ASSERT_EQ(stat(path.c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0640u);
}

TEST(safetensors, open_says_what_is_wrong_with_the_path) {
    const folder_t folder;
    st::file_t file;
    st::status_t s = st::file_t::open(folder.path + "/absent", file);
    EXPECT_EQ(s.kind, kind_t::io);
    EXPECT_NE(s.message.find("absent"), std::string::npos);
    EXPECT_EQ(st::file_t::open(folder.path, file).kind, kind_t::io);
    const std::string path = folder.path + "/empty";
    std::ofstream(path).close();
    s = st::file_t::open(path, file);
    EXPECT_EQ(s.kind, kind_t::too_short);
    EXPECT_NE(s.message.find(path), std::string::npos);
}

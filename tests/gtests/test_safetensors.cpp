// SPDX-License-Identifier: Apache-2.0
// The parser of safetensors headers against hostile bytes, and the writer against failing disks and other
// writers.
#include "../../tools/common/replaced_file.hpp"
#include "../../tools/common/safetensors.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/container/safetensors.hpp"
#include "fuzz/guard_pages.hpp"
#include "mxdnn/mxdnn_container.hpp"

namespace st = safetensors;
using st::kind_t;

namespace {

std::string length_bytes(uint64_t n) {
    std::string s(8, '\0');
    for (int i = 0; i < 8; i++) s[size_t(i)] = char(n >> 8 * i);
    return s;
}

// A container of this header and `data_size` bytes 0, 1, 2, …
std::string container_of(const std::string &header, size_t data_size) {
    std::string s = length_bytes(header.size()) + header;
    for (size_t i = 0; i < data_size; i++) s += char(i);
    return s;
}

// Parses from the end of a page that a page follows which faults, so that a byte read beyond it ends the
// test.
st::status_t parse(const std::string &bytes, st::index_t &index) {
    static fuzz::guard_pages_t pages(1);
    pages.clear();
    uint8_t *const exact = pages.place(bytes.size(), true);
    if (!exact) throw std::length_error("more bytes than the pages have");
    std::copy(bytes.begin(), bytes.end(), exact);
    return st::parse(exact, bytes.size(), index);
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
    return container_of("{" + tensor("w", dtype, shape, offsets) + "}", data);
}

std::string two(const char *first, const char *second, size_t data) {
    return container_of(
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
            {"byte order mark", container_of("\xef\xbb\xbf{}", 0), kind_t::bad_json, "'{'"},
            {"leading space", container_of(" {}", 0), kind_t::bad_json, "'{'"},
            {"array", container_of("[]", 0), kind_t::bad_json, "'{'"},
            {"cut header", container_of("{\"a\":", 0), kind_t::bad_json, "byte"},
            {"second value", container_of("{}{}", 0), kind_t::bad_json, "byte"},
            {"NUL padding", container_of(std::string("{}\0", 3), 0), kind_t::bad_json, "byte"},
            {"comment", container_of("{/**/}", 0), kind_t::bad_json, "byte"},
            {"lone surrogate", container_of("{\"\\ud800\":1}", 0), kind_t::bad_json, "byte"},
            {"array bomb", container_of("{\"w\":" + deep, 0), kind_t::wrong_type, "an array, not an object"},
            {"array bomb in shape", container_of("{\"w\":{\"shape\":" + deep, 0), kind_t::wrong_type,
                    "a dimension of tensor 'w' is an array"},
            {"object bomb", container_of(objects, 0), kind_t::unknown_field, "'a'"},
            {"not UTF-8", container_of("{\"\xff\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"overlong UTF-8", container_of("{\"\xc0\x80\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"surrogate in UTF-8", container_of("{\"\xed\xa0\x80\":1}", 0), kind_t::bad_utf8, "byte 2"},
            {"tensor is a number", container_of("{\"w\":1}", 0), kind_t::wrong_type,
                    "'w' is a number, not an object"},
            {"tensor is null", container_of("{\"w\":null}", 0), kind_t::wrong_type, "'w' is null"},
            {"metadata is a string", container_of("{\"__metadata__\":\"x\"}", 0), kind_t::wrong_type,
                    "__metadata__ is"},
            {"metadata of numbers", container_of("{\"__metadata__\":{\"k\":1}}", 0), kind_t::wrong_type,
                    "'k'"},
            {"metadata twice", container_of("{\"__metadata__\":{},\"__metadata__\":{}}", 0),
                    kind_t::duplicate_name, "__metadata__"},
            {"metadata key twice", container_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0),
                    kind_t::duplicate_name, "'k'"},
            {"tensor twice",
                    container_of("{" + tensor("w", "U8", "[0]", "[0,0]") + ","
                                         + tensor("w", "U8", "[0]", "[0,0]") + "}",
                            0),
                    kind_t::duplicate_name, "'w'"},
            {"tensor twice, escaped",
                    container_of("{" + tensor("w", "U8", "[0]", "[0,0]") + ","
                                         + tensor("\\u0077", "U8", "[0]", "[0,0]") + "}",
                            0),
                    kind_t::duplicate_name, "'w'"},
            {"field twice", container_of("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0),
                    kind_t::duplicate_name, "dtype"},
            {"unknown field", container_of("{\"w\":{\"strides\":[1]}}", 0), kind_t::unknown_field,
                    "'strides'"},
            {"no fields", container_of("{\"w\":{}}", 0), kind_t::missing_field, "no dtype"},
            {"no shape", container_of("{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0),
                    kind_t::missing_field, "no shape"},
            {"no offsets", container_of("{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0), kind_t::missing_field,
                    "no data_offsets"},
            {"dtype unknown", one("F33", "[2]", "[0,8]"), kind_t::unknown_dtype, "'F33'"},
            {"dtype in small letters", one("f32", "[2]", "[0,8]"), kind_t::unknown_dtype, "'f32'"},
            {"dtype is a number", container_of("{\"w\":{\"dtype\":3}}", 0), kind_t::wrong_type,
                    "not a string"},
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
            {"shape minus zero", one("F32", "[-0]", "[0,8]"), kind_t::bad_shape, "-0"},
            {"shape of digits", one("F32", ("[" + std::string(1000, '7') + "]").c_str(), "[0,8]"),
                    kind_t::bad_shape, "777…"},
            {"shape with a leading zero", one("F32", "[02]", "[0,8]"), kind_t::bad_json, "byte"},
            {"shape with a sign", one("F32", "[+2]", "[0,8]"), kind_t::bad_json, "byte"},
            {"shape not a number", one("F32", "[NaN]", "[0,8]"), kind_t::bad_json, "byte"},
            {"shape overflows beside a zero", one("F32", "[4294967296,4294967296,0]", "[0,0]", 0),
                    kind_t::bad_shape, "larger than"},
            {"comma at the end", one("F32", "[2,]", "[0,8]"), kind_t::bad_json, "byte"},
            {"offset minus zero", one("F32", "[2]", "[-0,8]"), kind_t::bad_offsets, "-0"},
            {"offset with exponent", one("F32", "[2]", "[0,1e3]"), kind_t::bad_offsets, "1e3"},
            {"offset of 2^64", one("F32", "[2]", "[0,18446744073709551616]"), kind_t::bad_offsets,
                    "2^64 - 1"},
            {"name of no bytes", container_of("{" + tensor("", "U8", "[0]", "[0,0]") + "}", 0),
                    kind_t::bad_name, "has 0 bytes"},
            {"name of 30,000 bytes",
                    container_of(
                            "{" + tensor(std::string(30'000, 'n').c_str(), "U8", "[0]", "[0,0]") + "}", 0),
                    kind_t::bad_name, "has 30000 bytes; 1 to 4096 are read"},
            {"name with a NUL", container_of("{" + tensor("a\\u0000b", "U8", "[0]", "[0,0]") + "}", 0),
                    kind_t::bad_json, "byte"},
            {"name with a line break", container_of("{" + tensor("a\nb", "U8", "[0]", "[0,0]") + "}", 0),
                    kind_t::bad_json, "byte"},
            {"half a pair", container_of("{\"\\ud83d\\u0041\":1}", 0), kind_t::bad_json, "byte"},
            {"unknown escape", container_of("{\"\\x41\":1}", 0), kind_t::bad_json, "byte"},
            {"half a word", container_of("{\"w\":tru", 0), kind_t::bad_json, "byte"},
            {"string without end", container_of("{\"w", 0), kind_t::bad_json, "byte"},
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
            {"data without tensors", container_of("{}", 1), kind_t::gap, "1 bytes at the end"},
    };
}

std::string read_all(const std::string &path) {
    std::ifstream f(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

// A directory that is removed at the end of the test.
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
            if (std::string(e->d_name) != "." && std::string(e->d_name) != "..") v.push_back(e->d_name);
        if (d) closedir(d);
        return v;
    }
};

// Whether the folder's file system has files without a name.
bool has_nameless(const folder_t &folder) {
    const int fd = open(folder.path.c_str(), O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

st::out_tensor_t bytes_of(const char *name, const std::string &bytes) {
    return st::from_memory(name, "U8", {int64_t(bytes.size())}, bytes.data());
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
                               + tensor("empty", "I64", "[3,0]", "[2,2]") + " ,\t"
                               + tensor("scalar", "BF16", "[]", "[6,8]") + "}   ";
    const std::string bytes = container_of(header, 8);
    st::index_t index;
    const st::status_t s = parse(bytes, index);
    ASSERT_TRUE(s.ok()) << s.message;
    ASSERT_EQ(index.tensors.size(), 4u);
    EXPECT_EQ(index.metadata.at("k"), "v");
    const st::tensor_t *t = index.find("second");
    ASSERT_NE(t, nullptr);
    EXPECT_STREQ(t->dtype->name, "F32");
    EXPECT_EQ(t->shape, (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(t->size(), 4u);
    EXPECT_EQ(t->begin, 2u);
    ASSERT_NE(index.find("f\xc3\xa9"), nullptr);
    EXPECT_EQ(index.find("empty")->size(), 0u);
    EXPECT_EQ(index.find("scalar")->size(), 2u);
    EXPECT_EQ(index.find("missing"), nullptr);
    st::index_t nothing;
    EXPECT_TRUE(parse(container_of("{}", 0), nothing).ok());
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

TEST(safetensors, a_header_that_ends_too_early_is_no_json) {
    const std::string whole = "{\"__metadata__\":{\"k\\ud83d\\ude00\":\"\\u00e9\\n\" , \"l\":\"\"},\"w\":"
                              "{\"dtype\":\"F32\",\"shape\":[ 0 , 2 ],\"data_offsets\":[0,0]} } ";
    st::index_t index;
    ASSERT_TRUE(parse(container_of(whole, 0), index).ok());
    EXPECT_EQ(index.metadata.at("k\xf0\x9f\x98\x80"), "\xc3\xa9\n");
    for (size_t n = 1; n < whole.size() - 1; n++) {
        st::index_t none;
        EXPECT_EQ(parse(container_of(whole.substr(0, n), 0), none).kind, kind_t::bad_json) << n;
    }
}

TEST(safetensors, mutations_never_escape_the_buffer) {
    const std::string whole =
            container_of("{\"__metadata__\":{\"a\":\"b\"}," + tensor("a", "F32", "[1,2]", "[0,8]") + ","
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
        for (const auto &t : index.tensors)
            ASSERT_TRUE(t.end >= t.begin && t.end <= m.size() - index.data_offset);
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
    const std::string packed(128, 'p'), desc(37, 'd'), other_packed(64, 'q');
    const std::vector<float> bias = {1, 2, 3};
    const uint16_t half[3] = {1, 2, 3};
    std::vector<st::out_tensor_t> tensors = {bytes_of("l.weight.mxdnn_desc", desc),
            st::from_memory("half", "BF16", {3}, half), st::from_memory("l.bias", "F32", {3, 1}, bias.data()),
            bytes_of("l.weight.mxdnn_packed", packed), bytes_of("k.weight.mxdnn_packed", other_packed)};
    uint64_t last = 0, of = 0;
    st::status_t s = st::write(path, tensors, {{"l.weight.mxdnn_checksum", "0123456789abcdef"}},
            [&](uint64_t done, uint64_t total) -> st::status_t {
                EXPECT_GT(done, last);
                last = done;
                of = total;
                return {};
            });
    ASSERT_TRUE(s.ok()) << s.message;
    EXPECT_EQ(last, of);
    const mxdnn::container file(path);
    ASSERT_EQ(file.size(), 4u); // k.weight's descriptor is not there, l.weight's is part of it
    const auto data = [&](const char *name) {
        return static_cast<const uint8_t *>(file.get_data(file.find(name)));
    };
    for (const char *name : {"l.weight", "k.weight"}) {
        const auto e = file.get_entry(file.find(name));
        EXPECT_TRUE(e.is_packed);
        EXPECT_EQ(e.offset % 64, 0u) << name;
        EXPECT_EQ(e.size % 64, 0u) << name;
    }
    const uint8_t *l = data("l.weight");
    EXPECT_EQ(file.get_entry(file.find("l.weight")).dims, (std::vector<int64_t>{128}));
    EXPECT_EQ(std::string(l, l + 128), packed);
    EXPECT_EQ(file.get_entry(2).name, "l.bias");
    EXPECT_EQ(file.get_entry(2).offset % 4, 0u);
    const auto *values = reinterpret_cast<const float *>(data("l.bias"));
    EXPECT_EQ(std::vector<float>(values, values + 3), bias);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data("half")) % 2, 0u);
    EXPECT_EQ(file.get_metadata().at("l.weight.mxdnn_checksum"), "0123456789abcdef");
    EXPECT_EQ(folder.names().size(), 1u);
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
    EXPECT_EQ(kind({bytes_of("", b)}), kind_t::bad_name);
    EXPECT_EQ(kind({bytes_of(std::string(4097, 'n').c_str(), b)}), kind_t::bad_name);
    EXPECT_EQ(kind({bytes_of("a", b)}, {{std::string("k\0", 2), "v"}}), kind_t::bad_utf8);
    EXPECT_EQ(kind({st::from_memory("a", "F33", {4}, b.data())}), kind_t::unknown_dtype);
    EXPECT_EQ(kind({st::from_memory("a", "U8", {INT64_MAX}, b.data()),
                      st::from_memory("b", "U8", {INT64_MAX}, b.data())}),
            kind_t::bad_shape);
    EXPECT_EQ(kind({bytes_of("a", b)}, {{"k", "\xff"}}), kind_t::bad_utf8);
    EXPECT_EQ(kind({st::from_memory("a", "F4", {3}, b.data())}), kind_t::bad_shape);
    EXPECT_EQ(kind({st::from_memory("a", "U8", {-1}, b.data())}), kind_t::bad_shape);
    EXPECT_EQ(kind({st::from_memory("a.mxdnn_packed", "F32", {1}, b.data())}), kind_t::bad_shape);
    EXPECT_EQ(kind({bytes_of("a.mxdnn_packed", b)}), kind_t::bad_shape);
    const auto gives = [&](uint64_t n) {
        return st::out_tensor_t{
                "a", "U8", {4}, 1, [&b, n](size_t, const st::sink_t &to) { return to(b.data(), n); }};
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
        return std::vector<st::out_tensor_t>{{"a", "U8", {4}, 1, [&, value](size_t, const st::sink_t &to) {
                                                  metadata["sum"] = value;
                                                  return to(b.data(), 4);
                                              }}};
    };
    ASSERT_TRUE(st::write(path, with("beef"), metadata).ok());
    EXPECT_EQ(mxdnn::container(path).get_metadata().at("sum"), "beef");
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
            {bytes_of("b", big), {"c", "U8", {1}, 1,
                                         [](size_t, const st::sink_t &) {
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
    const st::status_t part = [&] { // without room that was reserved
        st::replaced_file_t f(folder.path + "/other");
        return f.open().ok() ? f.write_at(0, big.data(), big.size()) : st::status_t();
    }();
    setrlimit(RLIMIT_FSIZE, &old_limit);
    signal(SIGXFSZ, old_handler);
    EXPECT_EQ(full.kind, kind_t::io);
    EXPECT_NE(full.message.find("cannot write"), std::string::npos) << full.message;
    EXPECT_NE(part.message.find("cannot write"), std::string::npos) << part.message;
    EXPECT_EQ(read_all(path), before);
    EXPECT_EQ(folder.names().size(), 1u) << "a temporary file was left behind";

    // One that works replaces it and keeps its mode.
    ASSERT_TRUE(st::write(path, {bytes_of("b", big)}, {}).ok());
    EXPECT_NE(read_all(path), before);
    struct stat s;
    ASSERT_EQ(stat(path.c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0640u);
}

TEST(safetensors, what_ends_the_writing_leaves_nothing) {
    const folder_t folder;
    const std::string path = folder.path + "/w.safetensors";
    const st::status_t s =
            st::write(path, {bytes_of("a", "abcd")}, {}, [](uint64_t, uint64_t) -> st::status_t {
                return {kind_t::io, "enough"};
            });
    EXPECT_EQ(s.message, "enough");
    EXPECT_TRUE(folder.names().empty());
}

// The next write removes files that a killed process left. Files of a running process stay.
TEST(replaced_file, cleans_up_after_the_dead_and_spares_the_living) {
    for (const bool nameless : {true, false}) {
        const folder_t folder;
        const std::string path = folder.path + "/w", stale = st::replaced_file_t::temporary_name(path);
        const auto replace = [&] {
            st::replaced_file_t f(path, nameless);
            if (const st::status_t s = f.open(); !s.ok()) return s;
            if (const st::status_t s = f.write_at(0, "new", 3); !s.ok()) return s;
            return f.commit();
        };
        const auto names = [&] { return folder.names(); };
        std::ofstream(path) << "old";
        std::ofstream(stale) << "half a fi";
        EXPECT_TRUE(replace().ok());
        EXPECT_EQ(read_all(path), "new");
        EXPECT_EQ(names(), std::vector<std::string>{"w"}) << nameless;

        // One that another process has locked.
        std::ofstream(path) << "old";
        const int fd = open(stale.c_str(), O_CREAT | O_RDWR, 0600);
        ASSERT_EQ(flock(fd, LOCK_EX), 0);
        st::status_t s = replace();
        EXPECT_NE(s.message.find("another process is writing"), std::string::npos) << s.message;
        EXPECT_EQ(read_all(path), "old");
        EXPECT_EQ(names().size(), 2u);
        close(fd);

        // Anything else with such a name is not removed.
        unlink(stale.c_str());
        ASSERT_EQ(symlink(path.c_str(), stale.c_str()), 0);
        s = replace();
        EXPECT_NE(s.message.find("cannot remove what is left of writing"), std::string::npos) << s.message;
        EXPECT_EQ(read_all(path), "old");
        unlink(stale.c_str());

        // Not committed: nothing is left.
        {
            st::replaced_file_t f(path, nameless);
            ASSERT_TRUE(f.open().ok());
            EXPECT_EQ(names().size(), nameless && has_nameless(folder) ? 1u : 2u);
        }
        EXPECT_EQ(names(), std::vector<std::string>{"w"});
    }
}

// Where the file system has files without a name, a new file needs no temporary name, which could be taken.
TEST(replaced_file, a_new_file_appears_complete) {
    const folder_t folder;
    const std::string path = folder.path + "/new", other = st::replaced_file_t::temporary_name(path);
    if (!has_nameless(folder)) GTEST_SKIP() << "no files without a name here";
    ASSERT_EQ(mkdir(other.c_str(), 0700), 0);
    EXPECT_TRUE(st::write(path, {bytes_of("a", "abcd")}, {}).ok());
    EXPECT_EQ(mxdnn::container(path).size(), 1u);
    rmdir(other.c_str());
    // A name so long that no suffix fits.
    const std::string longest = folder.path + "/" + std::string(255, 'n');
    for (int i = 0; i < 2; i++) EXPECT_TRUE(st::write(longest, {bytes_of("a", "abcd")}, {}).ok());
    EXPECT_EQ(folder.names().size(), 2u);
}

TEST(replaced_file, a_folder_that_is_gone_is_said) {
    const folder_t folder;
    const std::string gone = folder.path + "/gone";
    ASSERT_EQ(mkdir(gone.c_str(), 0700), 0);
    st::replaced_file_t f(gone + "/w");
    ASSERT_TRUE(f.open().ok());
    if (rmdir(gone.c_str()) != 0) GTEST_SKIP() << "no files without a name here";
    const st::status_t s = f.commit();
    EXPECT_NE(s.message.find("gone/w: No such file"), std::string::npos) << s.message;
}

TEST(replaced_file, a_link_is_replaced_and_not_followed) {
    const folder_t folder;
    const std::string path = folder.path + "/w", link = folder.path + "/link";
    std::ofstream(path) << "old";
    ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
    EXPECT_TRUE(st::write(link, {bytes_of("a", "abcd")}, {}).ok());
    EXPECT_EQ(read_all(path), "old");
    struct stat s;
    ASSERT_EQ(lstat(link.c_str(), &s), 0);
    EXPECT_TRUE(S_ISREG(s.st_mode));
}

// With a linear search for every name this takes minutes, and the time limit ends the test.
TEST(safetensors, many_tensors_take_time_in_proportion) {
    const folder_t folder;
    constexpr int count = 250'000;
    std::vector<st::out_tensor_t> tensors;
    tensors.reserve(count);
    for (int i = 0; i < count; i++) tensors.push_back(bytes_of(("tensor." + std::to_string(i)).c_str(), ""));
    ASSERT_TRUE(st::write(folder.path + "/w", tensors, {}).ok());
    const mxdnn::container file(folder.path + "/w");
    EXPECT_EQ(file.size(), size_t(count));
    EXPECT_EQ(file.get_entry(file.find("tensor.249999")).size, 0u);
}

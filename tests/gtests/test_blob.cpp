// SPDX-License-Identifier: Apache-2.0
// Blobs of legal descriptors: round trips, canonical bytes, golden bytes, and the documented form.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "common/error.hpp"
#include "gtests/blob_bytes.hpp"
#include "gtests/golden/golden.hpp"

using namespace mxdnn::impl;

namespace {

void expect_round_trip(const memory_desc_t &md) {
    const bytes_t blob = blob_of(md);
    ASSERT_GE(blob.size(), min_blob_bytes) << last_error();
    ASSERT_LE(blob.size(), max_blob_bytes);
    memory_desc_t back;
    ASSERT_EQ(read_blob(back, blob.data(), blob.size()), mxdnn_success) << to_string(md) << last_error();
    EXPECT_TRUE(equal(md, back)) << to_string(md) << " became " << to_string(back);
    EXPECT_EQ(to_string(md), to_string(back));
    EXPECT_EQ(size_of(md), size_of(back));
    EXPECT_EQ(md.packed.size, back.packed.size);
    EXPECT_EQ(md.packed.stride, back.packed.stride);
    EXPECT_EQ(md.packed.align, back.packed.align);
    EXPECT_EQ(md.annotation.original_dt, back.annotation.original_dt);
    EXPECT_EQ(md.annotation.recipe, back.annotation.recipe);
    EXPECT_EQ(md.annotation.unknown_fields, back.annotation.unknown_fields);
    EXPECT_EQ(blob_of(back), blob);
    memory_desc_t unsized;
    ASSERT_EQ(read_blob(unsized, blob.data()), mxdnn_success) << last_error();
    EXPECT_EQ(blob_of(unsized), blob);
}

TEST(Blob, ThereAndBack) {
    const std::vector<memory_desc_t> all = sample_descs();
    ASSERT_GE(all.size(), 15u);
    for (const memory_desc_t &md : all) expect_round_trip(md);
}

TEST(Blob, DifferentDescriptorsHaveDifferentBlobs) {
    std::set<bytes_t> seen;
    for (const memory_desc_t &md : sample_descs())
        EXPECT_TRUE(seen.insert(blob_of(md)).second) << to_string(md);
}

TEST(Blob, GoldenBlobs) {
    int kinds[3] = {}, later = 0;
    for (const golden::line_t &line : golden::read_lines("blobs.txt")) {
        SCOPED_TRACE(line.text);
        const bytes_t blob = golden::from_hex(line.str("blob"));
        memory_desc_t expected, md;
        ASSERT_EQ(golden::make_desc(line, expected), mxdnn_success) << last_error();
        ASSERT_EQ(read_blob(md, blob.data(), blob.size()), mxdnn_success) << last_error();
        EXPECT_TRUE(equal(md, expected)) << to_string(md);
        EXPECT_EQ(blob_of(md), blob);
        if (line.has("later")) {
            later++;
        } else {
            EXPECT_EQ(blob_of(expected), blob);
            EXPECT_EQ(md.annotation.original_dt, expected.annotation.original_dt);
            EXPECT_EQ(md.annotation.recipe, expected.annotation.recipe);
        }
        kinds[is_packed(md) ? 2 : is_strided(md) ? 0 : 1]++;
    }
    for (int count : kinds) EXPECT_GT(count, 0);
    EXPECT_GT(later, 0);
}

TEST(Blob, TwoCalls) {
    for (const memory_desc_t &md : sample_descs()) {
        size_t needed = 0;
        ASSERT_EQ(write_blob(md, nullptr, &needed), mxdnn_success);
        for (size_t capacity : {size_t(0), size_t(1), needed - 1}) {
            bytes_t buffer(needed, 0xa5);
            size_t size = capacity;
            EXPECT_EQ(write_blob(md, buffer.data(), &size), mxdnn_invalid_arguments);
            EXPECT_EQ(buffer, bytes_t(needed, 0xa5));
            EXPECT_EQ(size, capacity);
            const std::string text = last_error();
            EXPECT_NE(text.find(std::to_string(capacity) + " bytes"), std::string::npos) << text;
            EXPECT_NE(text.find(std::to_string(needed)), std::string::npos) << text;
        }
        bytes_t buffer(needed + 100, 0xa5);
        size_t size = buffer.size();
        EXPECT_EQ(write_blob(md, buffer.data(), &size), mxdnn_success);
        EXPECT_EQ(size, needed);
        for (size_t i = needed; i < buffer.size(); i++) EXPECT_EQ(buffer[i], 0xa5);
    }
    EXPECT_EQ(write_blob(sample_descs()[0], nullptr, nullptr), mxdnn_invalid_arguments);
}

TEST(Blob, WhatCannotBeWritten) {
    memory_desc_t md;
    size_t size = 0;
    EXPECT_EQ(write_blob(md, nullptr, &size), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("no tensor"), std::string::npos);
    const dim_t dims[] = {33, 17};
    ASSERT_EQ(init_with_tag(md, 2, dims, mxdnn_f4_e2m1, mxdnn_format_tag_any), mxdnn_success);
    EXPECT_EQ(write_blob(md, nullptr, &size), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("any"), std::string::npos);

    ASSERT_EQ(init_with_tag(md, 2, dims, mxdnn_f32, mxdnn_ab), mxdnn_success);
    md.annotation.recipe.assign(max_recipe_bytes, 'r');
    EXPECT_EQ(write_blob(md, nullptr, &size), mxdnn_success);
    EXPECT_LE(size, max_blob_bytes);
    expect_round_trip(md);
    md.annotation.recipe += 'r';
    EXPECT_EQ(write_blob(md, nullptr, &size), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("1024"), std::string::npos);
}

TEST(Blob, Recipes) {
    const auto check = [](const std::string &text) { return check_recipe(text.data(), text.size()); };
    for (const char *text : {"", "a", "two\nlines\t{\"json\": 1}", "\xc3\xb6\xc3\x9f", "\xe2\x82\xac",
                 "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"})
        EXPECT_EQ(check(text), nullptr) << text;
    for (const char *text : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe2\x82",
                 "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                 "ok\xe2(\xa1", "\xc3("})
        EXPECT_NE(check(text), nullptr);
    EXPECT_NE(check(std::string("a\0b", 3)), nullptr);
    EXPECT_EQ(check(std::string(max_recipe_bytes, 'x')), nullptr);
    EXPECT_NE(check(std::string(max_recipe_bytes + 1, 'x')), nullptr);
}

TEST(Blob, AnnotationIsNoPartOfTheChecksumOfPackedBytes) {
    for (memory_desc_t md : sample_descs()) {
        if (!is_packed(md)) continue;
        std::vector<uint8_t> data(size_t(md.packed.size), 0x5a);
        const uint64_t sum = packed_checksum(md, data.data());
        md.annotation.original_dt = mxdnn_f32;
        md.annotation.recipe = "another";
        EXPECT_EQ(packed_checksum(md, data.data()), sum);
        data[data.size() / 2] ^= 1;
        EXPECT_NE(packed_checksum(md, data.data()), sum);
    }
}

// Equal bytes under another descriptor have another checksum.
TEST(Blob, ChecksumKnowsTheDescriptor) {
    const std::vector<uint8_t> zeros(1 << 16, 0);
    std::set<uint64_t> sums;
    int count = 0;
    for (const memory_desc_t &md : sample_descs()) {
        if (!is_packed(md) || !md.annotation.recipe.empty()) continue;
        ASSERT_LE(md.packed.size, int64_t(zeros.size()));
        sums.insert(packed_checksum(md, zeros.data()));
        count++;
    }
    EXPECT_EQ(int(sums.size()), count);
}

TEST(Xxh64, PublishedValuesAndAddresses) {
    EXPECT_EQ(xxh64("", 0, 0), 0xef46db3751d8e999u);
    EXPECT_EQ(xxh64("a", 1, 0), 0xd24ec4f1a98c6e5bu);
    EXPECT_EQ(xxh64("abc", 3, 0), 0x44bc2cf5ad770999u);
    const char text[] = "Nobody inspects the spammish repetition";
    EXPECT_EQ(xxh64(text, 39, 0), 0xfbcea83c8a378bf1u);
    std::vector<char> shifted(64);
    for (int at = 0; at < 8; at++) {
        std::memcpy(shifted.data() + at, text, 39);
        EXPECT_EQ(xxh64(shifted.data() + at, 39, 0), 0xfbcea83c8a378bf1u);
    }
    // In two parts, cut anywhere, and byte by byte.
    std::vector<uint8_t> numbers(101);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = uint8_t(37 * i);
    const uint64_t whole = xxh64(numbers.data(), numbers.size(), 5);
    xxh64_t bytes(5);
    for (size_t cut = 0; cut < numbers.size(); cut++) {
        xxh64_t parts(5);
        parts.add(numbers.data(), cut);
        parts.add(numbers.data() + cut, numbers.size() - cut);
        EXPECT_EQ(parts.value(), whole) << cut;
        EXPECT_EQ(bytes.value(), xxh64(numbers.data(), cut, 5)) << cut;
        bytes.add(&numbers[cut], 1);
    }
    // Of every length, one changed bit changes the value.
    std::vector<uint8_t> data(100, 7);
    for (size_t n = 1; n <= data.size(); n++) {
        const uint64_t sum = xxh64(data.data(), n, 3);
        data[n - 1] ^= 0x10;
        EXPECT_NE(xxh64(data.data(), n, 3), sum);
        data[n - 1] ^= 0x10;
        EXPECT_NE(xxh64(data.data(), n, 4), sum);
    }
}

// ---- doc/reference/blob.md says what the table says ----

std::string range_of(const field_t &f) {
    std::ostringstream out;
    if (f.lowest == f.highest && f.bytes == 8)
        out << "this value";
    else if (f.lowest == f.highest)
        out << f.lowest;
    else
        out << f.lowest << " … " << f.highest;
    return out.str();
}

std::string table_of(const char *title, section_t section) {
    std::ostringstream out;
    const desc_kind_t kind = section == section_t::strided   ? desc_kind_t::strided
                             : section == section_t::grouped ? desc_kind_t::grouped
                                                             : desc_kind_t::packed;
    out << "**" << title << "**\n\n| offset | bytes | field | range | meaning |\n|---|---|---|---|---|\n";
    for (const field_t &f : blob_fields) {
        const bool own = f.section == section
                         || (section != section_t::every && section != section_t::envelope
                                 && f.section == section_t::every && f.list);
        if (!own || (section == section_t::every && f.list)) continue;
        const int64_t start = offset_of(f, kind, 0), per_dim = offset_of(f, kind, 1) - start;
        out << "| " << start;
        if (per_dim) out << " + " << per_dim << " · ndims";
        out << " | " << f.bytes << (f.list ? " · ndims" : "") << " | `" << f.name << "` | " << range_of(f)
            << " | " << f.meaning << " |\n";
    }
    return out.str() + "\n";
}

std::string read_doc() {
    std::ifstream in(MXDNN_TEST_DATA "/../../doc/reference/blob.md");
    EXPECT_TRUE(in.good());
    return std::string((std::istreambuf_iterator<char>(in)), {});
}

TEST(BlobDoc, HasTheTableOfFields) {
    const std::string expected =
            table_of("Envelope, the same in every format version", section_t::envelope)
            + table_of("Every descriptor", section_t::every) + table_of("Strided", section_t::strided)
            + table_of("Grouped", section_t::grouped) + table_of("Packed", section_t::packed);
    const std::string doc = read_doc();
    const std::string begin = "<!-- fields -->\n\n", end = "<!-- end of fields -->";
    const size_t from = doc.find(begin), to = doc.find(end);
    ASSERT_NE(from, std::string::npos);
    ASSERT_NE(to, std::string::npos);
    const std::string found = doc.substr(from + begin.size(), to - from - begin.size());
    EXPECT_EQ(found, expected) << "doc/reference/blob.md is stale; between its marks it should read\n\n"
                               << expected;
}

// The example's bytes: on each line an offset, two spaces, pairs of hex digits, and three spaces before
// words.
TEST(BlobDoc, ExampleIsTheBlob) {
    const std::string doc = read_doc();
    const size_t from = doc.find("```\n 0  89");
    ASSERT_NE(from, std::string::npos);
    std::istringstream lines(doc.substr(from + 4, doc.find("```", from + 4) - from - 4));
    std::string hex;
    for (std::string line; std::getline(lines, line);) {
        ASSERT_EQ(std::stoul(line), hex.size() / 2);
        for (char c : line.substr(4, line.find("   ", 4) - 4))
            if (c != ' ') hex += c;
    }
    const dim_t dims[] = {33, 17};
    memory_desc_t md;
    ASSERT_EQ(init_packed(md, 2, dims, mxdnn_f4_e2m1, mx_quant, target_family_t::cpu_x64), mxdnn_success);
    EXPECT_EQ(golden::from_hex(hex), blob_of(md));
    EXPECT_NE(doc.find("`" + to_string(md) + "`"), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Untrusted blobs: truncated, altered, random, newer. Each gives a status and a sentence. Nothing outside its
// bytes is read, and nothing is allocated before all checks have passed.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "common/error.hpp"
#include "common/packed_desc.hpp"
#include "gtests/blob_bytes.hpp"
#include "gtests/count_allocations.hpp"
#include "gtests/golden/golden.hpp"

using namespace mxdnn::impl;

namespace {

// Bytes followed by a page that faults, so that a read beyond the end ends the test.
class guarded_t {
public:
    guarded_t() {
        page_ = size_t(sysconf(_SC_PAGESIZE));
        bytes_ = round_up(max_blob_bytes, page_);
        base_ = static_cast<uint8_t *>(
                mmap(nullptr, bytes_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED || mprotect(base_ + bytes_, page_, PROT_NONE) != 0) std::abort();
    }
    guarded_t(const guarded_t &) = delete;
    guarded_t &operator=(const guarded_t &) = delete;
    ~guarded_t() { munmap(base_, bytes_ + page_); }
    const uint8_t *put(const uint8_t *data, size_t size) {
        uint8_t *at = base_ + bytes_ - size;
        if (size) std::memcpy(at, data, size);
        return at;
    }

private:
    size_t page_, bytes_;
    uint8_t *base_;
};

guarded_t &guarded() {
    static guarded_t g;
    return g;
}

// A descriptor from a blob equals one from the constructors, with the same sizes.
void expect_safe(const memory_desc_t &md) {
    memory_desc_t made;
    status_t status = mxdnn_success;
    if (is_strided(md)) status = init_strided(made, md.ndims, md.dims, md.dt, md.strides);
    if (is_packed(md) && layout_of(md))
        status = init_packed_as(made, md.ndims, md.dims, md.dt, md.packed.quant, *layout_of(md));
    if (md.kind == mxdnn_format_kind_grouped)
        status = init_grouped(made, md.ndims, md.dims, md.dt, md.grouped.variable_dim, md.grouped.group_count,
                md.grouped.offsets_dt);
    EXPECT_EQ(status, mxdnn_success) << to_string(md);
    EXPECT_TRUE(equal(md, made)) << to_string(md);
    EXPECT_EQ(size_of(md), size_of(made)) << to_string(md);
    EXPECT_EQ(md.packed.stride, made.packed.stride) << to_string(md);
}

// Checks that hold for any bytes. Returns their verdict.
blob_class_t examine(const uint8_t *data, size_t size, std::string *sentence = nullptr) {
    const uint8_t *at = guarded().put(data, size);
    memory_desc_t md;
    md.ndims = 77;
    blob_fault_t fault;
    const long before = count_of_allocations();
    const blob_class_t kind = classify_blob(at, size, &md, &fault);
    const long made = count_of_allocations() - before;
    EXPECT_EQ(fault.kind, kind);
    if (sentence) *sentence = fault.text;
    if (kind != blob_class_t::ok) {
        EXPECT_EQ(made, 0) << fault.text;
        EXPECT_EQ(md.ndims, 77);
        EXPECT_NE(std::string(fault.text), "");
    } else {
        EXPECT_EQ(blob_of(md), bytes_t(data, data + size)) << to_string(md);
        EXPECT_TRUE(size_of(md) >= 0 || size_of(md) == runtime_dim);
        EXPECT_LE(size_of(md), max_bytes);
        expect_safe(md);
    }
    return kind;
}
blob_class_t examine(const bytes_t &blob, std::string *sentence = nullptr) {
    return examine(blob.data(), blob.size(), sentence);
}

status_t status_of(const bytes_t &blob) {
    memory_desc_t md;
    return read_blob(md, blob.data(), blob.size());
}

TEST(BlobHostile, NullAndEmpty) {
    memory_desc_t md;
    EXPECT_EQ(read_blob(md, nullptr, 100), mxdnn_invalid_arguments);
    EXPECT_EQ(read_blob(md, nullptr), mxdnn_invalid_arguments);
    EXPECT_EQ(classify_blob(nullptr, 0, nullptr), blob_class_t::corrupt);
    EXPECT_EQ(examine(bytes_t()), blob_class_t::corrupt);
    EXPECT_EQ(examine(bytes_t(max_blob_bytes, 0)), blob_class_t::corrupt);
    EXPECT_EQ(examine(bytes_t(max_blob_bytes, 0xff)), blob_class_t::corrupt);
}

TEST(BlobHostile, EveryTruncation) {
    for (const memory_desc_t &md : sample_descs()) {
        const bytes_t blob = blob_of(md);
        memory_desc_t plain = md;
        plain.annotation = annotation_t();
        const size_t fields_end = blob_of(plain).size() - checksum_bytes;
        for (size_t n = 0; n < blob.size(); n++) {
            bytes_t cut(blob.begin(), blob.begin() + int64_t(n));
            ASSERT_EQ(examine(cut), blob_class_t::corrupt) << n;
            if (n > 0) {
                ASSERT_EQ(status_of(cut), mxdnn_corrupt_blob);
            }
            // With a correct length and checksum a truncated field is named. A cut between
            // optional fields gives another legal blob.
            seal(cut);
            std::string text;
            const blob_class_t kind = examine(cut, &text);
            if (n < fields_end + checksum_bytes) {
                ASSERT_EQ(kind, blob_class_t::corrupt) << n;
                ASSERT_NE(text.find(n < min_blob_bytes ? "the shortest has" : "are left of the blob"),
                        std::string::npos)
                        << text;
            }
        }
        for (size_t more : {1, 8, 100}) {
            bytes_t longer = blob;
            longer.resize(blob.size() + more);
            ASSERT_EQ(examine(longer), blob_class_t::corrupt);
        }
    }
    // More bytes than any blob can have are refused, whatever they contain.
    bytes_t huge(size_t(1) << 20);
    const bytes_t blob = blob_of(sample_descs()[0]);
    std::copy(blob.begin(), blob.end(), huge.begin());
    memory_desc_t md;
    EXPECT_EQ(read_blob(md, huge.data(), huge.size()), mxdnn_corrupt_blob);
}

TEST(BlobHostile, EverySingleByteChange) {
    for (const memory_desc_t &md : sample_descs()) {
        const bytes_t blob = blob_of(md);
        bytes_t changed = blob;
        for (size_t at = 0; at < blob.size(); at++)
            for (int flip = 1; flip < 256; flip++) {
                changed[at] = uint8_t(blob[at] ^ flip);
                ASSERT_EQ(examine(changed), blob_class_t::corrupt) << "byte " << at << " ^ " << flip;
                changed[at] = blob[at];
            }
    }
}

// The same with a correct checksum, so that every byte of every field reaches its own check.
TEST(BlobHostile, EverySingleByteChangeSealed) {
    int64_t accepted = 0, refused = 0;
    for (const memory_desc_t &md : sample_descs()) {
        const bytes_t blob = blob_of(md);
        for (size_t at = 0; at < blob.size() - checksum_bytes; at++)
            for (int flip = 1; flip < 256; flip++) {
                bytes_t changed = blob;
                changed[at] = uint8_t(blob[at] ^ flip);
                seal(changed);
                (examine(changed) == blob_class_t::ok ? accepted : refused)++;
            }
    }
    // Neighbouring values of dims, strides and types may be legal. All other changes are refused.
    EXPECT_GT(refused, 3 * accepted);
}

// Every committed blob: each truncation, and each value of each byte with a correct checksum.
TEST(BlobHostile, EveryByteOfEveryGoldenBlob) {
    int64_t accepted = 0, refused = 0;
    for (const golden::line_t &line : golden::read_lines("blobs.txt")) {
        const bytes_t blob = golden::from_hex(line.str("blob"));
        ASSERT_EQ(examine(blob), blob_class_t::ok);
        for (size_t n = 0; n < blob.size(); n++)
            ASSERT_EQ(examine(blob.data(), n), blob_class_t::corrupt) << n;
        bytes_t changed = blob;
        for (size_t at = 0; at < blob.size() - checksum_bytes; at++) {
            for (int flip = 1; flip < 256; flip++) {
                changed[at] = uint8_t(blob[at] ^ flip);
                seal(changed);
                (examine(changed) == blob_class_t::ok ? accepted : refused)++;
            }
            changed = blob;
        }
        ASSERT_FALSE(HasFailure()) << line.text;
    }
    EXPECT_GT(refused, 3 * accepted);
}

TEST(BlobHostile, RandomMutations) {
    const unsigned seed = std::random_device()();
    std::mt19937 rng(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::printf("seed %u\n", seed);
    std::vector<bytes_t> blobs;
    for (const memory_desc_t &md : sample_descs()) blobs.push_back(blob_of(md));
    int64_t by_class[5] = {};
    for (int round = 0; round < 200000; round++) {
        bytes_t b = blobs[rng() % blobs.size()];
        for (unsigned changes = 1 + rng() % 4; changes > 0 && !b.empty(); changes--) {
            const size_t at = rng() % b.size();
            switch (rng() % 8) {
            case 0: b[at] = uint8_t(rng()); break;
            case 1: b[at] ^= uint8_t(1u << rng() % 8); break;
            case 2: b[at] = rng() % 2 ? 0 : 0xff; break;
            case 3: b.erase(b.begin() + int64_t(at)); break;
            case 4: b.insert(b.begin() + int64_t(at), 1 + rng() % 9, uint8_t(rng())); break;
            case 5: b.resize(at); break;
            case 6: { // a piece of another blob
                const bytes_t &other = blobs[rng() % blobs.size()];
                const size_t from = rng() % other.size(), n = std::min(other.size() - from, b.size() - at);
                std::copy_n(other.begin() + int64_t(from), rng() % (n + 1), b.begin() + int64_t(at));
                break;
            }
            case 7:
                insert_option(b, rng() % 5 ? rng() % 4 : rng(), std::string(rng() % 20, char(rng())));
                break;
            }
            if (b.size() < min_blob_bytes) b.resize(min_blob_bytes);
        }
        if (b.size() > max_blob_bytes) b.resize(max_blob_bytes);
        if (round % 2) seal(b); // half of them reach the checks behind the checksum
        by_class[int(examine(b))]++;
        if (HasFailure()) FAIL() << "round " << round;
    }
    for (int64_t count : by_class) EXPECT_GT(count, 0);
}

// lowest - 1, lowest, highest and highest + 1 of every field of every kind, straight from the table.
TEST(BlobHostile, EveryFieldAtItsBounds) {
    int refused_by_name = 0;
    for (const memory_desc_t &md : sample_descs()) {
        const bytes_t blob = blob_of(md);
        const desc_kind_t kind = desc_kind_t(load_le(blob.data() + envelope_bytes, 2));
        for (const field_t &f : blob_fields) {
            const int64_t first = offset_of(f, kind, md.ndims);
            if (first < 0) continue;
            for (int i = 0; i < (f.list ? md.ndims : 1); i++) {
                const uint64_t top = f.bytes == 8 ? UINT64_MAX : (uint64_t(1) << 8 * f.bytes) - 1;
                const int64_t at = first + i * f.bytes;
                const auto with = [&](uint64_t value) {
                    bytes_t changed = blob;
                    seal(changed);
                    store_le(changed.data() + at, f.bytes, value);
                    // Not seal(), which would repair a changed length.
                    store_le(changed.data() + changed.size() - 8, 8,
                            xxh64(changed.data(), changed.size() - 8, 0));
                    return changed;
                };
                std::string text;
                for (uint64_t value : {f.lowest, f.highest, load_le(blob.data() + at, f.bytes)})
                    examine(with(value), &text); // the other fields may forbid it, so any verdict is right
                const auto expect_refused = [&](uint64_t value) {
                    if (f.list && value == uint64_t(runtime_dim)) return;
                    EXPECT_EQ(examine(with(value), &text), blob_class_t::corrupt) << f.name << " " << value;
                    EXPECT_NE(text.find(f.name), std::string::npos) << text;
                    EXPECT_NE(text.find(std::to_string(value)), std::string::npos) << text;
                    EXPECT_NE(text.find(std::to_string(f.lowest)), std::string::npos) << text;
                    EXPECT_NE(text.find(std::to_string(f.highest)), std::string::npos) << text;
                    refused_by_name++;
                };
                if (f.lowest > 0) expect_refused(f.lowest - 1);
                if (f.highest < top) {
                    expect_refused(f.highest + 1);
                    expect_refused(top);
                }
            }
        }
    }
    EXPECT_GT(refused_by_name, 200);
}

// ---- What is wrong between fields, and what is newer ----

bytes_t packed_blob(const char *field = nullptr, uint64_t value = 0) {
    const dim_t dims[] = {33, 17};
    memory_desc_t md;
    EXPECT_EQ(init_packed(md, 2, dims, mxdnn_f4_e2m1, mx_quant, target_family_t::cpu_x64), mxdnn_success);
    bytes_t blob = blob_of(md);
    for (const field_t &f : blob_fields)
        if (field && std::string(f.name) == field)
            store_le(blob.data() + offset_of(f, desc_kind_t::packed, 2), f.bytes, value);
    seal(blob);
    return blob;
}

TEST(BlobHostile, FieldsThatContradictOneAnother) {
    const struct {
        const char *field;
        uint64_t value;
        blob_class_t kind;
        status_t status;
        const char *words;
    } rows[] = {
            {"magic", 5, blob_class_t::corrupt, mxdnn_corrupt_blob,
                    "magic is 5 (0x5); in every blob of mxdnn it is 724356535487589769"},
            {"format_version", 0, blob_class_t::corrupt, mxdnn_corrupt_blob,
                    "format_version is 0 (0x0); it is 1 to 65535"},
            {"element_type", 7, blob_class_t::unknown_layout, mxdnn_incompatible_version,
                    "element_type is 7"},
            {"element_type", mxdnn_f8_e4m3, blob_class_t::corrupt, mxdnn_corrupt_blob, "n16_b4"},
            {"element_type", mxdnn_f32, blob_class_t::unknown_layout, mxdnn_incompatible_version, "f32"},
            {"target_family", 9, blob_class_t::unknown_target, mxdnn_incompatible_target,
                    "target_family is 9"},
            {"layout_id", 999, blob_class_t::unknown_layout, mxdnn_incompatible_version, "layout_id is 999"},
            {"layout_version", 2, blob_class_t::unknown_layout, mxdnn_incompatible_version,
                    "layout_version is 2"},
            {"scale_type", 0x7777, blob_class_t::unknown_layout, mxdnn_incompatible_version,
                    "scale_type is 30583"},
            {"scale_type", mxdnn_s32, blob_class_t::unknown_layout, mxdnn_incompatible_version, "s32"},
            {"zero_point_type", 0x7777, blob_class_t::unknown_layout, mxdnn_incompatible_version,
                    "zero_point_type is 30583"},
            {"zero_point_type", mxdnn_u8, blob_class_t::corrupt, mxdnn_corrupt_blob, "zero_point_type is 6"},
            {"zero_point_kind", 1, blob_class_t::corrupt, mxdnn_corrupt_blob, "zero_point_kind of 1"},
            {"global_scale", 1, blob_class_t::unknown_layout, mxdnn_incompatible_version, "global scale"},
            {"block_axis", 1, blob_class_t::corrupt, mxdnn_corrupt_blob, "block_axis is 1"},
            {"element_packing", 1, blob_class_t::corrupt, mxdnn_corrupt_blob, "element_packing is 1"},
            {"scale_swizzle", 2, blob_class_t::corrupt, mxdnn_corrupt_blob, "scale_swizzle is 2"},
            {"alignment", 128, blob_class_t::corrupt, mxdnn_corrupt_blob, "must be 64"},
            {"block", 64, blob_class_t::unknown_layout, mxdnn_incompatible_version, "blocks of 32"},
            {"packed_size", 1, blob_class_t::corrupt, mxdnn_corrupt_blob, "must be 1152"},
            {"stride", 2304, blob_class_t::corrupt, mxdnn_corrupt_blob, "must be 1152"},
            {"dims", 34, blob_class_t::ok, mxdnn_success, ""}, // padded like 33
            {"dims", 65, blob_class_t::corrupt, mxdnn_corrupt_blob, "stride is 1152"},
            {"dims", uint64_t(runtime_dim), blob_class_t::corrupt, mxdnn_corrupt_blob, "runtime"},
            {"dims", uint64_t(max_dim), blob_class_t::corrupt, mxdnn_corrupt_blob, ""},
    };
    for (const auto &row : rows) {
        const bytes_t blob = packed_blob(row.field, row.value);
        std::string text;
        EXPECT_EQ(examine(blob, &text), row.kind) << row.field << " " << row.value << ": " << text;
        EXPECT_EQ(status_of(blob), row.status) << row.field << " " << row.value;
        EXPECT_NE(text.find(row.words), std::string::npos) << text;
        if (row.status != mxdnn_success) {
            EXPECT_NE(std::string(last_error()).find(text.substr(0, 60)), std::string::npos) << last_error();
        }
    }
}

TEST(BlobHostile, PackedWeightsOfOneDimension) {
    bytes_t blob = packed_blob("ndims", 1);
    for (const field_t &f : blob_fields)
        if (f.list == &blob_fields_t::dims) {
            const int64_t at = offset_of(f, desc_kind_t::packed, 1);
            blob.erase(blob.begin() + at, blob.begin() + at + f.bytes);
        }
    seal(blob);
    std::string text;
    EXPECT_EQ(examine(blob, &text), blob_class_t::corrupt);
    EXPECT_EQ(text, "ndims is 1; packed weights have 2 to 12");
}

TEST(BlobHostile, NewerFormats) {
    std::string text;
    bytes_t blob = packed_blob();
    store_le(blob.data() + 8, 2, 4);  // format_version
    store_le(blob.data() + 10, 2, 3); // oldest_reader
    seal(blob);
    EXPECT_EQ(examine(blob, &text), blob_class_t::newer_format);
    EXPECT_NE(text.find("format version 3"), std::string::npos) << text;
    EXPECT_NE(text.find("reads version 2"), std::string::npos) << text;
    EXPECT_EQ(status_of(blob), mxdnn_incompatible_version);
    // A newer format may have any bytes after the envelope. The verdict is "newer", not "corrupt".
    bytes_t strange(200, 0xee);
    std::copy_n(blob.begin(), envelope_bytes, strange.begin());
    seal(strange);
    EXPECT_EQ(examine(strange), blob_class_t::newer_format);
    // A newer version that readers of this one may read.
    store_le(blob.data() + 10, 2, 1);
    seal(blob);
    EXPECT_EQ(examine(blob), blob_class_t::ok);
    store_le(blob.data() + 8, 2, 1);
    store_le(blob.data() + 10, 2, 2);
    seal(blob);
    EXPECT_EQ(examine(blob, &text), blob_class_t::corrupt);
    EXPECT_NE(text.find("oldest_reader is 2, beyond the format_version of 1"), std::string::npos) << text;
    store_le(blob.data() + 10, 2, 3); // that is damage, not news
    seal(blob);
    EXPECT_EQ(examine(blob, &text), blob_class_t::corrupt);
    EXPECT_NE(text.find("oldest_reader is 3, beyond the format_version of 1"), std::string::npos) << text;
    store_le(blob.data() + 10, 2, 2);
    // A readable version that is higher than the fields of the blob need.
    store_le(blob.data() + 8, 2, 2);
    seal(blob);
    EXPECT_EQ(examine(blob, &text), blob_class_t::corrupt);
    EXPECT_NE(text.find("must be 1"), std::string::npos) << text;
}

TEST(BlobHostile, UnknownFields) {
    bytes_t blob = packed_blob();
    insert_option(blob, 0x1234, "kept");
    insert_option(blob, 0x7fff, std::string("\0\1", 2));
    memory_desc_t md;
    ASSERT_EQ(read_blob(md, blob.data(), blob.size()), mxdnn_success) << last_error();
    EXPECT_EQ(blob_of(md), blob);
    // An annotation that is set later takes its place among the kept fields.
    md.annotation.recipe = "new";
    md.annotation.original_dt = mxdnn_bf16;
    const bytes_t annotated = blob_of(md);
    bytes_t expected = packed_blob();
    insert_option(expected, option_original_type, std::string("\2\0", 2));
    insert_option(expected, option_recipe, "new");
    insert_option(expected, 0x1234, "kept");
    insert_option(expected, 0x7fff, std::string("\0\1", 2));
    EXPECT_EQ(annotated, expected);
    EXPECT_EQ(examine(annotated), blob_class_t::ok);

    std::string text;
    for (uint32_t tag : {0x8000u, 0x8001u, 0xffffu}) {
        bytes_t refused = packed_blob();
        insert_option(refused, tag, "x");
        EXPECT_EQ(examine(refused, &text), blob_class_t::newer_format);
        EXPECT_NE(text.find("required field"), std::string::npos) << text;
        EXPECT_EQ(status_of(refused), mxdnn_incompatible_version);
    }
}

// An original type that is unknown here does not make the weights unreadable. A known type replaces it.
TEST(BlobHostile, UnknownOriginalTypeIsKept) {
    bytes_t blob = packed_blob();
    insert_option(blob, option_original_type, "\x77\x77");
    insert_option(blob, option_recipe, "r");
    memory_desc_t md;
    ASSERT_EQ(read_blob(md, blob.data(), blob.size()), mxdnn_success) << last_error();
    EXPECT_EQ(md.annotation.original_dt, mxdnn_data_type_undef);
    EXPECT_EQ(md.annotation.recipe, "r");
    EXPECT_EQ(blob_of(md), blob);
    md.annotation.original_dt = mxdnn_bf16;
    bytes_t expected = packed_blob();
    insert_option(expected, option_original_type, std::string("\2\0", 2));
    insert_option(expected, option_recipe, "r");
    EXPECT_EQ(blob_of(md), expected);
}

TEST(BlobHostile, OptionalFieldsOutOfForm) {
    const auto expect_corrupt = [](bytes_t blob, const char *words) {
        std::string text;
        EXPECT_EQ(examine(blob, &text), blob_class_t::corrupt) << text;
        EXPECT_NE(text.find(words), std::string::npos) << text;
    };
    bytes_t blob = packed_blob();
    insert_option(blob, 5, "a");
    insert_option(blob, 5, "b");
    expect_corrupt(blob, "0x0005 comes after 0x0005");
    blob = packed_blob();
    insert_option(blob, option_recipe, "a");
    insert_option(blob, option_original_type, std::string("\2\0", 2));
    expect_corrupt(blob, "tags ascend");
    blob = packed_blob();
    insert_option(blob, 0, "");
    expect_corrupt(blob, "tags ascend");
    blob = packed_blob();
    insert_option(blob, option_original_type, "abc");
    expect_corrupt(blob, "original_type has 3 bytes");
    blob = packed_blob();
    insert_option(blob, option_recipe, "");
    expect_corrupt(blob, "recipe is empty");
    blob = packed_blob();
    insert_option(blob, option_recipe, "\xff");
    expect_corrupt(blob, "UTF-8");
    blob = packed_blob();
    insert_option(blob, option_recipe, std::string(max_recipe_bytes + 1, 'x'));
    expect_corrupt(blob, "1024");
    blob = packed_blob();
    insert_option(blob, 3, "abcd");
    store_le(blob.data() + blob.size() - checksum_bytes - 6, 2, 5); // the length of the field
    seal(blob);
    expect_corrupt(blob, "optional field 0x0003");
}

// Kept fields and a recipe that exceed the limit together are refused when written, not truncated.
TEST(BlobHostile, FullBlobRefusesARecipe) {
    bytes_t blob = packed_blob();
    insert_option(blob, 9, std::string(max_blob_bytes - blob.size() - option_header_bytes, 'z'));
    ASSERT_EQ(blob.size(), max_blob_bytes);
    memory_desc_t md;
    ASSERT_EQ(read_blob(md, blob.data(), blob.size()), mxdnn_success) << last_error();
    EXPECT_EQ(blob_of(md), blob);
    md.annotation.recipe = "one more";
    size_t size = 0;
    EXPECT_EQ(write_blob(md, nullptr, &size), mxdnn_invalid_arguments);
    EXPECT_NE(std::string(last_error()).find("4096"), std::string::npos) << last_error();
}

TEST(BlobHostile, UnsizedFormTrustsNoLength) {
    const bytes_t blob = packed_blob();
    bytes_t padded(max_blob_bytes, 0xcc);
    std::copy(blob.begin(), blob.end(), padded.begin());
    memory_desc_t md;
    EXPECT_EQ(read_blob(md, padded.data()), mxdnn_success) << last_error();
    for (uint64_t length : {uint64_t(0), uint64_t(min_blob_bytes - 1), uint64_t(max_blob_bytes + 1),
                 uint64_t(0xffffffff), uint64_t(max_blob_bytes), uint64_t(blob.size() - 1)}) {
        bytes_t wrong = padded;
        store_le(wrong.data() + 12, 4, length);
        const uint8_t *at = guarded().put(wrong.data(), wrong.size());
        EXPECT_EQ(read_blob(md, at), mxdnn_corrupt_blob) << length;
    }
    // If bytes are not a blob, only the envelope is read.
    bytes_t other(envelope_bytes, 'x');
    EXPECT_EQ(read_blob(md, guarded().put(other.data(), other.size())), mxdnn_corrupt_blob);
    EXPECT_NE(std::string(last_error()).find("magic"), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// The reader of artefacts with bytes of any kind: cut, altered, and altered with right checksums. Whatever
// they are, it refuses them with a sentence, or every variant lies inside the file.
//
//     test_aot_loader ARTEFACT
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

#include "loader.hpp"

namespace {

using bytes_t = std::vector<uint8_t>;
using mxdnn::engine;

bytes_t artefact;

aot::header_t header_of(const bytes_t &file) {
    aot::header_t h;
    std::memcpy(&h, file.data(), sizeof h);
    return h;
}
aot::record_t record_of(const bytes_t &file, size_t i) {
    aot::record_t r;
    std::memcpy(&r, &file[sizeof(aot::header_t) + i * sizeof r], sizeof r);
    return r;
}
void set(bytes_t &file, const aot::header_t &h) { std::memcpy(file.data(), &h, sizeof h); }
void set(bytes_t &file, size_t i, const aot::record_t &r) {
    std::memcpy(&file[sizeof(aot::header_t) + i * sizeof r], &r, sizeof r);
}
// Makes the first checksum right again, as somebody with bad intentions would.
void seal(bytes_t &file) {
    aot::header_t h = header_of(file);
    if (h.data_begin < sizeof h || h.data_begin > file.size()) return;
    h.checksum = aot::front_checksum(&file[sizeof h], h.data_begin - sizeof h);
    set(file, h);
}

// Reads a copy of exactly that size, so that sanitizers see each byte beyond; uses what it has for each
// engine. Returns the sentence of the refusal, or "" when the tensor `up` was given.
std::string attempt(const bytes_t &file, const engine &eng) {
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[file.size()]);
    std::copy(file.begin(), file.end(), copy.get());
    std::vector<aot::variant_t> variants;
    try {
        variants = aot::read(copy.get(), file.size());
    } catch (const std::runtime_error &e) {
        return e.what();
    }
    for (const aot::variant_t &v : variants) {
        EXPECT_LE(v.blob_size, file.size());
        EXPECT_LE(size_t(v.blob - copy.get()), file.size() - v.blob_size);
        EXPECT_LE(v.data_size, file.size());
        EXPECT_LE(size_t(v.data - copy.get()), file.size() - v.data_size);
        EXPECT_LT(v.name.size(), sizeof(aot::record_t::name));
    }
    try {
        aot::select(variants, "up", eng);
    } catch (const std::exception &e) {
        return e.what();
    }
    return "";
}

class AotLoader : public testing::Test {
protected:
    engine eng{engine::kind::cpu, 0};
};

TEST_F(AotLoader, ReadsWhatTheGeneratorWrote) {
    const std::vector<aot::variant_t> variants = aot::read(artefact.data(), artefact.size());
    EXPECT_EQ(attempt(artefact, eng), "");
    // For every target that the library knows there is something to take.
    for (const std::string &target : engine::get_target_names())
        for (const char *name : {"up", "down"}) {
            const engine e = engine::for_target(target);
            std::set<mxdnn::blob_verdict> verdicts;
            for (const aot::variant_t &v : variants)
                if (v.name == name) verdicts.insert(mxdnn::check_blob(e, v.blob, v.blob_size));
            EXPECT_TRUE(verdicts.count(mxdnn::blob_verdict::native)
                        || verdicts.count(mxdnn::blob_verdict::slower))
                    << name << " for " << target;
            EXPECT_TRUE(verdicts.count(mxdnn::blob_verdict::needs_reorder)) << "of the other family";
        }
    EXPECT_THROW(aot::select(variants, "sideways", eng), std::runtime_error);
}

TEST_F(AotLoader, RefusesEveryTruncation) {
    for (size_t size = 0; size < artefact.size(); size++)
        ASSERT_NE(attempt(bytes_t(artefact.begin(), artefact.begin() + ptrdiff_t(size)), eng), "")
                << size << " bytes of " << artefact.size();
    bytes_t longer = artefact;
    longer.push_back(0);
    EXPECT_NE(attempt(longer, eng), "");
}

TEST_F(AotLoader, NoticesEveryFlippedBit) {
    // All of the header, the records and the blobs; of the packed bytes those of `up` for this engine.
    const uint64_t front = header_of(artefact).data_begin;
    for (size_t byte = 0; byte < front; byte++)
        for (int bit = 0; bit < 8; bit++) {
            bytes_t file = artefact;
            file[byte] ^= uint8_t(1 << bit);
            ASSERT_NE(attempt(file, eng), "") << "bit " << bit << " of byte " << byte;
        }
    const aot::weights_t taken = aot::select(aot::read(artefact.data(), artefact.size()), "up", eng);
    const auto *first = static_cast<const uint8_t *>(taken.memory.get_data_handle());
    const size_t begin = size_t(first - artefact.data()), size = taken.memory.get_desc().get_size();
    for (size_t i = 0; i < size; i++) {
        bytes_t file = artefact;
        file[begin + i] ^= uint8_t(1 << i % 8);
        ASSERT_NE(attempt(file, eng).find("damaged"), std::string::npos)
                << "byte " << i << " of the packed ones";
    }
}

TEST_F(AotLoader, OffsetsAndSizesDoNotOverflow) {
    const uint64_t size = artefact.size(), front = header_of(artefact).data_begin;
    const uint64_t values[] = {0, 1, 63, 64, front - 1, front, front + 1, size - 1, size, size + 1, size + 64,
            uint64_t(1) << 32, uint64_t(1) << 63, UINT64_MAX - 63, UINT64_MAX - size, UINT64_MAX};
    const size_t count = header_of(artefact).count;
    for (const uint64_t a : values)
        for (const uint64_t b : values) {
            for (size_t i = 0; i < count; i++)
                for (const bool of_blob : {true, false}) {
                    bytes_t file = artefact;
                    aot::record_t r = record_of(file, i);
                    (of_blob ? r.blob_offset : r.data_offset) = a;
                    (of_blob ? r.blob_size : r.data_size) = b;
                    set(file, i, r);
                    seal(file);
                    attempt(file, eng);
                }
            bytes_t file = artefact;
            aot::header_t h = header_of(file);
            h.count = a;
            h.data_begin = b;
            set(file, h);
            seal(file);
            const std::string refusal = attempt(file, eng); // fewer records are a file, too
            EXPECT_TRUE(a <= count || !refusal.empty()) << a << " records, data from " << b;
        }
}

TEST_F(AotLoader, NamesEndInsideTheirField) {
    bytes_t file = artefact;
    aot::record_t r = record_of(file, 0);
    std::memset(r.name, 'x', sizeof r.name);
    set(file, 0, r);
    seal(file);
    EXPECT_NE(attempt(file, eng), "");
    std::memset(r.name, 0, sizeof r.name);
    set(file, 0, r);
    seal(file);
    EXPECT_NE(attempt(file, eng), "");
}

TEST_F(AotLoader, WeightsOfAnotherTensorAreRefused) {
    // The bytes of one record under the descriptor of another: inside the file, and wrong.
    bytes_t file = artefact;
    aot::record_t up = record_of(file, 0);
    const aot::record_t down = record_of(file, 1);
    ASSERT_STREQ(up.name, "up");
    ASSERT_STREQ(down.name, "down");
    up.data_offset = down.data_offset;
    set(file, 0, up);
    seal(file);
    EXPECT_NE(attempt(file, eng), "");
}

TEST_F(AotLoader, PassesOverABlobThatItCannotRead) {
    // Before the record that it can.
    bytes_t file = artefact;
    const size_t count = header_of(file).count;
    aot::record_t unknown = record_of(file, count - 1); // of the other family
    std::memcpy(unknown.name, "up", 3);
    ASSERT_NE(mxdnn::check_blob(eng, &file[unknown.blob_offset], unknown.blob_size),
            mxdnn::blob_verdict::native);
    file[unknown.blob_offset + 32] ^= 200;
    set(file, count - 1, record_of(file, 0));
    set(file, 0, unknown);
    seal(file);
    EXPECT_EQ(attempt(file, eng), "");
}

TEST_F(AotLoader, SurvivesRandomDamage) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const size_t front = header_of(artefact).data_begin;
    for (int i = 0; i < 20000; i++) {
        bytes_t file = artefact;
        for (uint64_t n = 1 + random() % 4; n > 0; n--) {
            const size_t at = 8 + random() % (front - 16); // the magic stays, or nothing else would be tried
            const uint64_t value = random() >> random() % 64;
            std::memcpy(&file[at], &value, 1 + random() % 8);
        }
        if (random() % 4 == 0) file.resize(random() % file.size());
        aot::header_t h = {};
        if (file.size() >= sizeof h) {
            h = header_of(file);
            h.file_size = file.size();
            std::memset(h.reserved, 0, sizeof h.reserved);
            set(file, h);
            seal(file);
        }
        attempt(file, eng);
    }
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    std::ifstream file(argc > 1 ? argv[1] : "", std::ios::binary);
    artefact.assign(std::istreambuf_iterator<char>(file), {});
    if (artefact.empty()) {
        std::fprintf(stderr, "usage: test_aot_loader ARTEFACT, which aot_generate writes\n");
        return 1;
    }
    return RUN_ALL_TESTS();
}

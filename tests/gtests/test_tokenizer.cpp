// SPDX-License-Identifier: Apache-2.0
// The example's tokenizer: rules on a small vocabulary, and ids that another implementation made for the real
// one.
#include "../../examples/minilm/tokenizer.hpp"

#include <fstream>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/container/utf8.hpp"
#include "unicode/unicode.hpp"

using minilm::tokenizer_t;
using words_t = std::vector<std::string>;
using ids_t = std::vector<int32_t>;

namespace {

const char *const vocabulary =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n##a\nhello\n,\ncafe\nh\n##é\n##ello\nx\n##x\n";

std::string failure(const std::string &vocabulary) {
    try {
        tokenizer_t::from_text(vocabulary);
    } catch (const std::runtime_error &e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST(tokenizer, words_are_folded_and_cut) {
    EXPECT_EQ(tokenizer_t::words("  Hello,\tWorld!\r\n"), (words_t{"hello", ",", "world", "!"}));
    EXPECT_EQ(tokenizer_t::words("É\u0301cole ÅÄÖ İ"), (words_t{"ecole", "aao", "i"}));
    EXPECT_EQ(tokenizer_t::words("ΑΘΉΝΑ Москва́ й"), (words_t{"αθηνα", "москва", "и"}));
    EXPECT_EQ(tokenizer_t::words("a北京b"), (words_t{"a", "北", "京", "b"}));
    EXPECT_EQ(tokenizer_t::words("각"), (words_t{"\u1100\u1161\u11a8"}));
    EXPECT_EQ(tokenizer_t::words("가"), (words_t{"\u1100\u1161"}));
    EXPECT_EQ(
            tokenizer_t::words("it's $5_x^2~"), (words_t{"it", "'", "s", "$", "5", "_", "x", "^", "2", "~"}));
    EXPECT_EQ(tokenizer_t::words("a\u00a0b\u3000c\u2028d"), (words_t{"a", "b", "c", "d"}));
    EXPECT_EQ(tokenizer_t::words("a\u0001b\u200bc\u00add\ufffde\x7f"), (words_t{"abcde"}));
    EXPECT_EQ(tokenizer_t::words("\u0301"), words_t{}); // a mark alone leaves nothing
    EXPECT_EQ(tokenizer_t::words("a \u0301 b"), (words_t{"a", "b"}));
    EXPECT_EQ(tokenizer_t::words(""), words_t{});
}

TEST(tokenizer, ill_formed_bytes_are_dropped) {
    EXPECT_EQ(tokenizer_t::words("a\xff"
                                 "b\xc3"),
            (words_t{"ab"}));
    EXPECT_EQ(tokenizer_t::words("\xed\xa0\x80x\xc0\x80y\xf4\x90\x80\x80z"), (words_t{"xyz"}));
    EXPECT_EQ(tokenizer_t::words(std::string("a\0b", 3)), (words_t{"ab"}));
}

TEST(tokenizer, pieces_are_the_longest) {
    const auto t = tokenizer_t::from_text(vocabulary);
    EXPECT_EQ(t.encode("unaffable"), (ids_t{2, 4, 5, 6, 3}));
    EXPECT_EQ(t.encode("UNA hello,"), (ids_t{2, 4, 7, 8, 9, 3}));
    EXPECT_EQ(t.encode("café"), (ids_t{2, 10, 3}));
    EXPECT_EQ(t.encode("unknown hello"), (ids_t{2, 1, 8, 3})); // one unknown piece makes the word unknown
    EXPECT_EQ(t.encode("un-"), (ids_t{2, 4, 1, 3}));
    EXPECT_EQ(t.encode(""), (ids_t{2, 3}));
    EXPECT_EQ(t.encode("[SEP]"), (ids_t{2, 1, 1, 1, 3})); // text, not the special token
}

TEST(tokenizer, long_words_and_texts) {
    const auto t = tokenizer_t::from_text(vocabulary);
    EXPECT_EQ(t.encode(std::string(100, 'x')).size(), 102u);
    EXPECT_EQ(t.encode(std::string(101, 'x')), (ids_t{2, 1, 3}));
    std::string many;
    for (int i = 0; i < 1000; i++) many += "hello ";
    for (size_t most : {2u, 3u, 17u, 256u}) {
        const ids_t ids = t.encode(many, most);
        EXPECT_EQ(ids.size(), most);
        EXPECT_EQ(ids.front(), 2);
        EXPECT_EQ(ids.back(), 3);
    }
    EXPECT_EQ(t.encode(many, 0), (ids_t{2, 3}));
    EXPECT_EQ(t.encode(std::string(100, 'x'), 10).size(), 10u); // cut within a word
}

TEST(tokenizer, vocabularies_are_checked) {
    EXPECT_EQ(failure(vocabulary), "");
    EXPECT_NE(failure("").find("'[PAD]'"), std::string::npos);
    EXPECT_NE(failure("[PAD]\n[UNK]\n[CLS]\n").find("'[SEP]'"), std::string::npos);
    const std::string twice = failure(std::string(vocabulary) + "un\n");
    EXPECT_NE(twice.find("'un' twice"), std::string::npos) << twice;
    EXPECT_NE(twice.find("line 17"), std::string::npos) << twice;
    EXPECT_THROW(tokenizer_t("/no/such/vocab.txt"), std::runtime_error);
    // Line ends of either kind.
    EXPECT_EQ(tokenizer_t::from_text("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n").encode("a"),
            (ids_t{2, 4, 3}));
}

TEST(tokenizer, any_bytes_give_ids_of_the_vocabulary) {
    const auto t = tokenizer_t::from_text(vocabulary);
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    for (int i = 0; i < 5000; i++) {
        std::string s;
        for (unsigned n = rng() % 80; n; n--) {
            if (rng() % 2)
                s += char(rng());
            else
                mxdnn::impl::utf8::append(s, rng() % 0x110000);
        }
        const ids_t ids = t.encode(s, 40);
        ASSERT_GE(ids.size(), 2u);
        ASSERT_LE(ids.size(), 40u);
        for (int32_t id : ids) ASSERT_LT(size_t(id), t.size());
    }
}

TEST(tokenizer, folding_is_done_once) {
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t once[3], twice[3];
        const int n = unicode::fold(c, once);
        for (int i = 0; i < n; i++) {
            ASSERT_EQ(unicode::fold(once[i], twice), 1) << std::hex << c;
            ASSERT_EQ(twice[0], once[i]) << std::hex << c;
        }
    }
}

TEST(tokenizer, agrees_with_another_implementation) {
    const std::string root = std::string(MXDNN_TEST_DATA) + "/../..",
                      vocab = root + "/.deps/minilm/vocab.txt";
    if (!std::ifstream(vocab)) GTEST_SKIP() << "scripts/fetch-minilm has not been run: no " << vocab;
    std::ifstream file(root + "/examples/minilm/golden.json");
    const auto golden = nlohmann::json::parse(file);
    const tokenizer_t t(vocab);
    EXPECT_EQ(t.size(), 30522u);
    EXPECT_GT(golden["cases"].size(), 10u);
    for (const auto &c : golden["cases"])
        EXPECT_EQ(t.encode(c["text"].get<std::string>()), c["tokens"].get<ids_t>()) << c["text"];
}

// SPDX-License-Identifier: Apache-2.0
// Names match by the rules of std::regex, but in bounded time and stack. Also: the tensors packed by default.
#include "../../tools/common/patterns.hpp"

#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <stdexcept>

#include <gtest/gtest.h>

#include "../../tools/common/weight_rule.hpp"

using patterns::pattern_t;

TEST(patterns, match_as_expected) {
    const struct {
        const char *expression, *name;
        bool is_in;
    } cases[] = {{"", "", true}, {"", "a", true}, {".*", "a", true}, {"^$", "", true}, {"^$", "a", false},
            {"embed|lm_head", "model.embed_tokens.weight", true}, {"embed|lm_head", "lm_head.weight", true},
            {"embed|lm_head", "model.norm.weight", false},
            {"^model\\.layers\\.(0|1)\\.", "model.layers.1.x", true},
            {"^model\\.layers\\.(0|1)\\.", "model.layers.11.x", false},
            {"layers\\.\\d+\\.mlp", "layers.17.mlp", true}, {"layers\\.[0-3]\\.", "layers.4.", false},
            {"[^a-c]", "abc", false}, {"[^a-c]", "abcd", true}, {"a{2,3}$", "xaa", true},
            {"^a{2,3}$", "aaaa", false}, {"^a{2,}$", "aaaa", true}, {"^a{0}$", "", true},
            {"(?:ab)+c", "ababc", true}, {"^(a|b*)*c$", "abbac", true}, {"\\bup\\b", "mlp.up.w", true},
            {"\\bup\\b", "mlp.upper", false}, {"a\\.b", "axb", false}, {"[\\]\\-]", "-", true},
            {"[a-]", "-", true}, {"x]", "x]", true}, {"a*?b", "aab", true}, {"\\w+_proj", "q_proj", true}};
    for (const auto &c : cases)
        EXPECT_EQ(pattern_t(c.expression).is_in(c.name), c.is_in) << c.expression << " " << c.name;
}

TEST(patterns, what_is_wrong_is_said) {
    for (const char *bad :
            {"(", ")", "[a", "a{2", "a{3,2}", "*a", "+", "a{1001}", "\\1", "\\", "(?=a)", "(?!a)", "[b-a]",
                    "[[:alpha:]]", "a{}", "a{,2}", "a{x}", "a{1,x}", "a{1x}", "(a{1000}){1000}", "\\q"}) {
        try {
            pattern_t p(bad);
            ADD_FAILURE() << bad;
        } catch (const std::runtime_error &e) {
            EXPECT_NE(std::string(e.what()).find("at character"), std::string::npos) << e.what();
        }
    }
    EXPECT_THROW(pattern_t(std::string(100'000, '(')), std::runtime_error);
    EXPECT_THROW(pattern_t(std::string(100'000, 'a')), std::runtime_error);
}

// Expressions and names with which other engines run for ever or overflow the stack.
TEST(patterns, time_and_stack_are_bounded) {
    const std::string a(30'000, 'a');
    EXPECT_FALSE(pattern_t("^(a+)+$").is_in(a + "b"));
    EXPECT_FALSE(pattern_t("(a|aa)*(a|a)*c").is_in(a));
    EXPECT_TRUE(pattern_t(".*").is_in(a));
    EXPECT_TRUE(pattern_t("^(.|\\w)*$").is_in(a));
    EXPECT_FALSE(pattern_t("(a*)*(a*)*b").is_in(a));
}

TEST(patterns, agree_with_the_standard_library) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const char *const atoms[] = {"a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab|b)", "\\.", "(a|b.)", "\\w",
            "^", "$", "\\b"},
                      *const counts[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}"};
    int tried = 0;
    for (int i = 0; i < 3'000; i++) {
        std::string expression;
        for (unsigned n = rng() % 5; n > 0; n--) {
            const std::string atom = atoms[rng() % std::size(atoms)];
            const bool is_assertion = atom == "^" || atom == "$" || atom == "\\b";
            expression += atom + (is_assertion ? "" : counts[rng() % std::size(counts)]);
            if (rng() % 5 == 0) expression += '|';
        }
        const pattern_t ours(expression);
        const std::regex theirs(expression);
        for (int k = 0; k < 10; k++) {
            std::string name;
            for (unsigned n = rng() % 6; n > 0; n--) name += "ab.\n"[rng() % 4];
            ASSERT_EQ(ours.is_in(name), std::regex_search(name, theirs))
                    << expression << " in '" << name << "'";
            tried++;
        }
    }
    EXPECT_EQ(tried, 30'000);
}

namespace {

std::string left_as(const std::string &name, const std::vector<int64_t> &shape = {256, 256}) {
    const char *what = weight_rule::left_as(name, shape);
    return what ? what : "";
}

} // namespace

TEST(weight_rule, weights_of_linears_and_experts_are_packed) {
    for (const char *name : {// Llama, Mistral, Qwen, Phi, Gemma
                 "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.o_proj.weight",
                 "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
                 "model.layers.0.mlp.down_proj.weight", "model.layers.3.mlp.gate_up_proj.weight",
                 "layers.0.attention.wq.weight", "layers.0.feed_forward.w1.weight",
                 "model.layers.1.mlp.fc1.weight", "transformer.h.0.attn.Wqkv.weight",
                 // experts: Mixtral, Qwen-MoE, DeepSeek, Granite, gpt-oss as released
                 "model.layers.0.block_sparse_moe.experts.7.w2.weight",
                 "model.layers.0.mlp.experts.63.gate_proj.weight",
                 "model.layers.0.mlp.shared_expert.up_proj.weight",
                 "model.layers.0.mlp.shared_experts.down_proj.weight",
                 "model.layers.0.block_sparse_moe.input_linear.weight", "block.0.mlp.mlp1_weight",
                 "model.layers.1.self_attn.kv_a_proj_with_mqa.weight",
                 "model.layers.1.self_attn.q_b_proj.weight", "model.layers.61.eh_proj.weight",
                 // BERT, MiniLM, T5, CLIP, ViT, Whisper, Bloom, NeoX, Mamba
                 "encoder.layer.0.attention.self.query.weight",
                 "bert.encoder.layer.11.attention.output.dense.weight", "encoder.layer.0.output.dense.weight",
                 "pooler.dense.weight", "cls.predictions.transform.dense.weight",
                 "encoder.block.0.layer.0.SelfAttention.q.weight",
                 "encoder.block.0.layer.1.DenseReluDense.wi_0.weight",
                 "vision_model.encoder.layers.0.mlp.fc1.weight", "visual_projection.weight",
                 "model.encoder.layers.0.self_attn.k_proj.weight", "h.0.mlp.dense_h_to_4h.weight",
                 "gpt_neox.layers.0.attention.query_key_value.weight",
                 "backbone.layers.0.mixer.in_proj.weight", "visual.merger.mlp.0.weight",
                 "multi_modal_projector.linear_1.weight", "encoder.layers.0.self_attn.in_proj_weight",
                 "text_embedder.model.layers.0.mlp.up_proj.weight"})
        EXPECT_EQ(left_as(name), "") << name;
    EXPECT_EQ(left_as("model.layers.0.block_sparse_moe.input_linear.weight", {8, 64, 32}), "");
}

TEST(weight_rule, the_rest_is_left) {
    const struct {
        const char *what;
        std::vector<const char *> names;
    } cases[] = {
            {"bias", {"model.layers.0.mlp.experts.gate_up_proj_bias",
                             "model.layers.0.mlp.experts.down_proj_bias", "block.0.mlp.mlp1_bias",
                             "experts.bias"}},
            {"embedding",
                    {"model.embed_tokens.weight", "tok_embeddings.weight", "embedding.weight",
                            "unembedding.weight", "transformer.wte.weight", "transformer.wpe.weight",
                            "embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
                            "embeddings.token_type_embeddings.weight", "shared.weight", "model.shared.weight",
                            "gpt_neox.embed_in.weight", "embed_out.weight",
                            "model.decoder.embed_positions.weight",
                            "vision_model.patch_embedding.linear.weight",
                            "vision_model.embeddings.patch_embedding.weight",
                            "visual.patch_embed.proj.weight",
                            "vit.embeddings.patch_embeddings.projection.weight", "rwkv.emb.weight",
                            "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}},
            {"output head", {"lm_head.weight", "output.weight", "transformer.output_layer.weight",
                                    "head.weight", "model.layers.61.shared_head.head.weight",
                                    "cls.predictions.decoder.weight", "classifier.weight", "score.weight",
                                    "qa_outputs.weight", "proj_out.weight", "LM_HEAD.weight"}},
            {"norm", {"model.layers.0.self_attn.q_norm.weight", "model.layers.0.input_layernorm.weight",
                             "encoder.layer.0.attention.output.LayerNorm.weight", "h.0.ln_1.weight"}},
            {"router", {"model.layers.0.mlp.router.weight", "model.layers.0.mlp.gate.weight",
                               "model.layers.0.block_sparse_moe.gate.weight", "block.0.mlp.gate.weight",
                               "model.layers.0.mlp.shared_expert_gate.weight",
                               "model.layers.0.feed_forward.router.weight",
                               "transformer.blocks.0.ffn.router.layer.weight",
                               "model.layers.0.mlp.gate.wg.weight",
                               "encoder.block.1.layer.1.mlp.router.classifier.weight",
                               "blk.0.ffn.gate_inp.weight",
                               "model.layers.0.block_sparse_moe.router.layer.weight"}},
            {"convolution",
                    {"model.encoder.conv1.weight", "backbone.layers.0.mixer.conv1d.weight",
                            "feature_extractor.conv_layers.0.conv.weight", "vision_tower.patch_conv.weight"}},
            {"Conv1D, [in, out] in some models",
                    {"h.0.attn.c_attn.weight", "transformer.h.0.mlp.c_fc.weight", "h.0.attn.c_proj.weight"}},
            {"not named weight",
                    {"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj",
                            "model.layers.0.self_attn.q_proj.weight_scale_inv", "lstm.weight_ih_l0",
                            "backbone.layers.0.mixer.A_log", "vision_model.class_token",
                            "model.layers.0.self_attn.sinks", "q_proj.qweight"}},
    };
    for (const auto &c : cases)
        for (const char *name : c.names) EXPECT_EQ(left_as(name), c.what) << name;
    EXPECT_EQ(left_as("a.weight", {31, 4096}), "small");
    EXPECT_EQ(left_as("a.weight", {4096, 31}), "small");
    EXPECT_EQ(left_as("a.weight", {1, 32, 32}), "");
    EXPECT_EQ(left_as("weight"), "");
    EXPECT_EQ(left_as(""), "not named weight");
    EXPECT_EQ(left_as(std::string(4096, '.')), "not named weight");
}

TEST(weight_rule, the_text_has_every_row) {
    const std::string text = weight_rule::text();
    for (const char *part :
            {"bias", "embed", "lm_head", "router", "gate", "norm", "conv", "c_attn", "below 32"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
}

// The page contains the rule word for word.
TEST(weight_rule, the_page_has_the_rule) {
    std::ifstream page(MXDNN_TEST_DATA "/../../doc/reference/mxdnn-pack.md");
    const std::string text((std::istreambuf_iterator<char>(page)), {});
    EXPECT_NE(text.find(weight_rule::text()), std::string::npos) << weight_rule::text();
}

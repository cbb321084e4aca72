// SPDX-License-Identifier: Apache-2.0
#include "formats.hpp"

#include <cstdlib>
#include <vector>

namespace mxdnn_torch {

using mxdnn::algorithm;
using mxdnn::quantization_mode;

namespace {

template <typename T>
struct word_t {
    const char *word;
    T value;
};

constexpr word_t<dt> type_words[] = {{"", dt::undef}, {"none", dt::undef}, {"f32", dt::f32},
        {"bf16", dt::bf16}, {"f16", dt::f16}, {"s8", dt::s8}, {"u8", dt::u8}, {"s4", dt::s4}, {"u4", dt::u4},
        {"e8m0", dt::e8m0}, {"f8_e4m3", dt::f8_e4m3}, {"f8_e5m2", dt::f8_e5m2}, {"f6_e2m3", dt::f6_e2m3},
        {"f6_e3m2", dt::f6_e3m2}, {"f4_e2m1", dt::f4_e2m1}};

constexpr word_t<mxdnn::scale_rounding> rounding_words[] = {{"floor", mxdnn::scale_rounding::floor},
        {"ceil", mxdnn::scale_rounding::ceil}, {"even", mxdnn::scale_rounding::even},
        {"rceil", mxdnn::scale_rounding::rceil}};

struct activation_t {
    const char *word;
    algorithm alg;
    int numbers; // that follow the word
    bool gated;
    float alpha = 0.f; // where no number follows
};

constexpr activation_t activations[] = {{"relu", algorithm::eltwise_relu, 1, false},
        {"tanh", algorithm::eltwise_tanh, 0, false}, {"square", algorithm::eltwise_square, 0, false},
        {"linear", algorithm::eltwise_linear, 2, false, 1.f},
        {"logistic", algorithm::eltwise_logistic, 0, false},
        {"gelu_tanh", algorithm::eltwise_gelu_tanh, 0, false},
        {"gelu_erf", algorithm::eltwise_gelu_erf, 0, false},
        {"swish", algorithm::eltwise_swish, 1, false, 1.f}, {"clip", algorithm::eltwise_clip, 2, false},
        {"relu2", algorithm::eltwise_relu2, 0, false}, {"silu", algorithm::gated_silu, 2, true},
        {"swiglu_oai", algorithm::gated_swiglu_oai, 2, true, 1.702f},
        {"geglu_erf", algorithm::gated_gelu_erf, 2, true},
        {"geglu_tanh", algorithm::gated_gelu_tanh, 2, true}};

template <typename T, size_t n>
T find_word(const word_t<T> (&words)[n], const std::string &word, const char *what) {
    std::string known;
    for (const auto &row : words) {
        if (word == row.word) return row.value;
        if (*row.word) known += std::string(known.empty() ? "" : ", ") + row.word;
    }
    refuse(std::string(what) + " is '" + word + "'; it must be one of " + known);
}

std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> parts(1);
    for (char c : text)
        if (c == ':')
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

const activation_t *find_activation(const std::string &word) {
    if (word.empty() || word == "none") return nullptr;
    const std::string name = word.substr(0, word.find(':'));
    std::string known = "none";
    for (const activation_t &a : activations) {
        if (name == a.word) return &a;
        known += std::string(", ") + a.word;
    }
    refuse("activation is '" + word + "'; it must begin with one of " + known);
}

float number(const std::string &text, const std::string &activation) {
    char *end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (text.empty() || *end != '\0')
        refuse("activation is '" + activation + "', and '" + text + "' in it is no number");
    return value;
}

} // namespace

dt type_of_word(const std::string &word, const char *what) { return find_word(type_words, word, what); }

const char *word_of_type(dt type) {
    for (const auto &row : type_words)
        if (row.value == type && *row.word) return row.word;
    return "none";
}

mxdnn::scale_rounding rounding_of_word(const std::string &word) {
    return find_word(rounding_words, word, "the rounding of scales");
}

void append_activation(mxdnn::post_ops &ops, const std::string &word) {
    const activation_t *a = find_activation(word);
    if (a == nullptr) return;
    std::vector<std::string> parts = split(word);
    auto layout = mxdnn::gated_layout::interleaved;
    if (a->gated && (parts.back() == "halves" || parts.back() == "interleaved")) {
        if (parts.back() == "halves") layout = mxdnn::gated_layout::halves;
        parts.pop_back();
    }
    if (parts.size() > static_cast<size_t>(a->numbers) + 1)
        refuse("activation is '" + word + "'; at most " + std::to_string(a->numbers) + " numbers follow "
                + a->word);
    float numbers[2] = {a->alpha, 0.f};
    for (size_t i = 1; i < parts.size(); i++) numbers[i - 1] = number(parts[i], word);
    if (a->gated)
        ops.append_gated(a->alg, numbers[0], numbers[1], layout);
    else
        ops.append_eltwise(a->alg, numbers[0], numbers[1]);
}

bool is_gated(const std::string &word) {
    const activation_t *a = find_activation(word);
    return a != nullptr && a->gated;
}

quantization_mode dynamic_mode(const packed_desc_t &desc) {
    switch (desc.element) {
    case dt::s4:
    case dt::u4: return quantization_mode::dynamic_affine;
    case dt::s8:
        return desc.scale == dt::e8m0 ? quantization_mode::dynamic_mx : quantization_mode::dynamic_affine;
    default: return desc.scale == dt::e8m0 ? quantization_mode::dynamic_mx : quantization_mode::dynamic_fp;
    }
}

void set_format(mxdnn::primitive_attr &attr, int arg, const packed_desc_t &desc, quantization_mode scales,
        quantization_mode global_scale) {
    const int mask = (1 << desc.dims.size()) - 1;
    attr.set_scales(arg, mask, {desc.block, 1}, desc.scale, false, scales);
    if (desc.zero_point != dt::undef) attr.set_zero_points(arg, mask, {desc.block, 1}, desc.zero_point);
    if (desc.minima) attr.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
    if (desc.global_scale != packed_desc_t::no_global_scale) attr.set_global_scale(arg, global_scale);
}

int64_t row_bytes(dt element, int64_t K, bool dense) {
    switch (element) {
    case dt::f4_e2m1:
    case dt::s4:
    case dt::u4: return (K + 1) / 2;
    case dt::f6_e2m3:
    case dt::f6_e3m2: return dense ? (K * 6 + 7) / 8 : K;
    default: return K;
    }
}

} // namespace mxdnn_torch

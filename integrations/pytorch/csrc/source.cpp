// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <cmath>
#include <cstdlib>
#include <map>

#include "formats.hpp"

namespace mxdnn_torch {

using mxdnn::quantization_mode;
using tag = mxdnn::memory::format_tag;

namespace {

struct row_t {
    const char *word;
    recipe_t::kind_t kind;
    quantization_mode mode;
    dt element, scale;
    int64_t block;
};

constexpr row_t rows[] = {
        {"int8_row", recipe_t::in_execute, quantization_mode::dynamic_affine, dt::s8, dt::f32, 0},
        {"fp8_row", recipe_t::in_execute, quantization_mode::dynamic_fp, dt::f8_e4m3, dt::f32, 0},
        {"mxint8", recipe_t::in_execute, quantization_mode::dynamic_mx, dt::s8, dt::e8m0, 32},
        {"mxfp8", recipe_t::codes, quantization_mode::dynamic_mx, dt::f8_e4m3, dt::e8m0, 32},
        {"mxfp8_e5m2", recipe_t::codes, quantization_mode::dynamic_mx, dt::f8_e5m2, dt::e8m0, 32},
        {"mxfp6", recipe_t::codes, quantization_mode::dynamic_mx, dt::f6_e2m3, dt::e8m0, 32},
        {"mxfp6_e3m2", recipe_t::codes, quantization_mode::dynamic_mx, dt::f6_e3m2, dt::e8m0, 32},
        {"mxfp4", recipe_t::codes, quantization_mode::dynamic_mx, dt::f4_e2m1, dt::e8m0, 32},
        {"nvfp4", recipe_t::codes, quantization_mode::dynamic_fp, dt::f4_e2m1, dt::f8_e4m3, 16},
};

recipe_t parse(const std::string &word) {
    recipe_t recipe;
    if (word.empty()) return recipe;
    const size_t colon = word.find(':');
    const std::string name = word.substr(0, colon),
                      rest = colon == std::string::npos ? "" : word.substr(colon + 1);
    std::string known;
    for (const row_t &row : rows) {
        known += std::string(known.empty() ? "" : ", ") + row.word;
        if (name != row.word) continue;
        recipe.kind = row.kind;
        recipe.mode = row.mode;
        recipe.element = row.element;
        recipe.scale = row.scale;
        recipe.block = row.block;
        if (row.scale == dt::e8m0) {
            recipe.rounding = rest.empty() ? mxdnn::scale_rounding::rceil : rounding_of_word(rest);
        } else if (row.scale == dt::f8_e4m3 && rest == "dynamic") {
            recipe.global = recipe_t::computed_global;
        } else if (row.scale == dt::f8_e4m3 && !rest.empty()) {
            char *end = nullptr;
            recipe.global_scale = std::strtof(rest.c_str(), &end);
            recipe.global = recipe_t::given_global;
            if (*end != '\0' || !std::isfinite(recipe.global_scale) || recipe.global_scale <= 0)
                refuse("the activation recipe is '" + word
                        + "'; a global scale is a positive number, or dynamic");
        } else if (!rest.empty()) {
            refuse("the activation recipe is '" + word + "'; nothing follows " + name);
        }
        return recipe;
    }
    refuse("the activation recipe is '" + word + "'; it must begin with one of " + known);
}

Tensor one_number(float value, const place_t &place) {
    const Tensor t = make_tensor({1}, ScalarType::Float, place);
    torch::stable::fill_(t, value);
    return t;
}

} // namespace

const recipe_t &parse_recipe(const std::string &word) {
    thread_local std::map<std::string, recipe_t> recipes;
    const auto found = recipes.find(word);
    if (found != recipes.end()) return found->second;
    if (recipes.size() > 1000) recipes.clear();
    return recipes.emplace(word, parse(word)).first->second;
}

source_t::source_t(const view_t &rows, const std::string &recipe, const mxdnn::engine &engine)
    : rows_(rows), recipe_(parse_recipe(recipe)), M_(rows.dims[0]), K_(rows.dims[1]) {
    if (recipe_.kind == recipe_t::codes) quantize(engine);
}

void source_t::quantize(const mxdnn::engine &engine) {
    const place_t &place = rows_.place;
    const int64_t blocks = (K_ + recipe_.block - 1) / recipe_.block;
    codes_ = make_tensor({M_, row_bytes(recipe_.element, K_, false)}, ScalarType::Byte, place);
    scales_ = make_tensor({M_, blocks}, ScalarType::Byte, place);
    const mxdnn::memory::desc scale_desc({M_, blocks}, recipe_.scale, tag::ab);
    const mxdnn::memory::desc global_desc({1}, dt::f32, tag::a);
    key_t key("quantize rows");
    key.add(rows_).add(static_cast<int64_t>(recipe_.element)).add(static_cast<int64_t>(recipe_.scale));
    key.add(static_cast<int64_t>(recipe_.rounding)).add(recipe_.global).add(torch_threads());
    call_t &call = find_call(key, [&] {
        const mxdnn::memory::desc src({M_, K_}, high_precision(rows_, "x"), rows_.strides);
        const mxdnn::memory::desc dst({M_, K_}, recipe_.element, tag::ab);
        mxdnn::primitive_attr attr = attributes_for(place);
        attr.set_scales(MXDNN_ARG_DST, 3, {1, recipe_.block}, recipe_.scale, false, recipe_.mode);
        if (recipe_.scale == dt::e8m0) attr.set_scale_rounding(MXDNN_ARG_DST, recipe_.rounding);
        if (recipe_.global != recipe_t::no_global)
            attr.set_global_scale(MXDNN_ARG_DST, recipe_.global == recipe_t::given_global
                                                         ? quantization_mode::static_sazp
                                                         : quantization_mode::dynamic_fp);
        const thread_count_scope_t threads(torch_threads());
        const mxdnn::mx_reorder::primitive_desc pd(engine, src, engine, dst, attr);
        std::vector<call_t::argument_t> arguments = {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst},
                {MXDNN_ARG_TO | MXDNN_ARG_ATTR_SCALES, scale_desc}};
        if (recipe_.global != recipe_t::no_global)
            arguments.push_back({MXDNN_ARG_TO | MXDNN_ARG_ATTR_GLOBAL_SCALE, global_desc});
        return call_t(pd, arguments, engine);
    });
    pointers_t pointers;
    for (void *p : {rows_.data, codes_->data_ptr(), scales_->data_ptr()}) pointers.push_back(p);
    if (recipe_.global != recipe_t::no_global) {
        global_ = recipe_.global == recipe_t::given_global ? one_number(recipe_.global_scale, place)
                                                           : make_tensor({1}, ScalarType::Float, place);
        pointers.push_back(global_->data_ptr());
    }
    call.run(stream_of(engine, place), place, pointers.values, pointers.n);
}

void source_t::set_attributes(mxdnn::primitive_attr &attr) const {
    if (recipe_.kind == recipe_t::none) return;
    const auto mode = recipe_.kind == recipe_t::codes ? quantization_mode::static_sazp : recipe_.mode;
    if (recipe_.block == 0)
        attr.set_scales(MXDNN_ARG_SRC, 1, {}, recipe_.scale, false, mode);
    else
        attr.set_scales(MXDNN_ARG_SRC, 3, {1, recipe_.block}, recipe_.scale, false, mode);
    if (recipe_.kind == recipe_t::in_execute && recipe_.scale == dt::e8m0)
        attr.set_scale_rounding(MXDNN_ARG_SRC, recipe_.rounding);
    if (recipe_.global != recipe_t::no_global)
        attr.set_global_scale(MXDNN_ARG_SRC, quantization_mode::static_sazp);
}

mxdnn::memory::desc source_t::desc(int64_t M) const {
    if (recipe_.kind == recipe_t::codes) return {{M, K_}, recipe_.element, tag::ab};
    return {{M, K_}, high_precision(rows_, "x"), rows_.strides};
}

void source_t::append_arguments(std::vector<call_t::argument_t> &arguments) const {
    arguments.push_back({MXDNN_ARG_SRC, desc(M_)});
    if (!codes_) return;
    const int64_t blocks = (K_ + recipe_.block - 1) / recipe_.block;
    arguments.push_back({MXDNN_ARG_SRC | MXDNN_ARG_ATTR_SCALES,
            mxdnn::memory::desc({M_, blocks}, recipe_.scale, tag::ab)});
    if (global_)
        arguments.push_back(
                {MXDNN_ARG_SRC | MXDNN_ARG_ATTR_GLOBAL_SCALE, mxdnn::memory::desc({1}, dt::f32, tag::a)});
}

void source_t::append_pointers(pointers_t &pointers) const {
    pointers.push_back(codes_ ? codes_->data_ptr() : rows_.data);
    if (codes_) pointers.push_back(scales_->data_ptr());
    if (global_) pointers.push_back(global_->data_ptr());
}

} // namespace mxdnn_torch

// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_permute/rows.hpp"

#include "benchdnn/common/attr_words.hpp"

namespace bench {

using namespace mxdnn::impl;
using mxdnn::memory;

namespace {
constexpr std::initializer_list<const char *> layouts = {"linear", "128x4"};
}

std::pair<std::string, std::string> scales_layouts(const words_t &words) {
    const auto sides = split(words["scales-layout"], ':');
    if (sides.size() != 2)
        throw usage_error_t("--scales-layout is '" + words["scales-layout"] + "'; it is SRC:DST");
    return {one_of(sides[0], "scales-layout", layouts), one_of(sides[1], "scales-layout", layouts)};
}

std::string draw_scales_layouts(draws_t &any, const knob_t &knob) {
    if (any.one_in(2)) return knob.usual;
    const std::string src = any.of(layouts);
    return src + ":" + any.of(layouts);
}

std::string draw_packing(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    const tensor_type_t t = to_tensor_type(split(words["dt"], ':')[0]);
    return data_type_info(t.dt)->bits == 6 ? draw_word(any, knob) : knob.usual;
}

rows_t::rows_t(
        const tensor_type_t &t, int64_t rows_, int64_t cols_, const std::string &scales_layout, int64_t pad)
    : type(t), rows(rows_), cols(cols_) {
    const std::vector<int64_t> dims = {rows, cols};
    type.swizzled = scales_layout == "128x4";
    tensor = operand_t(tensor_t(dims, strides_of(dims, "ab", type.dt, pad), type.dt, type.dense), type, 1);
}

uint32_t rows_t::code(int64_t row, int64_t col) const {
    const int64_t idx[2] = {row, col};
    return codes().code(idx);
}

uint32_t rows_t::scale(int64_t row, int64_t block) const {
    const int64_t idx[2] = {row, block};
    return tensor.quantised.scale(idx);
}

void rows_t::fill(rng_t &rng) const { fill_random(tensor, rng); }

void rows_t::poison() const { tensor.poison(); }

memory::desc rows_t::desc(bool runtime_rows) const {
    memory::dims dims = codes().dims;
    if (runtime_rows) dims[0] = MXDNN_RUNTIME_DIM_VAL;
    return memory::desc(dims, static_cast<memory::data_type>(type.dt), codes().strides);
}

void rows_t::add_args(int arg, const mxdnn::engine &e, std::unordered_map<int, memory> &args) const {
    tensor.add_args(arg, e, args);
}

void rows_t::describe(mxdnn::primitive_attr &attr, int arg) const { set_quant(attr, arg, type, 2, 1, false); }

} // namespace bench

// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are weights, and which are quantised already.
#include "sources.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "common/formats/format_list.hpp"
#include "common/patterns.hpp"
#include "common/safetensors.hpp"
#include "common/weight_rule.hpp"
#include "importers/importers.hpp"
#include "importers/layer.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::shown;

namespace {

bool is_high_precision(dt type) { return type == dt::f32 || type == dt::bf16 || type == dt::f16; }

std::optional<patterns::pattern_t> pattern_of(const char *option, const std::optional<std::string> &text) {
    if (!text) return std::nullopt;
    try {
        return patterns::pattern_t(*text);
    } catch (const std::runtime_error &e) {
        throw std::runtime_error(
                std::string(option) + " takes a regular expression; this one has " + e.what());
    }
}

// A tensor of values [.., out, in], or [.., in, out].
source_t values_source(const checkpoint_t &input, size_t i, bool is_transposed) {
    const entry_t &e = input.entries[i];
    const size_t n = e.dims.size();
    dim out = e.dims[n - 2], in = e.dims[n - 1];
    if (is_transposed) std::swap(out, in);
    const shape_t s = n == 3 ? shape_t::batch(e.dims[0], out, in) : shape_t::matrix(out, in);
    source_t source{e.name, is_transposed ? e.stored_as + " [in, out]" : e.stored_as, s, {i}, std::nullopt,
            {}, e.data_type, {}, {}};
    const size_t size = e.data_type == dt::f32 ? 4 : 2;
    if (is_transposed)
        source.values = [=, &input](const piece_t &p, void *to) {
            read_transposed(input, i, uint64_t(p.matrix * in) * uint64_t(out) * size, in, out, p.first,
                    p.columns, size, to, size_t(in) * size);
        };
    else
        source.values = in_rows(s, e.data_type, input.reader(i));
    return source;
}

class finder_t {
public:
    finder_t(const checkpoint_t &input, const options_t &o)
        : input_(input), options_(o), include_(pattern_of("--include", o.include)),
          exclude_(pattern_of("--exclude", o.exclude)), transposed_(pattern_of("--transposed", o.transposed)),
          is_taken_(input.entries.size()) {}

    sources_t find() {
        // Codes first, as scales are entries of their own.
        const import_context_t context = make_context(input_, options_);
        for (size_t i = 0; i < is_taken_.size(); i++) find_codes(context, i);
        for (size_t i = 0; i < is_taken_.size(); i++)
            if (!is_taken_[i]) find_values(i);
        return std::move(found_);
    }

private:
    const checkpoint_t &input_;
    const options_t &options_;
    const std::optional<patterns::pattern_t> include_, exclude_, transposed_;
    std::vector<bool> is_taken_;
    sources_t found_;

    void leave(const char *what, const std::string &name) {
        sources_t::left_t &l = found_.left[what];
        if (l.count++ == 0) l.first = name;
    }
    // Whether the options leave it out.
    bool is_unwanted(const std::string &name) {
        const char *why = include_ && !include_->is_in(name)  ? "not in --include"
                          : exclude_ && exclude_->is_in(name) ? "in --exclude"
                                                              : nullptr;
        if (why) leave(why, name);
        return why;
    }

    void find_codes(const import_context_t &context, size_t i) {
        const entry_t &e = input_.entries[i];
        if (e.is_packed || is_taken_[i]) return;
        for (const importer_t &importer : importers()) {
            const std::string key = importer.key;
            if (!key.empty() && !safetensors::ends_with(e.name, key)) continue;
            // What is left out is not looked at: its layer may be one that is refused.
            const std::string layer = e.name.substr(0, e.name.size() - key.size());
            if (exclude_ && (exclude_->is_in(layer) || exclude_->is_in(e.name))) {
                if (importer.key[0] != '\0') return take_excluded(i, e.name);
                continue;
            }
            if (std::optional<source_t> s = importer.find(context, i)) return take(std::move(*s), e.name);
        }
    }
    // Values that are excluded are counted where all values are.
    void take_excluded(size_t i, const std::string &name) {
        is_taken_[i] = true;
        leave("in --exclude", name);
    }
    void take(source_t s, const std::string &key) {
        for (const size_t i : s.entries) is_taken_[i] = true;
        if (is_unwanted(s.name)) return;
        const std::optional<size_t> same = input_.find(s.name);
        if (same && std::find(s.entries.begin(), s.entries.end(), *same) == s.entries.end())
            throw std::runtime_error(
                    "codes " + shown(key) + " would be packed as " + shown(s.name)
                    + ", and there is a tensor of that name already; --exclude leaves them out");
        if (!names_.insert(s.name).second)
            throw std::runtime_error("codes " + shown(key) + " would be packed as " + shown(s.name)
                                     + ", as others would; --exclude leaves them out");
        if (s.shape.is_empty()) return leave("without elements", key);
        if (!s.loss.empty() && options_.codes_only) return leave("codes that no format holds", key);
        add(std::move(s));
    }
    void add(source_t s) {
        if (!s.loss.empty() && !options_.requantise)
            throw std::runtime_error(
                    "weights " + shown(s.name) + " cannot be packed as they are: " + s.loss
                    + ", which no format of mxdnn has. --requantise quantises what they are worth "
                      "once more, --codes-only or --exclude leaves them as they are");
        found_.packed.push_back(std::move(s));
    }

    void find_values(size_t i) {
        const entry_t &e = input_.entries[i];
        const size_t n = e.dims.size();
        if (e.is_packed) return leave("packed already", e.name);
        if (n < 2) return leave("vector or scalar", e.name);
        if (!is_high_precision(e.data_type)) return leave("of another type than F32, BF16 and F16", e.name);
        if (n > 3) return leave("of more than three dims", e.name);
        if (e.size == 0) return leave("without elements", e.name);
        if (options_.codes_only) return leave("no codes", e.name);
        const bool is_transposed = transposed_ && transposed_->is_in(e.name);
        if (exclude_ && exclude_->is_in(e.name)) return leave("in --exclude", e.name);
        if (include_ && !include_->is_in(e.name) && !is_transposed) return leave("not in --include", e.name);
        if (!include_ || (is_transposed && !include_->is_in(e.name)))
            if (const char *what = weight_rule::left_as(e.name, e.dims, is_transposed))
                return leave(what, e.name);
        source_t source = values_source(input_, i, is_transposed);
        add_gguf_loss(input_, is_transposed, source);
        add(std::move(source));
    }

    std::set<std::string> names_;
};

} // namespace

packing_t packing_of(const source_t &s, uint64_t part_bytes, const format_t &format,
        const mxdnn::engine &engine, mxdnn::scale_rounding rounding) {
    if (s.codes && format.name == (s.format ? s.format : s.nearest)->name)
        return packing_t(part_bytes, format, engine, s.shape, s.codes);
    return packing_t(part_bytes, format, engine, s.shape, s.type, s.values, rounding);
}

void read_f32(const source_t &s, const piece_t &p, std::vector<float> &values) {
    const shape_t part = shape_t::matrix(p.columns, s.shape.in);
    values.resize(size_t(part.out * part.in));
    if (s.format) {
        thread_local code_room_t room;
        const codes_t codes = room.of(*s.format, part);
        s.codes(p, codes);
        return decode(*s.format, part, codes, values.data());
    }
    if (s.type == dt::f32) return s.values(p, values.data());
    std::vector<uint16_t> halves(values.size());
    s.values(p, halves.data());
    const auto *type = mxdnn::impl::data_type_info(mxdnn_data_type_t(s.type));
    for (size_t i = 0; i < halves.size(); i++) values[i] = type->decode(halves[i]);
}

sources_t find_sources(const checkpoint_t &input, const options_t &o) { return finder_t(input, o).find(); }

std::map<std::string, source_t> find_weights(const checkpoint_t &input, const options_t &o,
        const std::function<bool(const std::string &)> &wanted) {
    options_t all = o;
    all.requantise = true; // their values are wanted, not their codes
    all.codes_only = false;
    all.include = ""; // the rule says nothing about what is packed already
    std::map<std::string, source_t> weights;
    for (source_t &s : find_sources(input, all).packed)
        if (wanted(s.name)) {
            const std::string name = s.name;
            weights.emplace(name, std::move(s));
        }
    return weights;
}

} // namespace mxdnn_pack

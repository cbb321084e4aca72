// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are weights, and which are quantised already.
#include "commands.hpp"

#include <stdexcept>

#include "common/patterns.hpp"
#include "common/weight_rule.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::ends_with;
using safetensors::shown;
using safetensors::to_string;
using safetensors::without;
using entry_t = mxdnn::container::entry;

namespace {

// How checkpoints name codes and scales. Codes of four bits are stored two to a byte, the even one in the low
// half; they are [.., out, in / 2], or split by block: [.., out, in / 32, 16].
struct naming_t {
    const char *codes, *scales;
};
constexpr naming_t namings[] = {
        {"_blocks", "_scales"},              // gpt-oss as converted
        {".blocks", ".scales"},              // gpt-oss as released
        {".qdata", ".scale"},                // torchao
        {".weight_packed", ".weight_scale"}, // compressed-tensors
};

// What a stored type can be the codes of.
struct stored_t {
    const char *dtype, *format;
    int codes_per_element;
};
constexpr stored_t stored[] = {
        {"U8", "mxfp4", 2},
        {"F4", "mxfp4", 1},
        {"F8_E4M3", "mxfp8", 1},
        {"F8_E5M2", "mxfp8_e5m2", 1},
        {"I8", "mxint8", 1},
};

// Codes and scales as one source; throws when the scales do not fit the codes.
source_t quantised(const std::string &name, const input_t &input, size_t codes_at, size_t scales_at) {
    const entry_t &codes = input.entries[codes_at], &scales = input.entries[scales_at];
    const std::string the_codes = "codes " + shown(codes.name), the_scales = "scales " + shown(scales.name);
    const stored_t *how = nullptr;
    for (const stored_t &s : stored)
        if (codes.dtype == s.dtype) how = &s;
    if (!how)
        throw std::runtime_error(the_codes + " are " + codes.dtype
                                 + "; known are U8 (two FP4 codes), F4, F8_E4M3, F8_E5M2 and I8");
    const format_t &format = find_format(how->format);
    const size_t n = scales.dims.size();
    if (n != 2 && n != 3)
        throw std::runtime_error(the_scales + " have shape " + to_string(scales.dims)
                                 + "; expected [out, in / block] or [experts, out, in / block]");
    if (scales.dtype != "U8" && scales.dtype != "F8_E8M0")
        throw std::runtime_error(the_scales + " are " + scales.dtype + "; the e8m0 scales of " + format.name
                                 + " are stored as U8 or F8_E8M0");
    // The codes of a row, however many dims they are split into.
    int64_t in = how->codes_per_element;
    bool fits = codes.dims.size() >= n && codes.dims.size() <= n + 1;
    for (size_t i = n - 1; fits && i < codes.dims.size(); i++)
        fits = !__builtin_mul_overflow(in, codes.dims[i], &in);
    fits = fits && scales.dims[n - 1] == in / format.block + (in % format.block != 0);
    for (size_t i = 0; fits && i + 1 < n; i++) fits = codes.dims[i] == scales.dims[i];
    if (!fits)
        throw std::runtime_error(the_codes + " " + to_string(codes.dims) + " and " + the_scales + " "
                                 + to_string(scales.dims)
                                 + " do not belong together: a scale is due for every "
                                 + std::to_string(format.block) + " codes of a row");
    const int64_t out = scales.dims[n - 2];
    return {name, n == 3 ? shape_t::batch(scales.dims[0], out, in) : shape_t::matrix(out, in), format.element,
            &format, codes_at, scales_at};
}

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

class finder_t {
public:
    finder_t(const input_t &input, const options_t &o)
        : input_(input), codes_only_(o.codes_only), include_(pattern_of("--include", o.include)),
          exclude_(pattern_of("--exclude", o.exclude)) {}

    sources_t find() {
        // Codes first, as scales are entries of their own.
        std::vector<bool> is_taken(input_.entries.size());
        for (size_t i = 0; i < is_taken.size(); i++) find_codes(i, is_taken);
        for (size_t i = 0; i < is_taken.size(); i++)
            if (!is_taken[i]) find_values(i);
        return std::move(found_);
    }

private:
    const input_t &input_;
    const bool codes_only_;
    const std::optional<patterns::pattern_t> include_, exclude_;
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

    void find_codes(size_t i, std::vector<bool> &is_taken) {
        const entry_t &e = input_.entries[i];
        if (e.is_packed) return;
        for (const naming_t &n : namings) {
            if (!ends_with(e.name, n.codes)) continue;
            const std::string name = without(e.name, n.codes);
            const std::optional<size_t> scales = input_.find(name + n.scales);
            if (!scales || input_.entries[*scales].is_packed) continue;
            is_taken[i] = is_taken[*scales] = true;
            if (is_unwanted(name)) return;
            if (input_.find(name))
                throw std::runtime_error(
                        "codes " + shown(e.name) + " would be packed as " + shown(name)
                        + ", and there is a tensor of that name already; --exclude leaves them out");
            source_t s = quantised(name, input_, i, *scales);
            if (s.shape.is_empty())
                leave("without elements", e.name);
            else
                found_.packed.push_back(std::move(s));
            return;
        }
    }

    void find_values(size_t i) {
        const entry_t &e = input_.entries[i];
        const size_t n = e.dims.size();
        if (e.is_packed) return leave("packed already", e.name);
        if (n < 2) return leave("vector or scalar", e.name);
        if (!is_high_precision(e.data_type)) return leave("of another type than F32, BF16 and F16", e.name);
        if (n > 3) return leave("of more than three dims", e.name);
        if (e.size == 0) return leave("without elements", e.name);
        if (codes_only_) return leave("no codes", e.name);
        if (is_unwanted(e.name)) return;
        if (!include_)
            if (const char *what = weight_rule::left_as(e.name, e.dims)) return leave(what, e.name);
        const int64_t out = e.dims[n - 2], in = e.dims[n - 1];
        found_.packed.push_back(
                {e.name, n == 3 ? shape_t::batch(e.dims[0], out, in) : shape_t::matrix(out, in), e.data_type,
                        nullptr, i, std::nullopt});
    }
};

} // namespace

sources_t find_sources(const input_t &input, const options_t &o) { return finder_t(input, o).find(); }

} // namespace mxdnn_pack

// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are weights, and which are quantised already.
#include "commands.hpp"

#include <regex>
#include <stdexcept>

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::dtype_t;
using safetensors::tensor_t;

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
    dtype_t dtype;
    const char *format;
    int codes_per_element;
};
constexpr stored_t stored[] = {
        {dtype_t::u8, "mxfp4", 2},
        {dtype_t::f4, "mxfp4", 1},
        {dtype_t::f8_e4m3, "mxfp8", 1},
        {dtype_t::f8_e5m2, "mxfp8_e5m2", 1},
        {dtype_t::i8, "mxint8", 1},
};

bool ends_with(const std::string &s, const std::string &end) {
    return s.size() > end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

std::string text(const std::vector<int64_t> &shape) {
    std::string s;
    for (const int64_t d : shape) s += (s.empty() ? "[" : ", ") + std::to_string(d);
    return s + "]";
}

// Codes and scales as one source; throws when the scales do not fit the codes.
source_t quantised(const std::string &name, const tensor_t &codes, const tensor_t &scales) {
    const stored_t *how = nullptr;
    for (const stored_t &s : stored)
        if (s.dtype == codes.dtype) how = &s;
    if (!how)
        throw std::runtime_error("codes " + safetensors::shown(codes.name) + " are " + name_of(codes.dtype)
                                 + "; known are U8 (two FP4 codes), F4, F8_E4M3, F8_E5M2 and I8");
    source_t r;
    r.name = name;
    r.format = &find_format(how->format);
    r.type = r.format->element;
    r.values = &codes;
    r.scales = &scales;
    const size_t n = scales.shape.size();
    if (n != 2 && n != 3)
        throw std::runtime_error("scales " + safetensors::shown(scales.name) + " have shape "
                                 + text(scales.shape)
                                 + "; expected [out, in / block] or [experts, out, in / block]");
    if (scales.dtype != dtype_t::u8 && scales.dtype != dtype_t::f8_e8m0)
        throw std::runtime_error("scales " + safetensors::shown(scales.name) + " are " + name_of(scales.dtype)
                                 + "; the e8m0 scales of " + r.format->name + " are stored as U8 or F8_E8M0");
    // The codes of a row, however many dims they are split into.
    int64_t in = how->codes_per_element;
    for (size_t i = n - 1; i < codes.shape.size(); i++) in *= codes.shape[i];
    bool fits = codes.shape.size() >= n && codes.shape.size() <= n + 1
                && scales.shape[n - 1] == (in + r.format->block - 1) / r.format->block;
    for (size_t i = 0; fits && i + 1 < n; i++) fits = codes.shape[i] == scales.shape[i];
    if (!fits)
        throw std::runtime_error("codes " + safetensors::shown(codes.name) + " " + text(codes.shape)
                                 + " and scales " + safetensors::shown(scales.name) + " " + text(scales.shape)
                                 + " do not belong together: a scale is due for every "
                                 + std::to_string(r.format->block) + " codes of a row");
    r.shape = {n == 3 ? scales.shape[0] : 0, in, scales.shape[n - 2]};
    return r;
}

bool high_precision(dtype_t t, dt &type) {
    switch (t) {
    case dtype_t::f32: type = dt::f32; return true;
    case dtype_t::bf16: type = dt::bf16; return true;
    case dtype_t::f16: type = dt::f16; return true;
    default: return false;
    }
}

} // namespace

std::vector<source_t> find_sources(const safetensors::file_t &file, const options_t &o) {
    std::regex include, exclude;
    try {
        include.assign(o.include);
        exclude.assign(
                o.exclude.empty() ? "[^\\s\\S]" : o.exclude); // without --exclude: what matches nothing
    } catch (const std::regex_error &e) {
        throw std::runtime_error(
                std::string("--include and --exclude take regular expressions: ") + e.what());
    }
    const auto wanted = [&](const std::string &name) {
        return std::regex_search(name, include) && !std::regex_search(name, exclude);
    };
    std::vector<source_t> sources;
    for (const tensor_t &t : file.index().tensors) {
        bool codes = false;
        for (const naming_t &n : namings) {
            if (!ends_with(t.name, n.codes)) continue;
            const std::string name = t.name.substr(0, t.name.size() - std::string(n.codes).size());
            const tensor_t *scales = file.index().find(name + n.scales);
            if (!scales) continue;
            codes = true;
            if (wanted(name)) sources.push_back(quantised(name, t, *scales));
            break;
        }
        source_t s{};
        const bool matrix = (t.shape.size() == 2 || t.shape.size() == 3) && t.size() > 0;
        if (codes || o.codes_only || !matrix || !high_precision(t.dtype, s.type) || !wanted(t.name)) continue;
        const size_t n = t.shape.size();
        s.name = t.name;
        s.shape = {n == 3 ? t.shape[0] : 0, t.shape[n - 1], t.shape[n - 2]};
        s.values = &t;
        sources.push_back(s);
    }
    return sources;
}

} // namespace mxdnn_pack

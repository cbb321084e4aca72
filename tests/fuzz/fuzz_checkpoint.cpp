// SPDX-License-Identifier: Apache-2.0
// Checkpoints in the layouts that mxdnn-pack reads, mostly right, with types, shapes, names or bytes that are
// not: refused with a sentence, or every weight has as many bytes as its descriptor says, and as many values
// as the file has room for. Every other input is an index.
#include "fuzz/fuzz.hpp"

#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/safetensors.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/examine_checkpoint.hpp"
#include "mxdnn-pack/rules.hpp"

using namespace mxdnn_pack;
using namespace weight_formats;
using fuzz::choices_t;
using fuzz::examine_checkpoint;
using fuzz::refused_or;

namespace {

using dims_t = std::vector<int64_t>;

struct tensor_t {
    std::string name, dtype;
    dims_t dims;
    std::vector<int64_t> numbers; // its content, where that matters
};

struct layout_t {
    std::vector<tensor_t> tensors;
    std::string metadata; // of w
};

// [out, in] or [experts, out, in] with another last dim.
struct shape_draw_t {
    dims_t lead;
    int64_t out, in;
    dims_t rows(int64_t last) const {
        dims_t d = lead;
        d.push_back(out);
        d.push_back(last);
        return d;
    }
    dims_t columns(int64_t groups) const {
        dims_t d = lead;
        d.push_back(groups);
        d.push_back(out);
        return d;
    }
};

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

layout_t mx_pair(choices_t &c, const shape_draw_t &s) {
    const std::string codes = c.of({"_blocks", ".blocks", ".qdata"});
    return {{{"w" + codes, "U8", s.rows(s.in / 2), {}}, {codes[0] == '_'            ? "w_scales"
                                                                : codes == ".qdata" ? "w.scale"
                                                                                    : "w.scales",
                                                                "U8", s.rows(up(s.in, 32)), {}}},
            ""};
}
layout_t floats(choices_t &c, const shape_draw_t &s) {
    const bool is_packed = c.one_in(2), is_nvfp4 = c.one_in(2);
    return {{{is_packed ? "w_packed" : "w", "U8", s.rows(is_nvfp4 || c.one_in(2) ? s.in / 2 : s.in / 4 * 3),
                     {}},
                    {"w_scale", is_nvfp4 ? "F8_E4M3" : "U8", s.rows(up(s.in, is_nvfp4 ? 16 : 32)), {}},
                    {is_packed ? "w_global_scale" : "w_scale_2", "F32", c.one_in(2) ? dims_t{1} : dims_t{},
                            {}}},
            ""};
}
layout_t scaled(choices_t &c, const shape_draw_t &s) {
    const dims_t one = c.one_in(2) ? s.lead : dims_t{1};
    dims_t blocks = s.rows(up(s.in, 128));
    blocks[blocks.size() - 2] = up(s.out, 128);
    return {{{"w", c.of({"F8_E4M3", "F8_E5M2", "I8"}), s.rows(s.in), {}},
                    {c.of({"w_scale", "w_scale_inv"}), c.of({"F32", "BF16", "F16", "F8_E8M0", "U8"}),
                            c.of<dims_t>({one, s.rows(1), s.rows(up(s.in, 32)), blocks}), {}}},
            ""};
}
layout_t pack_quantized(choices_t &c, const shape_draw_t &s) {
    const int64_t group = c.of<int64_t>({32, 64, 96, 512}), groups = up(s.in, group);
    dims_t shape = s.rows(s.in), zeros = s.rows(groups);
    zeros[zeros.size() - 2] = up(s.out, 8);
    layout_t l{{{"w_packed", "I32", s.rows(up(s.in, 8)), {}},
                       {"w_scale", c.of({"BF16", "F16", "F32"}), s.rows(groups), {}},
                       {"w_shape", "I64", {int64_t(shape.size())}, shape}},
            ""};
    if (c.one_in(2)) l.tensors.push_back({"w_zero_point", "I32", zeros, {}});
    return l;
}
layout_t words(choices_t &c, const shape_draw_t &s) {
    const int64_t group = c.of({32, 64, 128}), groups = up(s.in, group);
    const bool is_awq = c.one_in(2);
    layout_t l{{{"w.qweight", "I32", is_awq ? dims_t{s.in, s.out / 8} : dims_t{s.in / 8, s.out}, {}},
                       {"w.qzeros", "I32", {groups, s.out / 8}, {}},
                       {"w.scales", c.of({"F16", "BF16"}), {groups, s.out}, {}}},
            ""};
    if (c.one_in(2)) {
        tensor_t g_idx{"w.g_idx", "I32", {s.in}, {}};
        for (int64_t k = 0; k < s.in; k++) g_idx.numbers.push_back(k / group);
        l.tensors.push_back(g_idx);
    }
    return l;
}
layout_t hqq(choices_t &c, const shape_draw_t &s) {
    const int64_t bits = c.of({4, 8}), axis = c.below(2), group = c.of({16, 64}), count = s.out * s.in,
                  groups = count / group;
    const int64_t rows = axis ? groups : group, columns = axis ? group : groups;
    return {{{"w.W_q", "U8", {rows * bits / 8, columns}, {}}, {"w.scale", "F16", {groups, 1}, {}},
                    {"w.zero", "F16", {groups, 1}, {}}, {"w.shape", "I64", {2}, {s.out, s.in}},
                    {"w.nbits", "I32", {}, {bits}}, {"w.axis", "U8", {}, {axis}}},
            ""};
}
layout_t torchao(choices_t &c, const shape_draw_t &s) {
    const bool is_swizzled = c.one_in(2);
    const std::string flag = std::string("\"is_swizzled_scales\":") + (is_swizzled ? "true" : "false");
    int64_t rows = s.out;
    for (const int64_t e : s.lead) rows *= e;
    const auto scale = [&](const char *dtype, int64_t columns) -> tensor_t {
        return {"m._w_scale", dtype,
                is_swizzled ? dims_t{up(rows, 128) * up(columns, 4) * 512} : s.rows(columns), {}};
    };
    const auto describe = [&](const std::string &type, const std::string &data) {
        return "{\"_type\":\"" + type + "\",\"_data\":{" + data + "}}";
    };
    switch (c.below(4)) {
    case 0:
        return {{{"m._w_qdata", "U8", s.rows(s.in / 2), {}}, scale("F8_E8M0", up(s.in, 32))},
                describe("MXTensor",
                        "\"block_size\":32,\"elem_dtype\":{\"_data\":\"float4_e2m1fn_x2\"}," + flag)};
    case 1:
        return {{{"m._w_qdata", "U8", s.rows(s.in / 2), {}}, scale("F8_E4M3", up(s.in, 16)),
                        {"m._w_per_tensor_scale", "F32", {}, {}}},
                describe("NVFP4Tensor", "\"block_size\":16," + flag)};
    case 2:
        return {{{"m._w_qdata", "I8", s.rows(s.in / 2), {}},
                        {"m._w_scale", "BF16", s.columns(up(s.in, 64)), {}},
                        {"m._w_zero_point", "BF16", s.columns(up(s.in, 64)), {}}},
                describe("Int4Tensor", "\"block_size\":[1,64]")};
    default:
        return {{{"m._w_qdata", "F8_E4M3", s.rows(s.in), {}}, {"m._w_scale", "F32", s.rows(1), {}}},
                describe(c.of({"Float8Tensor", "Int8Tensor"}), "")};
    }
}

constexpr layout_t (*layouts[])(choices_t &, const shape_draw_t &) = {
        mx_pair, floats, scaled, pack_quantized, words, hqq, torchao};

void spoil(choices_t &c, layout_t &l) {
    tensor_t &t = c.of(l.tensors);
    switch (c.below(8)) {
    case 0: t.dtype = safetensors::dtypes[c.below(std::size(safetensors::dtypes))].name; break;
    case 1: t.dims.push_back(c.of({0, 1, 2})); break;
    case 2:
        if (!t.dims.empty()) t.dims.pop_back();
        break;
    case 3:
        if (!t.dims.empty())
            c.of(t.dims) = c.of<int64_t>({0, 1, 3, 7, 8, 64, 200, int64_t(1) << 31, int64_t(1) << 62, -1});
        break;
    case 4:
        if (!t.dims.empty()) c.of(t.dims) += c.of({-1, 1});
        break;
    case 5: t.name += "x"; break;
    case 6:
        if (!t.numbers.empty())
            c.of(t.numbers) =
                    c.of<int64_t>({-1, 0, 1, 7, 255, INT32_MAX, INT64_MAX, INT64_MIN, int64_t(1) << 32});
        break;
    case 7:
        if (!l.metadata.empty()) l.metadata[size_t(c.below(int64_t(l.metadata.size())))] = char(c.below(256));
        break;
    }
}

std::string file_of(choices_t &c, const layout_t &l) {
    using namespace safetensors;
    const auto quoted = [](const std::string &text) {
        std::string s = "\"";
        for (const char x : text) (s += x == '"' || x == '\\' ? "\\" : "") += x;
        return s + "\"";
    };
    std::string header = "{", data;
    if (!l.metadata.empty()) header += "\"__metadata__\":{\"m.w\":" + quoted(l.metadata) + "},";
    for (const tensor_t &t : l.tensors) {
        uint64_t size = 0;
        if (!size_in_bytes(*find_dtype(t.dtype), t.dims, size).ok() || size > 1 << 18)
            size = 0; // which does not fit
        std::string bytes(size_t(size), '\0');
        const size_t each = t.numbers.empty() ? 1 : size_t(size) / t.numbers.size();
        for (size_t i = 0; i < bytes.size(); i++) bytes[i] = char(c.bits());
        for (size_t i = 0; i < t.numbers.size(); i++)
            std::memcpy(bytes.data() + i * each, &t.numbers[i], std::min<size_t>(each, 8));
        header += quoted(t.name) + ":{\"dtype\":\"" + t.dtype + "\",\"shape\":" + to_string(t.dims)
                  + ",\"data_offsets\":[" + std::to_string(data.size()) + ","
                  + std::to_string(data.size() + bytes.size()) + "]},";
        data += bytes;
    }
    header.back() = '}';
    std::string file(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    return file + header + data;
}

// A file without a name; its path while this lives.
class memory_file_t {
public:
    explicit memory_file_t(const std::string &bytes) : fd_(memfd_create("checkpoint", 0)) {
        FUZZ_CHECK(fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == ssize_t(bytes.size()));
    }
    ~memory_file_t() { close(fd_); }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    const int fd_;
};

struct folder_t {
    folder_t() { FUZZ_CHECK(mkdtemp(path.data())); }
    ~folder_t() { rmdir(path.c_str()); }
    std::string path = (std::filesystem::temp_directory_path() / "fuzz-checkpoint-XXXXXX").string();
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices_t c(data, size);
    if (size && data[0] == '{') { // an index, in a folder where nothing that it may name is
        static const folder_t own;
        const std::string &folder = own.path;
        const std::string path = folder + "/model.safetensors.index.json";
        FILE *f = fopen(path.c_str(), "wb");
        FUZZ_CHECK(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
        refused_or([&] {
            const checkpoint_t checkpoint(folder);
            FUZZ_CHECK(!"an index without files is opened");
        });
        unlink(path.c_str());
        return 0;
    }
    shape_draw_t s{{}, c.of({0, 1, 8, 40, 64, 72, 136}), c.of({0, 1, 8, 32, 64, 96, 100, 256})};
    if (c.one_in(3)) s.lead = {c.of({0, 1, 2, 3})};
    layout_t l = c.of(layouts)(c, s);
    for (int64_t n = c.of({0, 1, 1, 2}); n > 0; n--) spoil(c, l);
    if (c.one_in(8)) l.tensors.erase(l.tensors.begin() + c.below(int64_t(l.tensors.size())));
    if (l.tensors.empty()) return 0;
    const std::string bytes = file_of(c, l);
    const memory_file_t file(bytes);
    // Nothing has codes of less than four bits.
    refused_or([&] { examine_checkpoint(file.path(), 2 * bytes.size()); });
    // Rules from anywhere.
    options_t o;
    o.rules = {std::string(data, data + size)};
    refused_or([&] { (void)format_rules_t(o).find("model.layers.0.mlp.up_proj.weight"); });
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<fuzz_input_t> seeds;
    const auto add = [&](const std::string &text) { seeds.emplace_back(text.begin(), text.end()); };
    for (uint8_t i = 0; i < 64; i++)
        seeds.push_back({i, uint8_t(i * 7), uint8_t(i * 3), uint8_t(i * 5), i, uint8_t(i * 11)});
    add("{\"weight_map\": {\"a.weight\": \"model-00001-of-00002.safetensors\", \"b\": \"b.safetensors\"}}");
    add("{\"metadata\": {\"total_size\": 12}, \"weight_map\": {\"a\": \"../b\", \"c\\u0000\": \"d\"}}");
    add("(a|b)*[c-d]{2,3}=mxfp4");
    return seeds;
}

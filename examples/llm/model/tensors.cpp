// SPDX-License-Identifier: Apache-2.0
#include "tensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <stdexcept>

#include "common/contents.hpp"
#include "common/safetensors.hpp"
#include "mxdnn-pack/importers/layer.hpp"

namespace llm {

using mxdnn_pack::entry_t;
using safetensors::shown;
using weight_formats::codes_t;
using weight_formats::format_t;
using weight_formats::piece_t;

namespace {

std::string words(const std::vector<int64_t> &dims) {
    std::string s = "[";
    for (size_t i = 0; i < dims.size(); i++) s += (i ? ", " : "") + std::to_string(dims[i]);
    return s + "]";
}
std::string words(const shape_t &s) {
    return s.experts ? words(std::vector<int64_t>{*s.experts, s.out, s.in})
                     : words(std::vector<int64_t>{s.out, s.in});
}
bool same(const shape_t &a, const shape_t &b) {
    return a.experts == b.experts && a.out == b.out && a.in == b.in;
}

// gpt-oss in high precision has its experts as [experts, in, out].
constexpr const char *transposed = "mlp\\.experts\\.(gate_up_proj|down_proj)$";

size_t element_size(data_type_t type) { return type == data_type_t::f32 ? 4 : 2; }

mxdnn::engine target_of(const mxdnn::memory::desc &packed) {
    return mxdnn::engine::for_target(packed.get_target());
}

// What packed weights are worth; nothing of those whose panels are not known.
std::optional<source_t> unpacked(const mxdnn_pack::checkpoint_t &checkpoint, size_t index) {
    const entry_t &e = checkpoint.entries[index];
    const mxdnn::memory::desc desc = checkpoint.desc_of(e);
    const auto shape = weight_formats::shape_of(desc);
    // Parts as small as they can be, so that little is unpacked in vain.
    const auto parts = std::make_shared<const weight_formats::unpacking_t>(
            1, desc, target_of(desc), checkpoint.reader(index), data_type_t::f32);
    if (!shape || !parts->has_pieces()) return std::nullopt;
    source_t s{e.name, "packed", *shape, {index}, std::nullopt, {}, data_type_t::f32, {}, {}};
    const int64_t columns = parts->piece(0).columns, of_matrix = (shape->out + columns - 1) / columns;
    s.values = [parts, columns, of_matrix, row = size_t(shape->in) * sizeof(float)](
                       const piece_t &p, void *to) {
        auto *bytes = static_cast<uint8_t *>(to);
        for (int64_t first = p.first; first < p.first + p.columns;) {
            const auto part = size_t(p.matrix * of_matrix + first / columns);
            const piece_t whole = parts->piece(part);
            const int64_t end = std::min(p.first + p.columns, whole.first + whole.columns);
            std::vector<uint8_t> values;
            parts->make(part, [&](const void *more, uint64_t size) {
                const auto *b = static_cast<const uint8_t *>(more);
                values.insert(values.end(), b, b + size);
            });
            memcpy(bytes, values.data() + size_t(first - whole.first) * row, size_t(end - first) * row);
            bytes += size_t(end - first) * row;
            first = end;
        }
    };
    return s;
}

class file_tensors_t : public tensors_t {
public:
    explicit file_tensors_t(const std::string &model) : checkpoint_(model) {
        path_ = checkpoint_.path;
        names_ = &find_names(
                [&](const std::string &name) { return checkpoint_.find(name).has_value(); }, path_);
        mxdnn_pack::options_t options;
        options.transposed = transposed;
        sources_ = find_weights(checkpoint_, options, [](const std::string &) { return true; });
        for (size_t i = 0; i < checkpoint_.entries.size(); i++)
            if (checkpoint_.entries[i].is_packed)
                if (auto s = unpacked(checkpoint_, i))
                    sources_.emplace(checkpoint_.entries[i].name, std::move(*s));
    }
    file_tensors_t(const file_tensors_t &) = delete; // sources read the checkpoint
    file_tensors_t &operator=(const file_tensors_t &) = delete;

    bool has(const std::string &name) const override;
    void check_floats(const std::string &name, const std::vector<int64_t> &dims) const override;
    void check_weights(const std::string &name, const shape_t &shape) const override;
    std::vector<float> floats(const std::string &name, const std::vector<int64_t> &dims) const override;
    const source_t &source(const std::string &name, const shape_t &shape) const override;
    std::string packed_format(const std::string &name) const override;
    packed_t packed(const std::string &name, const shape_t &shape, engine_t &engine) const override;

private:
    mxdnn_pack::checkpoint_t checkpoint_;
    std::map<std::string, source_t> sources_;

    mxdnn::memory::desc packed_desc(size_t index, const shape_t &shape) const;
    [[noreturn]] void refuse(const std::string &why) const { throw std::runtime_error(path_ + ": " + why); }
};

bool file_tensors_t::has(const std::string &name) const {
    return checkpoint_.find(name).has_value() || sources_.count(name);
}

void file_tensors_t::check_floats(const std::string &name, const std::vector<int64_t> &dims) const {
    const auto index = checkpoint_.find(name);
    if (!index) refuse("there is no tensor " + shown(name));
    const entry_t &e = checkpoint_.entries[*index];
    if (e.is_packed || e.dims != dims)
        refuse("tensor " + shown(name) + " is " + (e.is_packed ? "packed" : words(e.dims))
                + ", and the configuration asks for " + words(dims));
    if (e.dtype != "F32" && e.dtype != "BF16" && e.dtype != "F16")
        refuse("tensor " + shown(name) + " is " + e.dtype + "; F32, BF16 and F16 can be read");
}

std::vector<float> file_tensors_t::floats(const std::string &name, const std::vector<int64_t> &dims) const {
    check_floats(name, dims);
    return mxdnn_pack::read_floats(checkpoint_, *checkpoint_.find(name));
}

void file_tensors_t::check_weights(const std::string &name, const shape_t &shape) const {
    const auto index = checkpoint_.find(name);
    if (!index || !checkpoint_.entries[*index].is_packed)
        (void)source(name, shape);
    else
        (void)packed_desc(*index, shape);
}

mxdnn::memory::desc file_tensors_t::packed_desc(size_t index, const shape_t &shape) const {
    const entry_t &e = checkpoint_.entries[index];
    const mxdnn::memory::desc desc = checkpoint_.desc_of(e);
    const auto have = weight_formats::shape_of(desc);
    if (!have || !same(*have, shape))
        refuse("packed weights " + shown(e.name) + " are " + (have ? words(*have) : "of another shape")
                + ", and the configuration asks for " + words(shape));
    return desc;
}

const source_t &file_tensors_t::source(const std::string &name, const shape_t &shape) const {
    const auto it = sources_.find(name);
    if (it == sources_.end()) {
        for (const char *blocks : {"_blocks", ".blocks"})
            if (checkpoint_.find(name + blocks))
                refuse("tensor " + shown(name + blocks) + " has no "
                        + shown(name + (blocks[0] == '_' ? "_scales" : ".scales")) + " beside it");
        const auto entry = checkpoint_.find(name);
        if (!entry) refuse("there is no tensor " + shown(name));
        refuse("tensor " + mxdnn_pack::described(checkpoint_.entries[*entry])
                + " is nothing that weights can be read from");
    }
    if (!same(it->second.shape, shape))
        refuse("weights " + shown(name) + " are " + words(it->second.shape)
                + ", and the configuration asks for " + words(shape));
    for (const size_t i : it->second.entries)
        if (const entry_t &e = checkpoint_.entries[i]; e.is_packed) checkpoint_.file_of(e).verify(e.index);
    return it->second;
}

std::string file_tensors_t::packed_format(const std::string &name) const {
    const auto index = checkpoint_.find(name);
    if (!index || !checkpoint_.entries[*index].is_packed) return "";
    const mxdnn::memory::desc desc = checkpoint_.desc_of(checkpoint_.entries[*index]);
    const auto format = weight_formats::format_of(desc, target_of(desc));
    return format ? format->name : desc.to_string();
}

packed_t file_tensors_t::packed(const std::string &name, const shape_t &shape, engine_t &engine) const {
    const size_t index = checkpoint_.find(name).value();
    const entry_t &e = checkpoint_.entries[index];
    const mxdnn::container &file = checkpoint_.file_of(e);
    packed_t p{packed_desc(index, shape), {}};
    safetensors::check_usable(path() + ": packed weights " + name, p.desc, engine.engine());
    file.verify(e.index);
    const void *bytes = file.get_data(e.index);
    if (engine.engine().get_kind() == mxdnn::engine::kind::cpu) {
        // Where they are mapped.
        p.bytes = {std::shared_ptr<void>(const_cast<void *>(bytes), [file](void *) {}), p.desc.get_size()};
    } else {
        p.bytes = engine.allocate(p.desc.get_size());
        engine.write(p.bytes.as<void>(), bytes, p.bytes.size);
    }
    return p;
}

} // namespace

std::unique_ptr<tensors_t> read_tensors(const std::string &model) {
    return std::make_unique<file_tensors_t>(model);
}

namespace {

// Whether one tensor can have rows of both.
bool are_alike(const source_t &a, const source_t &b) {
    if (a.format.has_value() != b.format.has_value() || a.type != b.type) return false;
    return !a.format || (a.format->name == b.format->name && !a.format->global_scale);
}

// Bytes of a row of the whole; 0 where it has other than whole bytes.
size_t row_size(int64_t columns, data_type_t type) {
    if (type == data_type_t::undef) return 0;
    const size_t two = weight_formats::as_stored(shape_t::matrix(2, columns), type).get_size(),
                 one = weight_formats::as_stored(shape_t::matrix(1, columns), type).get_size();
    return two == 2 * one ? one : 0;
}

} // namespace

std::optional<source_t> interleaved(const source_t &even, const source_t &odd) {
    if (!are_alike(even, odd)) return std::nullopt;
    source_t all = even;
    all.shape.out *= 2;
    // Row 2r is row r of the first, 2r + 1 that of the second. Calls read(source, its piece, its parity).
    const auto split = [sources = std::array<source_t, 2>{even, odd}](const piece_t &p, const auto &read) {
        for (int64_t i = 0; i < 2; i++) {
            const int64_t begin = (p.first + 1 - i) / 2, end = (p.first + p.columns + 1 - i) / 2;
            if (begin < end) read(sources[size_t(i)], piece_t{p.matrix, begin, end - begin}, i);
        }
    };
    const auto spread = [](const void *rows, size_t size, const piece_t &p, const piece_t &part, int64_t i,
                                void *to) {
        for (int64_t r = 0; to && r < part.columns; r++)
            memcpy(static_cast<uint8_t *>(to) + size_t(2 * (part.first + r) + i - p.first) * size,
                    static_cast<const uint8_t *>(rows) + size_t(r) * size, size);
    };
    const int64_t in = all.shape.in;
    if (all.format) {
        const format_t f = *all.format;
        const int64_t blocks = (in + f.block - 1) / f.block;
        const size_t codes = row_size(in, f.element), scales = row_size(blocks, f.scale),
                     zero_points = row_size(blocks, f.zero_point);
        if (!codes || !scales || (f.has_zero_points() && !zero_points)) return std::nullopt;
        all.codes = [=](const piece_t &p, const codes_t &to) {
            split(p, [&](const source_t &s, const piece_t &part, int64_t i) {
                thread_local weight_formats::code_room_t room;
                const codes_t from = room.of(f, shape_t::matrix(part.columns, in));
                s.codes(part, from);
                spread(from.codes, codes, p, part, i, to.codes);
                spread(from.scales, scales, p, part, i, to.scales);
                spread(from.zero_points, zero_points, p, part, i, to.zero_points);
            });
        };
    } else {
        const size_t size = size_t(in) * element_size(all.type);
        all.values = [=](const piece_t &p, void *to) {
            split(p, [&](const source_t &s, const piece_t &part, int64_t i) {
                std::vector<uint8_t> rows(size_t(part.columns) * size);
                s.values(part, rows.data());
                spread(rows.data(), size, p, part, i, to);
            });
        };
    }
    return all;
}

std::optional<source_t> concatenated(const std::vector<const source_t *> &parts) {
    source_t all = *parts[0];
    if (parts.size() == 1) return all;
    all.shape.out = 0;
    for (const source_t *s : parts) {
        if (!are_alike(all, *s)) return std::nullopt;
        all.shape.out += s->shape.out;
    }
    // Calls read(part, its piece, rows of the whole piece before it).
    std::vector<source_t> sources;
    sources.reserve(parts.size());
    for (const source_t *s : parts) sources.push_back(*s);
    const auto split = [sources](const piece_t &p, const auto &read) {
        int64_t before = 0;
        for (const source_t &s : sources) {
            const int64_t begin = std::max(p.first, before),
                          end = std::min(p.first + p.columns, before + s.shape.out);
            if (begin < end) read(s, piece_t{p.matrix, begin - before, end - begin}, begin - p.first);
            before += s.shape.out;
        }
    };
    const int64_t in = all.shape.in;
    if (all.format) {
        const format_t f = *all.format;
        all.codes = [split, f, in](const piece_t &p, const codes_t &to) {
            split(p, [&](const source_t &s, const piece_t &part, int64_t rows) {
                const auto after = [&](void *bytes, int64_t columns, data_type_t type) -> void * {
                    if (!bytes || !rows) return bytes;
                    const shape_t before = shape_t::matrix(rows, columns);
                    return static_cast<uint8_t *>(bytes) + weight_formats::as_stored(before, type).get_size();
                };
                const int64_t blocks = (in + f.block - 1) / f.block;
                s.codes(part, {after(to.codes, in, f.element), after(to.scales, blocks, f.scale),
                                      after(to.zero_points, blocks, f.zero_point), nullptr});
            });
        };
    } else {
        const size_t size = size_t(in) * element_size(all.type);
        all.values = [split, size](const piece_t &p, void *to) {
            split(p, [&](const source_t &s, const piece_t &part, int64_t rows) {
                s.values(part, static_cast<uint8_t *>(to) + size_t(rows) * size);
            });
        };
    }
    return all;
}

} // namespace llm

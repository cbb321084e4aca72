// SPDX-License-Identifier: Apache-2.0
#include "safetensors.hpp"

#include <algorithm>
#include <set>

#include "common/container/utf8.hpp"
#include "in_order.hpp"
#include "replaced_file.hpp"

namespace safetensors {

struct planned_t {
    const out_tensor_t *tensor;
    const dtype_t *dtype;
    uint64_t bytes; // that fill() gives
    uint64_t begin;
    uint64_t end() const { return begin + bytes; }
};

namespace {

bool is_packed(const out_tensor_t &t) { return ends_with(t.name, packed_suffix); }

uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

// What a name or a text of the header may not be, or null.
const char *wrong_text(const std::string &text) {
    if (mxdnn::impl::utf8::first_invalid(text.data(), text.size()) != text.size()) return " is not UTF-8";
    return text.find('\0') != text.npos ? " has a NUL" : nullptr;
}

status_t check(const out_tensor_t &t, const dtype_t *dtype) {
    if (const char *wrong = wrong_text(t.name))
        return {kind_t::bad_utf8, "the tensor name " + shown(t.name) + wrong};
    if (t.name.empty() || t.name.size() > max_name_size)
        return {kind_t::bad_name, "the tensor name " + shown(t.name) + " has " + std::to_string(t.name.size())
                                          + " bytes; names have 1 to " + std::to_string(max_name_size)};
    if (!dtype)
        return {kind_t::unknown_dtype,
                "tensor " + shown(t.name) + " has the unknown dtype " + shown(t.dtype)};
    if (t.shape.size() > max_ndims)
        return {kind_t::bad_shape,
                "tensor " + shown(t.name) + " has more than " + std::to_string(max_ndims) + " dimensions"};
    if (is_packed(t) && (t.dtype != "U8" || t.shape.size() != 1 || t.shape[0] % int64_t(packed_alignment)))
        return {kind_t::bad_shape, "tensor " + shown(t.name)
                                           + " is packed, so it must be U8 of one dimension, a multiple of "
                                           + std::to_string(packed_alignment)};
    return {};
}

status_t plan(const std::vector<out_tensor_t> &tensors, std::vector<planned_t> &planned) {
    std::set<std::string> names;
    for (const auto &t : tensors) {
        planned_t p{&t, find_dtype(t.dtype), 0, 0};
        if (status_t s = check(t, p.dtype); !s.ok()) return s;
        if (t.name == "__metadata__" || !names.insert(t.name).second)
            return {kind_t::duplicate_name, "the tensor name " + shown(t.name) + " is taken already"};
        if (const status_t s = size_in_bytes(*p.dtype, t.shape, p.bytes); !s.ok())
            return {s.kind, "tensor " + shown(t.name) + " " + s.message};
        planned.push_back(p);
    }
    // Widest first keeps every tensor aligned for its type, since there are no gaps to align with.
    std::sort(planned.begin(), planned.end(), [](const planned_t &a, const planned_t &b) {
        if (is_packed(*a.tensor) != is_packed(*b.tensor)) return is_packed(*a.tensor);
        if (a.dtype->bits != b.dtype->bits) return a.dtype->bits > b.dtype->bits;
        return a.tensor->name < b.tensor->name;
    });
    uint64_t offset = 0;
    for (planned_t &p : planned) {
        p.begin = offset;
        if (__builtin_add_overflow(offset, p.bytes, &offset)
                || offset > uint64_t(INT64_MAX) - 2 * max_header_size)
            return {kind_t::bad_shape, "the tensors have more than 2^63 bytes together"};
    }
    return {};
}

void append_quoted(std::string &json, const std::string &text) {
    json += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') json += '\\';
        if (static_cast<unsigned char>(c) < 0x20) {
            static constexpr char digits[] = "0123456789abcdef";
            (json += "\\u00") += digits[c >> 4];
            json += digits[c & 15];
        } else {
            json += c;
        }
    }
    json += '"';
}

status_t header_text(const std::vector<planned_t> &planned,
        const std::map<std::string, std::string> &metadata, std::string &text) {
    text = "{";
    const auto key = [&](const std::string &name) {
        if (text.back() != '{') text += ',';
        append_quoted(text, name);
        text += ':';
    };
    if (!metadata.empty()) {
        key("__metadata__");
        text += '{';
        for (const auto &m : metadata) {
            for (const auto *s : {&m.first, &m.second})
                if (const char *wrong = wrong_text(*s))
                    return {kind_t::bad_utf8, "the metadata of " + shown(m.first) + wrong};
            key(m.first);
            append_quoted(text, m.second);
        }
        text += '}';
    }
    for (const auto &p : planned) {
        key(p.tensor->name);
        text += "{\"dtype\":\"" + std::string(p.dtype->name) + "\",\"shape\":[";
        for (const int64_t d : p.tensor->shape) (text += text.back() == '[' ? "" : ",") += std::to_string(d);
        text += "],\"data_offsets\":[" + std::to_string(p.begin) + "," + std::to_string(p.end()) + "]}";
    }
    text += '}';
    text.resize(round_up(8 + text.size(), packed_alignment) - 8, ' ');
    if (text.size() > max_header_size)
        return {kind_t::header_too_long, "the header would have " + std::to_string(text.size())
                                                 + " bytes; at most " + std::to_string(max_header_size)
                                                 + " are read"};
    return {};
}

} // namespace

out_tensor_t from_memory(std::string name, std::string dtype, std::vector<int64_t> shape, const void *bytes) {
    uint64_t size = 0;
    if (const dtype_t *d = find_dtype(dtype)) (void)size_in_bytes(*d, shape, size); // begin() refuses it
    return {std::move(name), std::move(dtype), std::move(shape), 1,
            [=](size_t, const sink_t &sink) { return sink(bytes, size); }};
}

struct writer_t::state_t {
    state_t(std::string path, std::vector<out_tensor_t> t) : tensors(std::move(t)), file(std::move(path)) {}

    const std::vector<out_tensor_t> tensors;
    replaced_file_t file;
    std::vector<planned_t> planned;
    uint64_t data = 0, total = 0;

    // A part of a tensor; `done` are the bytes that those before it have given.
    status_t fill(const planned_t &p, size_t part, uint64_t &done, const in_order::turn_t &wait_for_turn,
            const progress_t &progress);
};

writer_t::writer_t(std::string path, std::vector<out_tensor_t> tensors)
    : state_(std::make_unique<state_t>(std::move(path), std::move(tensors))) {}
writer_t::~writer_t() = default;

uint64_t writer_t::total_bytes() const { return state_->total; }

status_t writer_t::begin(const std::map<std::string, std::string> &metadata) {
    state_t &w = *state_;
    if (status_t s = plan(w.tensors, w.planned); !s.ok()) return s;
    std::string header;
    if (status_t s = header_text(w.planned, metadata, header); !s.ok()) return s;
    w.data = 8 + header.size();
    w.total = w.planned.empty() ? 0 : w.planned.back().end();
    if (status_t s = w.file.open(); !s.ok()) return s;
    return w.file.reserve(w.data + w.total);
}

status_t writer_t::state_t::fill(const planned_t &p, size_t part, uint64_t &done,
        const in_order::turn_t &wait_for_turn, const progress_t &progress) {
    const out_tensor_t &t = *p.tensor;
    status_t s = t.fill(part, [&](const void *bytes, uint64_t size) -> status_t {
        wait_for_turn();
        if (size > p.bytes - done)
            return {kind_t::wrong_size,
                    "tensor " + shown(t.name) + " gives more than its " + std::to_string(p.bytes) + " bytes"};
        if (status_t w = file.write_at(data + p.begin + done, bytes, size); !w.ok()) return w;
        done += size;
        return progress ? progress(p.begin + done, total) : status_t{};
    });
    if (!s.ok() || part + 1 < t.parts) return s;
    wait_for_turn();
    if (done != p.bytes)
        return {kind_t::wrong_size, "tensor " + shown(t.name) + " gives " + std::to_string(done) + " of its "
                                            + std::to_string(p.bytes) + " bytes"};
    return {};
}

status_t writer_t::fill(
        const std::map<std::string, std::string> &metadata, unsigned threads, const progress_t &progress) {
    state_t &w = *state_;
    // Jobs are the parts of all tensors, in the order of the file.
    std::vector<size_t> first_job;
    size_t jobs = 0;
    for (const planned_t &p : w.planned) {
        first_job.push_back(jobs);
        if (p.bytes && !p.tensor->parts)
            return {kind_t::wrong_size, "tensor " + shown(p.tensor->name) + " gives 0 of its "
                                                + std::to_string(p.bytes) + " bytes"};
        jobs += p.tensor->parts;
    }
    std::vector<uint64_t> done(w.planned.size());
    try {
        in_order::run(jobs, threads, [&](size_t job, const in_order::turn_t &wait_for_turn) {
            const size_t i =
                    size_t(std::upper_bound(first_job.begin(), first_job.end(), job) - first_job.begin()) - 1;
            status_t s = w.fill(w.planned[i], job - first_job[i], done[i], wait_for_turn, progress);
            if (!s.ok()) throw status_t(std::move(s));
        });
    } catch (const status_t &s) {
        return s;
    }
    std::string header;
    if (status_t s = header_text(w.planned, metadata, header); !s.ok()) return s;
    if (8 + header.size() != w.data)
        return {kind_t::wrong_size, "the metadata changed its length while the file was written"};
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = uint8_t(uint64_t(header.size()) >> 8 * i);
    if (status_t s = w.file.write_at(0, length, 8); !s.ok()) return s;
    return w.file.write_at(8, header.data(), header.size());
}

status_t writer_t::commit(bool only_new) { return state_->file.commit(only_new); }

status_t write(const std::string &path, const std::vector<out_tensor_t> &tensors,
        const std::map<std::string, std::string> &metadata, const progress_t &progress) {
    writer_t w(path, tensors);
    if (status_t s = w.begin(metadata); !s.ok()) return s;
    if (status_t s = w.fill(metadata, 1, progress); !s.ok()) return s;
    return w.commit();
}

} // namespace safetensors

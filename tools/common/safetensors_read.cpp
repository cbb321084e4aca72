// SPDX-License-Identifier: Apache-2.0
// Reading safetensors: header bounds first, then a streaming parse that knows which value may stand where,
// then a check that the tensors tile the data exactly.
#include "safetensors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "utf8.hpp"

namespace safetensors {

namespace {

struct dtype_row_t {
    const char *name;
    int bits;
};

// In the order of dtype_t.
constexpr dtype_row_t dtypes[] = {{"BOOL", 8}, {"U8", 8}, {"I8", 8}, {"U16", 16}, {"I16", 16}, {"U32", 32},
        {"I32", 32}, {"U64", 64}, {"I64", 64}, {"F16", 16}, {"BF16", 16}, {"F32", 32}, {"F64", 64},
        {"C64", 64}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
        {"F4", 4}};
static_assert(sizeof(dtypes) / sizeof(dtypes[0]) == size_t(dtype_t::f4) + 1);

status_t fail(kind_t kind, std::string message) { return {kind, std::move(message)}; }

std::string str(uint64_t v) { return std::to_string(v); }

std::string shape_str(const std::vector<int64_t> &shape) {
    std::string s = "[";
    for (size_t i = 0; i < shape.size(); i++) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + "]";
}

// Receives the JSON events. Every value has exactly one place where it may stand; the first that stands
// elsewhere ends the parse, so nesting and size are bounded by the format and not by the input.
class header_sax_t : public nlohmann::json_sax<nlohmann::json> {
public:
    std::vector<tensor_t> tensors;
    std::map<std::string, std::string> metadata;
    status_t status;

    bool null() override { return misplaced("null"); }
    bool boolean(bool) override { return misplaced("a boolean"); }
    bool binary(binary_t &) override { return misplaced("binary data"); }
    bool number_float(number_float_t, const string_t &text) override {
        if (at_ == at_t::shape)
            return stop(kind_t::bad_shape, number_text(text) + ", not an integer below 2^63");
        if (at_ == at_t::offsets)
            return stop(kind_t::bad_offsets, number_text(text) + ", not an integer below 2^64");
        return misplaced("a number");
    }
    bool number_integer(number_integer_t v) override {
        if (at_ == at_t::shape)
            return stop(kind_t::bad_shape, number_text(std::to_string(v)) + ", which is negative");
        if (at_ == at_t::offsets)
            return stop(kind_t::bad_offsets, number_text(std::to_string(v)) + ", which is negative");
        return misplaced("a number");
    }
    bool number_unsigned(number_unsigned_t v) override {
        if (at_ == at_t::shape) {
            if (v > uint64_t(INT64_MAX))
                return stop(kind_t::bad_shape, number_text(str(v)) + ", not an integer below 2^63");
            if (tensors.back().shape.size() == max_ndims)
                return stop(kind_t::bad_shape, what() + " has more than " + str(max_ndims) + " dimensions");
            tensors.back().shape.push_back(int64_t(v));
            return true;
        }
        if (at_ == at_t::offsets) {
            if (offsets_ == 2) return stop(kind_t::bad_offsets, what() + " has more than two data_offsets");
            (offsets_++ ? tensors.back().end : tensors.back().begin) = v;
            return true;
        }
        return misplaced("a number");
    }
    bool string(string_t &v) override {
        if (at_ == at_t::metadata_value) {
            metadata[field_] = v;
            at_ = at_t::metadata;
            return true;
        }
        if (at_ != at_t::dtype) return misplaced("a string");
        for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
            if (v == dtypes[i].name) {
                tensors.back().dtype = dtype_t(i);
                at_ = at_t::tensor;
                return true;
            }
        return stop(kind_t::unknown_dtype, what() + " has the unknown dtype " + shown(v));
    }
    bool start_object(size_t) override {
        if (at_ == at_t::start)
            at_ = at_t::top;
        else if (at_ == at_t::metadata_object)
            at_ = at_t::metadata;
        else if (at_ == at_t::tensor_object)
            at_ = at_t::tensor;
        else
            return misplaced("an object");
        return true;
    }
    bool key(string_t &name) override {
        if (at_ == at_t::top) {
            if (!names_.insert(name).second)
                return stop(kind_t::duplicate_name, "the name " + shown(name) + " is there twice");
            at_ = name == "__metadata__" ? at_t::metadata_object : at_t::tensor_object;
            if (at_ == at_t::tensor_object) {
                tensors.emplace_back();
                tensors.back().name = name;
                seen_ = 0;
            }
            return true;
        }
        if (at_ == at_t::metadata) {
            if (metadata.count(name))
                return stop(kind_t::duplicate_name, "the metadata key " + shown(name) + " is there twice");
            field_ = name;
            at_ = at_t::metadata_value;
            return true;
        }
        const struct {
            const char *name;
            at_t at;
            int bit;
        } fields[] = {{"dtype", at_t::dtype, 1}, {"shape", at_t::shape_array, 2},
                {"data_offsets", at_t::offsets_array, 4}};
        for (const auto &f : fields)
            if (name == f.name) {
                if (seen_ & f.bit)
                    return stop(kind_t::duplicate_name, what() + " has the field " + shown(name) + " twice");
                seen_ |= f.bit;
                at_ = f.at;
                return true;
            }
        return stop(kind_t::unknown_field, what() + " has the unknown field " + shown(name)
                                                   + "; dtype, shape and data_offsets belong there");
    }
    bool end_object() override {
        if (at_ == at_t::tensor && seen_ != 7)
            return stop(kind_t::missing_field, what() + " has no "
                                                       + (!(seen_ & 1)        ? "dtype"
                                                               : !(seen_ & 2) ? "shape"
                                                                              : "data_offsets"));
        at_ = at_ == at_t::top ? at_t::end : at_t::top;
        return true;
    }
    bool start_array(size_t) override {
        if (at_ == at_t::shape_array) {
            at_ = at_t::shape;
        } else if (at_ == at_t::offsets_array) {
            at_ = at_t::offsets;
            offsets_ = 0;
        } else {
            return misplaced("an array");
        }
        return true;
    }
    bool end_array() override {
        if (at_ == at_t::offsets && offsets_ != 2)
            return stop(kind_t::bad_offsets,
                    what() + " has " + str(unsigned(offsets_)) + " data_offsets, not two");
        at_ = at_t::tensor;
        return true;
    }
    bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &) override {
        return stop(kind_t::bad_json, "the header is not valid JSON near its byte " + str(position));
    }

private:
    enum class at_t {
        start,
        top,
        end,
        metadata_object,
        metadata,
        metadata_value,
        tensor_object,
        tensor,
        dtype,
        shape_array,
        shape,
        offsets_array,
        offsets
    };
    at_t at_ = at_t::start;
    std::set<std::string> names_;
    std::string field_;
    int seen_ = 0, offsets_ = 0;

    std::string what() const { return "tensor " + shown(tensors.back().name); }
    std::string number_text(const std::string &text) const {
        return what() + (at_ == at_t::shape ? " has the dimension " : " has the data offset ") + text;
    }
    bool stop(kind_t kind, std::string message) {
        if (status.ok()) status = fail(kind, std::move(message));
        return false;
    }
    bool misplaced(const char *found) {
        std::string place;
        switch (at_) {
        case at_t::metadata_object: place = "__metadata__ is "; break;
        case at_t::metadata_value: place = "the metadata value of " + shown(field_) + " is "; break;
        case at_t::tensor_object: place = "the entry of " + what() + " is "; break;
        case at_t::dtype: place = "the dtype of " + what() + " is "; break;
        case at_t::shape_array: place = "the shape of " + what() + " is "; break;
        case at_t::shape: place = "a dimension of " + what() + " is "; break;
        case at_t::offsets_array: place = "data_offsets of " + what() + " is "; break;
        case at_t::offsets: place = "a data offset of " + what() + " is "; break;
        default: place = "the header goes on with "; break;
        }
        static constexpr const char *wanted[] = {"an object", "", "", "an object", "", "a string",
                "an object", "", "a string", "an array", "an integer", "an array", "an integer"};
        const char *need = wanted[size_t(at_)];
        return stop(kind_t::wrong_type, place + found + (*need ? std::string(", not ") + need : ""));
    }
};

status_t check_tensor(const tensor_t &t, uint64_t data_size) {
    const std::string what = "tensor " + shown(t.name);
    if (t.end < t.begin)
        return fail(kind_t::bad_offsets,
                what + " ends at byte " + str(t.end) + ", before its begin at " + str(t.begin));
    if (t.end > data_size)
        return fail(kind_t::past_end, what + " ends at byte " + str(t.end) + " of the data, which has "
                                              + str(data_size) + " bytes");
    uint64_t bits = uint64_t(bits_of(t.dtype));
    for (int64_t d : t.shape)
        if (__builtin_mul_overflow(bits, uint64_t(d), &bits))
            return fail(kind_t::bad_shape,
                    what + " of shape " + shape_str(t.shape) + " is larger than 2^61 bytes");
    if (bits % 8)
        return fail(kind_t::bad_shape, what + " of shape " + shape_str(t.shape) + " and dtype "
                                               + name_of(t.dtype) + " is not a whole number of bytes");
    if (bits / 8 != t.size())
        return fail(kind_t::wrong_size, what + " of shape " + shape_str(t.shape) + " and dtype "
                                                + name_of(t.dtype) + " needs " + str(bits / 8)
                                                + " bytes; its data_offsets give " + str(t.size()));
    return {};
}

} // namespace

const char *to_string(kind_t kind) {
    static constexpr const char *names[] = {"ok", "io", "too_short", "header_too_long", "header_past_end",
            "bad_utf8", "bad_json", "wrong_type", "duplicate_name", "unknown_field", "missing_field",
            "unknown_dtype", "bad_shape", "bad_offsets", "past_end", "wrong_size", "overlap", "gap",
            "not_found"};
    return names[size_t(kind)];
}

const char *name_of(dtype_t dtype) { return dtypes[size_t(dtype)].name; }
int bits_of(dtype_t dtype) { return dtypes[size_t(dtype)].bits; }

std::string shown(const std::string &name) {
    std::string s = "'";
    for (size_t i = 0; i < name.size(); i++) {
        if (s.size() > 120) return s + "…' (" + str(name.size()) + " bytes)";
        const unsigned char c = (unsigned char)name[i];
        if (c >= 0x20 && c < 0x7f) {
            s += char(c);
        } else {
            char hex[8];
            snprintf(hex, sizeof(hex), "\\x%02x", c);
            s += hex;
        }
    }
    return s + "'";
}

const tensor_t *index_t::find(const std::string &name) const {
    const auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : &tensors[it->second];
}

status_t parse(const uint8_t *bytes, uint64_t size, index_t &index) {
    if (size < 8)
        return fail(kind_t::too_short, "a safetensors file has at least 8 bytes, this one has " + str(size));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
    if (length > max_header_size)
        return fail(kind_t::header_too_long, "the header's length is given as " + str(length)
                                                     + " bytes; at most " + str(max_header_size)
                                                     + " are read");
    if (length > size - 8)
        return fail(kind_t::header_past_end, "the header's length is given as " + str(length)
                                                     + " bytes, but only " + str(size - 8) + " follow");
    const uint8_t *header = bytes + 8;
    const size_t bad = utf8::first_invalid(header, size_t(length));
    if (bad != length) return fail(kind_t::bad_utf8, "the header is not UTF-8 at its byte " + str(bad));

    if (length == 0 || header[0] != '{') return fail(kind_t::bad_json, "the header does not begin with '{'");
    // The parser takes a NUL for the end of its input, whatever follows.
    if (const void *nul = memchr(header, 0, size_t(length)))
        return fail(kind_t::bad_json, "the header has a NUL at its byte "
                                              + str(uint64_t(static_cast<const uint8_t *>(nul) - header)));
    header_sax_t sax;
    if (!nlohmann::json::sax_parse(header, header + length, &sax)) return sax.status;

    const uint64_t data_size = size - 8 - length;
    auto &tensors = sax.tensors;
    for (const auto &t : tensors)
        if (const status_t s = check_tensor(t, data_size); !s.ok()) return s;
    std::sort(tensors.begin(), tensors.end(), [](const tensor_t &a, const tensor_t &b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t covered = 0;
    const std::string *before = nullptr;
    for (auto &t : tensors) {
        if (t.begin != covered)
            return fail(t.begin < covered ? kind_t::overlap : kind_t::gap,
                    "tensor " + shown(t.name) + " begins at byte " + str(t.begin) + " of the data, but "
                            + (before ? "tensor " + shown(*before) + " ends at byte " + str(covered)
                                      : "data begins at byte 0"));
        covered = t.end;
        before = &t.name;
        t.data = header + length + t.begin;
    }
    if (covered != data_size)
        return fail(
                kind_t::gap, str(data_size - covered) + " bytes at the end of the file belong to no tensor");

    index.by_name.clear();
    for (size_t i = 0; i < tensors.size(); i++) index.by_name[tensors[i].name] = i;
    index.tensors = std::move(tensors);
    index.metadata = std::move(sax.metadata);
    return {};
}

file_t::~file_t() {
    if (bytes_) munmap(const_cast<uint8_t *>(bytes_), size_t(size_));
}

void file_t::swap(file_t &other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(index_, other.index_);
}

status_t file_t::open(const std::string &path, file_t &file) {
    const auto io = [&](const char *doing) {
        return fail(kind_t::io, std::string("cannot ") + doing + " " + path + ": " + strerror(errno));
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io("open");
    struct stat st;
    file_t f;
    f.path_ = path;
    status_t s;
    if (fstat(fd, &st) != 0) {
        s = io("look at");
    } else if (!S_ISREG(st.st_mode)) {
        s = fail(kind_t::io, path + " is not a regular file");
    } else if (st.st_size > 0) {
        void *p = mmap(nullptr, size_t(st.st_size), PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            s = io("map");
        } else {
            f.bytes_ = static_cast<const uint8_t *>(p);
            f.size_ = uint64_t(st.st_size);
        }
    }
    ::close(fd);
    if (!s.ok()) return s;
    s = parse(f.bytes_, f.size_, f.index_);
    if (!s.ok()) return fail(s.kind, path + ": " + s.message);
    file = std::move(f);
    return {};
}

void file_t::forget(const void *bytes, uint64_t size) const {
    // Generously: who touches a page gets pages around it, too, and as the mapping is shared and read-only
    // nothing is lost with those that others use.
    constexpr uintptr_t around = 2 << 20;
    const uintptr_t first = uintptr_t(bytes_), last = first + size_,
                    begin = uintptr_t(bytes) / around * around,
                    end = (uintptr_t(bytes) + size + around - 1) / around * around;
    const uintptr_t from = std::max(first, begin);
    (void)madvise(reinterpret_cast<void *>(from), std::min(last, end) - from, MADV_DONTNEED);
}

status_t file_t::get(const std::string &name, const tensor_t *&tensor) const {
    tensor = index_.find(name);
    if (!tensor) return fail(kind_t::not_found, path_ + " has no tensor " + shown(name));
    return {};
}

} // namespace safetensors

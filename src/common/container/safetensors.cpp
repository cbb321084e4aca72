// SPDX-License-Identifier: Apache-2.0
// One pass over the header that knows which value may stand where, so that nesting is no deeper than the
// format; then a check that the tensors tile the data exactly.
#include "common/container/safetensors.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <set>
#include <utility>

#include "common/container/utf8.hpp"

namespace mxdnn {
namespace impl {
namespace safetensors {

namespace {

status_t fail(kind_t kind, std::string message) { return {kind, std::move(message)}; }

std::string str(uint64_t v) { return std::to_string(v); }

std::string of_tensor(const tensor_t &t) { return "tensor " + shown(t.name); }

// Every function returns whether to go on. If not, `status` has the reason.
class header_t {
public:
    header_t(const uint8_t *header, uint64_t size) : begin_(header), p_(header), end_(header + size) {}

    std::vector<tensor_t> tensors;
    std::map<std::string, std::string> metadata;
    status_t status;

    bool parse() {
        std::set<std::string> names;
        if (!object("", [&](std::string &name) {
                if (!names.insert(name).second)
                    return stop(kind_t::duplicate_name, "the name " + shown(name) + " is there twice");
                return name == "__metadata__" ? read_metadata() : read_tensor(name);
            }))
            return false;
        skip_blanks();
        return p_ == end_ || bad_json();
    }

private:
    const uint8_t *const begin_, *p_, *const end_;

    bool stop(kind_t kind, std::string message) {
        if (status.ok()) status = fail(kind, std::move(message));
        return false;
    }
    bool bad_json() {
        return stop(
                kind_t::bad_json, "the header is not valid JSON near its byte " + str(uint64_t(p_ - begin_)));
    }

    void skip_blanks() {
        while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\n' || *p_ == '\r')) p_++;
    }
    bool skip(char c) {
        skip_blanks();
        if (p_ == end_ || *p_ != uint8_t(c)) return bad_json();
        p_++;
        return true;
    }
    bool is_next(char c) {
        skip_blanks();
        return p_ < end_ && *p_ == uint8_t(c);
    }
    bool skip_word(const char *word) {
        const size_t n = std::strlen(word);
        if (size_t(end_ - p_) < n || std::memcmp(p_, word, n) != 0) return bad_json();
        p_ += n;
        return true;
    }

    // The kind of the next value, for messages; null if there is none.
    const char *next_value() {
        skip_blanks();
        if (p_ == end_) return nullptr;
        switch (*p_) {
        case '"': return "a string";
        case '{': return "an object";
        case '[': return "an array";
        case 't': return skip_word("true") ? "a boolean" : nullptr;
        case 'f': return skip_word("false") ? "a boolean" : nullptr;
        case 'n': return skip_word("null") ? "null" : nullptr;
        default: return *p_ == '-' || (*p_ >= '0' && *p_ <= '9') ? "a number" : nullptr;
        }
    }
    // Whether the next value is `wanted`, as `place` requires.
    bool expect(const char *wanted, const std::string &place) {
        const char *found = next_value();
        if (!found) return status.ok() ? bad_json() : false;
        if (std::strcmp(found, wanted) == 0) return true;
        return stop(kind_t::wrong_type, place + " is " + found + ", not " + wanted);
    }

    // Calls member(key), which reads the value, for each key of an object.
    template <typename F>
    bool object(const std::string &place, F &&member) {
        if (!expect("an object", place)) return false;
        p_++;
        if (is_next('}')) return ++p_, true;
        do {
            std::string key;
            skip_blanks();
            if (p_ == end_ || *p_ != '"') return bad_json();
            if (!string(key) || !skip(':') || !member(key)) return false;
        } while (is_next(',') && ++p_);
        return skip('}');
    }
    // Calls element(), which reads the element, for each element of an array.
    template <typename F>
    bool array(const std::string &place, F &&element) {
        if (!expect("an array", place)) return false;
        p_++;
        if (is_next(']')) return ++p_, true;
        do {
            if (!element()) return false;
        } while (is_next(',') && ++p_);
        return skip(']');
    }

    // The value of the next four hexadecimal digits; 0 if they are not there, which no escape may stand for.
    uint32_t hex4() {
        uint32_t v = 0;
        for (int i = 0; i < 4; i++, p_++) {
            if (p_ == end_) return 0;
            const uint8_t c = *p_, lower = c | 0x20;
            const int digit = c >= '0' && c <= '9'           ? c - '0'
                              : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                             : -1;
            if (digit < 0) return 0;
            v = v << 4 | uint32_t(digit);
        }
        return v;
    }
    bool escape(std::string &s) {
        if (p_ == end_) return bad_json();
        static constexpr char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
        const uint8_t c = *p_;
        if (c != 'u') {
            const void *at = std::memchr(letters, c, sizeof(letters) - 1);
            if (!at) return bad_json();
            s += values[static_cast<const char *>(at) - letters];
            p_++;
            return true;
        }
        p_++;
        uint32_t v = hex4();
        if (v >= 0xd800 && v < 0xdc00) { // the first half of a pair
            if (end_ - p_ < 2 || p_[0] != '\\' || p_[1] != 'u') return bad_json();
            p_ += 2;
            const uint32_t low = hex4();
            if (low < 0xdc00 || low > 0xdfff) return bad_json();
            v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
        } else if (v == 0 || (v >= 0xdc00 && v <= 0xdfff)) {
            return bad_json(); // names are C strings: they cannot contain NUL
        }
        utf8::append(s, v);
        return true;
    }
    // Reads the string that begins here.
    bool string(std::string &s) {
        s.clear();
        for (p_++; p_ < end_;) {
            const uint8_t *const plain = p_;
            while (p_ < end_ && *p_ >= 0x20 && *p_ != '"' && *p_ != '\\') p_++;
            s.append(reinterpret_cast<const char *>(plain), size_t(p_ - plain));
            if (p_ == end_ || *p_ < 0x20) break;
            if (*p_++ == '"') return true;
            if (!escape(s)) return false;
        }
        return bad_json();
    }

    bool digits() {
        const uint8_t *const first = p_;
        while (p_ < end_ && *p_ >= '0' && *p_ <= '9') p_++;
        return p_ > first || bad_json();
    }
    // Reads a number that has to be an integer from 0 to `most`. `what` names it in messages.
    bool number(const std::string &place, kind_t kind, const std::string &what, uint64_t most,
            const char *limit, uint64_t &v) {
        if (!expect("a number", place)) return false;
        const uint8_t *const first = p_;
        if (*p_ == '-') p_++;
        const uint8_t *const whole = p_;
        if (!digits()) return false;
        if (*whole == '0' && p_ - whole > 1) return bad_json();
        bool is_whole = whole == first;
        if (p_ < end_ && *p_ == '.') {
            is_whole = false;
            p_++;
            if (!digits()) return false;
        }
        if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
            is_whole = false;
            p_++;
            if (p_ < end_ && (*p_ == '+' || *p_ == '-')) p_++;
            if (!digits()) return false;
        }
        v = 0;
        for (const uint8_t *d = whole; is_whole && d < p_; d++)
            is_whole = !__builtin_mul_overflow(v, 10u, &v) && !__builtin_add_overflow(v, *d - '0', &v);
        if (is_whole && v <= most) return true;
        std::string text(reinterpret_cast<const char *>(first), std::min<size_t>(size_t(p_ - first), 40));
        if (p_ - first > 40) text += "…";
        return stop(kind, what + text + ", not an integer from 0 to " + limit);
    }

    bool read_metadata() {
        return object("__metadata__", [&](std::string &key) {
            if (metadata.count(key))
                return stop(kind_t::duplicate_name, "the metadata key " + shown(key) + " is there twice");
            if (!expect("a string", "the metadata value of " + shown(key))) return false;
            return string(metadata[key]);
        });
    }

    bool read_shape(tensor_t &t) {
        return array("the shape of " + of_tensor(t), [&] {
            uint64_t v = 0;
            if (!number("a dimension of " + of_tensor(t), kind_t::bad_shape,
                        of_tensor(t) + " has the dimension ", uint64_t(INT64_MAX), "2^63 - 1", v))
                return false;
            if (t.shape.size() == max_ndims)
                return stop(
                        kind_t::bad_shape, of_tensor(t) + " has more than " + str(max_ndims) + " dimensions");
            t.shape.push_back(int64_t(v));
            return true;
        });
    }

    bool read_offsets(tensor_t &t) {
        unsigned count = 0;
        if (!array("data_offsets of " + of_tensor(t), [&] {
                uint64_t v = 0;
                if (!number("a data offset of " + of_tensor(t), kind_t::bad_offsets,
                            of_tensor(t) + " has the data offset ", UINT64_MAX, "2^64 - 1", v))
                    return false;
                if (count == 2)
                    return stop(kind_t::bad_offsets, of_tensor(t) + " has more than two data_offsets");
                (count++ ? t.end : t.begin) = v;
                return true;
            }))
            return false;
        return count == 2
               || stop(kind_t::bad_offsets, of_tensor(t) + " has " + str(count) + " data_offsets, not two");
    }

    bool read_dtype(tensor_t &t) {
        std::string name;
        if (!expect("a string", "the dtype of " + of_tensor(t)) || !string(name)) return false;
        t.dtype = find_dtype(name);
        return t.dtype || stop(kind_t::unknown_dtype, of_tensor(t) + " has the unknown dtype " + shown(name));
    }

    bool read_tensor(const std::string &name) {
        if (name.empty() || name.size() > max_name_size)
            return stop(kind_t::bad_name, "the name of tensor " + shown(name) + " has " + str(name.size())
                                                  + " bytes; 1 to " + str(max_name_size) + " are read");
        tensors.emplace_back();
        tensor_t &t = tensors.back();
        t.name = name;
        static constexpr const char *fields[] = {"dtype", "shape", "data_offsets"};
        unsigned seen = 0;
        if (!object("the entry of " + of_tensor(t), [&](const std::string &field) {
                for (unsigned i = 0; i < 3; i++) {
                    if (field != fields[i]) continue;
                    if (seen & 1u << i)
                        return stop(kind_t::duplicate_name,
                                of_tensor(t) + " has the field " + shown(field) + " twice");
                    seen |= 1u << i;
                    return i == 0 ? read_dtype(t) : i == 1 ? read_shape(t) : read_offsets(t);
                }
                return stop(kind_t::unknown_field, of_tensor(t) + " has the unknown field " + shown(field)
                                                           + "; dtype, shape and data_offsets belong there");
            }))
            return false;
        for (unsigned i = 0; i < 3; i++)
            if (!(seen & 1u << i)) return stop(kind_t::missing_field, of_tensor(t) + " has no " + fields[i]);
        return true;
    }
};

status_t check_tensor(const tensor_t &t, uint64_t data_size) {
    if (t.end < t.begin)
        return fail(kind_t::bad_offsets,
                of_tensor(t) + " ends at byte " + str(t.end) + ", before its begin at " + str(t.begin));
    if (t.end > data_size)
        return fail(kind_t::past_end, of_tensor(t) + " ends at byte " + str(t.end)
                                              + " of the data, which has " + str(data_size) + " bytes");
    uint64_t bytes = 0;
    if (status_t s = size_in_bytes(*t.dtype, t.shape, bytes); !s.ok())
        return fail(s.kind, of_tensor(t) + " " + s.message);
    if (bytes != t.size())
        return fail(kind_t::wrong_size, of_tensor(t) + " of shape " + to_string(t.shape).substr(0, 100)
                                                + " and dtype " + t.dtype->name + " needs " + str(bytes)
                                                + " bytes; its data_offsets give " + str(t.size()));
    return {};
}

} // namespace

const tensor_t *index_t::find(const std::string &name) const {
    const auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : &tensors[it->second];
}

status_t parse_prefix(const uint8_t *prefix, uint64_t file_size, uint64_t &header_size) {
    if (file_size < prefix_size)
        return fail(
                kind_t::too_short, "a safetensors file has at least 8 bytes, this one has " + str(file_size));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | prefix[i];
    if (length > max_header_size)
        return fail(kind_t::header_too_long, "not a safetensors file: the header's length is given as "
                                                     + str(length) + " bytes; at most " + str(max_header_size)
                                                     + " are read");
    if (length > file_size - prefix_size)
        return fail(kind_t::header_past_end, "the header's length is given as " + str(length)
                                                     + " bytes, but only " + str(file_size - prefix_size)
                                                     + " follow");
    header_size = length;
    return {};
}

status_t parse_header(const uint8_t *header, uint64_t header_size, uint64_t file_size, index_t &index) {
    const size_t bad = utf8::first_invalid(header, size_t(header_size));
    if (bad != header_size) return fail(kind_t::bad_utf8, "the header is not UTF-8 at its byte " + str(bad));
    if (header_size == 0 || header[0] != '{')
        return fail(kind_t::bad_json, "the header does not begin with '{'");
    header_t parser(header, header_size);
    if (!parser.parse()) return parser.status;

    const uint64_t data_size = file_size - prefix_size - header_size;
    auto &tensors = parser.tensors;
    for (const auto &t : tensors)
        if (const status_t s = check_tensor(t, data_size); !s.ok()) return s;
    std::sort(tensors.begin(), tensors.end(), [](const tensor_t &a, const tensor_t &b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t covered = 0;
    const tensor_t *before = nullptr;
    for (const auto &t : tensors) {
        if (t.begin != covered)
            return fail(t.begin < covered ? kind_t::overlap : kind_t::gap,
                    of_tensor(t) + " begins at byte " + str(t.begin) + " of the data, but "
                            + (before ? of_tensor(*before) + " ends at byte " + str(covered)
                                      : "data begins at byte 0"));
        covered = t.end;
        before = &t;
    }
    if (covered != data_size)
        return fail(
                kind_t::gap, str(data_size - covered) + " bytes at the end of the file belong to no tensor");

    index.data_offset = prefix_size + header_size;
    index.by_name.clear();
    for (size_t i = 0; i < tensors.size(); i++) index.by_name[tensors[i].name] = i;
    index.tensors = std::move(tensors);
    index.metadata = std::move(parser.metadata);
    return {};
}

status_t parse(const uint8_t *bytes, uint64_t size, index_t &index) {
    uint64_t header_size = 0;
    if (const status_t s = parse_prefix(bytes, size, header_size); !s.ok()) return s;
    return parse_header(bytes + prefix_size, header_size, size, index);
}

} // namespace safetensors
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// A GGUF file is a header and then the data of its tensors. The header has a fixed start, keys with values,
// and a description of each tensor; strings and arrays begin with their length. All numbers are
// little-endian.
#include "gguf.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "common/container/utf8.hpp"
#include "safetensors.hpp"

namespace gguf {

using safetensors::shown;

namespace {

// No real file comes near these.
constexpr uint64_t max_header_size = uint64_t(256) << 20;
constexpr uint64_t max_keys = 1u << 16, max_tensors = 1u << 18;
constexpr uint32_t max_dims = 4;
constexpr uint64_t default_alignment = 32;
constexpr char magic[] = {'G', 'G', 'U', 'F'};
constexpr const char *alignment_key = "general.alignment";

struct type_info_t {
    const char *name;
    uint32_t bytes; // 0 where values have no fixed size
};
constexpr type_info_t types[] = {{"u8", 1}, {"i8", 1}, {"u16", 2}, {"i16", 2}, {"u32", 4}, {"i32", 4},
        {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

const type_info_t &info(type_t type) { return types[size_t(type)]; }

template <typename T>
T load(const uint8_t *from) {
    T v;
    std::memcpy(&v, from, sizeof(T));
    return v;
}

std::string str(uint64_t v) { return std::to_string(v); }

uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

} // namespace

const std::vector<element_t> &elements() {
    // Numbers that are missing here were given to formats that files no longer have.
    static const std::vector<element_t> all = {{0, "F32", 1, 4}, {1, "F16", 1, 2}, {2, "Q4_0", 32, 18},
            {3, "Q4_1", 32, 20}, {6, "Q5_0", 32, 22}, {7, "Q5_1", 32, 24}, {8, "Q8_0", 32, 34},
            {9, "Q8_1", 32, 36}, {10, "Q2_K", 256, 84}, {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144},
            {13, "Q5_K", 256, 176}, {14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66},
            {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50}, {20, "IQ4_NL", 32, 18},
            {21, "IQ3_S", 256, 110}, {22, "IQ2_S", 256, 82}, {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},
            {25, "I16", 1, 2}, {26, "I32", 1, 4}, {27, "I64", 1, 8}, {28, "F64", 1, 8},
            {29, "IQ1_M", 256, 56}, {30, "BF16", 1, 2}, {34, "TQ1_0", 256, 54}, {35, "TQ2_0", 256, 66},
            {39, "MXFP4", 32, 17}, {40, "NVFP4", 64, 36}, {41, "Q1_0", 128, 18}, {42, "Q2_0", 64, 18}};
    return all;
}

// ---- values ----

void value_t::refuse(const std::string &why) const {
    throw std::runtime_error("the GGUF metadata " + shown(std::string(key_)) + " " + why);
}

const uint8_t *value_t::at(size_t i, const char *wanted, bool is_wanted) const {
    if (!is_wanted)
        refuse(std::string(is_array_ ? "is an array of type " : "is of type ") + info(type_).name + ", and "
                + wanted + " is needed");
    if (i >= size_) refuse("has " + str(size_) + " elements, and number " + str(i) + " is needed");
    return bytes_ + (strings_.empty() ? i * info(type_).bytes : strings_[i]);
}

std::string_view value_t::string(size_t i) const {
    const uint8_t *p = at(i, "a string", type_ == type_t::string);
    return {reinterpret_cast<const char *>(p + 8), size_t(load<uint64_t>(p))};
}

bool value_t::boolean(size_t i) const { return *at(i, "a bool", type_ == type_t::boolean) != 0; }

const uint8_t *value_t::integer_at(size_t i) const {
    return at(i, "an integer",
            type_ != type_t::f32 && type_ != type_t::f64 && type_ != type_t::boolean
                    && type_ != type_t::string);
}

int64_t value_t::integer(size_t i) const {
    const uint8_t *p = integer_at(i);
    switch (type_) {
    case type_t::u8: return *p;
    case type_t::i8: return load<int8_t>(p);
    case type_t::u16: return load<uint16_t>(p);
    case type_t::i16: return load<int16_t>(p);
    case type_t::u32: return load<uint32_t>(p);
    case type_t::i32: return load<int32_t>(p);
    default:
        if (type_ == type_t::u64 && load<uint64_t>(p) > uint64_t(INT64_MAX))
            refuse("has " + str(load<uint64_t>(p)) + ", which is beyond 2^63 - 1");
        return load<int64_t>(p);
    }
}

uint64_t value_t::unsigned_integer(size_t i) const {
    if (type_ == type_t::u64) return load<uint64_t>(integer_at(i));
    const int64_t v = integer(i);
    if (v < 0) refuse("has " + std::to_string(v) + ", which is below 0");
    return uint64_t(v);
}

double value_t::number(size_t i) const {
    switch (type_) {
    case type_t::f32: return double(load<float>(at(i, "a number", true)));
    case type_t::f64: return load<double>(at(i, "a number", true));
    case type_t::u64: return double(unsigned_integer(i));
    default: return double(integer(i));
    }
}

// ---- the header ----

// Reads it from front to back; the file is read as far as that goes, and a little more.
class header_t {
public:
    explicit header_t(const input_file_t &file) : file_(file) {}

    void read();

    std::vector<uint8_t> keys;                    // with their values
    std::map<std::string_view, value_t> metadata; // points into `keys`
    std::vector<tensor_t> tensors;

private:
    const input_file_t &file_;
    std::vector<uint8_t> bytes_; // of the file from begin_ on
    uint64_t begin_ = 0, at_ = 0;
    uint64_t alignment_ = default_alignment;

    [[noreturn]] void refuse(const std::string &why) const {
        throw std::runtime_error(file_.name() + ": " + why);
    }
    // The next bytes, until others are taken.
    const uint8_t *take(uint64_t size, const std::string &what);
    template <typename T>
    T number(const std::string &what) {
        return load<T>(take(sizeof(T), what));
    }
    std::string name(const std::string &what);
    type_t type(const std::string &what);
    uint64_t count(const std::string &what, uint64_t most);
    void take_string(const std::string &what);
    uint64_t take_value(const std::string &what, value_t &value); // returns where it is
    void read_keys(uint64_t count);
    void find_alignment();
    tensor_t tensor(uint64_t index);
    void place_tensors();
};

const uint8_t *header_t::take(uint64_t size, const std::string &what) {
    if (size > file_.size() - at_)
        refuse("the file ends within " + what + ", which has " + str(size) + " bytes from byte " + str(at_)
                + " on; the file has " + str(file_.size()));
    const uint64_t end = at_ + size;
    if (end > max_header_size)
        refuse(what + " ends at byte " + str(end) + "; headers of up to " + str(max_header_size)
                + " bytes are read");
    if (end - begin_ > bytes_.size()) {
        const uint64_t have = bytes_.size(), ahead = std::max<uint64_t>(have, 1u << 16);
        bytes_.resize(size_t(std::min(file_.size(), end + ahead) - begin_));
        file_.read(begin_ + have, bytes_.size() - have, bytes_.data() + have);
    }
    const uint8_t *p = bytes_.data() + (at_ - begin_);
    at_ = end;
    return p;
}

std::string header_t::name(const std::string &what) {
    const uint64_t size = number<uint64_t>("the length of " + what);
    if (size == 0 || size > safetensors::max_name_size)
        refuse(what + " has " + str(size) + " bytes; 1 to " + str(safetensors::max_name_size) + " are read");
    const std::string text(reinterpret_cast<const char *>(take(size, what)), size_t(size));
    if (mxdnn::impl::utf8::first_invalid(text.data(), size) != size || text.find('\0') != text.npos)
        refuse(what + ", " + shown(text) + ", is not UTF-8 without NUL");
    return text;
}

type_t header_t::type(const std::string &what) {
    const uint32_t t = number<uint32_t>("the type of " + what);
    if (t >= std::size(types))
        refuse(what + " has the type " + str(t) + "; there are 0 to " + str(std::size(types) - 1));
    return type_t(t);
}

uint64_t header_t::count(const std::string &what, uint64_t most) {
    const uint64_t n = number<uint64_t>("the number of " + what);
    if (n > most) refuse("it has " + str(n) + " " + what + "; up to " + str(most) + " are read");
    return n;
}

void header_t::take_string(const std::string &what) {
    take(number<uint64_t>("the length of a string of " + what), what);
}

uint64_t header_t::take_value(const std::string &what, value_t &value) {
    value.type_ = type(what);
    if (value.type_ == type_t::array) {
        value.is_array_ = true;
        value.type_ = type("the elements of " + what);
        if (value.type_ == type_t::array) refuse(what + " is an array of arrays; none are read");
        // An element has a byte at least, so that a number which the file cannot have ends here.
        value.size_ = size_t(count("elements of " + what, file_.size() - at_));
    }
    const uint64_t at = at_;
    if (value.type_ == type_t::string) {
        for (uint64_t i = 0; i < value.size_; i++) {
            if (value.is_array_) value.strings_.push_back(uint32_t(at_ - at));
            take_string(what);
        }
        return at;
    }
    const uint8_t *p = take(value.size_ * info(value.type_).bytes, what);
    if (value.type_ == type_t::boolean)
        for (size_t i = 0; i < value.size_; i++)
            if (p[i] > 1) refuse(what + " has the bool " + str(p[i]) + "; it must be 0 or 1");
    return at;
}

void header_t::read_keys(uint64_t n) {
    struct place_t {
        uint64_t key, key_size, value;
    };
    std::vector<place_t> places;
    std::vector<value_t> values;
    for (uint64_t i = 0; i < n; i++) {
        const std::string key = name("the key " + str(i));
        const uint64_t key_at = at_ - key.size();
        value_t v;
        const uint64_t at = take_value("the value of " + shown(key), v);
        places.push_back({key_at, key.size(), at});
        values.push_back(std::move(v));
    }
    // What is read of the rest has bytes of its own, so that these stay where they are.
    keys.assign(bytes_.begin(), bytes_.begin() + std::ptrdiff_t(at_));
    begin_ = at_;
    bytes_.clear();
    for (size_t i = 0; i < values.size(); i++) {
        const std::string_view key(
                reinterpret_cast<const char *>(&keys[places[i].key]), size_t(places[i].key_size));
        values[i].key_ = key;
        values[i].bytes_ = keys.data() + places[i].value;
        if (!metadata.emplace(key, std::move(values[i])).second)
            refuse("the key " + shown(std::string(key)) + " is there twice");
    }
}

void header_t::find_alignment() {
    const auto it = metadata.find(alignment_key);
    if (it == metadata.end()) return;
    const value_t &v = it->second;
    if (v.is_array() || v.type() != type_t::u32) refuse(shown(alignment_key) + " is not of type u32");
    alignment_ = uint64_t(v.integer());
    if (alignment_ == 0 || (alignment_ & (alignment_ - 1)))
        refuse(shown(alignment_key) + " is " + str(alignment_) + "; it must be a power of two");
}

tensor_t header_t::tensor(uint64_t index) {
    tensor_t t;
    t.name = name("the name of tensor " + str(index));
    const std::string what = "tensor " + shown(t.name);
    const uint32_t ndims = number<uint32_t>("the dims of " + what);
    if (ndims > max_dims) refuse(what + " has " + str(ndims) + " dims; up to " + str(max_dims) + " are read");
    for (uint32_t d = 0; d < ndims; d++) {
        const auto dim = number<int64_t>("the dims of " + what);
        if (dim < 0) refuse(what + " has the dim " + std::to_string(dim));
        t.dims.insert(t.dims.begin(), dim);
    }
    const uint32_t id = number<uint32_t>("the type of " + what);
    t.element = nullptr;
    for (const element_t &e : elements())
        if (e.id == id) t.element = &e;
    if (!t.element) refuse(what + " has the type " + str(id) + ", which is not a known format");
    const uint64_t block = t.element->block, row = t.dims.empty() ? 1 : uint64_t(t.dims.back());
    if (row % block)
        refuse(what + " has rows of " + str(row) + " elements; " + t.element->name + " has blocks of "
                + str(block));
    // Dims count even if another one is 0, so that products of some of them stay below 2^63.
    uint64_t size = t.element->bytes;
    bool is_empty = row == 0, is_large = false;
    for (size_t d = 0; d < t.dims.size(); d++) {
        const uint64_t n = uint64_t(t.dims[d]) / (d + 1 == t.dims.size() ? block : 1);
        is_empty = is_empty || n == 0;
        is_large = is_large || (n && __builtin_mul_overflow(size, n, &size)) || size > uint64_t(INT64_MAX);
    }
    if (is_large) refuse(what + " of shape " + safetensors::to_string(t.dims) + " is larger than 2^63 bytes");
    t.size = is_empty ? 0 : size;
    t.offset = number<uint64_t>("the offset of " + what);
    if (t.offset % alignment_)
        refuse(what + " begins at byte " + str(t.offset) + " of the data, which is not a multiple of "
                + str(alignment_));
    return t;
}

void header_t::place_tensors() {
    if (tensors.empty()) return;
    const uint64_t data = round_up(at_, alignment_);
    if (data > file_.size())
        refuse("the data begin at byte " + str(data) + ", and the file has " + str(file_.size()) + " bytes");
    const uint64_t room = file_.size() - data;
    std::vector<const tensor_t *> order;
    for (tensor_t &t : tensors) {
        if (t.offset > room || t.size > room - t.offset)
            refuse("tensor " + shown(t.name) + " of " + str(t.size) + " bytes begins at byte " + str(t.offset)
                    + " of the data, which have " + str(room) + " bytes");
        t.offset += data;
        if (t.size > 0) order.push_back(&t);
    }
    std::sort(order.begin(), order.end(),
            [](const tensor_t *a, const tensor_t *b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); i++)
        if (order[i]->offset - order[i - 1]->offset < order[i - 1]->size)
            refuse("the data of tensors " + shown(order[i - 1]->name) + " and " + shown(order[i]->name)
                    + " overlap");
}

void header_t::read() {
    if (std::memcmp(take(sizeof(magic), "the magic number"), magic, sizeof(magic)) != 0)
        refuse("it does not begin with \"GGUF\"");
    const uint32_t version = number<uint32_t>("the version");
    if (version != 2 && version != 3)
        refuse(version && version % (1u << 16) == 0
                        ? "it is big-endian; little-endian files are read"
                        : "it has the version " + str(version) + "; 2 and 3 are read");
    const uint64_t tensor_count = count("tensors", max_tensors), key_count = count("keys", max_keys);
    read_keys(key_count);
    find_alignment();
    for (uint64_t i = 0; i < tensor_count; i++) tensors.push_back(tensor(i));
    place_tensors();
}

// ---- the file ----

file_t::file_t(const std::string &path) : file_(path) {
    header_t header(file_);
    header.read();
    keys_ = std::move(header.keys);
    metadata_ = std::move(header.metadata);
    tensors_ = std::move(header.tensors);
    for (size_t i = 0; i < tensors_.size(); i++)
        if (!by_name_.emplace(tensors_[i].name, i).second)
            throw std::runtime_error(
                    file_.name() + ": the tensor " + shown(tensors_[i].name) + " is there twice");
}

const value_t *file_t::find(std::string_view key) const {
    const auto it = metadata_.find(key);
    return it == metadata_.end() ? nullptr : &it->second;
}

const value_t &file_t::get(std::string_view key) const {
    if (const value_t *v = find(key)) return *v;
    throw std::runtime_error(name() + ": there is no metadata " + shown(std::string(key)));
}

const tensor_t *file_t::find_tensor(std::string_view tensor) const {
    const auto it = by_name_.find(tensor);
    return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

void file_t::read(const tensor_t &t, uint64_t offset, uint64_t size, void *buffer) const {
    if (offset > t.size || size > t.size - offset)
        throw std::runtime_error("tensor " + shown(t.name) + " has " + str(t.size) + " bytes; " + str(size)
                                 + " from byte " + str(offset) + " on are beyond it");
    file_.read(t.offset + offset, size, buffer);
}

bool is_gguf(const std::string &path) {
    if (safetensors::ends_with(path, ".gguf")) return true;
    try {
        const input_file_t file(path);
        char begin[sizeof(magic)];
        file.read(0, sizeof(begin), begin);
        return std::memcmp(begin, magic, sizeof(magic)) == 0;
    } catch (const std::exception &) {
        return false;
    }
}

} // namespace gguf

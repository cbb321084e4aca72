// SPDX-License-Identifier: Apache-2.0
// The safetensors container: a reader that trusts nothing in the file, and a writer that either replaces the
// file completely or leaves the old one whole. Knows nothing of mxdnn but where packed tensors belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace safetensors {

enum class kind_t {
    ok,
    io,              // the system refused; the message has its reason
    too_short,       // no room for the header's length
    header_too_long, // the length is above max_header_size
    header_past_end, // the length is larger than the file
    bad_utf8,
    bad_json,
    wrong_type, // a value of another JSON type than belongs there, nesting included
    duplicate_name,
    unknown_field,
    missing_field,
    unknown_dtype,
    bad_shape,   // negative, too many dimensions, overflow, not a whole number of bytes
    bad_offsets, // negative, reversed
    past_end,    // data beyond the end of the file
    wrong_size,  // dtype x shape is not the size of the data
    overlap,
    gap, // bytes that no tensor owns, at the end too
    not_found
};

const char *to_string(kind_t kind);

// Outcome of a call: a kind for programs and a sentence for people.
struct status_t {
    kind_t kind = kind_t::ok;
    std::string message;
    bool ok() const { return kind == kind_t::ok; }
};

enum class dtype_t : uint8_t {
    boolean,
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    u64,
    i64,
    f16,
    bf16,
    f32,
    f64,
    c64,
    f8_e4m3,
    f8_e5m2,
    f8_e8m0,
    f6_e2m3,
    f6_e3m2,
    f4
};

const char *name_of(dtype_t dtype);
int bits_of(dtype_t dtype);

// A tensor name as it may be shown: quoted, unprintable bytes escaped, shortened when very long.
std::string shown(const std::string &name);

struct tensor_t {
    std::string name;
    dtype_t dtype = dtype_t::u8;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0; // within the data part of the file
    const uint8_t *data = nullptr;
    uint64_t size() const { return end - begin; }
};

constexpr uint64_t max_header_size = 100'000'000;
constexpr size_t max_ndims = 32;

// What a header says, checked against the bytes that follow it.
struct index_t {
    std::vector<tensor_t> tensors; // in the order of their data
    std::map<std::string, std::string> metadata;
    const tensor_t *find(const std::string &name) const; // nullptr when absent

private:
    friend status_t parse(const uint8_t *, uint64_t, index_t &);
    std::map<std::string, size_t> by_name;
};

// Reads a whole container that lies in memory; tensor_t::data points into `bytes`. `index` is filled only on
// success.
status_t parse(const uint8_t *bytes, uint64_t size, index_t &index);

// A container mapped read-only; tensors stay valid as long as the object. Moves, does not copy.
class file_t {
public:
    static status_t open(const std::string &path, file_t &file);
    file_t() = default;
    file_t(file_t &&other) noexcept { swap(other); }
    file_t &operator=(file_t &&other) noexcept {
        swap(other);
        return *this;
    }
    ~file_t();

    const std::string &path() const { return path_; }
    uint64_t size() const { return size_; }
    const index_t &index() const { return index_; }

    // The tensor of that name, or a sentence that names the file.
    status_t get(const std::string &name, const tensor_t *&tensor) const;

    // Takes bytes of the file out of this process's memory; who touches them again has them again.
    void forget(const void *bytes, uint64_t size) const;

private:
    void swap(file_t &other) noexcept;
    std::string path_;
    const uint8_t *bytes_ = nullptr;
    uint64_t size_ = 0;
    index_t index_;
};

// Calls fn(bytes, size) for all of them, some at a time.
template <typename F>
void for_pieces(const void *bytes, uint64_t size, F &&fn) {
    constexpr uint64_t piece = uint64_t(4) << 20;
    for (uint64_t at = 0; at < size; at += piece)
        fn(static_cast<const uint8_t *>(bytes) + at, size - at < piece ? size - at : piece);
}

// Takes the next bytes of a tensor.
using sink_t = std::function<status_t(const void *bytes, uint64_t size)>;

// A tensor to write. `fill` passes exactly dtype x shape bytes to the sink, in any number of pieces.
struct out_tensor_t {
    std::string name;
    dtype_t dtype;
    std::vector<int64_t> shape;
    std::function<status_t(const sink_t &)> fill;
};

// A tensor whose bytes lie in memory until write() has returned.
out_tensor_t from_memory(std::string name, dtype_t dtype, std::vector<int64_t> shape, const void *bytes);
// A tensor of a file, which stays open so long; it is copied in pieces that are forgotten.
out_tensor_t from_file(const file_t &file, const tensor_t &tensor);

// Suffixes of mxdnn's tensors and of the metadata key that holds the checksum (16 hexadecimal digits).
constexpr const char *packed_suffix = ".mxdnn_packed";
constexpr const char *desc_suffix = ".mxdnn_desc";
constexpr const char *checksum_suffix = ".mxdnn_checksum";
constexpr uint64_t packed_alignment = 64;

// Writes a container: tensors named *.mxdnn_packed first, at multiples of 64 bytes from the start of the file
// and padded with zeros to multiples of 64; then the others, widest type first. `metadata` is written last,
// so fill() may still change a value to another of the same length (a checksum known only then). Progress is
// reported after each piece, in bytes. On failure nothing of `path` has changed and no other file remains,
// even where the process is killed (on file systems that have files without a name).
status_t write(const std::string &path, const std::vector<out_tensor_t> &tensors,
        const std::map<std::string, std::string> &metadata,
        const std::function<void(uint64_t done, uint64_t total)> &progress = nullptr);

} // namespace safetensors

// SPDX-License-Identifier: Apache-2.0
// Reading GGUF files: metadata (configuration and tokeniser of a model) and tensors. All that the header says
// is checked when a file is opened; a file that is refused is refused with std::runtime_error and a sentence.
// The memory that a file takes is bounded by a small multiple of its header.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "input_file.hpp"

namespace gguf {

// Of a value of the metadata, with the numbers that stand in the file.
enum class type_t : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// A value, or an array of values of one type. Lives as long as its file.
class value_t {
public:
    type_t type() const { return type_; } // of the elements, where it is an array
    bool is_array() const { return is_array_; }
    size_t size() const { return size_; } // 1 where it is no array

    // Element `i` below size(), of an array or of another value; throws where it is none of these types, or
    // does not fit the result.
    std::string_view string(size_t i = 0) const;
    int64_t integer(size_t i = 0) const; // of any integer type
    uint64_t unsigned_integer(size_t i = 0) const;
    double number(size_t i = 0) const; // of any type of numbers
    bool boolean(size_t i = 0) const;

private:
    friend class header_t;

    [[noreturn]] void refuse(const std::string &why) const;
    const uint8_t *at(size_t i, const char *wanted, bool is_wanted) const;
    const uint8_t *integer_at(size_t i) const;

    std::string_view key_;
    type_t type_{};
    bool is_array_ = false;
    size_t size_ = 1;
    const uint8_t *bytes_ = nullptr;
    std::vector<uint32_t> strings_; // where each begins, of an array of them
};

// How the elements of a tensor are stored: blocks of consecutive elements along its last dim.
struct element_t {
    uint32_t id; // in the file
    const char *name;
    uint32_t block, bytes; // elements and bytes of a block
};
// All that are known.
const std::vector<element_t> &elements();

struct tensor_t {
    std::string name;
    const element_t *element;
    std::vector<int64_t> dims; // outermost first; the file has them the other way round
    uint64_t offset, size;     // in bytes, from the start of the file
};

class file_t {
public:
    explicit file_t(const std::string &path);

    const std::string &name() const { return file_.name(); } // in a form to print

    const std::map<std::string_view, value_t> &metadata() const { return metadata_; }
    const value_t *find(std::string_view key) const; // null where there is none
    const value_t &get(std::string_view key) const;  // throws where there is none

    // In the order of the file.
    const std::vector<tensor_t> &tensors() const { return tensors_; }
    const tensor_t *find_tensor(std::string_view tensor) const; // null where there is none
    // Bytes of a tensor, which lie within it. Throws where the file has been written to.
    void read(const tensor_t &tensor, uint64_t offset, uint64_t size, void *buffer) const;

private:
    input_file_t file_;
    std::vector<uint8_t> keys_; // and their values, which the metadata point into
    std::map<std::string_view, value_t> metadata_;
    std::vector<tensor_t> tensors_;
    std::map<std::string_view, size_t> by_name_;
};

// Whether a file has the name of GGUF files, or begins as they do; false where it cannot be read.
bool is_gguf(const std::string &path);

} // namespace gguf

// SPDX-License-Identifier: Apache-2.0
// What mxdnn-pack does; doc/reference/mxdnn-pack.md. Every command throws std::exception with a sentence.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <mxdnn/mxdnn_container.hpp>

#include "common/contents.hpp"
#include "common/weight_parts.hpp"

namespace mxdnn_pack {

struct options_t {
    std::string target; // empty: this machine
    std::string in, out;
    std::string format = "mxfp4";
    std::string rounding;                        // empty: the usual one
    std::optional<std::string> include, exclude; // regular expressions for names of tensors
    std::string recipe;                          // annotation
    std::string type = "f32";                    // of unpacked weights
    unsigned part_mib = 16;                      // of a tensor that is worked on at a time
    bool codes_only = false;                     // pack what is quantised already, copy the rest
};

// The file that is read, and all of its entries.
struct input_t {
    explicit input_t(const std::string &path);

    std::string path;
    mxdnn::container file;
    std::vector<mxdnn::container::entry> entries;

    std::optional<size_t> find(const std::string &name) const;
    // Bytes of an entry. Throws when a signal has come, too.
    weight_formats::read_t reader(size_t index) const;
    // Throws where an entry that has a checksum is damaged, or packed weights have none.
    void verify() const;

private:
    std::map<std::string, size_t> by_name_;
};

// Weights found in a file: one high-precision tensor, or codes and their scales.
struct source_t {
    std::string name; // of the result
    weight_formats::shape_t shape;
    mxdnn::memory::data_type type;          // of the values where they are high precision
    const weight_formats::format_t *format; // of codes; null for high precision
    size_t values;                          // indices of entries
    std::optional<size_t> scales;
};

// The weights of a file in the order of the file, and how many others are left as they are, by what they are.
// Tensors of two and three dims are weights [out, in] and [experts, out, in]; pairs such as X_blocks and
// X_scales are codes and scales (table in sources.cpp). Tensors without elements are not packed.
struct sources_t {
    std::vector<source_t> packed;
    struct left_t {
        size_t count = 0;
        std::string first; // name of one of them
    };
    std::map<std::string, left_t> left;
};
sources_t find_sources(const input_t &input, const options_t &options);

mxdnn::engine make_engine(const options_t &options);
void progress(const std::string &what); // at most every two seconds, to stderr

void pack(const options_t &options);
void unpack(const options_t &options);
// Prints a line per packed tensor; returns whether all are whole and usable on the target.
bool list(const options_t &options);

} // namespace mxdnn_pack

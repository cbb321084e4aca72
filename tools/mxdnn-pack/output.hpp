// SPDX-License-Identifier: Apache-2.0
// What is written: one file, or a folder with as many files as the checkpoint has, and an index.
#pragma once

#include <string>
#include <vector>

#include "checkpoint.hpp"
#include "common/contents.hpp"

namespace mxdnn_pack {

class output_t {
public:
    // A folder where `path` is one, ends with '/', or the checkpoint has an index or several files and `path`
    // does not end with ".safetensors". Throws where the output would take the place of what is read.
    output_t(const std::string &path, const checkpoint_t &input);

    // Of the file that gets what was in that file of the checkpoint.
    safetensors::contents_t &contents(size_t shard) { return shards_[is_folder_ ? shard : 0]; }
    safetensors::contents_t &contents(const entry_t &e) { return contents(e.shard); }

    // All files or none. In a folder no file is replaced, and the index comes last.
    void write(unsigned threads);

    // What a checkpoint_t reads it from, once it is written.
    std::string to_read() const;

    const std::string &shown() const { return shown_; }

private:
    void write_file(const std::string &path, unsigned threads);
    void write_folder(unsigned threads);
    std::string place(const std::string &name) const { return path_ + "/" + name; }
    std::string index_text(uint64_t total_bytes) const;

    const checkpoint_t &input_;
    std::string path_, shown_;
    bool is_folder_ = false;
    std::string index_; // name of the one in the folder, if any
    std::vector<safetensors::contents_t> shards_;
};

} // namespace mxdnn_pack

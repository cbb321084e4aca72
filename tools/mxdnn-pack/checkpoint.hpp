// SPDX-License-Identifier: Apache-2.0
// What is read: a safetensors file, several that an index makes one checkpoint of, or a GGUF file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <mxdnn/mxdnn_container.hpp>

#include "common/contents.hpp"
#include "common/gguf.hpp"
#include "common/weight_parts.hpp"

namespace mxdnn_pack {

// A tensor, or packed weights, of any of the files.
struct entry_t : mxdnn::container::entry {
    size_t shard, index;   // the file, and the entry there
    std::string stored_as; // dtype in the file: of GGUF it may be another
    uint64_t stored_size;  // bytes in the file
};

class checkpoint_t {
public:
    // A safetensors file, an index (*.index.json), a folder that has model.safetensors.index.json or
    // model.safetensors, or a GGUF file, of several parts any one. Throws where they are not whole.
    explicit checkpoint_t(const std::string &path);

    struct shard_t {
        std::string name, path; // of the file; the name as safetensors
        mxdnn::container file;  // empty where it is a GGUF file
        std::shared_ptr<const gguf::file_t> gguf;
        std::map<std::string, std::string> metadata;
    };

    std::string path;                 // to begin a sentence with
    std::vector<entry_t> entries;     // in the order of the files
    std::vector<shard_t> shards;      // in the order of their names
    std::optional<std::string> index; // path of the index, where there is one

    std::optional<size_t> find(const std::string &name) const;
    const mxdnn::container &file_of(const entry_t &e) const { return shards[e.shard].file; }
    mxdnn::memory::desc desc_of(const entry_t &e) const { return file_of(e).get_desc(e.index); }
    // The tensor, where it is one of a GGUF file; else null.
    const gguf::tensor_t *gguf_of(const entry_t &e) const;
    // Bytes of an entry. Throws when a signal has come, too.
    void read(size_t entry, uint64_t offset, uint64_t size, void *buffer) const;
    // Adds an entry as it is to what is written.
    void copy(size_t entry, safetensors::contents_t &to) const;
    weight_formats::read_t reader(size_t entry) const;
    // Throws where an entry that has a checksum is damaged, or packed weights have none.
    void verify(unsigned threads) const;

    // A JSON file in the same folder; an empty object where there is none.
    nlohmann::json beside(const char *file_name) const;

private:
    void add_file(const std::string &name, const std::string &file_path);
    void read_gguf(const std::string &file_path);
    void add_gguf(const std::string &file_path, const std::shared_ptr<const gguf::file_t> &file);
    void add_entry(entry_t e);
    void read_index(const std::string &index_path);
    void check_index(const std::map<std::string, std::string> &files) const;

    std::string folder_;
    std::map<std::string, size_t> by_name_;
};

} // namespace mxdnn_pack

// SPDX-License-Identifier: Apache-2.0
// The entries of a container: tensors as they are, and packed weights, of which two tensors are one entry
// (doc/reference/container.md).
#pragma once

#include "common/blob/blob.hpp"
#include "common/container/file.hpp"
#include "common/container/safetensors.hpp"
#include "common/formats/format_list.hpp"
#include "mxdnn/mxdnn_container.h"

namespace mxdnn {
namespace impl {

// The type of mxdnn with the same bytes; null if there is none.
const data_type_info_t *data_type_of(const safetensors::dtype_t &dtype);

// The checksum of a tensor, before any byte was added: an XXH64 whose seed is that of "DTYPE[dims]".
xxh64_t tensor_checksum(const std::string &dtype, const std::vector<int64_t> &shape);

class container_t {
public:
    status_t open(const char *path);
    status_t open_bytes(const void *bytes, uint64_t size);

    struct entry_t {
        std::string name;
        const safetensors::tensor_t *tensor;
        bool is_packed;
        const std::string *checksum; // null if the file has none
    };
    const std::vector<entry_t> &entries() const { return entries_; }
    using metadata_t = std::map<std::string, std::string>;
    const metadata_t &metadata() const { return index_.metadata; }
    const std::vector<const metadata_t::value_type *> &metadata_order() const { return metadata_order_; }
    const std::string &file_name() const { return file_.name(); }
    // Null where there is none.
    const entry_t *find(const std::string &name) const;

    uint64_t offset_of(const entry_t &e) const { return index_.data_offset + e.tensor->begin; }
    status_t desc(const entry_t &e, memory_desc_t &md) const;
    status_t verify(const entry_t &e) const;
    // Copies the bytes that the descriptor of the entry, md, asks for, and compares the checksum.
    status_t load(const entry_t &e, const memory_desc_t &md, void *to) const;
    status_t read(const entry_t &e, uint64_t offset, void *buffer, uint64_t size) const;
    status_t data(const entry_t &e, const uint8_t *&data) const;

    // The file and the entry, as the beginning of a sentence.
    std::string what(const entry_t &e) const;

private:
    status_t parse();
    status_t packed_desc(const entry_t &e, memory_desc_t &md) const;
    status_t plain_desc(const entry_t &e, memory_desc_t &md) const;
    xxh64_t checksum_of(const entry_t &e, const memory_desc_t &md) const; // before any byte was added
    status_t compare(const entry_t &e, const xxh64_t &sum) const;

    safetensors::file_t file_;
    safetensors::index_t index_;
    std::vector<entry_t> entries_;
    std::map<std::string, size_t> by_name_;
    std::vector<const metadata_t::value_type *> metadata_order_;
};

} // namespace impl
} // namespace mxdnn

struct mxdnn_container {
    mxdnn::impl::container_t container;
};

// SPDX-License-Identifier: Apache-2.0
// The artefact: weights by name, each packed for several targets, in one file that is mapped and used where
// it lies.
//
//     header_t
//     record_t [count]     one tensor, packed in one way
//     blobs                their descriptors as bytes
//     packed bytes         each tensor at a multiple of 64
//
// Numbers are little-endian. Offsets are from the start of the file. Three checksums cover it:
// header_t::checksum the records and the blobs, each blob's own, and record_t::checksum the packed bytes
// together with their descriptor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aot {

constexpr char magic[8] = {'A', 'O', 'T', '\r', '\n', '\x1a', '\0', '1'}; // the last one is the version
constexpr uint64_t alignment = 64;                                        // 16 is enough for the library

struct header_t {
    char magic[8];
    uint64_t file_size;
    uint64_t count;      // of records
    uint64_t data_begin; // end of the blobs; packed bytes come behind
    uint64_t checksum;   // of the bytes from the records up to data_begin
    uint64_t reserved[3];
};

struct record_t {
    char name[64]; // of the tensor; filled up with zeros, the last byte is one
    uint64_t blob_offset, blob_size;
    uint64_t data_offset, data_size;
    uint64_t checksum; // mxdnn_packed_checksum
    uint64_t reserved[3];
};

static_assert(sizeof(header_t) == 64 && sizeof(record_t) == 128, "the structs are the bytes of the file");

// The checksum of header_t: that of a container's tensor of these bytes, whose length counts.
uint64_t front_checksum(const void *bytes, uint64_t size);

} // namespace aot

// SPDX-License-Identifier: Apache-2.0
#include "loader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace aot {

using mxdnn::blob_verdict;
using mxdnn::memory;

namespace {

void require(bool ok, const std::string &otherwise) {
    if (!ok) throw std::runtime_error(otherwise);
}

// Without overflow: offset + size would be one.
bool inside(uint64_t offset, uint64_t size, uint64_t begin, uint64_t end) {
    return offset >= begin && offset <= end && size <= end - offset;
}

} // namespace

std::vector<variant_t> read(const uint8_t *file, size_t size) {
    header_t h;
    require(size >= sizeof h, "the artefact has " + std::to_string(size) + " bytes, less than a header");
    std::memcpy(&h, file, sizeof h);
    require(!std::memcmp(h.magic, magic, sizeof magic), "this is no artefact, or one of another version");
    require(h.file_size == size,
            "the artefact has " + std::to_string(size) + " bytes of " + std::to_string(h.file_size));
    require(inside(h.data_begin, 0, sizeof h, size)
                    && h.count <= (h.data_begin - sizeof h) / sizeof(record_t),
            "the header of the artefact says more than the file holds");
    const uint64_t blobs_begin = sizeof h + h.count * sizeof(record_t);
    bool whole = front_checksum(file + sizeof h, h.data_begin - sizeof h) == h.checksum;
    for (const uint64_t r : h.reserved) whole = whole && r == 0;
    require(whole, "the header or the records of the artefact are damaged");

    std::vector<variant_t> variants;
    for (uint64_t i = 0; i < h.count; i++) {
        record_t r;
        std::memcpy(&r, file + sizeof h + i * sizeof r, sizeof r);
        require(r.name[0] && !r.name[sizeof r.name - 1]
                        && inside(r.blob_offset, r.blob_size, blobs_begin, h.data_begin)
                        && inside(r.data_offset, r.data_size, h.data_begin, size)
                        && r.data_offset % alignment == 0,
                "record " + std::to_string(i) + " of the artefact is not one that a generator writes");
        variants.push_back(
                {r.name, file + r.blob_offset, r.blob_size, file + r.data_offset, r.data_size, r.checksum});
    }
    return variants;
}

file_t::file_t(const std::string &path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat st = {};
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        size_ = static_cast<size_t>(st.st_size);
        bytes_ = mmap(
                nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0); // at a page: offsets keep their alignment
        if (bytes_ == MAP_FAILED) bytes_ = nullptr;
    }
    if (fd >= 0) close(fd);
    require(bytes_ != nullptr,
            path + " cannot be mapped: it is not there, not readable, or no file with bytes");
    try {
        variants_ = read(static_cast<const uint8_t *>(bytes_), size_);
    } catch (const std::exception &e) {
        munmap(bytes_, size_);
        throw std::runtime_error(path + ": " + e.what());
    }
}

file_t::~file_t() { munmap(bytes_, size_); }

weights_t select(const std::vector<variant_t> &variants, const std::string &name, const mxdnn::engine &eng) {
    const variant_t *best = nullptr;
    blob_verdict verdict = blob_verdict::slower;
    std::string reasons;
    for (const variant_t &v : variants) {
        if (v.name != name || (best && verdict == blob_verdict::native)) continue;
        const blob_verdict of_this = mxdnn::check_blob(eng, v.blob, v.blob_size);
        if (of_this == blob_verdict::native || (of_this == blob_verdict::slower && !best)) {
            best = &v;
            verdict = of_this;
        } else {
            reasons += "\n  " + mxdnn::get_last_error();
        }
    }
    require(best != nullptr, "the artefact has no '" + name + "' for " + eng.get_target() + reasons);

    // The verdict is about the descriptor alone; now the bytes.
    const memory::desc md(best->blob, best->blob_size);
    require(md.get_size() == best->data_size && mxdnn::packed_checksum(md, best->data) == best->checksum,
            "the packed bytes of '" + name + "' are damaged");
    if (eng.get_kind() == mxdnn::engine::kind::cpu) // weights are only read
        return {memory(md, eng, const_cast<uint8_t *>(best->data)), verdict};
    const memory copy(md, eng);
    void *to = copy.map_data();
    std::memcpy(to, best->data, best->data_size);
    copy.unmap_data(to);
    return {copy, verdict};
}

} // namespace aot

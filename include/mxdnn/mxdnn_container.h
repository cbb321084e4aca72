/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading containers: safetensors files with packed weights, and plain ones (doc/reference/container.md).
 *
 * A file may come from anywhere. Opening one reads its header only; time and memory are bounded by the size
 * of the header, at most 100 MB. Entries are the tensors of the file in the order of their bytes; packed
 * weights, which take two tensors (NAME.mxdnn_packed and NAME.mxdnn_desc), are one entry.
 *
 * The file is read, not mapped, by everything but mxdnn_container_get_data(). What is read is refused with
 * mxdnn_runtime_error where the file was shortened or written to since it was opened. A container may be used
 * by many threads. */
#ifndef MXDNN_CONTAINER_H
#define MXDNN_CONTAINER_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A container that is open for reading. */
typedef struct mxdnn_container *mxdnn_container_t;
/** One that is only read. */
typedef const struct mxdnn_container *const_mxdnn_container_t;

/** One entry. Strings and dims live as long as the container. */
typedef struct {
    const char *name;            /**< UTF-8 of any characters but NUL; of packed weights without suffix */
    const char *dtype;           /**< as the file has it: F32, BF16, U8, ... */
    mxdnn_data_type_t data_type; /**< the same, or mxdnn_data_type_undef where mxdnn has no such type */
    int is_packed;               /**< 1 for packed weights, whose dtype is U8 */
    int has_checksum;            /**< 1 where the file has a checksum of this entry */
    int ndims;                   /**< of the tensor as stored, 0 (a scalar) to 32; 1 for packed weights */
    const int64_t *dims;         /**< `ndims` of them, in elements; bytes for packed weights */
    uint64_t offset;             /**< of its first byte in the file */
    uint64_t size; /**< stored bytes; packed weights are padded with zeros to a multiple of 64 */
} mxdnn_container_entry_t;

/** Opens a file and reads its header. What is no safetensors file is mxdnn_corrupt_blob; what cannot be read,
 * or is no regular file, is mxdnn_runtime_error. */
mxdnn_status_t MXDNN_API mxdnn_container_create(mxdnn_container_t *container, const char *path);
/** The same of a file that lies in memory, which the caller keeps and does not change. */
mxdnn_status_t MXDNN_API mxdnn_container_create_from_bytes(
        mxdnn_container_t *container, const void *bytes, size_t size);
/** Ends every string, dims and pointer into the file. */
mxdnn_status_t MXDNN_API mxdnn_container_destroy(mxdnn_container_t container);

/** The number of entries. */
mxdnn_status_t MXDNN_API mxdnn_container_get_count(const_mxdnn_container_t container, size_t *count);
/** Entry `index`, from 0 to count - 1. */
mxdnn_status_t MXDNN_API mxdnn_container_get_entry(
        const_mxdnn_container_t container, size_t index, mxdnn_container_entry_t *entry);
/** The index of the entry of that name; mxdnn_invalid_arguments where there is none. */
mxdnn_status_t MXDNN_API mxdnn_container_find(
        const_mxdnn_container_t container, const char *name, size_t *index);

/** The descriptor of an entry, for the caller to destroy. Of packed weights: the one they were packed with;
 * it is refused with mxdnn_corrupt_blob (or what its blob is refused with) where it does not fit the stored
 * bytes. Of other tensors: dense, row-major; mxdnn_unimplemented where mxdnn has no such type, or keeps it in
 * other bytes (rows of half bytes, six-bit types). A scalar has one dimension of 1. */
mxdnn_status_t MXDNN_API mxdnn_container_get_memory_desc(
        const_mxdnn_container_t container, size_t index, mxdnn_memory_desc_t *md);

/** Reads all bytes of an entry and checks that they are whole: checksum, and of packed weights descriptor,
 * size and padding. mxdnn_corrupt_blob says that they are not; of packed weights a missing checksum, too.
 * Another tensor without a checksum is mxdnn_unimplemented. A checksum finds damage, not malice. */
mxdnn_status_t MXDNN_API mxdnn_container_verify(const_mxdnn_container_t container, size_t index);

/** Copies `size` bytes of an entry from byte `offset` on. */
mxdnn_status_t MXDNN_API mxdnn_container_read(
        const_mxdnn_container_t container, size_t index, uint64_t offset, size_t size, void *buffer);

/** The bytes of an entry where they lie: in the caller's memory, or in a read-only mapping of the whole file
 * that the first call makes. They begin at a multiple of 64 where the entry is packed (in the caller's
 * memory: of what that allows). They are not verified, and whoever touches a mapping of a file that was
 * shortened meanwhile ends with SIGBUS, as always with mapped files: map only files that nobody writes to, or
 * use mxdnn_container_read(). */
mxdnn_status_t MXDNN_API mxdnn_container_get_data(
        const_mxdnn_container_t container, size_t index, const void **data);

/** The number of pairs in the metadata of the file. */
mxdnn_status_t MXDNN_API mxdnn_container_get_metadata_count(const_mxdnn_container_t container, size_t *count);
/** Pair `index` of the metadata, which is sorted by key; both strings live as long as the container. */
mxdnn_status_t MXDNN_API mxdnn_container_get_metadata(
        const_mxdnn_container_t container, size_t index, const char **key, const char **value);
/** The value of a key; NULL where there is none. */
mxdnn_status_t MXDNN_API mxdnn_container_find_metadata(
        const_mxdnn_container_t container, const char *key, const char **value);

/** The checksum that a container stores of a tensor that is not packed, over its dtype, dims and bytes, which
 * mxdnn_checksum_add() takes. That of packed weights is mxdnn_checksum_create()'s. */
mxdnn_status_t MXDNN_API mxdnn_checksum_create_for_tensor(
        mxdnn_checksum_t *checksum, const char *dtype, int ndims, const int64_t *dims);

#ifdef __cplusplus
}
#endif

#endif

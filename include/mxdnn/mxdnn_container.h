/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading containers: safetensors files, with packed weights or without (doc/reference/container.md).
 *
 * A file may come from anywhere. Opening it reads only its header. The size of the header, at most 100 MB,
 * bounds time and memory. Entries are the tensors of the file, in the order of their bytes. Packed weights
 * take two tensors of the file (NAME.mxdnn_packed and NAME.mxdnn_desc) and are one entry.
 *
 * All functions but mxdnn_container_get_data() read the file; they do not map it. They return
 * mxdnn_runtime_error if the file was shortened or written to after it was opened. Several threads may use
 * one container.
 *
 * An index beyond the last entry is mxdnn_invalid_arguments in every function. */
#ifndef MXDNN_CONTAINER_H
#define MXDNN_CONTAINER_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A container that is open for reading. */
typedef struct mxdnn_container *mxdnn_container_t;
/** The same, only read. */
typedef const struct mxdnn_container *const_mxdnn_container_t;

/** One entry. Strings and dims belong to the container. */
typedef struct {
    const char *name;            /**< UTF-8 without NUL; for packed weights without the suffix */
    const char *dtype;           /**< the type as the file has it: F32, BF16, U8, ... */
    mxdnn_data_type_t data_type; /**< the same type, or mxdnn_data_type_undef if mxdnn does not have it */
    int is_packed;               /**< 1 for packed weights, whose dtype is U8 */
    int has_checksum;            /**< 1 if the file has a checksum of this entry */
    int ndims;                   /**< number of dims as stored, 0 (a scalar) to 32; 1 for packed weights */
    const int64_t *dims;         /**< `ndims` dimensions in elements; for packed weights bytes */
    uint64_t offset;             /**< position of the first byte in the file */
    uint64_t size;               /**< bytes as stored; of packed weights a multiple of 64 */
} mxdnn_container_entry_t;

/** Opens a file and reads its header. mxdnn_corrupt_blob: not a safetensors file. mxdnn_runtime_error: it
 * cannot be read, or is not a regular file. */
mxdnn_status_t MXDNN_API mxdnn_container_create(mxdnn_container_t *container, const char *path);
/** Opens a file that is in memory. The caller keeps the bytes and does not change them. */
mxdnn_status_t MXDNN_API mxdnn_container_create_from_bytes(
        mxdnn_container_t *container, const void *bytes, size_t size);
/** Destroys a container. Its strings, dims and pointers into the file are no longer valid. */
mxdnn_status_t MXDNN_API mxdnn_container_destroy(mxdnn_container_t container);

/** Writes the number of entries. */
mxdnn_status_t MXDNN_API mxdnn_container_get_count(const_mxdnn_container_t container, size_t *count);
/** Writes entry `index`, from 0 to count - 1. */
mxdnn_status_t MXDNN_API mxdnn_container_get_entry(
        const_mxdnn_container_t container, size_t index, mxdnn_container_entry_t *entry);
/** Writes the index of the entry with that name. mxdnn_invalid_arguments: there is none. */
mxdnn_status_t MXDNN_API mxdnn_container_find(
        const_mxdnn_container_t container, const char *name, size_t *index);

/** Creates the memory descriptor of an entry. The caller destroys it.
 *
 * For packed weights it is the descriptor that they were packed with. If it does not fit the stored bytes,
 * the status is mxdnn_corrupt_blob; if its blob is wrong, it is that of
 * mxdnn_memory_desc_create_with_sized_blob(). For other tensors it is row-major without gaps, and a scalar
 * has one dimension of 1. mxdnn_unimplemented: mxdnn does not have the type, or stores it in another way
 * (rows of half bytes, 6-bit types). */
mxdnn_status_t MXDNN_API mxdnn_container_get_memory_desc(
        const_mxdnn_container_t container, size_t index, mxdnn_memory_desc_t *md);

/** Reads all bytes of an entry and checks them against the checksum. For packed weights it also checks
 * descriptor and size. mxdnn_corrupt_blob: something is wrong, or packed weights have no checksum.
 * mxdnn_unimplemented: another tensor has no checksum. A checksum detects damage, not malice. */
mxdnn_status_t MXDNN_API mxdnn_container_verify(const_mxdnn_container_t container, size_t index);

/** Copies `size` bytes of an entry to `buffer`, from byte `offset` of the entry on. Bytes beyond the entry
 * are mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_container_read(
        const_mxdnn_container_t container, size_t index, uint64_t offset, size_t size, void *buffer);

/** Creates a memory with the descriptor and a copy of the bytes of an entry. The library allocates it, on a
 * device too; the caller destroys it. It lives on without the container. The bytes are checked against the
 * checksum as they are copied. mxdnn_corrupt_blob: they differ, or packed weights have no checksum. Other
 * statuses are those of mxdnn_container_get_memory_desc() and mxdnn_memory_create().
 *
 * On a CPU weights of 2 MB and more are in large pages then, which mapped bytes are not on every system. */
mxdnn_status_t MXDNN_API mxdnn_container_load(
        const_mxdnn_container_t container, size_t index, mxdnn_engine_t engine, mxdnn_memory_t *memory);

/** Writes a pointer to the bytes of an entry. They are in the caller's memory, or in a read-only mapping of
 * the whole file, which the first call makes. The pointer is valid as long as the container. Packed weights
 * begin at a multiple of 64 (in the caller's memory, relative to its first byte).
 *
 * The bytes are not verified. If somebody shortens a mapped file, a program that reads the lost part ends
 * with SIGBUS. Map only files that nobody writes to, or use mxdnn_container_read() or
 * mxdnn_container_load(). */
mxdnn_status_t MXDNN_API mxdnn_container_get_data(
        const_mxdnn_container_t container, size_t index, const void **data);

/** Writes the number of pairs in the metadata of the file. */
mxdnn_status_t MXDNN_API mxdnn_container_get_metadata_count(const_mxdnn_container_t container, size_t *count);
/** Writes pair `index` of the metadata, sorted by key. Both strings live as long as the container. */
mxdnn_status_t MXDNN_API mxdnn_container_get_metadata(
        const_mxdnn_container_t container, size_t index, const char **key, const char **value);
/** Writes the value of a key; NULL if there is no such key. The string lives as long as the container. */
mxdnn_status_t MXDNN_API mxdnn_container_find_metadata(
        const_mxdnn_container_t container, const char *key, const char **value);

/** Begins the checksum that a container stores for a tensor that is not packed. It covers dtype, dims and the
 * bytes, which mxdnn_checksum_add() takes. mxdnn_invalid_data_type: safetensors does not have the dtype. For
 * packed weights use mxdnn_checksum_create(). */
mxdnn_status_t MXDNN_API mxdnn_checksum_create_for_tensor(
        mxdnn_checksum_t *checksum, const char *dtype, int ndims, const int64_t *dims);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// The source as the Hopper kernels read it: neighbouring rows of bf16, or f16 for int4 weights, in place
// where they are that, else made in the scratchpad by device/kernels/convert_source.cu, so many at a time.
#pragma once

#include "common/primitive.hpp"
#include "gpu/cuda/interface/convert_source_args.hpp"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Whether rows of this source can be read or prepared; otherwise the reason to decline.
reason_t check_source(const problem_t &p);
// Whether they have to be prepared.
bool makes_rows(const problem_t &p);

// The type of the rows. int4 weights are exact in f16, too, so an f16 source is multiplied as it is.
packed::value_type_t source_type(const problem_t &p);
// The number of bf16 rows whose sum a row is. The sum is exact unless the problem allows rounding, because
// values of f16 and f32 have more bits.
int source_terms(const problem_t &p);

// The distance of two rows of a tensor whose rows are counted through, in elements; -1: distances differ.
int64_t even_row_stride(const memory_desc_t &md);
// The same in bytes, of elements of so many bits.
int64_t row_byte_step(const memory_t &m, int bits);

// How many rows of this many bytes the scratchpad has room for: all, as far as known, within bounds.
int64_t rows_with_room(const problem_t &p, int64_t row_bytes);

// For a problem whose rows are prepared, as bf16 or FP8: for how many there is room, and their size in the
// scratchpad.
int64_t made_rows_at_once(const problem_t &p, bool fp8 = false);
int64_t made_rows_bytes(const problem_t &p);
// How many of `rows` are prepared at a time: as few equal parts as possible.
int64_t made_rows_each(const problem_t &p, int64_t rows, bool fp8 = false);

// Rows of the source, or of the list that gathers them.
struct made_rows_t {
    int64_t first = 0, count = 0;
    const int32_t *gather = nullptr; // null: rows of the source in order
    int64_t src_rows = 0;            // rows of the source
    const row_groups_t *groups =
            nullptr; // 128x4 scales begin again with each of these groups; null: they do not
};

// Loads the kernels that prepare rows.
status_t prepare_convert_source(const problem_t &p);

// Prepares rows, at most made_rows_at_once(), at `space`, and sets the members of `a`.
status_t make_rows(const exec_ctx_t &ctx, const made_rows_t &rows, char *space, packed::matmul_args_t &a);

// The same for gemm at the rate of FP8.
status_t make_rows_of_fp8(
        const exec_ctx_t &ctx, const made_rows_t &rows, char *space, packed::matmul_args_t &a);

// Whether rows of f8_e4m3 can be multiplied where they are, in their own order. Sets their factors.
bool has_fp8_rows(const exec_ctx_t &ctx, packed::matmul_args_t &a);

// Computes the codes [count, K] of f8_e4m3 rows, K being a multiple of 64, and their scales [count].
status_t make_fp8_rows(const exec_ctx_t &ctx, const made_rows_t &rows, uint8_t *codes, float *scales);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

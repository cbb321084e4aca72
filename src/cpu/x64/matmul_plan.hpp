// SPDX-License-Identifier: Apache-2.0
// How an mx_matmul is divided: a pure function of the shape, the ISA, the caches and the threads,
// so that it can be tested and printed without running anything.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"
#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct matmul_shape_t {
    int64_t M = 0, K = 0, N = 0; // N: columns of the weights
    int64_t batch = 1;
    int64_t column_step =
            16;         // columns of the destination come in multiples of this (blocks of a quantised dst)
    bool gated = false; // a destination column needs two of the weights'
    bool own_parts = false; // each thread copies the rows of the parts of its tasks
};

struct matmul_machine_t {
    cpu_isa_t isa = cpu_isa_t::none;
    int64_t l1d = 0, l2 = 0;
    int threads = 1;
};

// Properties of the kernels that the division depends on.
struct matmul_kernels_t {
    int direct_rows = 1; // largest number of rows of a direct call
    bool direct_on_tiles = false;
    int64_t best_direct_rows = 0; // more rows are faster with decoding once; 0: it depends on the machine
    bool only_direct = false; // direct kernels for any number of rows: decoding is a small part of each call
    bool decodes_again = false; // kernels on tiles decode for every call, and keep nothing
    bool many = false;          // for more rows there is a kernel that decodes beside multiplying
    bool fused = false;         // or one that multiplies codes of one byte, all rows in one call
    int gemm_rows =
            1; // rows of a call of a gemm kernel, or of a call of `many`; parts are multiples of row_step
    int row_step = 1;
    int gemm_panels = 1;
    int compute_bytes = 4;     // of the compute type
    int tile_rows = 128;       // of the weights' layout: chunks of K are whole tiles
    int64_t k_part = 0;        // rows of K that many columns are multiplied by before the next ones; 0: all
    int64_t rows_of_all_k = 0; // so few rows have no parts of K
};

// A rest of so many rows is not worth a call or a part of its own, where each decodes again: one tile of rows
// waits for decoding. With the rows before it, it makes two calls of two tiles.
constexpr int64_t joined_rows(const matmul_kernels_t &kernels) {
    return kernels.decodes_again && kernels.row_step == 3 * tile_source_rows ? tile_source_rows : 0;
}
// The number of parts of `rows` rows, of `each` rows: the last one has the rest, and joined rows.
constexpr int64_t parts_of(int64_t rows, int64_t each, int64_t joined) {
    return std::max<int64_t>(div_up(rows - joined, each), 1);
}

struct matmul_plan_t {
    bool direct = true;   // decode in registers; otherwise decode a panel once for many rows
    bool many = false;    // decode and multiply in one kernel
    bool fused = false;   // decode and multiply in one kernel, all rows in one call
    int64_t rows = 1;     // rows of the source that are prepared and multiplied together
    int64_t columns = 64; // columns of the destination per task
    int64_t k_chunk = 0;  // rows of the weights that are decoded together
    int64_t k_part = 0;   // see matmul_kernels_t
};

// The number of rows of a call of a gemm kernel so that about M rows are whole calls: the largest of the
// kernel, or a few steps less.
int plan_gemm_rows(int64_t M, int most, int step);
// The step if kernels exist for any number of rows: each kernel takes time to generate.
constexpr int any_gemm_rows_step = 2;

// The number of rows of a call that uses tiles, if there are M in all (runtime_dim: any number). One call
// takes up to `most`.
int plan_tile_rows(int64_t M, int most);

// The number of rows of a direct call, of at most `most`, if there are M in all (runtime_dim: any number):
// calls of about equal length, since one of few rows takes long to decode.
int plan_direct_rows(int64_t M, int most);

// The numbers of rows, ascending, that kernels are generated for. Calls take `most` of M rows at a time, and
// the last call takes the rest: so these are the numbers that M needs, or (runtime_dim) any up to `most`.
// With tiles they are whole tiles, or a few rows more.
std::vector<int> plan_direct_kernels(int64_t M, int most);
std::vector<int> plan_tile_kernels(int64_t M, int most, int64_t joined = 0);
// The same with tiles, for parts of `each` of M rows that are not longer than one call.
std::vector<int> plan_short_runs(int64_t M, int64_t each, int most);

// The type in which an ISA multiplies rows that are not integers; undef: that of its own kernels.
data_type_t preferred_compute(cpu_isa_t isa, cpu_family_t family);

// The largest number of source rows for which decoding in registers is preferred.
int64_t direct_rows_limit(const matmul_machine_t &machine, const matmul_kernels_t &kernels);

// Whether so many rows at a distance of `stride` bytes, read side by side, evict each other from a
// first-level cache of `l1d` bytes, because more of their lines use one set than it has ways.
bool rows_conflict(int64_t stride, int64_t rows, int64_t l1d);

// How far kernels prefetch weights, in bytes; 0: the kernel decides.
int fetch_ahead(cpu_family_t family);
// See kernel_params_t.
bool fetches_near(cpu_family_t family);

// The largest number of rows for any M, which sizes the scratchpad. `rows_hint` 0 is no hint.
int64_t max_plan_rows(
        int64_t K, int64_t rows_hint, const matmul_machine_t &machine, const matmul_kernels_t &kernels);
constexpr int64_t max_plan_columns =
        64; // of a task, in columns of the destination (twice that in the weights when gated)
// The columns of a task: the maximum, halved while there are fewer than `wanted` tasks. It consists of whole
// steps and is at least `least`.
template <typename F>
int64_t plan_columns(int64_t least, int64_t step, int64_t wanted, F tasks) {
    int64_t columns = max_plan_columns;
    while (columns / 2 >= least && columns / 2 % step == 0 && tasks(columns) < wanted) columns /= 2;
    return columns;
}
// The smallest value for any execution that wants so many tasks.
inline int64_t least_plan_columns(int64_t dst_n, int64_t step, int64_t wanted) {
    return plan_columns(std::max<int64_t>(step, panel_columns), step, wanted,
            [&](int64_t columns) { return div_up(dst_n, columns); });
}
int64_t plan_k_chunk(int64_t K, const matmul_machine_t &machine, const matmul_kernels_t &kernels);
// The rows of K in a part for calls of kernels.row_step rows, if kernels decode for every call.
int64_t plan_k_part(
        int64_t K, int64_t panel_bytes, const matmul_machine_t &machine, const matmul_kernels_t &kernels);
// Sets k_part and rows_of_all_k for M rows, or any number of them.
void plan_k_parts(int64_t K, int64_t panel_bytes, const matmul_machine_t &machine, int64_t M,
        matmul_kernels_t &kernels);
// The number of tasks of the same rows that a thread takes together, part of K by part of K: so many that
// rows of a part of K are read more often from the second-level cache than to it, but some for each thread.
constexpr int64_t most_tasks_together = 64, tasks_together_of_several = 8;
int64_t plan_tasks_together(int64_t tasks, int threads);

// Parts of M rows (or runtime_dim), of `rows` rows and `bytes` each, that are prepared together if threads
// share them. A thread may then multiply the next part while others have not finished this one.
constexpr int most_parts_together = 16;
int plan_parts_together(int64_t M, int64_t rows, int64_t bytes, const matmul_machine_t &machine,
        const matmul_kernels_t &kernels);

// The tasks of all parts of a matrix, part after part, where each thread copies the rows of the parts that it
// has tasks of.
struct own_parts_t {
    // Copying the rows of a part takes about as long as half of this. Nobody does it for fewer tasks of
    // others.
    static constexpr int64_t tasks_of_copy = 4;

    int64_t M, rows; // of the matrix; of a part, but the last one has the rest
    int64_t parts, tasks;

    int64_t all_tasks() const { return parts * tasks; }
    int64_t rows_of(int64_t part) const { return part + 1 < parts ? rows : M - part * rows; }
    // Shares have about as many rows times columns each. One that would begin or end a little beside the
    // beginning of a part does so there.
    int64_t first_of_share(int n, int i) const;
};

// Whether threads share all matrices of a batch, each with its own source rows, instead of one matrix after
// the other; and how many rows these are at most, of `most`.
bool threads_share_batch(int64_t batch, int64_t M, int64_t K, int threads);
int64_t own_source_rows(int64_t most, int64_t K, const matmul_kernels_t &kernels);
// Where decoded panels are kept, threads copy rows themselves from so many threads and rows on.
constexpr int several_threads = 4;
constexpr int64_t least_own_rows = 256;
// Fewer elements than this are prepared by one thread, because waking others takes longer.
constexpr int64_t serial_elements = 1 << 15;

// Whether all threads together would take longer than one, because waking others takes longer than all of it:
// some microseconds of work.
bool is_small(int64_t M, int64_t K, int64_t N);

// The wanted number of tasks of one execution, for each of several threads.
constexpr int64_t matmul_tasks_per_thread = 4;
// With many rows on tiles a task takes long, and some threads are slower than others.
constexpr int64_t matmul_tasks_for(int64_t M, const matmul_kernels_t &kernels) {
    return kernels.decodes_again && (M == runtime_dim || M > 48) ? 8 : matmul_tasks_per_thread;
}
constexpr int64_t wanted_tasks(int64_t per_thread, int threads) {
    return threads > 1 ? per_thread * threads : 1;
}
matmul_plan_t plan_mx_matmul(const matmul_shape_t &shape, int64_t rows_hint, const matmul_machine_t &machine,
        const matmul_kernels_t &kernels);

std::string describe(const matmul_plan_t &plan);

} // namespace x64
} // namespace impl
} // namespace mxdnn

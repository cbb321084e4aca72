// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/panel_matmul.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/x64/panel_parts.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Which number of panels, of those that direct kernels are made for, is the most where so many are left.
int panel_matmul_t::most_panels(int64_t left) const {
    int j = 2;
    while (j > 0 && (c_.direct->panels[j] == 0 || c_.direct->panels[j] > left)) j--;
    return j;
}

// Those that tasks have, as multiply_direct() goes through their columns. Often it is the most alone: the
// others are half of the time that creating a primitive takes.
std::array<bool, 3> panel_matmul_t::panels_of_tasks(int64_t tasks_per_thread) const {
    std::array<bool, 3> used = {};
    const auto add = [&](int64_t n0, int64_t n1) {
        const int64_t last = div_up(n1, panel_columns);
        for (int64_t p = n0 / panel_columns; p < last;) {
            const int j = most_panels(last - p);
            used[size_t(j)] = true;
            p += c_.direct->panels[j];
        }
    };
    const int64_t dst_n = c_.dst_columns();
    const int64_t least = least_plan_columns(dst_n, c_.column_step, tasks_per_thread * c_.machine.threads);
    for (int64_t columns = least; columns <= max_plan_columns; columns *= 2)
        for (int64_t c0 = 0; c0 < dst_n; c0 += columns) {
            const int64_t n0 = c_.weights_column(c0), n1 = c_.weights_column(std::min(c0 + columns, dst_n));
            add(n0, n1);
            if (c_.halves) add(c_.half() + n0, c_.half() + n1);
        }
    return used;
}

status_t panel_matmul_t::create(const problem_t &p, dim_t M, int64_t tasks_per_thread) {
    const int64_t part_rows = c_.parts().rows;
    const auto create = [&](const kernel_row_t &row, int rows, int panels, kernel_t &kernel) {
        kernel_params_t k;
        k.wei_dt = p.weights.dt;
        k.quant = p.weights.packed.quant;
        k.K = c_.weights.K;
        k.rows = rows;
        k.panels = panels;
        k.part_rows = part_rows;
        const char *reason = nullptr;
        const status_t status = create_kernel(row, k, &kernel, &reason);
        return status == mxdnn_success
                       ? status
                       : fail(status, "kernel %s for %d rows and %d panels could not be generated: %s",
                               row.name, rows, panels, reason ? reason : "no reason given");
    };
    if (c_.weights.K == 0 || c_.weights.N == 0) return mxdnn_success;

    const int64_t limit = direct_rows_limit(c_.machine, c_.kernels);
    // Row counts in powers of two, and the most; a call with fewer rows has rows of zeros.
    if (M == runtime_dim || M <= limit) {
        const int most = c_.kernels.direct_rows;
        for (int r = c_.kernels.direct_on_tiles ? 16 : 1; r < most; r *= 2) direct_rows_.push_back(r);
        direct_rows_.push_back(most);
        if (M != runtime_dim) {
            // Only those that this M uses: whole calls of the most rows, and a last one.
            const int64_t tail = M % most;
            const int last = tail ? *std::lower_bound(direct_rows_.begin(), direct_rows_.end(), tail) : most;
            direct_rows_ = M >= most && last != most ? std::vector<int>{last, most} : std::vector<int>{last};
        }
        const std::array<bool, 3> used = panels_of_tasks(tasks_per_thread);
        for (size_t j = 0; j < used.size(); j++)
            for (int r : direct_rows_) {
                if (!used[j]) continue;
                direct_[j].emplace_back();
                MXDNN_CHECK(create(*c_.direct, r, c_.direct->panels[j], direct_[j].back()));
            }
    }
    if (M == runtime_dim || M > limit) {
        if (c_.fused) return create(*c_.fused, 1, c_.kernels.dense_panels, fused_);
        MXDNN_CHECK(create(*c_.decode, 1, 1, decode_));
        MXDNN_CHECK(create(*c_.dense, c_.kernels.dense_rows, c_.kernels.dense_panels, dense_));
    }
    return mxdnn_success;
}

int64_t panel_matmul_t::padded_rows(bool direct, int64_t rows) const {
    // Whole kernels; the last call of a direct run has the smallest that suffices.
    if (!direct) return c_.fused ? rows : round_up(rows, c_.kernels.dense_rows);
    if (c_.kernels.direct_on_tiles) return rows;
    const int64_t most = c_.kernels.direct_rows, tail = rows % most;
    return rows - tail + (tail ? direct_rows_[direct_index(tail)] : 0);
}

size_t panel_matmul_t::direct_index(int64_t n) const {
    size_t i = 0;
    while (i + 1 < direct_rows_.size() && direct_rows_[i] < n) i++;
    return i;
}

void panel_matmul_t::multiply(
        const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const {
    const int64_t first = n0 / panel_columns, last = div_up(n1, panel_columns);
    if (c_.weights.K == 0) {
        for (int64_t r = 0; r < o.rows; r++)
            std::memset(acc + r * c_.scratch.acc_columns, 0,
                    size_t((last - first) * panel_columns) * sizeof(float));
        return;
    }
    if (o.direct) return multiply_direct(o, first, last, acc);
    fused_ ? multiply_fused(o, n0, n1, acc, panels) : multiply_dense(o, first, last, acc, panels);
}

const uint8_t *panel_matmul_t::panel(const panel_operands_t &o, int64_t i) const {
    return o.weights + n16_frame_t::prefix(c_.weights) + i * c_.panel_bytes;
}

void panel_matmul_t::multiply_direct(
        const panel_operands_t &o, int64_t first, int64_t last, float *acc) const {
    direct_args_t a;
    a.src_stride = o.source_stride;
    a.wei_stride = c_.panel_bytes;
    a.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    a.xsum_stride = c_.scratch.sums_per_row * int64_t(sizeof(float));
    for (int64_t p = first; p < last;) {
        const int j = most_panels(last - p);
        a.wei = panel(o, p);
        for (int64_t r = 0; r < o.rows; r += c_.kernels.direct_rows) {
            a.rows = std::min<int64_t>(o.rows - r, c_.kernels.direct_rows);
            const size_t i = direct_index(a.rows);
            a.src = static_cast<const char *>(o.source) + r * o.source_stride;
            a.acc = acc + r * c_.scratch.acc_columns + (p - first) * panel_columns;
            a.xsum = o.block_sums ? o.block_sums + r * c_.scratch.sums_per_row : nullptr;
            (*direct_[j][i])(&a);
        }
        p += c_.direct->panels[j];
    }
}

void panel_matmul_t::multiply_fused(
        const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const {
    const int64_t first = n0 / panel_columns, last = div_up(n1, panel_columns);
    const panel_parts_t parts = c_.parts();
    const source_blocks_t blocks = {parts, o.stream_rows};
    const char *source = static_cast<const char *>(o.source);
    fused_args_t a = {};
    a.src = source + blocks.first(o.stream_row, 0);
    a.src_last = source + blocks.first(o.stream_row, parts.count - 1);
    a.src_part_stride = blocks.part_bytes();
    a.rows = o.rows;
    a.decode_rate = parts.decode_rate(o.rows);
    a.part[0] = panels;
    a.part[1] = panels + c_.scratch.panel_stride;
    a.begin = 1;
    a.dst = o.dst;
    a.dst_stride = o.dst_stride;
    a.acc = acc;
    a.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    a.scale = o.scale;
    a.row_scale = o.row_scales;
    a.bias = o.bias;
    const auto two_panels = [&](const uint8_t **to, int64_t p) {
        // Past the last panel there is nothing to read: the same columns once more.
        for (int64_t i = 0; i < 2; i++) to[i] = p < last ? panel(o, std::min(p + i, last - 1)) : nullptr;
    };
    for (int64_t p = first; p < last; p += 2) {
        two_panels(a.wei, p);
        two_panels(a.next, p + 2);
        if (o.store) a.store_columns = std::min<int64_t>(2 * panel_columns, n1 - p * panel_columns);
        (*fused_)(&a);
        a.begin = 0;
        a.acc += 2 * panel_columns;
        if (a.bias) a.bias += 2 * panel_columns;
        if (a.dst) a.dst = static_cast<char *>(a.dst) + 2 * panel_columns * o.dst_bytes;
        if (parts.count % 2) std::swap(a.part[0], a.part[1]);
    }
}

void panel_matmul_t::multiply_dense(
        const panel_operands_t &o, int64_t first, int64_t last, float *acc, char *panels) const {
    const int64_t step = c_.kernels.dense_panels, tile_rows = c_.kernels.tile_rows, K = c_.weights.K;
    const int64_t k_chunk = plan_k_chunk(K, c_.machine, c_.kernels);
    dense_args_t d;
    d.src_stride = o.source_stride;
    d.wei = panels;
    d.wei_stride = c_.scratch.panel_stride;
    d.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    for (int64_t p = first; p < last; p += step) {
        float *const sums = acc + (p - first) * panel_columns;
        for (int64_t k = 0; k < K; k += k_chunk) {
            const int64_t n = std::min(k_chunk, K - k);
            for (int64_t i = 0; i < step; i++) {
                // Past the last panel there is nothing to read: the same columns once more.
                decode_args_t a;
                a.wei = panel(o, std::min(p + i, last - 1)) + k / tile_rows * c_.tile_bytes;
                a.tiles = n / tile_rows;
                a.tail = n % tile_rows;
                a.dst = panels + i * c_.scratch.panel_stride;
                (*decode_)(&a);
            }
            d.k = round_up(n, k_step);
            d.accumulate = k > 0;
            for (int64_t r = 0; r < o.rows; r += c_.kernels.dense_rows) {
                d.src = static_cast<const char *>(o.source) + r * o.source_stride
                        + k * c_.kernels.compute_bytes;
                d.acc = sums + r * c_.scratch.acc_columns;
                (*dense_)(&d);
            }
        }
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/panel_matmul.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// The index of the largest number of panels, among those that kernels exist for, that is at most `most` and
// at most the number of panels that are left.
int largest_panels(const kernel_row_t &row, int64_t most, int64_t left) {
    int j = 2;
    while (j > 0 && (row.panels[j] == 0 || row.panels[j] > std::min(most, left))) j--;
    return j;
}

} // namespace

// The numbers of panels of calls, as multiply_beside() divides the columns of tasks. Often there is only one.
// The others would take half of the time of creating a primitive.
std::array<bool, 3> panel_matmul_t::panels_of_tasks(
        const kernel_row_t &row, int most, int64_t tasks_per_thread) const {
    std::array<bool, 3> used = {};
    const auto add = [&](int64_t n0, int64_t n1) {
        const int64_t last = div_up(n1, panel_columns);
        for (int64_t p = n0 / panel_columns; p < last;) {
            const int j = largest_panels(row, most, last - p);
            used[size_t(j)] = true;
            p += row.panels[j];
        }
    };
    const int64_t dst_n = c_.dst_columns();
    const int64_t least =
            least_plan_columns(dst_n, c_.column_step, wanted_tasks(tasks_per_thread, c_.machine.threads));
    // Tasks begin on whole panels, of each half. All are like the first one, except the last, which may be
    // shorter.
    for (int64_t columns = least; columns <= max_plan_columns; columns *= 2)
        for (const int64_t c0 : {int64_t(0), (dst_n - 1) / columns * columns}) {
            const int64_t n0 = c_.weights_column(c0), n1 = c_.weights_column(std::min(c0 + columns, dst_n));
            add(n0, n1);
            if (c_.halves) add(c_.half() + n0, c_.half() + n1);
        }
    return used;
}

status_t panel_matmul_t::create(const problem_t &p, const kernel_row_t &row, int rows, int panels,
        decoded_t decoded, kernel_t &kernel, int64_t k_rows) const {
    kernel_params_t k;
    k.k_rows = k_rows;
    k.wei_dt = p.weights.dt;
    k.quant = p.weights.packed.quant;
    k.K = c_.weights.K;
    k.rows = rows;
    k.panels = panels;
    k.decoded = decoded;
    k.row_scaled = c_.row_scaled;
    k.calls = k_rows ? 0 : c_.calls;
    k.dst_dt = p.dst.dt == mxdnn_bf16 || p.dst.dt == mxdnn_f32 ? p.dst.dt : mxdnn_data_type_undef;
    k.fetch_ahead = fetch_ahead(cpu_family());
    k.fetches_near = fetches_near(cpu_family());
    const char *reason = nullptr;
    const status_t status = create_kernel(row, k, &kernel, &reason);
    return status == mxdnn_success
                   ? status
                   : fail(status, "kernel %s for %d rows and %d panels could not be generated: %s", row.name,
                           rows, panels, reason ? reason : "no reason given");
}

// A call with fewer rows than its kernel multiplies rows of zeros. `together`: there are calls with the
// largest number of rows and others beside them, or any number of rows.
status_t panel_matmul_t::create(const problem_t &p, const kernel_row_t &row, const std::vector<int> &rows,
        bool together, decoded_t decoded, int64_t tasks_per_thread, row_kernels_t &k, int64_t k_rows) const {
    k.row = &row;
    k.rows = rows;
    for (std::vector<kernel_t> &v : k.kernels) v.resize(rows.size());
    // A smaller call follows a larger one, or is the only one. It has the same panels.
    std::array<bool, 3> used = {};
    for (size_t i = rows.size(); i-- > 0;) {
        const int largest = together ? rows.back() : rows[i];
        const int most = !row.on_tiles                   ? 4
                         : decoded == decoded_t::dropped ? call_panels(largest)
                                                         : walked_panels(largest);
        const std::array<bool, 3> more = panels_of_tasks(row, most, tasks_per_thread);
        for (size_t j = 0; j < used.size(); j++) used[j] = used[j] || more[j];
        // If the number of rows is not known, the last columns, with fewer panels, use kernels for powers of
        // two.
        const size_t widest = used[2] ? 2 : used[1] ? 1 : 0;
        const bool coarse =
                together || row.on_tiles || rows[i] == rows.back() || (rows[i] & (rows[i] - 1)) == 0;
        for (size_t j = 0; j < used.size(); j++)
            if (used[j] && (coarse || j == widest))
                MXDNN_CHECK(create(p, row, rows[i], row.panels[j], decoded, k.kernels[j][i], k_rows));
    }
    return mxdnn_success;
}

status_t panel_matmul_t::create_beside(const problem_t &p, const kernel_row_t &row, dim_t M, int most,
        int64_t tasks_per_thread, row_kernels_t &k) {
    k.row = &row;
    const bool any = M == runtime_dim;
    const std::vector<int> rows =
            row.on_tiles ? plan_tile_kernels(M, most, joined_rows(c_.kernels)) : plan_direct_kernels(M, most);
    if (const int64_t part = row.on_tiles ? c_.kernels.k_part : 0) {
        const int64_t last = (c_.weights.K - 1) % part + 1, all = c_.kernels.rows_of_all_k;
        // Parts of the rows may be two calls of few rows, but not of one tile of rows.
        std::vector<int> few = rows, more = rows;
        few.erase(std::upper_bound(few.begin(), few.end(), all), few.end());
        if (all > 0) more.erase(more.begin(), std::upper_bound(more.begin(), more.end(), tile_source_rows));
        if (last != part)
            MXDNN_CHECK(create(p, row, more, !any, decoded_t::dropped, tasks_per_thread, before_, part));
        MXDNN_CHECK(create(p, row, more, !any, decoded_t::dropped, tasks_per_thread, last_, last));
        return few.empty() ? mxdnn_success
                           : create(p, row, few, !any, decoded_t::dropped, tasks_per_thread, k);
    }
    if (!row.on_tiles || !c_.keeps || (!any && M <= most))
        return create(p, row, rows, !any, decoded_t::dropped, tasks_per_thread, k);
    // Rows that one call multiplies need no stored panels.
    const int64_t each = any ? runtime_dim : run_rows(M, p);
    const std::vector<int> short_runs = any ? rows : plan_short_runs(M, each, most);
    if (any || each > most) {
        MXDNN_CHECK(create(p, row, {most}, true, decoded_t::kept, tasks_per_thread, keeping_));
        MXDNN_CHECK(create(p, row, rows, true, decoded_t::found, tasks_per_thread, found_));
    }
    return short_runs.empty() ? mxdnn_success
                              : create(p, row, short_runs, !any, decoded_t::dropped, tasks_per_thread, k);
}

int64_t panel_matmul_t::run_rows(dim_t M, const problem_t &p) const {
    matmul_shape_t s;
    s.M = M;
    s.K = c_.weights.K;
    s.N = c_.weights.N;
    s.own_parts = c_.has_own_parts(M);
    return std::min(plan_mx_matmul(s, p.attr.max_rows_hint, c_.machine, c_.kernels).rows, c_.source_rows);
}

status_t panel_matmul_t::create(const problem_t &p, dim_t M, int64_t tasks_per_thread) {
    if (c_.weights.K == 0 || c_.weights.N == 0) return mxdnn_success;
    if (M != runtime_dim && c_.calls > 0 && !c_.fused)
        c_.calls = div_up(run_rows(M, p), int64_t(c_.kernels.row_step));
    const int64_t limit = direct_rows_limit(c_.machine, c_.kernels);
    if ((M == runtime_dim || M <= limit) && !(c_.few_apart && c_.many))
        MXDNN_CHECK(create_beside(p, *c_.direct, M, c_.kernels.direct_rows, tasks_per_thread, direct_));
    if (c_.kernels.only_direct || (M != runtime_dim && M <= limit)) return mxdnn_success;
    if (c_.fused) return create(p, *c_.fused, 1, c_.kernels.gemm_panels, decoded_t::dropped, fused_);
    if (c_.many) return create_beside(p, *c_.many, M, c_.kernels.gemm_rows, tasks_per_thread, many_);
    MXDNN_CHECK(create(p, *c_.decode, 1, 1, decoded_t::dropped, decode_));
    const int most = c_.kernels.gemm_rows;
    for (int rows = most; rows == most || (M == runtime_dim && rows > most / 2); rows -= any_gemm_rows_step) {
        gemm_.emplace_back();
        MXDNN_CHECK(create(p, *c_.gemm, rows, c_.kernels.gemm_panels, decoded_t::dropped, gemm_.back()));
    }
    return mxdnn_success;
}

int64_t panel_matmul_t::padded_rows(bool direct, int64_t rows) const {
    // Calls have the rows of the kernel. The last one uses the smallest kernel that suffices. Calls of gemm
    // kernels may be shorter, if parts of the rows are, but read no more.
    const kernel_row_t *beside = c_.beside(direct);
    if (c_.fuses(direct) || (beside && beside->on_tiles)) return rows;
    if (!beside) return round_up(rows, c_.kernels.gemm_rows);
    const int64_t most = c_.kernels.direct_rows, tail = rows % most;
    if (!tail || call_rows(direct_, rows, most) < most) return round_up(rows, most);
    int last = 0;
    for (size_t j = 0; j < std::size(direct_.kernels); j++) last = std::max(last, direct_.find(j, tail).rows);
    return rows - tail + last;
}

int64_t panel_matmul_t::call_rows(const row_kernels_t &k, int64_t rows, int64_t most) const {
    const bool any = int64_t(k.rows.size()) == most;
    return any && rows > most && c_.compute_dt == mxdnn_s8 ? plan_direct_rows(rows, int(most)) : most;
}

panel_matmul_t::row_kernels_t::found_t panel_matmul_t::row_kernels_t::find(size_t j, int64_t n) const {
    for (size_t i = 0; i < rows.size(); i++)
        if (rows[i] >= n && kernels[j][i]) return {kernels[j][i].get(), rows[i]};
    return {nullptr, 0};
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
    if (c_.fuses(o.direct)) return multiply_fused(o, n0, n1, acc);
    if (!c_.beside(o.direct)) return multiply_gemm(o, first, n1, acc, panels);
    multiply_beside(o, o.direct ? direct_ : many_, first, last, n1, acc, panels);
}

const uint8_t *panel_matmul_t::panel(const panel_operands_t &o, int64_t i) const {
    return o.weights + n16_frame_t::prefix(c_.weights) + i * c_.panel_bytes;
}

void panel_matmul_t::multiply_beside(const panel_operands_t &o, const row_kernels_t &k, int64_t first,
        int64_t last, int64_t n1, float *acc, char *panels) const {
    const int64_t most = call_rows(k, o.rows, o.direct ? c_.kernels.direct_rows : c_.kernels.gemm_rows);
    const bool stream = c_.streams(o.direct, o.stream_rows);
    const source_blocks_t blocks = c_.stream_of(o.direct, o.stream_rows);
    direct_args_t a = {};
    a.src_stride = stream ? source_blocks_t::piece_bytes : o.source_stride;
    a.src_step = source_blocks_t::piece_bytes;
    a.wei_stride = c_.panel_bytes;
    a.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    a.xsum_stride = c_.scratch.sums_per_row * int64_t(sizeof(float));
    a.dst_stride = o.dst_stride;
    a.scale = o.scale;
    a.panels = panels;
    const jit_kernel_t *kernel = nullptr;
    const int64_t largest = std::min(o.rows, most);
    const bool keeps = c_.keeps && o.rows > most;
    const bool last_part = !o.part_sums || o.k_part + 1 == div_up(c_.weights.K, c_.kernels.k_part);
    const auto kernels = [&](int64_t r) -> const row_kernels_t & {
        if (o.part_sums) return last_part || before_.rows.empty() ? last_ : before_;
        return !keeps ? k : r > 0 ? found_ : keeping_;
    };
    // The index of the largest number of panels from p on.
    const auto panels_from = [&](int64_t p) {
        size_t j = 2;
        while (j > 0
                && (k.row->panels[j] == 0 || k.row->panels[j] > last - p
                        || !kernels(0).find(j, largest).kernel))
            j--;
        return j;
    };
    const auto call = [&](int64_t p, size_t j, int64_t r) {
        const int64_t columns = k.row->panels[j] * panel_columns, at = (p - first) * panel_columns;
        a.wei = panel(o, p);
        // All calls but the first one find the panels in cache. Together they prefetch the next panels.
        const int64_t steps = k.row->panels[j] * div_up(c_.weights.K, int64_t(k_step)),
                      calls = div_up(o.rows, most);
        if (!k.row->on_tiles) {
            a.fetch_step = calls > 1 ? div_up(k.row->panels[j] * c_.panel_bytes, steps * calls) : 0;
            a.fetch = a.fetch_step
                              ? a.wei + k.row->panels[j] * c_.panel_bytes + r / most * steps * a.fetch_step
                              : a.wei;
        }
        a.src = static_cast<const char *>(o.source)
                + (stream ? blocks.first(o.stream_row + r) : r * o.source_stride);
        if (stream) a.src_step = blocks.stride(o.stream_row + r);
        a.acc = o.store ? acc : acc + r * c_.scratch.acc_columns + at;
        if (o.part_sums) {
            const int64_t k = o.k_part * c_.kernels.k_part;
            a.wei += k / c_.kernels.tile_rows * c_.tile_bytes;
            a.src = static_cast<const char *>(a.src) + k / k_step * a.src_step;
            float *const sums = o.part_sums + r * c_.scratch.acc_columns + at;
            a.begin = o.k_part > 0 ? sums : nullptr;
            if (!last_part) a.acc = sums;
        }
        a.xsum = o.block_sums ? o.block_sums + r * c_.scratch.sums_per_row : nullptr;
        if (o.dst && last_part) a.dst = static_cast<char *>(o.dst) + r * o.dst_stride + at * o.dst_bytes;
        kernel = kernels(r).find(j, a.rows).kernel;
        (*kernel)(&a);
        if (o.store) a.before = {a.rows, std::min(columns, n1 - p * panel_columns), a.dst, o.bias + at};
    };
    if (k.row->on_tiles && !keeps) {
        // Every call decodes. So panels are the inner loop: their results lie beside each other. Together the
        // calls fetch the panels of the next task, or each the next ones if there are rows for one call.
        const uint8_t *later = panel(o, last);
        for (int64_t r = 0; r < o.rows; r += a.rows) {
            a.rows = stream ? blocks.call_rows(o.stream_row + r) : o.rows;
            for (int64_t p = first; p < last;) {
                const size_t j = panels_from(p);
                const int64_t panels = k.row->panels[j], steps = div_up(c_.weights.K, int64_t(k_step));
                // A single call, where there are several as a rule, would fetch too little to gain by it.
                a.fetch = c_.calls == 1 ? panel(o, p + panels) : o.rows <= most ? panel(o, p) : later;
                const int64_t group = std::min<int64_t>(panels, walked_panels(most));
                later += 64 * steps * panels / group
                         * next_panel_lines(group * c_.panel_bytes / steps, most, c_.calls);
                call(p, j, r);
                p += panels;
            }
        }
    } else {
        for (int64_t p = first; p < last;) {
            const size_t j = panels_from(p);
            for (int64_t r = 0; r < o.rows; r += most) {
                a.rows = std::min<int64_t>(o.rows - r, most);
                call(p, j, r);
            }
            p += k.row->panels[j];
        }
    }
    if (!o.store) return;
    a.rows = 0;
    (*kernel)(&a);
}

void panel_matmul_t::multiply_fused(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc) const {
    const int64_t first = n0 / panel_columns, last = div_up(n1, panel_columns);
    const source_blocks_t blocks = c_.stream_of(o.direct, o.stream_rows);
    fused_args_t a = {};
    a.src = static_cast<const char *>(o.source) + blocks.first(o.stream_row);
    a.rows = o.rows;
    a.dst = o.dst;
    a.dst_stride = o.dst_stride;
    a.acc = acc;
    a.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    a.scale = o.scale;
    a.row_scale = o.row_scales;
    a.bias = o.bias;
    for (int64_t p = first; p < last; p += 2) {
        // After the last panel there is nothing to read, so the same columns are read again.
        for (int64_t i = 0; i < 2; i++) a.wei[i] = panel(o, std::min(p + i, last - 1));
        if (o.store) a.store_columns = std::min<int64_t>(2 * panel_columns, n1 - p * panel_columns);
        (*fused_)(&a);
        a.acc += 2 * panel_columns;
        if (a.bias) a.bias += 2 * panel_columns;
        if (a.dst) a.dst = static_cast<char *>(a.dst) + 2 * panel_columns * o.dst_bytes;
    }
}

int panel_matmul_t::gemm_call_rows(int64_t rows) const {
    const int most = c_.kernels.gemm_rows;
    return gemm_.size() > 1 ? plan_gemm_rows(rows, most, any_gemm_rows_step) : most;
}

// Whether the last call may begin with rows of the call before, instead of reading rows that do not exist.
bool panel_matmul_t::gemm_calls_overlap(int64_t rows) const {
    const int64_t K = c_.weights.K;
    return !gemm_.empty() && plan_k_chunk(K, c_.machine, c_.kernels) >= K && rows >= gemm_call_rows(rows);
}

bool panel_matmul_t::can_store(bool direct, int64_t columns, bool row_scales, data_type_t dst_dt) const {
    if (c_.weights.K == 0) return false;
    if (c_.fuses(direct)) return dst_dt == mxdnn_bf16 && row_scales;
    if (const kernel_row_t *row = c_.beside(direct))
        return dst_dt == mxdnn_bf16 && !row_scales && row->on_tiles;
    if (c_.compute_dt == mxdnn_s8) return false;
    return (dst_dt == mxdnn_bf16 || dst_dt == mxdnn_f32) && columns % panel_columns == 0;
}

void panel_matmul_t::multiply_gemm(
        const panel_operands_t &o, int64_t first, int64_t n1, float *acc, char *panels) const {
    const int64_t step = c_.kernels.gemm_panels, tile_rows = c_.kernels.tile_rows, K = c_.weights.K;
    const int64_t last = div_up(n1, panel_columns), k_chunk = plan_k_chunk(K, c_.machine, c_.kernels);
    const int rows = gemm_call_rows(o.rows);
    const jit_kernel_t &gemm = *gemm_[size_t((c_.kernels.gemm_rows - rows) / any_gemm_rows_step)];
    const int64_t calls = div_up(o.rows, int64_t(rows));
    const bool overlap = gemm_calls_overlap(o.rows);
    // Each call prefetches a part of the next panels, if a call has all of K.
    const int64_t fetch_steps = round_up(std::min(k_chunk, K), k_step) / gemm_fetch_rows;
    gemm_args_t d = {};
    d.src_stride = o.source_stride;
    d.wei = panels;
    d.wei_stride = c_.scratch.panel_stride;
    d.acc_stride = c_.scratch.acc_columns * int64_t(sizeof(float));
    d.scale = o.scale;
    d.fetch_step = k_chunk < K ? 0 : div_up(step * c_.panel_bytes, calls * fetch_steps);
    for (int64_t p = first; p < last; p += step) {
        const int64_t at = (p - first) * panel_columns;
        d.columns = std::min(step * panel_columns, n1 - p * panel_columns);
        if (o.store) d.bias = o.bias + at;
        for (int64_t k = 0; k < K; k += k_chunk) {
            const int64_t n = std::min(k_chunk, K - k);
            for (int64_t i = 0; i < step; i++) {
                // After the last panel there is nothing to read, so the same columns are read again.
                decode_args_t a;
                a.wei = panel(o, std::min(p + i, last - 1)) + k / tile_rows * c_.tile_bytes;
                a.tiles = n / tile_rows;
                a.tail = n % tile_rows;
                a.dst = panels + i * c_.scratch.panel_stride;
                (*decode_)(&a);
            }
            d.k = round_up(n, k_step);
            d.accumulate = k > 0;
            for (int64_t c = 0; c < calls; c++) {
                const int64_t r = overlap ? std::min(c * rows, o.rows - rows) : c * rows;
                d.src = static_cast<const char *>(o.source) + r * o.source_stride
                        + k * c_.kernels.compute_bytes;
                d.fetch = d.fetch_step ? panel(o, p + step) + c * fetch_steps * d.fetch_step : d.wei;
                d.acc = acc + at + r * c_.scratch.acc_columns;
                if (!o.store || k + n < K) {
                    gemm(&d);
                    continue;
                }
                char *const dst = static_cast<char *>(o.dst) + r * o.dst_stride + at * o.dst_bytes;
                const int64_t exist = std::min<int64_t>(rows, o.rows - r);
                d.row_scales = o.row_scales ? o.row_scales + r : nullptr;
                // Rows that do not exist have no place but that of their sums.
                d.dst = exist < rows ? static_cast<void *>(d.acc) : dst;
                d.dst_stride = exist < rows ? d.acc_stride : o.dst_stride;
                gemm(&d);
                for (int64_t i = 0; exist < rows && i < exist; i++)
                    std::memcpy(dst + i * o.dst_stride, static_cast<char *>(d.dst) + i * d.dst_stride,
                            size_t(d.columns * o.dst_bytes));
            }
            d.dst = nullptr;
        }
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

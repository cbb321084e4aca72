// SPDX-License-Identifier: Apache-2.0
// Executing: sort the rows by expert, prepare a window of them, let threads take rows times columns
// until none are left. Where rows meet in the destination, results are kept in f32 and then added up in
// the order of experts and rows, so that sums never depend on who computed what.
#include "cpu/x64/jit_grouped_matmul.hpp"

#include <algorithm>
#include <cstring>

#include "common/grouped_exec.hpp"
#include "cpu/empty_dst.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/epilogue.hpp"
#include "cpu/x64/source_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

void atomic_max(uint32_t *at, uint32_t mine) {
    uint32_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (seen < mine
            && !__atomic_compare_exchange_n(at, &seen, mine, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

} // namespace

reason_t configure(grouped_conf_t &g, const problem_t &p, cpu_isa_t isa) {
    matmul_conf_t &c = g.matmul;
    const reason_t r = configure(c, p, isa);
    if (!r.ok()) return r;
    g.experts = p.weights.dims[0];
    g.dst_n = dim_from_end(p.dst, 1);
    g.sums_stride = round_up(g.dst_n, 16);
    const int64_t row_bytes = round_up(c.weights.K, k_step) * c.kernels.compute_bytes;
    g.limits = grouped_limits(c.weights.K, row_bytes, g.dst_n, p.attr.max_rows_hint, c.machine, c.kernels);
    // Calls read whole blocks of rows, so there is room for one block after the last segment.
    const int64_t slack = std::max(c.kernels.gemm_rows, c.kernels.direct_rows);
    size_scratch(c, g.limits.window_rows + slack, g.limits.task_rows + slack);
    c.own_parts = c.copies_alone(p);
    if (c.own_parts) c.scratch.own_rows = (g.limits.task_rows + slack) * c.scratch.source_stride;
    return yes();
}

void grouped_conf_t::book(scratch_parts_t &scratch) const {
    const int threads = matmul.machine.threads;
    matmul.scratch.book(scratch, threads);
    scratch.book(scratch_t::tasks, threads * int64_t(sizeof(task_shares_t::share_t)));
    scratch.book(scratch_t::experts, experts * int64_t(sizeof(expert_rows_t)));
    scratch.book(scratch_t::segments, experts * int64_t(sizeof(grouped_segment_t)));
    for (const scratch_t of_window : {scratch_t::rows, scratch_t::row_shifts})
        scratch.book(of_window, limits.window_rows * int64_t(sizeof(int32_t)));
    scratch.book(scratch_t::meetings, (limits.window_rows + limits.sum_rows + 1) * int64_t(sizeof(int32_t)));
    scratch.book(scratch_t::results, limits.window_rows * sums_stride * int64_t(sizeof(float)));
    scratch.book(scratch_t::sums, limits.sum_rows * sums_stride * int64_t(sizeof(float)));
}

// One execution of one primitive.
struct jit_grouped_matmul_base_t::run_t {
    const jit_grouped_matmul_base_t &self;
    const exec_ctx_t &ctx;
    const grouped_conf_t &g;
    const matmul_conf_t &c;
    const problem_t &p;
    const grouped_exec_t x;
    const memory_desc_t &src_md, &dst_md;
    const int64_t direct_limit;
    const bool summed;                            // several rows may be added to one row of the destination
    const bool src_shifted, dst_shifted, shifted; // scales are ahead of their rows
    int nthr;
    uint32_t *amax =
            nullptr; // if not null, results are only measured, for a global scale; one, or one per expert
    int64_t amax_stride = 0;

    expert_rows_t *experts;
    grouped_segment_t *segments;
    int32_t *rows,
            *shifts; // for each row of the window: its number among the grouped rows, and its shift of scales
    int32_t *meet_first,
            *meeting; // row d0 + i gets meeting[meet_first[i] .. meet_first[i + 1]) of the window
    float *results, *sums;
    char *sources;
    // The current rows [d0, d1) of the destination.
    int64_t d0 = 0, d1 = 0;
    // The window: the beginning of the next one, and the contents of this one.
    int64_t next_expert = 0, next_row = 0, n_left = 0;
    int64_t n_segments = 0, n_rows = 0;
    grouped_plan_t plan;

    run_t(const jit_grouped_matmul_base_t &s, const exec_ctx_t &e)
        : self(s), ctx(e), g(s.conf_), c(g.matmul), p(e.pd.problem), x(e),
          src_md(e.memory(MXDNN_ARG_SRC)->md), dst_md(e.memory(MXDNN_ARG_DST)->md),
          direct_limit(direct_rows_limit(c.machine, c.kernels)), summed(x.scatter != nullptr),
          src_shifted(p.attr.src.layout == mxdnn_scales_swizzle_128x4 && src_md.ndims == 2
                      && swizzled_by_group(x, true)),
          dst_shifted(p.attr.dst.layout == mxdnn_scales_swizzle_128x4 && dst_md.ndims == 2
                      && swizzled_by_group(x, false)),
          shifted(src_shifted || dst_shifted), nthr(threads_of(e.stream, c.machine.threads)) {
        experts = ctx.scratch<expert_rows_t>(scratch_t::experts);
        segments = ctx.scratch<grouped_segment_t>(scratch_t::segments);
        rows = ctx.scratch<int32_t>(scratch_t::rows);
        shifts = ctx.scratch<int32_t>(scratch_t::row_shifts);
        meet_first = ctx.scratch<int32_t>(scratch_t::meetings);
        meeting = meet_first + g.limits.sum_rows + 1;
        results = ctx.scratch<float>(scratch_t::results);
        sums = ctx.scratch<float>(scratch_t::sums);
        sources = ctx.scratch<char>(scratch_t::source_rows);
    }

    char *source_buffer(int64_t row) const { return sources + row * c.scratch.source_stride; }
    float *row_scales() const { return reinterpret_cast<float *>(sources + c.scratch.source); }
    float *block_sums(int64_t row) const {
        return reinterpret_cast<float *>(sources + c.scratch.source + c.scratch.row_scales)
               + row * c.scratch.sums_per_row;
    }

    // Calls body(expert, row, shift) for the rows that are added to rows [d0, d1), in order. shift is how far
    // 128x4 scales are ahead of the row.
    template <typename F>
    void for_each_row(F &&body) const {
        int64_t padded = 0; // rows of the groups before, padded to whole tiles of scales
        for (int64_t i = 0; i < x.groups.groups; i++) {
            const row_group_t group = x.groups.group(i);
            for (int64_t r = group.first; group.expert >= 0 && r < group.first + group.count; r++)
                if (!x.scatter || (x.scatter[r] >= d0 && x.scatter[r] < d1))
                    body(group.expert, r, padded - group.first);
            if (shifted) padded += x.groups.swizzled_rows(i);
        }
    }

    void count_rows() {
        for (int64_t e = 0; e < g.experts; e++) experts[e].count = 0;
        for_each_row([&](int e, int64_t, int64_t) { experts[e].count++; });
        next_expert = next_row = n_left = 0;
        for (int64_t e = 0; e < g.experts; e++) n_left += experts[e].count;
    }

    // Selects the next rows that are prepared together: whole experts, or a part of a larger one. False if
    // none are left.
    bool next_window() {
        n_segments = n_rows = 0;
        const int64_t most = g.limits.window_rows, granule = row_granule(c.kernels);
        for (int64_t e = 0; e < g.experts; e++) experts[e].begin = experts[e].end = experts[e].seen = 0;
        while (next_expert < g.experts) {
            expert_rows_t &e = experts[next_expert];
            const int64_t left = e.count - next_row, room = most - n_rows;
            if (n_rows > 0 && left > room) break;
            const int64_t n = left <= room ? left : room / granule * granule;
            if (n > 0) {
                segments[n_segments++] = {
                        int32_t(next_expert), int32_t(n_rows), int32_t(n), e.total <= direct_limit, false};
                e.begin = next_row;
                e.end = next_row + n;
                e.slot = n_rows;
                n_rows += n;
            }
            next_row += n;
            if (next_row < e.count) break;
            next_expert++;
            next_row = 0;
        }
        if (n_segments == 0) return false;
        collect_rows();
        return true;
    }

    void collect_rows() {
        for_each_row([&](int id, int64_t r, int64_t shift) {
            expert_rows_t &e = experts[id];
            const int64_t i = e.seen++;
            if (i < e.begin || i >= e.end) return;
            rows[e.slot + i - e.begin] = int32_t(r);
            if (shifted) shifts[e.slot + i - e.begin] = int32_t(shift);
        });
    }

    // ---- source ----

    // Whether kernels may read the rows of a segment directly.
    bool readable(const grouped_segment_t &s, const source_rows_t &source) const {
        if (x.gather || p.attr.src.scales.set || c.needs_sums || src_md.ndims != 2 || !source.in_place(0))
            return false;
        if (c.streams(s.direct, s.count)) return false;
        const int64_t stride = source.in_place_stride();
        if (s.direct ? c.conflicts(true, stride, s.count) : stride % bad_stride == 0) return false;
        const int64_t first = rows[s.first];
        if (rows[s.first + s.count - 1] - first != s.count - 1) return false;
        // Calls read whole blocks of rows. They may read rows of other segments, but not beyond the tensor.
        // Parts of a segment are whole blocks.
        return first + self.kernels_.padded_rows(s.direct, s.count) <= x.src_rows;
    }

    void prepare_source() {
        if (c.weights.K == 0) return; // empty sums
        source_rows_t in_place(ctx, c.compute_dt);
        const dim_t first_batch[1] = {0};
        in_place.set_batch(first_batch);
        int64_t copied = 0;
        for (int64_t i = 0; i < n_segments; i++) {
            segments[i].in_place = readable(segments[i], in_place);
            if (!segments[i].in_place && !own(segments[i])) copied += segments[i].count;
        }
        if (copied == 0) return;
        const int n = copied * c.weights.K < serial_elements ? 1 : int(std::min<int64_t>(nthr, copied));
        parallel(ctx, n, [&](int ithr, int nt) {
            source_rows_t source(ctx, c.compute_dt);
            source.set_batch(first_batch);
            int64_t begin, end, before = 0;
            balance(copied, nt, ithr, begin, end);
            for (int64_t i = 0; i < n_segments && before < end; i++) {
                const grouped_segment_t &s = segments[i];
                if (s.in_place || own(s)) continue;
                const source_blocks_t blocks = c.stream_of(s.direct, s.count);
                for (int64_t r = std::max<int64_t>(begin - before, 0); r < s.count && before + r < end; r++)
                    prepare_row(source, s, r, source_buffer(s.first), r,
                            c.streams(s.direct, s.count) ? &blocks : nullptr);
                before += s.count;
            }
        });
    }

    // Whether each thread copies the rows of its tasks.
    bool own(const grouped_segment_t &s) const { return c.own_parts && c.streams(s.direct, s.count); }

    // Row r of a segment as row `at` of `to`: of a stream, or else with rows at equal distances.
    void prepare_row(source_rows_t &source, const grouped_segment_t &s, int64_t r, char *to, int64_t at,
            const source_blocks_t *stream) const {
        const int64_t slot = s.first + r;
        const source_sums_t out{
                row_scales() + slot, c.needs_sums ? block_sums(slot) : nullptr, c.weights.block};
        int64_t m = x.src_row(rows[slot]);
        if (m < 0) {
            if (out.block_sums)
                std::memset(out.block_sums, 0, size_t(c.scratch.sums_per_row) * sizeof(float));
            *out.row_scale = 1.f;
        } else {
            if (src_md.ndims == 3) {
                const dim_t batch[1] = {m / src_md.dims[1]};
                source.set_batch(batch);
                m %= src_md.dims[1];
            }
            source.set_group(s.expert, src_shifted ? shifts[slot] : 0);
        }
        source.set_unsigned(!s.direct && c.compute_dt == mxdnn_s8);
        char *const row = to + at * c.scratch.source_stride;
        if (stream)
            source.prepare(m, at, *stream, to, out);
        else if (m < 0)
            std::memset(row, source.zero(), size_t(c.scratch.source_stride));
        else
            source.prepare(m, row, round_up(c.weights.K, k_step), out);
    }

    // Copies rows [r0, r1) of a segment for a thread.
    void prepare_own(
            source_rows_t &source, const grouped_segment_t &s, int64_t r0, int64_t r1, char *to) const {
        const source_blocks_t blocks = c.stream_of(s.direct, r1 - r0);
        const bool stream = c.streams(s.direct, r1 - r0);
        for (int64_t r = r0; r < r1;) {
            int64_t m[tile_source_rows];
            const int64_t n =
                    stream ? std::min({r1 - r, blocks.call_rows(r - r0), int64_t(tile_source_rows)}) : 1;
            for (int64_t i = 0; i < n; i++) m[i] = x.src_row(rows[s.first + r + i]);
            const bool copied = stream && src_md.ndims == 2
                                && source.copy(m, n, r - r0, blocks, to, {nullptr, nullptr, 0});
            for (int64_t i = 0; !copied && i < n; i++)
                prepare_row(source, s, r + i, to, r + i - r0, stream ? &blocks : nullptr);
            r += n;
        }
    }

    // ---- tasks ----

    const uint8_t *weights_of(int expert) const {
        if (x.weights_ptrs) return reinterpret_cast<const uint8_t *>(uintptr_t(x.weights_ptrs[expert]));
        return ctx.data<const uint8_t>(MXDNN_ARG_WEIGHTS) + expert * c.weights_stride;
    }

    // The state of one thread.
    struct worker_t {
        epilogue_t epilogue;
        source_rows_t source;
        char *buffer;
        char *own_rows;     // rows that the thread copies
        float *part_sums;   // of parts of K
        int64_t batch = -1; // entry of the destination that the epilogue is set to
        int64_t copied_segment = -1, copied_part = -1;

        worker_t(const exec_ctx_t &ctx, const matmul_conf_t &c, int ithr)
            : epilogue(ctx), source(ctx, c.compute_dt), buffer(ctx.scratch<char>(scratch_t::thread, ithr)),
              own_rows(buffer + c.scratch.panels + c.scratch.acc),
              part_sums(c.kernels.k_part ? ctx.scratch<float>(scratch_t::partial_sums, ithr) : nullptr) {
            const dim_t idx[1] = {0};
            source.set_batch(idx);
        }
        bool has(const grouped_task_t &t) const {
            return t.segment == copied_segment && t.part == copied_part;
        }
    };

    int64_t select_row(worker_t &w, int64_t row) const {
        const bool padded = dst_md.ndims == 3;
        const int64_t batch = padded ? row / dst_md.dims[1] : 0;
        if (batch != w.batch) {
            const dim_t idx[1] = {batch};
            w.epilogue.set_batch(idx);
            w.batch = batch;
        }
        return padded ? row % dst_md.dims[1] : row;
    }

    // Computes columns [c0, c1) of rows [r0, r1) of a segment: at most max_plan_columns and task_rows. If
    // there are parts of K: of one part, whose sums, or those of the parts before, are in part_sums.
    void do_block(worker_t &w, const grouped_segment_t &s, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
            int64_t k_part, float *part_sums) const {
        float *acc = reinterpret_cast<float *>(w.buffer + c.scratch.panels);
        const int64_t half = c.half(), slot = s.first + r0;
        const int64_t n0 = c.weights_column(c0), n1 = c.weights_column(c1);
        panel_operands_t o;
        o.direct = s.direct;
        o.rows = r1 - r0;
        o.source = s.in_place ? w.source.in_place(rows[slot]) : source_buffer(slot);
        o.source_stride = s.in_place ? w.source.in_place_stride() : c.scratch.source_stride;
        o.block_sums = c.needs_sums ? block_sums(slot) : nullptr;
        o.weights = weights_of(s.expert);
        o.stream_rows = s.count;
        o.k_part = k_part;
        o.part_sums = part_sums;
        const bool last_part = !part_sums || k_part + 1 == c.k_parts(s.direct, o.rows);
        if (own(s)) {
            o.source = w.own_rows;
            o.stream_rows = o.rows;
        } else if (c.streams(s.direct, s.count)) {
            o.source = source_buffer(s.first);
            o.stream_row = r0;
        }
        const bool stores =
                self.kernels_.can_store(s.direct, c1 - c0, p.attr.src.scales.set, w.epilogue.dst_type());
        if (stores && summed && !c.gated) {
            o.dst = results + slot * g.sums_stride + c0;
            o.dst_stride = g.sums_stride * int64_t(sizeof(float));
            o.dst_bytes = sizeof(float);
        } else if (!summed && dst_md.ndims == 2 && rows[slot + o.rows - 1] - rows[slot] == o.rows - 1) {
            o.dst = w.epilogue.place_of(select_row(w, x.dst_row(rows[slot])), c0);
            o.dst_stride = w.epilogue.dst_row_bytes();
            o.dst_bytes = w.epilogue.bytes_of_dst();
        }
        float scale = x.alpha(s.expert);
        if (c.weights.global) {
            float global;
            std::memcpy(&global, o.weights, sizeof(global));
            scale *= global;
        }
        if (p.attr.src.scales.set) {
            w.source.set_group(s.expert, 0);
            scale *= w.source.global();
        }
        float bias[epilogue_t::most_biases];
        const bool linear = o.dst && !summed && !amax && !x.scatter && !x.topk && w.epilogue.is_linear();
        o.store = linear && stores && last_part;
        if (linear) {
            o.bias = w.epilogue.bias_of(s.expert, c0, c1 - c0, bias);
            o.scale = scale;
            o.row_scales = p.attr.src.scales.set ? row_scales() + slot : nullptr;
        }
        self.kernels_.multiply(o, n0, n1, acc, w.buffer);
        if (o.store) return;
        if (linear && last_part)
            return w.epilogue.finish_linear({acc + n0 % panel_columns, c.scratch.acc_columns, o.dst,
                    o.dst_stride, o.rows, c1 - c0, o.scale, o.row_scales, o.bias});
        const int64_t up_at = (div_up(n1, panel_columns) - n0 / panel_columns) * panel_columns;
        float *up = acc + up_at;
        if (part_sums) o.part_sums += up_at;
        if (c.halves) self.kernels_.multiply(o, half + c0, half + c1, up, w.buffer);
        if (!last_part) return;

        gate_params_t gate;
        if (x.activation_params) {
            const activation_params_t a = x.params(s.expert, *p.attr.gated());
            gate = {a.alpha, a.beta, a.limit};
        }
        float most = 0;
        for (int64_t r = 0; r < o.rows; r++) {
            const int64_t row = rows[slot + r], to = x.dst_row(row);
            row_terms_t terms;
            terms.bias_row = s.expert;
            terms.scale = p.attr.src.scales.set ? scale * row_scales()[slot + r] : scale;
            (p.attr.topk_weights_placement == mxdnn_topk_weights_on_input ? terms.scale : terms.weight) *=
                    x.topk_weight(row);
            if (x.activation_params) terms.gate = &gate;
            if (summed) terms.keep = results + (slot + r) * g.sums_stride + c0;
            terms.m = select_row(w, to);
            float *sum = acc + r * c.scratch.acc_columns + n0 % panel_columns;
            const float *u = up + r * c.scratch.acc_columns + (half + c0) % panel_columns;
            if (!summed && p.attr.dst.scales.set)
                w.epilogue.set_group(s.expert, dst_shifted ? shifts[slot + r] : 0);
            if (amax && !summed)
                most = std::max(most, w.epilogue.amax_row(terms, c0, c1 - c0, sum, u));
            else
                w.epilogue.finish_row(terms, c0, c1 - c0, sum, u);
        }
        if (amax && !summed) atomic_max(amax + s.expert * amax_stride, bits_of(most));
    }

    // ---- sums of several rows ----

    // Sorts the rows of the window by destination row. The sort is stable.
    void sort_meeting() {
        const int64_t n = d1 - d0;
        std::fill_n(meet_first, n + 1, 0);
        for (int64_t i = 0; i < n_rows; i++) meet_first[x.scatter[rows[i]] - d0 + 1]++;
        for (int64_t d = 0; d < n; d++) meet_first[d + 1] += meet_first[d];
        for (int64_t i = 0; i < n_rows; i++) meeting[meet_first[x.scatter[rows[i]] - d0]++] = int32_t(i);
        for (int64_t d = n; d > 0; d--) meet_first[d] = meet_first[d - 1];
        meet_first[0] = 0;
    }

    // Adds results to the current rows of the destination. Sums begin with the first window and are stored
    // with the last.
    void add_up(bool first, bool last) {
        sort_meeting();
        const int64_t n = d1 - d0, elements = (n_rows + n) * g.dst_n;
        parallel(
                ctx, elements < serial_elements ? 1 : int(std::min<int64_t>(nthr, n)), [&](int ithr, int nt) {
                    worker_t w(ctx, c, ithr);
                    int64_t begin, end;
                    balance(n, nt, ithr, begin, end);
                    float most = 0;
                    for (int64_t d = begin; d < end; d++)
                        for (int64_t at = 0; at < g.dst_n; at += max_plan_columns)
                            add_up_row(w, d, at, std::min(max_plan_columns, g.dst_n - at), first, last, most);
                    if (amax && last) atomic_max(amax, bits_of(most));
                });
    }
    void add_up_row(
            worker_t &w, int64_t d, int64_t at, int64_t columns, bool first, bool last, float &most) const {
        float *sum = sums + d * g.sums_stride + at;
        if (first) std::fill_n(sum, columns, 0.f);
        for (int32_t i = meet_first[d]; i < meet_first[d + 1]; i++)
            row_kernels().binary(mxdnn_binary_add, sum, results + meeting[i] * g.sums_stride + at, columns);
        if (!last) return;
        const int64_t m = select_row(w, d0 + d);
        if (amax)
            most = std::max(most, w.epilogue.amax_sums(m, at, columns, sum));
        else
            w.epilogue.store_sums(m, at, columns, sum);
    }

    void do_tasks() {
        for (int64_t i = 0; ctx.record && c.weights.K > 0 && i < n_segments; i++)
            ctx.record->add_kernel(c.kernel_names(segments[i].direct));
        grouped_shape_t shape;
        shape.dst_n = g.dst_n;
        shape.column_step = c.column_step;
        matmul_machine_t machine = c.machine;
        machine.threads = nthr;
        plan = plan_grouped_matmul(shape, segments, n_segments, g.limits, machine, c.kernels);
        const int n = int(std::min<int64_t>(nthr, plan.tasks));
        task_shares_t shares(ctx.scratch<task_shares_t::share_t>(scratch_t::tasks), n, 1,
                [&](int i) { return first_task(plan, shape, segments, n_segments, i, n); });
        parallel(ctx, n, [&](int ithr, int) {
            worker_t w(ctx, c, ithr);
            grouped_tasks_t tasks(plan, shape, segments);
            if (!c.own_parts) return shares.run(ithr, [&](int, int64_t t) { do_task(w, tasks.find(t)); });
            shares.run_prepared(
                    ithr, div_up(own_parts_t::tasks_of_copy * plan.together, plan.columns),
                    [&](int64_t t) {
                        const grouped_task_t task = tasks.find(t);
                        return !own(segments[task.segment]) || w.has(task);
                    },
                    [&](int64_t t) { do_task(w, tasks.find(t)); });
        });
    }

    void do_task(worker_t &w, const grouped_task_t &task) const {
        const grouped_segment_t &s = segments[task.segment];
        const int64_t r = task.part * plan.rows, n = task.block * plan.columns;
        const int64_t end = task.part + 1 < row_parts(s, plan) ? r + plan.rows : s.count;
        if (own(s) && !w.has(task)) {
            prepare_own(w.source, s, r, end, w.own_rows);
            w.copied_segment = task.segment;
            w.copied_part = task.part;
        }
        const int64_t n_end = std::min(n + plan.columns, g.dst_n), k_parts = c.k_parts(s.direct, end - r);
        for (int64_t k = 0; k < k_parts; k++) {
            float *sums = k_parts > 1 ? w.part_sums : nullptr;
            for (int64_t c0 = n; c0 < n_end; c0 += plan.together) {
                do_block(w, s, r, end, c0, std::min(c0 + plan.together, n_end), k, sums);
                if (sums) sums += c.scratch.acc / int64_t(sizeof(float));
            }
        }
    }

    // Computes rows [d0, d1) of the destination, which count_rows() has counted. Without sums these are all
    // rows.
    void do_destination() {
        for (bool first = true; first || n_left > 0; first = false) {
            const bool any = next_window();
            n_left -= n_rows;
            if (any) {
                prepare_source();
                do_tasks();
            }
            if (summed) add_up(first, n_left == 0);
        }
    }

    void do_all() {
        d0 = 0;
        d1 = x.dst_rows;
        count_rows();
        // All rows of an expert decide how they are multiplied, so that windows do not show in the results.
        for (int64_t e = 0; e < g.experts; e++) experts[e].total = experts[e].count;
        if (!summed || x.dst_rows <= g.limits.sum_rows) return do_destination();
        for (d0 = 0; d0 < x.dst_rows; d0 = d1) {
            d1 = std::min(d0 + g.limits.sum_rows, x.dst_rows);
            count_rows();
            do_destination();
        }
    }
};

status_t jit_grouped_matmul_base_t::execute(const exec_ctx_t &ctx) const {
    run_t run(*this, ctx);
    if (run.x.dst_rows == 0 || conf_.dst_n == 0) return write_empty_dst(ctx);
    if (ctx.record) ctx.record->division = describe(conf_.limits);
    if (ctx.pd.problem.attr.dst.global == mxdnn_quantization_mode_dynamic_fp) {
        // The global scale needs all results first. They are computed twice, not stored. The largest
        // magnitudes are collected in the memory of the scale: bits of non-negative floats have the order of
        // integers.
        const memory_t &global = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        const dim_t scales = global.md.dims[0];
        run.amax = static_cast<uint32_t *>(global.handle);
        run.amax_stride = scales == 1 ? 0 : 1;
        std::fill(run.amax, run.amax + scales, 0u);
        run.do_all();
        for (dim_t i = 0; i < scales; i++) run.amax[i] = bits_of(nvfp4_global_scale(float_of(run.amax[i])));
        run.amax = nullptr;
    }
    run.do_all();
    return mxdnn_success;
}

std::string describe(const grouped_limits_t &l) {
    return "window" + std::to_string(l.window_rows) + ":rows" + std::to_string(l.task_rows) + ":sums"
           + std::to_string(l.sum_rows);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

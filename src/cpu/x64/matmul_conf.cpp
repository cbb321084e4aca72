// SPDX-License-Identifier: Apache-2.0
// What the generated kernels take, which of them a problem gets, and how much scratchpad that needs.
#include <algorithm>

#include "common/formats/format_list.hpp"
#include "common/problem_util.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/x64/epilogue.hpp"
#include "cpu/x64/int8_panel.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/matmul_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// Longer rows have offsets that do not fit in an instruction.
constexpr dim_t most_k = dim_t(1) << 26;

// Of so many weights, one row takes longer with tiles, which have to be configured, than without.
constexpr int64_t small_weights = int64_t(1) << 15;

// From this K on, direct kernels that hide decoding are better for more rows.
constexpr int64_t long_k = 4096;

int most_panels(const kernel_row_t &row) {
    return std::max(row.panels[0], std::max(row.panels[1], row.panels[2]));
}

// For each thread, where panels are decoded to integers.
constexpr int64_t least_int8_tasks = 2;

// s8 codes with one scale per row.
bool is_row_int8(const problem_t &p) {
    quant_t q;
    const data_type_t dt = source_format(p, q);
    return dt == mxdnn_s8 && has_row_scale(dt, q);
}

// Integers on both sides, which int8 kernels multiply exactly. With few rows, tiles are as fast in bf16.
// Tiles do not take sources with several scales per row.
const kernel_row_t *int8_kernel(const problem_t &p, cpu_isa_t isa) {
    const quant_t &weights = p.weights.packed.quant;
    if (includes(isa, cpu_isa_t::avx512_core_amx))
        return is_row_int8(p) && shape_of(p.weights).K <= exact_int8_rows
                       ? find_kernel(kernel_kind_t::fused, isa, p.weights.dt, weights, mxdnn_s8)
                       : nullptr;
    quant_t q;
    if (source_format(p, q) != mxdnn_s8) return nullptr;
    if (!has_row_scale(mxdnn_s8, q) && (q.scale_dt != mxdnn_e8m0 || q.block != int8_row_t::block))
        return nullptr;
    return find_kernel(kernel_kind_t::direct, isa, p.weights.dt, weights, mxdnn_s8, cpu_family());
}

// Kernels that decode to integers once for many rows, where tasks of so many columns are enough for all
// threads. For Zen the direct kernels are as good.
void find_int8_panels(matmul_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    const quant_t &q = p.weights.packed.quant;
    const kernel_row_t *decode = find_kernel(kernel_kind_t::decode_int8, isa, p.weights.dt, q);
    const kernel_row_t *gemm = find_kernel(kernel_kind_t::gemm_int8, isa, p.weights.dt, q);
    const int64_t tasks = gemm ? shape_of(p.weights).N / (most_panels(*gemm) * panel_columns) : 0;
    const bool many = c.row_scaled && decode && cpu_family() != cpu_family_t::zen
                      && tasks >= wanted_tasks(least_int8_tasks, p.max_concurrency);
    c.kernels.only_direct = !many;
    if (!many) return;
    c.decode = decode;
    c.gemm = gemm;
}

// bf16 arithmetic is used for values that bf16 represents exactly, and for others only if the caller allows
// it.
reason_t check_source(const problem_t &p, data_type_t compute_dt) {
    if (compute_dt != mxdnn_bf16 || p.attr.src.is_dynamic()) return yes(); // s8 codes are exact in bf16
    const bool allowed = p.attr.fpmath == mxdnn_fpmath_mode_bf16 || p.attr.fpmath == mxdnn_fpmath_mode_any;
    const data_type_info_t *src = data_type_info(p.src.dt);
    quant_t q;
    const data_type_t dt = source_format(p, q);
    if (quant_family(dt, q) == quant_family_t::affine && !has_row_scale(dt, q) && !allowed)
        return no(
                "src", src->name, "bf16 or an MX or NVFP4 type, or fpmath mode bf16 (products are of bf16)");
    if (src->is_high_precision && p.src.dt != mxdnn_bf16 && !allowed)
        return no(
                "src", src->name, "bf16 or an MX or NVFP4 type, or fpmath mode bf16 (products are of bf16)");
    return yes();
}

// The number of calls for the same panels that kernels are made for where it is not known.
constexpr int64_t usual_calls = 3;

// The decoded panels of a call for many rows.
int64_t kept_bytes(const matmul_conf_t &c) {
    return walked_panels(3 * tile_source_rows) * panel_columns * round_up(c.weights.K, k_step)
           * int64_t(sizeof(uint16_t));
}

} // namespace

reason_t configure(matmul_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    const cpu_isa_t target = isa_of(*p.engine);
    if (!includes(target, isa)) return no("isa", isa_name(target), isa_name(isa));
    if (p.engine->executes && !mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    if (!is_packed(p.weights)) return no("weights", to_string(p.weights).c_str(), "a packed layout");
    const dim_t K = dim_from_end(p.weights, 2);
    if (K > most_k) return no("K", dim_text(K).c_str(), "at most 2^26 (offsets within a row are of 32 bits)");
    const quant_t &q = p.weights.packed.quant;
    const kernel_row_t *decode =
            find_kernel(kernel_kind_t::decode, isa, p.weights.dt, q, preferred_compute(isa, cpu_family()));
    if (!decode)
        return no("weights", to_string(p.weights).c_str(), "a format that a kernel of the ISA decodes");
    c.decode = decode;
    c.compute_dt = decode->compute_dt;
    c.direct = find_kernel(kernel_kind_t::direct, isa, p.weights.dt, q, c.compute_dt, cpu_family());
    c.gemm = find_kernel(kernel_kind_t::gemm, isa, p.weights.dt, q, c.compute_dt);
    c.many = find_kernel(kernel_kind_t::many, isa, p.weights.dt, q, c.compute_dt);
    // Each ISA has its own list entry. If it has no kernel of its own here, the next entry is as good.
    const kernel_row_t *many = c.many ? c.many : c.gemm;
    const kernel_row_t *int8 = int8_kernel(p, isa);
    if (decode->isa != isa && c.direct->isa != isa && many->isa != isa && (!int8 || int8->isa != isa))
        return no("kernels", isa_name(decode->isa), isa_name(isa));
    const dim_t M = p.kind == mxdnn_primitive_kind_mx_matmul ? dim_from_end(p.dst, 2) : runtime_dim;
    const kernel_row_t &tiles = c.many ? *c.many : *c.direct;
    if (tiles.on_tiles && !int8) {
        c.few_rows = K * dim_from_end(p.weights, 1) <= small_weights ? std::max(tiles.least_rows, 2) - 1
                                                                     : tiles.least_rows - 1;
        if (M != runtime_dim && M <= c.few_rows)
            return no("M", dim_text(M).c_str(),
                    "more rows, or larger weights (others are faster without tiles)");
    }
    if (int8) {
        if (int8->kind == kernel_kind_t::fused) {
            c.fused = int8;
        } else {
            c.direct = int8;
            c.compute_dt = mxdnn_s8;
            c.row_scaled = is_row_int8(p);
            find_int8_panels(c, p, isa);
        }
    }
    const reason_t source = check_source(p, c.compute_dt);
    if (!source.ok()) return source;
    if (p.attr.accumulation != mxdnn_accumulation_mode_strict
            && p.attr.accumulation != mxdnn_accumulation_mode_f32
            && p.attr.accumulation != mxdnn_accumulation_mode_any
            && p.attr.accumulation != mxdnn_accumulation_mode_relaxed)
        return no("accumulation mode", "s32 or f16", "strict, relaxed, any or f32");
    if (const char *needed = check_epilogue(p, max_plan_columns))
        return no("dst", to_string(p.dst).c_str(), needed);

    c.weights = shape_of(p.weights);
    c.weights_stride = p.weights.packed.stride;
    c.panel_bytes = n16_frame_t::panel_bytes(c.weights);
    c.tile_bytes = n16_frame_t::tile_bytes(c.weights, n16_frame_t::tile_rows(c.weights));
    c.needs_sums = is_added(q.zp) && !c.direct->on_tiles && c.compute_dt != mxdnn_s8;
    const post_op_t *gated = p.attr.gated();
    c.gated = gated != nullptr;
    c.halves = gated && gated->gated_layout == mxdnn_gated_halves;
    c.column_step = 16;
    if (p.attr.dst.scales.set) c.column_step = std::max(p.attr.dst.scales.groups[1], c.column_step);

    c.machine.isa = isa;
    c.machine.l1d = cache_sizes().l1d;
    c.machine.l2 = cache_sizes().l2;
    c.machine.threads = p.max_concurrency;
    c.kernels.many = c.many != nullptr;
    c.kernels.fused = c.fused != nullptr;
    c.kernels.direct_on_tiles = c.direct->on_tiles;
    c.kernels.gemm_panels = c.many ? 1 : most_panels(c.fused ? *c.fused : *c.gemm);
    c.kernels.compute_bytes = data_type_info(c.compute_dt)->bits / 8;
    c.kernels.tile_rows = int(n16_frame_t::tile_rows(c.weights));
    // Kept panels must leave room for rows in the second-level cache. Otherwise even the slowest decoders are
    // faster than what reads rows or panels from further away.
    const kernel_row_t *on_tiles = c.many ? c.many : c.direct;
    c.keeps = on_tiles->keeps && !c.fused && kept_bytes(c) <= c.machine.l2 / 6;
    c.kernels.best_direct_rows = c.direct->best_rows;
    if (c.direct->hides_decoding) {
        // Sums in memory between chunks of K cost more than decoding again. Reading longer rows does, too.
        c.kernels.only_direct = plan_k_chunk(c.weights.K, c.machine, c.kernels) < c.weights.K;
        if (c.weights.K >= long_k) c.kernels.best_direct_rows *= 2;
    }
    if (c.direct->on_tiles && !c.fused) c.kernels.only_direct = true;
    c.kernels.decodes_again = on_tiles->on_tiles && !c.keeps && !c.fused;
    c.kernels.direct_rows = c.direct->max_rows;
    c.kernels.direct_rows =
            int(std::min<int64_t>(c.direct->max_rows, direct_rows_limit(c.machine, c.kernels)));
    c.kernels.direct_rows = plan_direct_rows(M, c.kernels.direct_rows);
    if (c.direct->on_tiles)
        c.kernels.direct_rows =
                c.fused ? int(source_blocks_t::fused_block_rows) : plan_tile_rows(M, c.direct->max_rows);
    c.kernels.gemm_rows = c.fused                      ? int(source_blocks_t::fused_block_rows)
                          : c.many                     ? plan_tile_rows(M, c.many->max_rows)
                          : M == runtime_dim || M == 0 ? c.gemm->max_rows
                                                       : plan_gemm_rows(M, c.gemm->max_rows, 1);
    c.kernels.row_step = c.kernels.only_direct ? c.kernels.direct_rows : c.kernels.gemm_rows; // whole calls
    if (p.kind != mxdnn_primitive_kind_mx_matmul || batch_of(p.dst) == 1)
        plan_k_parts(K, c.panel_bytes, c.machine, M, c.kernels);
    c.calls = M != runtime_dim ? div_up(M, c.kernels.row_step) : c.kernels.decodes_again ? usual_calls : 0;
    return yes();
}

reason_t configure_few(matmul_conf_t &few, const problem_t &p, const matmul_conf_t &many) {
    reason_t r = no("isa", isa_name(many.machine.isa), "tiles");
    for (const cpu_isa_t isa : {cpu_isa_t::avx512_core_bf16, cpu_isa_t::avx512_core}) {
        few = {};
        r = configure(few, p, isa);
        if (r.ok()) break;
    }
    few.kernels.only_direct = true;
    few.kernels.direct_rows = few.kernels.row_step = many.few_rows;
    few.scratch.own_sources = many.scratch.own_sources;
    size_scratch(few, many.few_rows, many.few_rows);
    return r;
}

void size_scratch(matmul_conf_t &c, int64_t source_rows, int64_t task_rows) {
    matmul_scratch_t &s = c.scratch;
    const int64_t bytes = c.kernels.compute_bytes, K = c.weights.K;
    s.source_stride =
            c.compute_dt == mxdnn_s8 ? int8_row_t::bytes(K) : round_up(round_up(K, k_step) * bytes, 64);
    if (s.source_stride % bad_stride == 0) s.source_stride += 64;
    c.source_rows = source_rows;
    s.source = source_rows * s.source_stride
               + tile_source_rows * source_blocks_t::piece_bytes; // tiles read more
    s.row_scales = round_up(source_rows * int64_t(sizeof(float)), 64);
    s.sums_per_row = c.needs_sums ? round_up(div_up(K, c.weights.block), 16) : 0;
    s.block_sums = source_rows * s.sums_per_row * int64_t(sizeof(float));
    // Panels at distances of whole pages would use the same sets of the first-level cache.
    const int64_t k_chunk = plan_k_chunk(K, c.machine, c.kernels);
    s.panel_stride = c.fused || c.many || c.kernels.only_direct ? 0
                     : c.compute_dt == mxdnn_s8                 ? int8_panel_t::bytes(k_chunk)
                                                                : panel_columns * k_chunk * bytes;
    if (s.panel_stride > 0 && s.panel_stride % bad_stride == 0) s.panel_stride += 64 * 17;
    s.panels = c.keeps ? kept_bytes(c) : c.kernels.gemm_panels * s.panel_stride;
    // Gated tasks have twice the columns. Those with halves may begin inside a panel.
    s.acc_columns = (c.gated ? 2 : 1) * (max_plan_columns + (c.halves ? 2 * panel_columns : 0))
                    + c.kernels.gemm_panels * panel_columns;
    // An odd number of cache lines, so that rows use all cache sets in turn.
    if (s.acc_columns % (2 * panel_columns) == 0) s.acc_columns += panel_columns;
    s.acc = task_rows * s.acc_columns * int64_t(sizeof(float));
    if (c.kernels.k_part)
        s.part_sums = s.acc * (c.machine.threads > 1 ? tasks_together_of_several : most_tasks_together);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

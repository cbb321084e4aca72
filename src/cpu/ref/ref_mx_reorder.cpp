// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_mx_reorder.hpp"

#include <algorithm>
#include <cstring>

#include "common/problem_reorder.hpp"
#include "cpu/ref/tensor_view.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {

namespace {

// One matrix. Lines run along the blocked axis of the destination. Blocks are parts of a line.
struct ref_reorder_run_t {
    const problem_t &p;
    matrix_view_t src, dst;
    dim_t rows, cols;
    bool moves;

    ref_reorder_run_t(const exec_ctx_t &ctx, dim_t rows_, dim_t cols_)
        : p(ctx.pd.problem), src(ctx, MXDNN_ARG_SRC, p.src, p.attr.src),
          dst(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst), rows(rows_), cols(cols_), moves(moves_codes(p)) {}

    void set_batch(const dim_t *idx) {
        src.set_batch(idx);
        dst.set_batch(idx);
    }

    bool along_rows() const { return !dst.quantised() || dst.axis_from_end() == 1; }
    dim_t lines() const { return along_rows() ? rows : cols; }
    dim_t line_length() const { return along_rows() ? cols : rows; }

    template <typename F>
    void at(dim_t line, dim_t i, F &&body) const {
        return along_rows() ? body(line, i) : body(i, line);
    }

    float amax() const {
        float a = 0;
        for (dim_t r = 0; r < rows; r++)
            for (dim_t c = 0; c < cols; c++) a = nvfp4_global_amax(a, src.value(r, c));
        return a;
    }

    void set_global(const float *given) const {
        if (!dst.has_global() || (given && !is_packed(p.dst)))
            return; // otherwise it is in the caller's memory
        dst.set_global(moves ? src.global() : given ? *given : nvfp4_global_scale(amax()));
    }

    void do_line(dim_t line) const {
        const dim_t length = line_length();
        if (!dst.quantised()) {
            const data_type_info_t *info = data_type_info(dst.dt());
            for (dim_t i = 0; i < length; i++) dst.set_code(line, i, info->encode(src.value(line, i)));
            return;
        }
        const dim_t block = dst.quant().block;
        for (dim_t first = 0; first < length; first += block)
            do_block(line, first, int(std::min(block, length - first)));
    }

    void do_block(dim_t line, dim_t first, int count) const {
        block_params_t params;
        uint8_t codes[256];
        float x[256];
        const auto each = [&](auto &&body) {
            for (int i = 0; i < count; i++) at(line, first + i, [&](dim_t r, dim_t c) { body(i, r, c); });
        };
        if (moves) {
            at(line, first, [&](dim_t r, dim_t c) { params = src.params(r, c); });
            each([&](int i, dim_t r, dim_t c) { codes[i] = uint8_t(src.code(r, c)); });
        } else {
            each([&](int i, dim_t r, dim_t c) { x[i] = src.value(r, c); });
            if (p.attr.dst.is_dynamic()) {
                params = quantize_block(
                        dst.dt(), dst.quant(), p.attr.dst.rounding, dst.global(), x, count, codes);
            } else {
                at(line, first, [&](dim_t r, dim_t c) { params = dst.params(r, c); });
                for (int i = 0; i < count; i++)
                    codes[i] = uint8_t(quantize_element(dst.dt(), dst.quant(), params, dst.global(), x[i]));
            }
        }
        if (moves || p.attr.dst.is_dynamic())
            at(line, first, [&](dim_t r, dim_t c) { dst.set_params(r, c, params); });
        each([&](int i, dim_t r, dim_t c) { dst.set_code(r, c, codes[i]); });
    }
};

} // namespace

status_t ref_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const memory_t &to = *ctx.memory(MXDNN_ARG_DST);
    const memory_desc_t &md = to.md;
    const dim_t rows = dim_from_end(md, 2), cols = dim_from_end(md, 1);
    // Padding of a packed or swizzled destination is zero, so that its bytes are defined.
    if (is_packed(md) && size_of(md) > 0) std::memset(to.handle, 0, size_t(size_of(md)));
    if (ctx.pd.problem.attr.dst.layout == mxdnn_scales_swizzle_128x4
            && ctx.pd.problem.attr.dst.is_dynamic()) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        std::memset(scales.handle, 0, size_t(size_of(scales.md)));
    }

    // Matrices without elements have global scales only. There may be any number of them.
    const bool empty = rows == 0 || cols == 0;
    if (empty && !matrix_view_t(ctx, MXDNN_ARG_DST, ctx.pd.problem.dst, ctx.pd.problem.attr.dst).has_global())
        return mxdnn_success;
    const float *given = ctx.data<const float>(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    if (ctx.pd.problem.attr.dst.global != mxdnn_quantization_mode_static_sazp) given = nullptr;
    dim_t entry = 0;
    for_each_index(md.ndims - 2, md.dims, [&](const dim_t *idx) {
        ref_reorder_run_t first(ctx, rows, cols);
        first.set_batch(idx);
        const bool one_for_all =
                given && ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST)->md.dims[0] == 1;
        if (first.dst.quantised()) first.set_global(given ? given + (one_for_all ? 0 : entry) : nullptr);
        entry++;
        if (empty) return;
        // A thread processes whole groups of 16 lines, because neighbouring lines may share bytes of a packed
        // tile or of a column of 4-bit codes.
        constexpr dim_t lines_per_task = 16;
        const dim_t lines = first.lines(), tasks = div_up(lines, lines_per_task);
        const bool shares_bytes = !is_packed(md) && data_type_info(md.dt)->bits < 8;
        const int nthr =
                shares_bytes
                        ? 1
                        : int(std::min<dim_t>(tasks, threads_of(ctx.stream, ctx.pd.problem.max_concurrency)));
        parallel(ctx, nthr, [&](int ithr, int n) {
            ref_reorder_run_t run(ctx, rows, cols);
            run.set_batch(idx);
            int64_t begin, end;
            balance(tasks, n, ithr, begin, end);
            for (dim_t line = begin * lines_per_task; line < std::min(lines, end * lines_per_task); line++)
                run.do_line(line);
        });
    });
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/simd_mx_reorder.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "common/formats/quantize_block.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/reorder/reorder_copy.hpp"
#include "cpu/x64/reorder/requantise_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// The most threads that `elements` are worth: for fewer it does not pay to wake one.
int64_t useful_threads(int64_t elements) {
    constexpr int64_t per_thread = 1 << 14;
    return elements / per_thread + (elements % per_thread != 0);
}

// The division of one execution. Threads share all items of a batch, so that neither many small matrices nor
// a few large ones leave a thread idle.
template <typename worker_t>
class items_t {
public:
    items_t(const typename worker_t::conf_t &c, const exec_ctx_t &ctx, int line_dim, int pos_dim)
        : c_(c), ctx_(ctx), md_(ctx.memory(MXDNN_ARG_DST)->md) {
        lines_ = md_.dims[line_dim];
        length_ = md_.dims[pos_dim];
        batch_ = batch_of(md_);
        chunks_ = div_up(length_, c.item_length());
        groups_ = div_up(lines_, c.item_lines());
        per_entry_ = groups_ * chunks_;
    }

    bool empty() const { return batch_ == 0 || lines_ == 0 || length_ == 0; }
    int64_t batch() const { return batch_; }

    int threads() const {
        const int most = threads_of(ctx_.stream, ctx_.pd.problem.max_concurrency);
        return int(std::min<int64_t>({most, useful_threads(batch_ * lines_ * length_), batch_ * per_entry_}));
    }

    void index_of(int64_t entry, dim_t *idx) const { batch_index(md_, entry, idx); }

    // Runs body(worker, item, next) for all items, in parallel. The last item of a matrix is its own next
    // item.
    template <typename F>
    void run(write_t how, F &&body) const {
        const int64_t n = batch_ * per_entry_;
        if (n == 0) return;
        parallel(ctx_, threads(), [&](int ithr, int nthr) {
            using buffers_t = typename worker_t::buffers_t;
            auto *const buffers = ::new (ctx_.scratch<void>(scratch_t::thread, ithr)) buffers_t;
            worker_t worker(c_, ctx_, how, *buffers);
            int64_t begin, end, entry = -1;
            balance(n, nthr, ithr, begin, end);
            for (int64_t i = begin; i < end; i++) {
                if (i / per_entry_ != entry) {
                    entry = i / per_entry_;
                    dim_t idx[max_ndims] = {};
                    index_of(entry, idx);
                    worker.set_batch(idx);
                }
                const int64_t n_in_entry = i % per_entry_;
                body(worker, item(n_in_entry), item(std::min(n_in_entry + 1, per_entry_ - 1)));
            }
        });
    }

private:
    const typename worker_t::conf_t &c_;
    const exec_ctx_t &ctx_;
    const memory_desc_t &md_;
    dim_t lines_, length_, batch_;
    int64_t chunks_, groups_, per_entry_; // of positions, of lines, of both in a matrix

    item_t item(int64_t i) const {
        const int64_t group = c_.along_lines ? i / chunks_ : i % groups_,
                      chunk = c_.along_lines ? i % chunks_ : i / groups_;
        return {group * c_.item_lines(), chunk * c_.item_length()};
    }
};

void raise_to(uint32_t *most, uint32_t value) {
    uint32_t so_far = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (so_far < value
            && !__atomic_compare_exchange_n(most, &so_far, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

// Computes the global scales of the destination, before anything is written under them.
template <typename worker_t>
void make_global_scales(const reorder_conf_t &c, const exec_ctx_t &ctx, const items_t<worker_t> &items) {
    const memory_t *given =
            c.moves || c.measures ? nullptr : ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    const auto for_entries = [&](auto &&body) {
        for (int64_t entry = 0; entry < items.batch(); entry++) {
            dim_t idx[max_ndims] = {};
            items.index_of(entry, idx);
            reorder_side_t dst(c.dst, ctx);
            dst.set_batch(idx);
            body(entry, idx, dst);
            if (c.measures && !dst.has_global_of_its_own()) break;
        }
    };
    if (!c.measures) {
        for_entries([&](int64_t entry, const dim_t *idx, reorder_side_t &dst) {
            if (c.moves) {
                reorder_side_t src(c.src, ctx);
                src.set_batch(idx);
                dst.set_global(src.global());
            } else if (c.dst.packed) { // otherwise it is in the caller's memory
                dst.set_global(static_cast<const float *>(given->handle)[given->md.dims[0] == 1 ? 0 : entry]);
            }
        });
        return;
    }
    // The bits of the largest magnitude are collected in the place of the scale.
    for_entries([](int64_t, const dim_t *, reorder_side_t &dst) { dst.set_global(0.f); });
    items.run(write_t::cached, [](worker_t &worker, const item_t &i, const item_t &) {
        raise_to(worker.dst().global_bits(), worker.amax(i.line, i.pos));
    });
    for_entries([](int64_t, const dim_t *, reorder_side_t &dst) {
        dst.set_global(nvfp4_global_scale(dst.global()));
    });
}

// `by`: how the worker goes about it.
template <typename worker_t>
void reorder(const reorder_conf_t &c, const typename worker_t::conf_t &by, const exec_ctx_t &ctx) {
    const memory_t &to = *ctx.memory(MXDNN_ARG_DST);
    const memory_desc_t &md = to.md;
    const items_t<worker_t> items(by, ctx, c.dst.line_dim, c.dst.pos_dim);
    // Padding of a swizzled destination is zero. Packed tiles are written as a whole.
    if (c.dst.swizzled && !c.given) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        std::memset(scales.handle, 0, size_t(size_of(scales.md)));
    }
    if (items.empty() && c.dst.packed) std::memset(to.handle, 0, size_t(size_of(md)));
    if (c.dst.quantised && c.dst.format.has_global) make_global_scales(c, ctx, items);
    if (items.empty()) return;

    // Results that do not fit in the cache of a thread bypass it. Neighbouring items share no byte: groups
    // are multiples of 16 lines, chunks whole blocks.
    const int64_t bytes = size_of(ctx.memory(MXDNN_ARG_SRC)->md) + size_of(md);
    const write_t how = bytes / items.threads() > cache_sizes().l2 / 2 ? write_t::around : write_t::cached;
    const reorder_copy_t copy(c, ctx);
    if (copy.suffices()) {
        if (ctx.record) ctx.record->add_kernel("copy");
        parallel(ctx, items.threads(), [&](int ithr, int nthr) { copy.run(ithr, nthr, how); });
        return;
    }
    items.run(how, [](worker_t &worker, const item_t &i, const item_t &next) {
        worker.reorder(i.line, i.pos, next);
    });
}

} // namespace

void simd_mx_reorder_base_t::book(scratch_parts_t &scratch, const reorder_conf_t &conf, const problem_t &p) {
    static_assert(alignof(requantise_buffers_t) <= 64, "the scratchpad has this alignment");
    const int64_t bytes = conf.requantises() ? sizeof(requantise_buffers_t) : sizeof(reorder_buffers_t);
    int64_t elements = 1, threads = p.max_concurrency;
    bool known = true;
    for (int d = 0; d < p.dst.ndims; d++)
        known = known && p.dst.dims[d] != runtime_dim
                && !__builtin_mul_overflow(elements, p.dst.dims[d], &elements);
    if (known) threads = std::min(threads, useful_threads(elements));
    scratch.book(scratch_t::thread, bytes, threads);
}

status_t simd_mx_reorder_base_t::execute(const exec_ctx_t &ctx) const {
    if (conf_.requantises())
        reorder<requantise_worker_t>(conf_, requantise_, ctx);
    else
        reorder<reorder_worker_t>(conf_, conf_, ctx);
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

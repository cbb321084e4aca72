// SPDX-License-Identifier: Apache-2.0
// One thread's part of a reorder from codes to codes of another format. Values are between two workers, a few
// tiles at a time, in a buffer in cache.
#pragma once

#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct requantise_buffers_t : reorder_buffers_t {
    alignas(64) uint8_t
            values[requantise_conf_t::most_lines * requantise_conf_t::most_length * int(sizeof(float))];
    recode_t recode;
};

// Has the interface of reorder_worker_t.
class requantise_worker_t {
public:
    using conf_t = requantise_conf_t;
    using buffers_t = requantise_buffers_t;
    requantise_worker_t(
            const requantise_conf_t &conf, const exec_ctx_t &ctx, write_t how, requantise_buffers_t &b);

    void set_batch(const dim_t *idx);
    reorder_side_t &dst() { return by_f32_.encode.dst(); }

    // Processes up to conf.item_lines() lines and conf.item_length() positions from (line, pos) on.
    void reorder(dim_t line, dim_t pos, const item_t &next);
    uint32_t amax(dim_t line, dim_t pos);

private:
    struct way_t {
        reorder_worker_t decode, encode;
        way_t(const conf_t::way_t &way, const exec_ctx_t &ctx, write_t how, reorder_buffers_t &b,
                uint8_t *values);
    };

    // The number of elements of a matrix from which tables of codes pay.
    static constexpr int64_t least_for_tables = 1 << 16;

    const conf_t &c_;
    const write_t how_;
    uint8_t *const scales_; // in cache
    way_t by_bf16_, by_f32_;
    recode_t &recode_;
    bool recodes_ = false, has_globals_ = false;

    // Prepares for tables of codes. Not while amax() is called, when other threads write the destination's
    // scale.
    void read_globals();
    // With more tables than fit the first-level cache, values in bf16 take less time, but not those in f32.
    int most_entries() const { return c_.is_bf16 ? recode_t::most_entries / 4 : recode_t::most_entries; }
    // By tables of codes. False if this is not possible.
    bool recode(dim_t line, dim_t pos, const item_t &next);
    // Whether bf16 holds the values of the part.
    bool fits_bf16(dim_t line, dim_t pos);
    // The values of the part, by this way.
    way_t &decode(dim_t line, dim_t pos, const item_t &next);
    // body(line, pos) for what a worker of this configuration processes at a time.
    template <typename F>
    void for_items(reorder_worker_t &worker, dim_t line, dim_t pos, F &&body) const;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "common/primitive_cache.hpp"

#include <future>
#include <list>
#include <mutex>
#include <unordered_map>

#include "common/env.hpp"
#include "common/operands.hpp"
#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

namespace {

struct created_t {
    status_t status = mxdnn_success;
    std::shared_ptr<const primitive_impl_t> impl;
    std::string error;
};
using future_t = std::shared_future<created_t>;

class key_writer_t {
public:
    std::string key;

    template <typename T>
    key_writer_t &add(T v) {
        key.append(reinterpret_cast<const char *>(&v), sizeof(v));
        return *this;
    }
    // Equal engines are one object.
    key_writer_t &add(const engine_t *e) { return add(reinterpret_cast<uintptr_t>(e)); }
    void add(const quant_t &q) {
        add(q.scale_dt).add(q.block).add(q.zp).add(q.zp_dt).add(q.global).add(q.whole_row);
    }
    void add(const memory_desc_t &md) {
        add(md.ndims).add(md.dt).add(md.kind);
        for (int i = 0; i < md.ndims; i++) add(md.dims[i]).add(md.strides[i]);
        if (is_packed(md)) {
            add(md.packed.family).add(md.packed.layout_id).add(md.packed.layout_version);
            add(md.packed.quant);
        }
        if (md.kind == mxdnn_format_kind_grouped)
            add(md.grouped.variable_dim).add(md.grouped.group_count).add(md.grouped.offsets_dt);
    }
    void add(const arg_attr_t::grouping_t &g) {
        add(g.set);
        if (g.set) add(g.mask).add(g.groups[0]).add(g.groups[1]).add(g.dt);
    }
    void add(const arg_attr_t &a) {
        add(a.scales);
        add(a.zero_points);
        add(a.zero_points_kind).add(a.mode).add(a.global).add(a.rounding).add(a.layout).add(a.packing);
    }
    void add(const attr_t &a) {
        for (const operand_t &o : operands)
            if (o.attr) add(a.*o.attr);
        add(a.post_ops.ops.size());
        for (const post_op_t &o : a.post_ops.ops) {
            add(o.kind).add(o.alg).add(o.alpha).add(o.beta).add(o.scale).add(o.zero_point).add(o.dt);
            add(o.gated_layout);
            add(o.src1);
        }
        add(a.fpmath).add(a.fpmath_apply_to_int).add(a.accumulation).add(a.deterministic).add(a.scratchpad);
        add(a.row_grouping)
                .add(a.topk_weights_placement)
                .add(a.first_expert)
                .add(a.global_experts)
                .add(a.max_rows_hint)
                .add(a.constant_weights);
    }
};

class cache_t {
public:
    // The entry of a key, made with `create` if there is none. Its future may not be ready yet.
    template <typename F>
    future_t get(const std::string &key, F create, bool &hit) {
        std::packaged_task<created_t()> task;
        future_t result;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto it = index_.find(key);
            if (it != index_.end()) {
                hit = true;
                order_.splice(order_.begin(), order_, it->second);
                return it->second->second;
            }
            task = std::packaged_task<created_t()>(create);
            result = task.get_future().share();
            if (capacity_ > 0) {
                order_.emplace_front(key, result);
                try {
                    index_[key] = order_.begin();
                } catch (...) {
                    order_.pop_front();
                    throw;
                }
                shrink();
            }
        }
        hit = false;
        task();
        return result;
    }
    // A failed creation is forgotten, so that it can be tried again.
    void forget(const std::string &key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto it = index_.find(key);
        if (it == index_.end()) return;
        order_.erase(it->second);
        index_.erase(it);
    }
    int capacity() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return capacity_;
    }
    void set_capacity(int n) {
        const std::lock_guard<std::mutex> lock(mutex_);
        capacity_ = n;
        shrink();
    }

private:
    using entry_t = std::pair<std::string, future_t>;
    void shrink() {
        while (int(order_.size()) > capacity_) {
            index_.erase(order_.back().first);
            order_.pop_back();
        }
    }
    std::mutex mutex_;
    std::list<entry_t> order_; // most recently used first
    std::unordered_map<std::string, std::list<entry_t>::iterator> index_;
    int capacity_ = environment().primitive_cache_capacity;
};

cache_t &cache() {
    // Never destroyed, because destructors that run at exit may release primitives.
    static cache_t *c = new cache_t;
    return *c;
}

} // namespace

std::string cache_key(const problem_t &p) {
    key_writer_t w;
    w.key.reserve(512);
    w.add(p.kind).add(p.engine).add(p.src_engine).add(p.max_concurrency);
    for (const operand_t &o : operands) w.add(p.*o.md);
    w.add(p.attr);
    w.add(p.route.topk)
            .add(p.route.scoring)
            .add(p.route.flags)
            .add(p.route.expert_groups)
            .add(p.route.topk_groups);
    w.add(p.permute.source_ranks).add(p.permute.local_experts).add(p.permute.alignment);
    return std::move(w.key);
}

status_t get_or_create_primitive(
        std::shared_ptr<const primitive_impl_t> &impl, const primitive_desc_t &pd, bool &hit) {
    // The unresolved problem and the list entry determine the primitive, since resolving is a function of
    // them.
    std::string key = cache_key(*pd.problem);
    key += char(pd.index);
    const std::shared_ptr<const pd_t> &impl_pd = pd.pd;
    const future_t f = cache().get(
            key,
            [&impl_pd] {
                created_t c;
                try {
                    std::shared_ptr<primitive_impl_t> made;
                    c.status = impl_pd->create_primitive(made);
                    c.impl = std::move(made);
                    if (c.status != mxdnn_success) c.error = last_error();
                } catch (const std::bad_alloc &) {
                    // Stored as a status. An exception in the future would outlive the lack of memory.
                    c.status = mxdnn_out_of_memory;
                }
                return c;
            },
            hit);
    const created_t &c = f.get();
    if (c.status != mxdnn_success) {
        cache().forget(key);
        return fail(c.status, "%s", c.error.empty() ? "memory has run out" : c.error.c_str());
    }
    impl = c.impl;
    return mxdnn_success;
}

int primitive_cache_capacity() { return cache().capacity(); }
void set_primitive_cache_capacity(int capacity) { cache().set_capacity(capacity); }

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#include "ep/layer.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

using dt = memory::data_type;
using tag = memory::format_tag;

constexpr dim_t block = 32;
constexpr dim_t most_rows = INT32_MAX;
constexpr dim_t most_columns = dim_t(1) << 24, most_experts = dim_t(1) << 20;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Hands out consecutive parts of a memory, at multiples of 64 bytes.
class parts_t {
public:
    size_t take(size_t bytes) {
        const size_t at = size_;
        size_ += round_up(bytes, 64);
        return at;
    }
    size_t size() const { return size_; }

private:
    size_t size_ = 0;
};

// What is possible, by the member of the descriptor that says it.
bool make_format(mxdnn_data_type_t type, dim_t columns, row_format_t &f) {
    const size_t n = size_t(columns);
    switch (type) {
    case mxdnn_bf16: f = {type, 2 * n, 0}; return true;
    case mxdnn_f8_e4m3: f = {type, n, n / block}; return true;
    case mxdnn_f4_e2m1: f = {type, n / 2, n / block}; return true;
    default: return false;
    }
}

size_t bytes_of(dim_t rows, const row_format_t &f) {
    return round_up(size_t(rows) * f.codes, 64) + round_up(size_t(rows) * f.scales, 64);
}

status_t check_range(const char *name, dim_t value, dim_t least, dim_t most) {
    if (value >= least && value <= most) return mxdnn_success;
    return fail(mxdnn_invalid_arguments, "%s is %lld; possible are %lld to %lld", name,
            static_cast<long long>(value), static_cast<long long>(least), static_cast<long long>(most));
}

memory::desc matrix(dim_t rows, dim_t columns, dt type) { return {{rows, columns}, type, tag::ab}; }

// By the address of a scratchpad.
std::shared_ptr<tags_t> tags_of(const void *scratchpad) {
    static std::mutex mutex;
    static std::map<const void *, std::weak_ptr<tags_t>> all;
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto i = all.begin(); i != all.end();) i = i->second.expired() ? all.erase(i) : std::next(i);
    std::shared_ptr<tags_t> tags = all[scratchpad].lock();
    if (!tags) all[scratchpad] = tags = std::make_shared<tags_t>();
    return tags;
}

primitive_attr block_scales(int arg, quantization_mode mode) {
    primitive_attr attr;
    attr.set_scales(arg, 1 << 0 | 1 << 1, {1, block}, dt::e8m0, false, mode);
    return attr;
}

} // namespace

status_t make_plan(
        const mxdnn_ep_layer_desc_t *desc, mxdnn_engine_t engine, transport_t &transport, plan_t &p) {
    const int ranks = transport.size();
    if (!desc) return fail(mxdnn_invalid_arguments, "desc is a null pointer");
    if (desc->struct_size != sizeof(*desc))
        return fail(mxdnn_invalid_arguments,
                "struct_size is %zu; this library knows a descriptor of %zu bytes", desc->struct_size,
                sizeof(*desc));
    p.desc = *desc;
    mxdnn_ep_layer_desc_t &d = p.desc;
    p.engine = engine;
    p.direct = transport.direct() != nullptr;
    p.ranks = ranks;
    MXDNN_EP_CHECK(check_range("hidden", d.hidden, 1, most_columns));
    MXDNN_EP_CHECK(check_range("experts", d.experts, 1, p.direct ? direct_t::most_experts : most_experts));
    MXDNN_EP_CHECK(check_range("max_tokens", d.max_tokens, 1, most_rows));
    MXDNN_EP_CHECK(check_range("max_rows", d.max_rows, 1, most_rows));
    MXDNN_EP_CHECK(check_range("alignment", d.alignment, 1, most_rows));
    if (d.experts % ranks != 0)
        return fail(mxdnn_invalid_arguments, "experts is %lld; it has to be a multiple of the %d ranks",
                static_cast<long long>(d.experts), ranks);
    p.local_experts = d.experts / ranks;
    if (d.chunks == 0) d.chunks = 1;
    MXDNN_EP_CHECK(check_range("chunks", d.chunks, 1, p.local_experts));
    if (p.local_experts % d.chunks != 0)
        return fail(mxdnn_invalid_arguments, "chunks is %lld; it has to divide the %lld local experts",
                static_cast<long long>(d.chunks), static_cast<long long>(p.local_experts));
    p.chunk_experts = p.local_experts / d.chunks;
    if (d.capacity == 0) d.capacity = d.max_rows * ranks;
    MXDNN_EP_CHECK(check_range("capacity", d.capacity, 1, most_rows));
    p.padded_rows = d.capacity + p.local_experts * d.alignment;
    MXDNN_EP_CHECK(
            check_range("capacity plus the alignment of each local expert", p.padded_rows, 1, most_rows));

    p.formats[int(format_t::backward)] = {};
    make_format(mxdnn_bf16, d.hidden, p.formats[int(format_t::bf16)]);
    if (!make_format(d.forward_type, d.hidden, p.formats[int(format_t::forward)]))
        return fail(mxdnn_invalid_data_type, "forward_type is %d; possible are bf16, f8_e4m3 and f4_e2m1",
                int(d.forward_type));
    if (p.has_backward()
            && (d.backward_type == mxdnn_f4_e2m1
                    || !make_format(d.backward_type, d.hidden, p.formats[int(format_t::backward)])))
        return fail(mxdnn_invalid_data_type, "backward_type is %d; possible are bf16, f8_e4m3 and undef",
                int(d.backward_type));
    for (const row_format_t &f : p.formats)
        if (f.type != mxdnn_bf16 && f.type != mxdnn_data_type_undef && d.hidden % block != 0)
            return fail(mxdnn_invalid_arguments,
                    "hidden is %lld; rows that are quantised have a multiple of %lld columns",
                    static_cast<long long>(d.hidden), static_cast<long long>(block));

    const row_format_t &bf16 = p.format(format_t::bf16), &forward = p.format(format_t::forward),
                       &backward = p.format(format_t::backward);
    const auto of_any = [&](dim_t rows) {
        return std::max({bytes_of(rows, bf16), bytes_of(rows, forward), bytes_of(rows, backward)});
    };
    parts_t s, w;
    p.send_counts = s.take(size_t(d.experts) * sizeof(int32_t));
    p.recv_counts = s.take(size_t(d.experts) * sizeof(int32_t));
    p.quantised = s.take(forward.quantised() ? bytes_of(d.max_tokens, forward) : 0);
    p.outgoing = s.take(of_any(d.max_rows));
    p.arrived = s.take(p.direct ? 0 : of_any(d.capacity));
    p.results = s.take(bytes_of(p.padded_rows, bf16));
    p.gradients = s.take(p.has_backward() ? bytes_of(p.padded_rows, backward) : 0);
    p.scratchpad_size = s.size();
    p.counts = w.take(size_t(d.experts) * sizeof(int32_t));
    p.starts = w.take(size_t(p.local_experts + 1) * sizeof(int32_t));
    p.indices = w.take(size_t(p.padded_rows) * sizeof(int32_t));
    p.kept = w.take(bytes_of(p.padded_rows, forward));
    if (p.direct) {
        p.matrix = w.take(size_t(ranks) * size_t(d.experts + 1) * sizeof(int32_t));
        p.first = w.take(size_t(d.experts + 1) * sizeof(int32_t));
        p.target = w.take(size_t(d.experts) * sizeof(int32_t));
    }
    p.workspace_size = w.size();
    return mxdnn_success;
}

array_t array_at(void *base, dim_t rows, const row_format_t &f) {
    uint8_t *codes = static_cast<uint8_t *>(base);
    return {codes, f.quantised() ? codes + round_up(size_t(rows) * f.codes, 64) : nullptr};
}

memories_t make_memories(
        const engine &eng, dim_t rows, dim_t columns, const row_format_t &f, const array_t &at) {
    memories_t m;
    m.rows = memory(matrix(rows, columns, dt(f.type)), eng, at.codes);
    if (f.quantised()) m.scales = memory(matrix(rows, columns / block, dt::e8m0), eng, at.scales);
    return m;
}

quantizer_t::quantizer_t(const engine &eng, dim_t columns, const row_format_t &f)
    : format_(f), src_bytes_(2 * size_t(columns)) {
    primitive_attr attr = block_scales(MXDNN_ARG_DST, quantization_mode::dynamic_mx);
    attr.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
    reorder_ = mx_reorder(mx_reorder::primitive_desc(eng, matrix(MXDNN_RUNTIME_DIM_VAL, columns, dt::bf16),
            eng, matrix(MXDNN_RUNTIME_DIM_VAL, columns, dt(f.type)), attr));
    for (int i = 0; i < pieces; i++) {
        src_[i] = memory(matrix(dim_t(1) << i, columns, dt::bf16), eng, nullptr);
        dst_[i] = make_memories(eng, dim_t(1) << i, columns, f, {});
    }
}

status_t quantizer_t::run(mxdnn_stream_t stream, const uint8_t *src, const array_t &dst, dim_t rows) const {
    for (dim_t row = 0; row < rows;) {
        int i = pieces - 1;
        while (dim_t(1) << i > rows - row) i--;
        const mxdnn_memory_t from = src_[i].get(), to = dst_[i].rows.get(), scales = dst_[i].scales.get();
        const size_t at = size_t(row);
        mxdnn_memory_set_data_handle(from, const_cast<uint8_t *>(src) + at * src_bytes_);
        mxdnn_memory_set_data_handle(to, dst.codes + at * format_.codes);
        mxdnn_memory_set_data_handle(scales, dst.scales + at * format_.scales);
        const mxdnn_exec_arg_t args[] = {
                {MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO, scales}};
        MXDNN_EP_CHECK(pass_on(mxdnn_primitive_execute(reorder_.get(), stream, 3, args), "quantising rows"));
        row += dim_t(1) << i;
    }
    return mxdnn_success;
}

buffer_t::buffer_t(transport_t &transport, const engine &eng, void *memory_of_caller, size_t bytes)
    : data_(static_cast<uint8_t *>(memory_of_caller)) {
    if (direct_t *direct = transport.direct()) {
        if (memory_of_caller != MXDNN_MEMORY_ALLOCATE)
            throw mxdnn::error(mxdnn_invalid_arguments,
                    "memory of the caller; other ranks see scratchpad and workspace, so that the library has to "
                    "allocate them: pass MXDNN_MEMORY_ALLOCATE");
        shared_ = direct->allocate(bytes);
        data_ = shared_->data();
        return;
    }
    if (memory_of_caller != MXDNN_MEMORY_ALLOCATE) return;
    owned_ = memory({{dim_t(bytes)}, dt::s8, tag::a}, eng);
    data_ = static_cast<uint8_t *>(owned_.get_data_handle());
}

void buffer_t::leak() {
    if (owned_) new memory(owned_);
}

layer_t::layer_t(
        const std::shared_ptr<transport_t> &t, const engine &e, const plan_t &p, void *memory_of_caller)
    : transport(t), eng(e), plan(p), owned(*t, e, memory_of_caller, p.scratchpad_size),
      scratchpad(owned.data()), tags(tags_of(scratchpad)) {
    const dim_t D = p.desc.hidden, capacity = p.desc.capacity, padded = p.padded_rows;
    const int bf16 = int(format_t::bf16);
    for (int i = 0; i < format_count; i++) {
        const row_format_t &f = p.formats[i];
        if (f.type == mxdnn_data_type_undef) continue;
        t->prepare(f);
        if (f.quantised()) quantizers[i] = std::make_unique<quantizer_t>(eng, D, f);
        if (i != bf16)
            group[i] = moe_permute(moe_permute::primitive_desc(eng, matrix(capacity, D, dt(f.type)),
                    matrix(padded, D, dt(f.type)), p.ranks, p.local_experts, p.desc.alignment,
                    f.quantised() ? block_scales(MXDNN_ARG_SRC, quantization_mode::static_sazp)
                                  : primitive_attr()));
    }
    ungroup = moe_unpermute(
            moe_unpermute::primitive_desc(eng, matrix(padded, D, dt::bf16), matrix(capacity, D, dt::bf16)));

    *tags = {}; // what the scratchpad holds belongs to no pass
    for (int i = 0; i < format_count; i++) {
        const row_format_t &f = p.formats[i];
        if (f.type != mxdnn_data_type_undef && !p.direct)
            arrived[i] = make_memories(eng, capacity, D, f, array_at(scratchpad + p.arrived, capacity, f));
    }
    results = memory(matrix(padded, D, dt::bf16), eng, scratchpad + p.results);
    if (p.has_backward()) {
        const row_format_t &f = p.format(format_t::backward);
        gradients = make_memories(eng, padded, D, f, array_at(scratchpad + p.gradients, padded, f));
    }
}

void layer_t::claim() {
    const std::array<size_t, 4> mine = {plan.outgoing, plan.arrived, plan.results, plan.gradients};
    if (tags->places != mine) *tags = {0, 0, 0, mine};
}

layer_t::~layer_t() {
    // Messages that are under way may still be written to it.
    if (transport->is_busy()) owned.leak();
}

} // namespace impl
} // namespace ep
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// A layer: its shapes, where everything lies in scratchpad and workspace, and the primitives that its stages
// execute.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ep/direct.hpp"
#include "ep/stages.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// Shapes that are complete and possible, and what follows from them. Bytes are counted from the beginning of
// the scratchpad or of the workspace.
struct plan_t {
    mxdnn_ep_layer_desc_t desc;
    mxdnn_engine_t engine; // of all memories
    bool direct;           // rows go straight between the caller's order and that of experts
    dim_t ranks, local_experts, padded_rows, chunk_experts;
    row_format_t formats[format_count];

    // Scratchpad. `outgoing` and `arrived` are what messages read and write, with the counts.
    size_t send_counts, recv_counts, quantised, outgoing, arrived, results, gradients, scratchpad_size;
    // Workspace.
    size_t counts, starts, indices, kept, workspace_size; // starts: [local experts + 1], then come the ends
    size_t matrix, first, target; // of groups_t; in the workspace, if rows go straight

    const row_format_t &format(format_t f) const { return formats[int(f)]; }
    dim_t chunks() const { return local_experts / chunk_experts; }
    bool has_backward() const { return desc.backward_type != mxdnn_data_type_undef; }
};

status_t make_plan(
        const mxdnn_ep_layer_desc_t *desc, mxdnn_engine_t engine, transport_t &transport, plan_t &plan);

// `rows` rows from `base` on.
array_t array_at(void *base, dim_t rows, const row_format_t &format);

// The memories of an array: rows {rows, columns}, and their scales where they are quantised.
struct memories_t {
    memory rows, scales;
};
memories_t make_memories(
        const engine &eng, dim_t rows, dim_t columns, const row_format_t &format, const array_t &at);

// bf16 rows to MX rows, in pieces of 2^n rows, so that no number of rows needs a memory of its own.
class quantizer_t {
public:
    quantizer_t(const engine &eng, dim_t columns, const row_format_t &format);
    status_t run(mxdnn_stream_t stream, const uint8_t *src, const array_t &dst, dim_t rows) const;

private:
    static constexpr int pieces = 13; // up to 4096 rows
    row_format_t format_;
    size_t src_bytes_;
    mx_reorder reorder_;
    memory src_[pieces];
    memories_t dst_[pieces];
};

// Memory of the caller, or of the library; shared by all ranks, and then collective, if rows go straight.
class buffer_t {
public:
    buffer_t(transport_t &transport, const engine &eng, void *memory_of_caller, size_t bytes);
    uint8_t *data() const { return data_; }
    const shared_memory_t *shared() const { return shared_.get(); }
    // Never freed from now on.
    void leak();

private:
    memory owned_;
    std::shared_ptr<shared_memory_t> shared_;
    uint8_t *data_;
};

// What a scratchpad holds: numbers of step_t::tag(). All layers that share the scratchpad share it, too.
struct tags_t {
    int64_t arrived = 0, gradients = 0, results = 0; // 0: nothing
    std::array<size_t, 4> places = {};               // where the layer that wrote last has its parts
};

struct layer_t {
    layer_t(const std::shared_ptr<transport_t> &transport, const engine &eng, const plan_t &plan,
            void *scratchpad);
    ~layer_t();
    // Before a stage writes to the scratchpad: what a layer with parts in other places left there is lost.
    void claim();

    std::shared_ptr<transport_t> transport;
    engine eng;
    plan_t plan;
    int64_t number = 0; // of this layer on its communicator

    buffer_t owned;
    uint8_t *scratchpad;
    std::shared_ptr<tags_t> tags;
    template <typename T>
    T *scratch(size_t at) const {
        return reinterpret_cast<T *>(scratchpad + at);
    }

    // By format_t; an unused one is empty.
    std::unique_ptr<quantizer_t> quantizers[format_count];
    moe_permute group[format_count];
    moe_unpermute ungroup;
    memories_t arrived[format_count];
    memory results;
    memories_t gradients;
};

} // namespace impl
} // namespace ep
} // namespace mxdnn

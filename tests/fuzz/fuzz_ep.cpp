// SPDX-License-Identifier: Apache-2.0
// Layers and steps of libmxdnn_ep in any shapes, and stages in any order with any arguments, next to ranks
// that an input draws. What is refused has a sentence and has written nothing to the caller; what is executed
// stays within its memory, and rows that went through all stages have come back as they were.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ep/error.hpp"
#include "ep/stages.hpp"
#include "fuzz/ep_peers.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/guard_pages.hpp"

using namespace mxdnn::ep::impl;
using fuzz::choices_t;
using fuzz::peers_t;
using dim_t = mxdnn_dim_t;
using bytes_t = std::vector<uint8_t>;

namespace {

constexpr dim_t odd_numbers[] = {
        0, -1, 3, 1 << 20, INT32_MAX, dim_t(1) << 31, dim_t(1) << 40, INT64_MIN, INT64_MAX};
constexpr size_t most_scratchpad = fuzz::guard_pages_t::most_bytes;

struct fixture_t {
    mxdnn_engine_t engine = nullptr;
    mxdnn_stream_t stream = nullptr;
    fuzz::guard_pages_t pages{24};
    fixture_t() {
        mxdnn_set_max_concurrency(1);
        FUZZ_CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0) == mxdnn_success);
        FUZZ_CHECK(mxdnn_stream_create(&stream, engine, mxdnn_stream_default_flags) == mxdnn_success);
    }
};

fixture_t &fixture() {
    static fixture_t f;
    return f;
}

status_t said(status_t status) {
    FUZZ_CHECK(status == mxdnn_success || is_sentence(mxdnn_ep_get_last_error()));
    return status;
}

struct layer_model_t {
    mxdnn_ep_layer_t layer = nullptr;
    mxdnn_ep_layer_desc_t desc;
    dim_t local, padded;
    mxdnn_data_type_t type_of(format_t f) const {
        return f == format_t::bf16      ? mxdnn_bf16
               : f == format_t::forward ? desc.forward_type
                                        : desc.backward_type;
    }
};

// One direction of a pass: how many stages have run in their order, with memory of the step and its layer
// alone, and the rows that entered.
struct way_t {
    int done = 0; // -1: in another way
    bytes_t rows;
    peers_t::rows_t sent, arrived;
};

struct step_model_t {
    mxdnn_ep_step_t step = nullptr;
    const layer_model_t *of = nullptr;
    dim_t sent = 0;
    way_t ways[2];
};

// A tensor that a stage writes, and what was there before.
struct written_t {
    const uint8_t *data;
    bytes_t before;
};

class run_t {
public:
    explicit run_t(choices_t &choices) : c(choices), peers(choices) {}
    ~run_t() {
        for (const mxdnn_memory_t m : memories) mxdnn_memory_destroy(m);
        // In any order: each keeps what it needs.
        const bool steps_first = c.one_in(2);
        if (!steps_first) destroy_layers();
        for (const step_model_t &s : steps) mxdnn_ep_step_destroy(s.step);
        if (steps_first) destroy_layers();
        f.pages.clear();
    }

    void go() {
        peers.ranks = int(1 + c.below(4));
        peers.rank = int(c.below(peers.ranks));
        peers.direct = c.one_in(3);
        peers.in_stream_order = peers.direct || c.one_in(3);
        peers.quiet = c.percent(60);
        const peers_t *const handle = &peers;
        const bool odd = c.one_in(30);
        const status_t made = said(mxdnn_ep_comm_create(odd && c.one_in(3) ? nullptr : &comm, f.engine,
                mxdnn_ep_transport_t(odd ? c.below(4) : int64_t(fuzz::over_peers)),
                odd && c.one_in(3) ? nullptr : &handle, sizeof(void *) + size_t(odd && c.one_in(2)),
                odd ? c.of(odd_numbers) : 1000));
        if (made != mxdnn_success) return;
        make_layers();
        if (layers.empty()) return;
        make_steps();
        if (steps.empty()) return;
        for (dim_t ops = 6 + c.below(20); ops > 0 && !peers.has_failed; ops--) {
            operate();
            for (const mxdnn_memory_t m : memories) mxdnn_memory_destroy(m);
            memories.clear();
            f.pages.clear();
            place_again();
        }
        look();
    }

    // The callback of the layers.
    status_t compute(const mxdnn_ep_expert_args_t &a) {
        const step_model_t &s = *computing;
        const mxdnn_ep_layer_desc_t &d = s.of->desc;
        const bool forward = a.diff_src == nullptr;
        const int32_t *starts = data_of<int32_t>(a.group_starts), *ends = data_of<int32_t>(a.group_offsets),
                      *counts = data_of<int32_t>(a.group_counts);
        FUZZ_CHECK(a.experts == s.of->local / d.chunks && a.first_expert % a.experts == 0
                   && a.first_expert + a.experts <= s.of->local);
        dim_t begin = a.first_expert == 0 ? 0 : ends[a.first_expert - 1];
        for (dim_t e = 0; e < a.experts; e++) {
            const dim_t expert = a.first_expert + e;
            dim_t rows = 0;
            for (int p = 0; p < peers.ranks; p++) rows += counts[dim_t(p) * s.of->local + expert];
            FUZZ_CHECK(starts[e] == begin && starts[e + 1] == ends[expert]);
            FUZZ_CHECK(ends[expert] - begin >= rows && (ends[expert] - begin) % d.alignment == 0);
            begin = ends[expert];
        }
        FUZZ_CHECK(begin <= s.of->padded);
        touch(a.src), touch(a.src_scales), touch(a.diff_dst), touch(a.diff_dst_scales);
        const mxdnn_memory_t from = forward ? a.src : a.diff_dst, to = forward ? a.dst : a.diff_src;
        const size_t row = 2 * size_t(d.hidden), at = size_t(starts[0]) * row,
                     bytes = size_t(begin) * row - at;
        if (s.of->type_of(forward ? format_t::forward : format_t::backward) == mxdnn_bf16)
            std::memcpy(data_of<uint8_t>(to) + at, data_of<uint8_t>(from) + at, bytes);
        else
            std::memset(data_of<uint8_t>(to) + at, 0x40, bytes);
        return !peers.quiet && c.one_in(20) ? mxdnn_out_of_memory : mxdnn_success;
    }

private:
    template <typename T>
    static T *data_of(mxdnn_memory_t m) {
        void *data = nullptr;
        FUZZ_CHECK(mxdnn_memory_get_data_handle(m, &data) == mxdnn_success);
        return static_cast<T *>(data);
    }
    static size_t size_of(mxdnn_memory_t m) {
        const_mxdnn_memory_desc_t md = nullptr;
        FUZZ_CHECK(mxdnn_memory_get_memory_desc(m, &md) == mxdnn_success);
        return mxdnn_memory_desc_get_size(md);
    }
    // Every byte of it is there.
    static void touch(mxdnn_memory_t m) {
        if (!m) return;
        volatile uint8_t *data = data_of<uint8_t>(m);
        for (size_t n = size_of(m), i = 0; i < n; i++) data[i] = data[i];
    }

    // ---- layers and steps ----

    mxdnn_ep_layer_desc_t draw_desc() {
        mxdnn_ep_layer_desc_t d = {};
        d.struct_size = sizeof(d);
        d.forward_type = c.of({mxdnn_bf16, mxdnn_bf16, mxdnn_f8_e4m3, mxdnn_f4_e2m1});
        d.backward_type = c.of({mxdnn_bf16, mxdnn_bf16, mxdnn_f8_e4m3, mxdnn_data_type_undef});
        const bool quantised = d.forward_type != mxdnn_bf16 || d.backward_type == mxdnn_f8_e4m3;
        d.hidden = quantised ? 32 * (1 + c.below(3)) : 1 + c.below(70);
        d.chunks = c.below(4);
        const dim_t local = std::max<dim_t>(d.chunks, 1) * (1 + c.below(3));
        d.experts = peers.ranks * local;
        d.max_tokens = 1 + c.below(16);
        d.max_rows = 1 + c.below(32);
        d.capacity = c.one_in(3) ? 0 : 1 + c.below(100);
        d.alignment = c.of({1, 1, 4, 16, 13});
        d.user = this;
        d.experts_forward =
                d.experts_backward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *args) {
                    return static_cast<run_t *>(user)->compute(*args);
                };
        if (c.one_in(20)) d.experts_backward = nullptr;
        if (!c.one_in(12)) return d;
        dim_t mxdnn_ep_layer_desc_t::*const members[] = {&mxdnn_ep_layer_desc_t::hidden,
                &mxdnn_ep_layer_desc_t::experts, &mxdnn_ep_layer_desc_t::max_tokens,
                &mxdnn_ep_layer_desc_t::max_rows, &mxdnn_ep_layer_desc_t::capacity,
                &mxdnn_ep_layer_desc_t::alignment, &mxdnn_ep_layer_desc_t::chunks};
        switch (c.below(6)) {
        case 0: d.struct_size = size_t(c.of(odd_numbers)); break;
        case 1: d.forward_type = mxdnn_data_type_t(c.below(20)); break;
        case 2: d.backward_type = mxdnn_data_type_t(c.below(20)); break;
        default: d.*c.of(members) = c.of(odd_numbers);
        }
        return d;
    }

    void make_layers() {
        const bool in_turns = c.one_in(2); // all in one memory
        for (dim_t n = 1 + c.below(2); n > 0; n--) {
            layer_model_t l;
            l.desc = draw_desc();
            size_t workspace = 0, scratchpad = 0;
            const status_t known =
                    said(mxdnn_ep_layer_get_memory_sizes(comm, &l.desc, &scratchpad, &workspace));
            if (known == mxdnn_success && std::max(scratchpad, workspace) > most_scratchpad) continue;
            if (in_turns && !layers.empty() && scratchpad > shared_size) continue;
            void *memory = MXDNN_MEMORY_ALLOCATE;
            if (peers.direct) {
                // It is the library's.
            } else if (in_turns && !layers.empty())
                memory = shared;
            else if (in_turns || peers.rank % 2 || !peers.quiet) {
                shared_size = in_turns ? most_scratchpad : scratchpad; // where a later one is larger
                memory = shared = keep(shared_size);
            }
            const bool odd = c.one_in(40);
            if (odd) memory = c.one_in(2) ? nullptr : static_cast<uint8_t *>(keep(64)) + 8;
            peers.refused = false;
            const status_t made = said(mxdnn_ep_layer_create(&l.layer, comm, &l.desc, memory));
            FUZZ_CHECK(made == mxdnn_success
                               ? known == mxdnn_success && !odd
                               : known != mxdnn_success || odd || peers.refused || peers.has_failed);
            if (made != mxdnn_success) continue;
            if (l.desc.chunks == 0) l.desc.chunks = 1;
            if (l.desc.capacity == 0) l.desc.capacity = l.desc.max_rows * peers.ranks;
            l.local = l.desc.experts / peers.ranks;
            l.padded = l.desc.capacity + l.local * l.desc.alignment;
            layers.push_back(l);
        }
    }

    void make_steps() {
        for (dim_t n = 1 + c.below(3); n > 0; n--) {
            step_model_t s;
            s.of = &c.of(layers);
            size_t workspace = 0, scratchpad = 0;
            const mxdnn_ep_layer_desc_t &d = s.of->desc;
            FUZZ_CHECK(mxdnn_ep_layer_get_memory_sizes(comm, &d, &scratchpad, &workspace) == mxdnn_success);
            const bool given = !peers.direct && (c.one_in(2) || !peers.quiet);
            void *memory = given ? keep(workspace) : MXDNN_MEMORY_ALLOCATE;
            const bool odd = c.one_in(40);
            if (odd) memory = c.one_in(2) ? nullptr : static_cast<uint8_t *>(keep(64)) + 1;
            const status_t made = said(mxdnn_ep_step_create(&s.step, s.of->layer, memory));
            FUZZ_CHECK((made == mxdnn_success) == !odd);
            if (made == mxdnn_success) steps.push_back(s);
        }
    }

    void destroy_layers() {
        mxdnn_ep_comm_destroy(comm);
        for (const layer_model_t &l : layers) mxdnn_ep_layer_destroy(l.layer);
    }

    // ---- memory ----

    // For as long as the run.
    void *keep(size_t bytes) {
        uint8_t *data = f.pages.place(bytes, c.one_in(2), 64);
        kept.push_back(bytes);
        FUZZ_CHECK(data);
        return data;
    }
    void place_again() {
        for (const size_t bytes : kept) f.pages.place(bytes, false, 64);
    }

    // A contiguous tensor, unless it is spoilt; null where there is none.
    mxdnn_memory_t tensor(std::initializer_list<dim_t> shape, mxdnn_data_type_t type, bool spoil) {
        mxdnn_dims_t dims = {}, strides = {};
        int n = 0;
        for (const dim_t d : shape) dims[n++] = d;
        bool without_data = false;
        if (spoil) switch (c.below(5)) {
            case 0: dims[c.below(n)] += c.of({1, -1}); break;
            case 1:
                type = c.of({mxdnn_bf16, mxdnn_f8_e4m3, mxdnn_s8, mxdnn_f32, mxdnn_s32, mxdnn_e8m0});
                break;
            case 2: dims[n++] = 1; break;
            case 3: without_data = true; break;
            default: strides[n - 1] = c.of({0, 2});
            }
        for (int i = n - 1; i >= 0; i--)
            if (strides[i] == 0 && !(spoil && i == n - 1 && c.one_in(8)))
                strides[i] = i == n - 1 ? 1 : strides[i + 1] * std::max<dim_t>(dims[i + 1], 1);
        mxdnn_memory_desc_t md = nullptr;
        mxdnn_memory_t m = nullptr;
        if (mxdnn_memory_desc_create_with_strides(&md, n, dims, type, strides) != mxdnn_success)
            return nullptr;
        const size_t bytes = mxdnn_memory_desc_get_size(md);
        uint8_t *data = f.pages.place(bytes + 1, c.one_in(2));
        if (data) data += c.one_in(30); // odd addresses, too
        if (data)
            FUZZ_CHECK(mxdnn_memory_create(&m, md, f.engine, without_data ? nullptr : data) == mxdnn_success);
        mxdnn_memory_desc_destroy(md);
        if (m) memories.push_back(m);
        return m;
    }
    // Whole numbers in bf16, of either sign.
    mxdnn_memory_t rows(dim_t n, dim_t columns, mxdnn_data_type_t type, bool written, bool spoil = false) {
        const mxdnn_memory_t m = tensor({n, columns}, type, spoil);
        if (!m || !data_of<uint8_t>(m)) return m;
        uint8_t *data = data_of<uint8_t>(m);
        const size_t size = size_of(m);
        for (size_t i = 0; i < size; i++)
            data[i] = i % 2 ? uint8_t(0x40 | (c.bits() & 0x82)) : uint8_t(c.bits());
        if (written) written_.push_back({data, bytes_t(data, data + size)});
        return m;
    }
    mxdnn_memory_t numbers(const std::vector<int32_t> &list, bool spoil) {
        const mxdnn_memory_t m = tensor({dim_t(list.size())}, mxdnn_s32, spoil);
        if (m && data_of<uint8_t>(m) && !list.empty())
            std::memcpy(
                    data_of<uint8_t>(m), list.data(), std::min(size_of(m), list.size() * sizeof(int32_t)));
        return m;
    }

    // ---- stages ----

    void operate() {
        if (c.one_in(20)) {
            said(mxdnn_ep_comm_wait(comm, c.one_in(20) ? nullptr : f.stream));
            return;
        }
        step_model_t &s = c.of(steps);
        const int direction = s.ways[0].done < 5 || s.of->desc.backward_type == mxdnn_data_type_undef
                                      ? int(c.one_in(15))
                                      : int(c.percent(80));
        const int done = s.ways[direction].done;
        int stage = done >= 0 && done < 5 ? (direction ? 4 - done : done) : 0;
        if (c.one_in(10)) stage = int(c.below(5));
        if (c.one_in(12) && direction == 0) stage = 0;
        execute(s, stage, direction);
    }

    void execute(step_model_t &s, int stage, int direction) {
        const int index = index_of(mxdnn_ep_stage_t(stage), mxdnn_ep_direction_t(direction));
        const mxdnn_ep_layer_desc_t &d = s.of->desc;
        std::vector<mxdnn_exec_arg_t> args;
        written_.clear();
        spoilt = c.one_in(8);
        bytes_t entered; // rows, as they are sent
        const auto pass = [&](int id, mxdnn_memory_t m) {
            if (m || spoilt) args.push_back({id, m});
        };
        const auto spoil = [&] { return spoilt && c.one_in(3); };
        const auto pass_rows = [&](int arg, dim_t n, mxdnn_data_type_t type, bool written) {
            const mxdnn_memory_t m = rows(n, d.hidden, type, written, spoil());
            pass(arg, m);
            if (type == mxdnn_f8_e4m3 || type == mxdnn_f4_e2m1)
                pass(arg | MXDNN_ARG_ATTR_SCALES, rows(n, d.hidden / 32, mxdnn_e8m0, written, spoil()));
            return m;
        };
        const stage_t &what = stages[index];
        const auto rows_at = [&](place_t place) {
            return place == place_t::caller ? s.sent : place == place_t::arrived ? d.capacity : s.of->padded;
        };
        dim_t sent = s.sent;
        bool own = true; // memory of the step alone
        if (index == dispatch_forward) {
            sent = draw_dispatch(d, pass, spoil, entered);
        } else if (what.from == place_t::caller) {
            const mxdnn_memory_t m = pass_rows(MXDNN_ARG_SRC, s.sent, mxdnn_bf16, false);
            if (m && data_of<uint8_t>(m))
                entered.assign(data_of<uint8_t>(m), data_of<uint8_t>(m) + size_of(m));
        } else if (c.one_in(12)) {
            own = false;
            pass_rows(MXDNN_ARG_SRC, rows_at(what.from), s.of->type_of(what.from_format), false);
        }
        mxdnn_memory_t dst = nullptr;
        if (what.to == place_t::caller)
            dst = pass_rows(MXDNN_ARG_DST, s.sent, mxdnn_bf16, true);
        else if (c.one_in(12)) {
            own = false;
            pass_rows(MXDNN_ARG_DST, rows_at(what.to), s.of->type_of(what.to_format), true);
        }
        if (index == permute_forward && c.one_in(4))
            pass(MXDNN_ARG_GROUP_OFFSETS, rows_or_numbers(s.of->local, spoil()));
        if (spoilt) spoil_args(args);

        peers.refused = false;
        peers.capacity = c.one_in(5) ? d.capacity + 3 : d.capacity;
        const way_t &forward = s.ways[0], &way = s.ways[direction];
        peers.returns = index == index_of(mxdnn_ep_combine, mxdnn_ep_forward)     ? &forward.sent
                        : index == index_of(mxdnn_ep_dispatch, mxdnn_ep_backward) ? &s.ways[1].sent
                                                                                  : nullptr;
        computing = &s;
        const int nargs = int(args.size());
        const bool by_chunks = c.one_in(4);
        status_t status = mxdnn_success;
        bool begins = true;
        if (by_chunks && c.one_in(4)) {
            const dim_t chunk = c.of<dim_t>({0, 0, 1, 2, -1, INT64_MAX});
            begins = chunk == 0;
            own = false;
            status = said(mxdnn_ep_execute_chunk(s.step, mxdnn_ep_stage_t(stage),
                    mxdnn_ep_direction_t(direction), chunk, f.stream, nargs, args.data()));
        } else if (by_chunks) {
            for (dim_t chunk = 0; chunk < d.chunks; chunk++) {
                const status_t one = said(mxdnn_ep_execute_chunk(s.step, mxdnn_ep_stage_t(stage),
                        mxdnn_ep_direction_t(direction), chunk, f.stream, nargs, args.data()));
                if (one != mxdnn_success) status = one;
            }
        } else
            status = said(mxdnn_ep_execute(s.step, mxdnn_ep_stage_t(stage), mxdnn_ep_direction_t(direction),
                    f.stream, spoilt && c.one_in(10) ? -1 : nargs, args.data()));

        if (status != mxdnn_success) {
            if (d.chunks == 1) check_unwritten();
            if (index == dispatch_forward) s.ways[0].done = s.ways[1].done = -1;
            if (index == dispatch_forward && peers.direct) s.sent = 0; // a pass without rows
            if (what.op == op_t::send) s.ways[direction].done = -1;    // it took part, with other rows
            return;
        }
        if (!begins) {
            s.ways[direction].done = -1;
        } else if (index == dispatch_forward)
            begin(s, sent, entered, own);
        else if (what.op == op_t::send && stage == mxdnn_ep_combine)
            s.ways[1] = {own && !spoilt && forward.done >= 0 ? 1 : -1, entered, peers.sent, peers.arrived};
        else {
            const int place = direction ? 4 - stage : stage;
            if (place == 4 && own && way.done == 4) check_return(s, direction, dst);
            s.ways[direction].done = own && way.done == place ? place + 1 : -1;
        }
    }

    // The arguments of a dispatch: any counts, with the sum that they should have.
    template <typename pass_t, typename spoil_t>
    dim_t draw_dispatch(
            const mxdnn_ep_layer_desc_t &d, const pass_t &pass, const spoil_t &spoil, bytes_t &entered) {
        const bool gathers = c.one_in(2);
        const dim_t tokens = c.below(d.max_tokens + 1);
        dim_t sent = gathers ? c.below(d.max_rows + 1) : std::min(tokens, d.max_rows);
        if (gathers && tokens == 0) sent = 0;
        std::vector<int32_t> counts(size_t(d.experts), 0), gather(size_t(sent), 0);
        const dim_t favoured = 1 + c.below(d.experts);
        for (dim_t r = 0; r < sent; r++) counts[size_t(c.below(favoured))]++;
        for (int32_t &i : gather) i = int32_t(c.below(tokens));
        if (spoil()) counts[size_t(c.below(d.experts))] += c.of({1, -1, INT32_MIN, 1 << 30});
        if (spoil() && sent > 0)
            gather[size_t(c.below(sent))] = c.of<int32_t>({-1, int32_t(tokens), INT32_MAX, INT32_MIN});
        const mxdnn_memory_t src = rows(gathers ? tokens : sent, d.hidden, mxdnn_bf16, false, spoil());
        pass(MXDNN_ARG_SRC, src);
        pass(MXDNN_ARG_GROUP_COUNTS, numbers(counts, spoil()));
        if (gathers) pass(MXDNN_ARG_GATHER_IDX, numbers(gather, spoil()));
        const uint8_t *data = src ? data_of<uint8_t>(src) : nullptr;
        const size_t row = 2 * size_t(d.hidden);
        if (!spoilt && data)
            for (dim_t r = 0; r < sent; r++) {
                const uint8_t *from = data + size_t(gathers ? gather[size_t(r)] : r) * row;
                entered.insert(entered.end(), from, from + row);
            }
        return sent;
    }

    mxdnn_memory_t rows_or_numbers(dim_t n, bool spoil) {
        return numbers(std::vector<int32_t>(size_t(n), -7), spoil);
    }

    void spoil_args(std::vector<mxdnn_exec_arg_t> &args) {
        static constexpr int ids[] = {MXDNN_ARG_SRC, MXDNN_ARG_DST, MXDNN_ARG_GROUP_COUNTS,
                MXDNN_ARG_GATHER_IDX, MXDNN_ARG_GROUP_OFFSETS, MXDNN_ARG_WEIGHTS, 0, -1};
        if (args.empty() || !c.one_in(3)) return;
        mxdnn_exec_arg_t &one = c.of(args);
        switch (c.below(4)) {
        case 0: one.memory = nullptr; break;
        case 1: one.arg = c.of(ids); break;
        case 2: args.push_back(one); break;
        default: args.pop_back();
        }
    }

    // ---- what has to be so ----

    void check_unwritten() const {
        for (const written_t &w : written_)
            FUZZ_CHECK(w.before.empty() || std::memcmp(w.data, w.before.data(), w.before.size()) == 0);
    }

    void begin(step_model_t &s, dim_t sent, const bytes_t &entered, bool own) {
        const mxdnn_ep_layer_desc_t &d = s.of->desc;
        s.sent = sent;
        s.ways[0] = {own && !spoilt && !peers.refused ? 1 : -1, entered, peers.sent, peers.arrived};
        s.ways[1].done = peers.refused ? -1 : 0;
        if (peers.direct) return; // the host does not know
        dim_t arrived = 0;
        size_t bytes = 0;
        FUZZ_CHECK(mxdnn_ep_step_get_arrived(s.step, &arrived) == mxdnn_success);
        for (const bytes_t &from : peers.arrived) bytes += from.size();
        const size_t row = d.forward_type == mxdnn_bf16      ? 2 * size_t(d.hidden)
                           : d.forward_type == mxdnn_f4_e2m1 ? size_t(d.hidden) / 2 + size_t(d.hidden) / 32
                                                             : size_t(d.hidden) + size_t(d.hidden) / 32;
        FUZZ_CHECK(arrived >= 0 && arrived <= d.capacity && bytes == size_t(arrived) * row);
        if (!spoilt && d.forward_type == mxdnn_bf16) {
            bytes_t all;
            for (const bytes_t &to : peers.sent) all.insert(all.end(), to.begin(), to.end());
            FUZZ_CHECK(all == entered);
        }
    }

    // Rows have come back, and those of the others have gone back.
    void check_return(const step_model_t &s, int direction, mxdnn_memory_t dst) const {
        const way_t &way = s.ways[direction];
        if (s.of->type_of(direction ? format_t::backward : format_t::forward) != mxdnn_bf16) return;
        FUZZ_CHECK(size_of(dst) == way.rows.size());
        FUZZ_CHECK(way.rows.empty()
                   || std::memcmp(data_of<uint8_t>(dst), way.rows.data(), way.rows.size()) == 0);
        FUZZ_CHECK(peers.direct || peers.sent == way.arrived);
    }

    // What the getters return is there, whatever happened.
    void look() const {
        static constexpr int ids[] = {MXDNN_ARG_SRC, MXDNN_ARG_DST, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, MXDNN_ARG_GROUP_COUNTS, MXDNN_ARG_GROUP_OFFSETS,
                MXDNN_ARG_GATHER_IDX, -1};
        for (const step_model_t &s : steps)
            for (int stage = 0; stage < 8; stage++)
                for (int direction = 0; direction < 2; direction++)
                    for (const int id : ids) {
                        mxdnn_memory_t m = nullptr;
                        if (said(mxdnn_ep_step_get_memory(
                                    s.step, mxdnn_ep_stage_t(stage), mxdnn_ep_direction_t(direction), id, &m))
                                == mxdnn_success)
                            touch(m);
                    }
    }

    choices_t &c;
    fixture_t &f = fixture();
    peers_t peers;
    mxdnn_ep_comm_t comm = nullptr;
    std::vector<layer_model_t> layers;
    std::vector<step_model_t> steps;
    void *shared = nullptr;
    size_t shared_size = 0;
    std::vector<size_t> kept;
    std::vector<mxdnn_memory_t> memories;
    std::vector<written_t> written_;
    const step_model_t *computing = nullptr;
    bool spoilt = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices_t c(data, size);
    run_t(c).go();
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<fuzz_input_t> seeds;
    for (uint8_t i = 0; i < 16; i++) seeds.emplace_back(64 + i, i);
    return seeds;
}

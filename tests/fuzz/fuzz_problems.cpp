// SPDX-License-Identifier: Apache-2.0
// Random problems of every primitive: refused with a sentence, or executed by every implementation, which
// stay within buffers as large as the descriptors say, write nothing that is only read, nothing between the
// elements of a destination, and nothing at all where they refuse.
#include "fuzz/fuzz.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "common/formats/plain_bits.hpp"
#include "common/problem_util.hpp"
#include "common/row_groups.hpp"
#include "fuzz/guard_pages.hpp"
#include "fuzz/problem_draws.hpp"
#include "mxdnn/mxdnn.h"

using namespace mxdnn::impl;
using namespace fuzz;

namespace {

constexpr uint8_t poison = 0xa5;
constexpr size_t most_buffers = 80;
constexpr int64_t most_scratchpad = 64 << 20; // of what is only created

struct counts_t {
    long problems = 0, refused = 0, created = 0, executed = 0, refused_executions = 0;
    ~counts_t() {
        std::printf("%ld problems, %ld refused; %ld primitives, %ld executions and %ld refused ones\n",
                problems, refused, created, executed, refused_executions);
    }
} counts;

struct pd_deleter_t {
    void operator()(mxdnn_primitive_desc_t pd) const { mxdnn_primitive_desc_destroy(pd); }
};
using pd_ptr_t = std::unique_ptr<mxdnn_primitive_desc, pd_deleter_t>;
struct primitive_deleter_t {
    void operator()(mxdnn_primitive_t p) const { mxdnn_primitive_destroy(p); }
};
using primitive_ptr_t = std::unique_ptr<mxdnn_primitive, primitive_deleter_t>;

guard_pages_t &pages() {
    static guard_pages_t p(most_buffers);
    return p;
}

// One argument of an execution.
struct argument_t {
    int arg = 0;
    bool written = false;
    memory_desc_t md;
    element_packing_t packing = mxdnn_element_packing_bytes;
    uint8_t *data = nullptr;
    size_t size = 0;
    std::unique_ptr<mxdnn_memory, decltype(&mxdnn_memory_destroy)> memory{nullptr, mxdnn_memory_destroy};
    // Bytes of a destination that hold elements; empty: all may.
    std::vector<bool> elements;
};

// A value lies at a multiple of these.
size_t bytes_of_values(data_type_t dt) { return size_t(std::max(1, data_type_info(dt)->bits / 8)); }

// Where the elements of a plain tensor are, if each has whole bytes and they are few.
std::vector<bool> bytes_of_elements(const memory_desc_t &md, element_packing_t packing, size_t size) {
    const int bits = data_type_info(md.dt)->bits;
    if (!is_strided(md) || storage_bits(bits, packing) % 8) return {};
    const size_t width = size_t(storage_bits(bits, packing) / 8);
    std::vector<bool> used(size);
    dim_t idx[max_ndims] = {};
    for (int d = 0; d < md.ndims; d++)
        if (md.dims[d] == 0) return used;
    for (;;) {
        dim_t at = 0;
        for (int d = 0; d < md.ndims; d++) at += idx[d] * md.strides[d];
        for (size_t i = 0; i < width; i++) used[size_t(at) * width + i] = true;
        int d = md.ndims - 1;
        while (d >= 0 && ++idx[d] == md.dims[d]) idx[d--] = 0;
        if (d < 0) return used;
    }
}

// What an execution of one descriptor passes.
class execution_t {
public:
    execution_t(
            choices_t &c, const drawn_t &d, const mxdnn_primitive_desc &pd, const mxdnn_primitive_desc &known)
        : c_(c), d_(d), p_(pd.pd->problem), args_(pd.pd->args), known_(known.pd->args) {
        for (size_t i = 0, next = 0; i < args_.size() && fits_; i = next) {
            next = i + 1;
            while (next < args_.size() && args_[next].arg == args_[i].arg) next++;
            add(args_[i + size_t(c.below(int64_t(next - i)))], i);
        }
        if (fits_ && c.one_in(12)) spoil();
        for (argument_t &a : list_) make(a);
    }

    bool fits() const { return fits_; }

    mxdnn_status_t execute(mxdnn_primitive_t p, mxdnn_stream_t stream) {
        std::vector<mxdnn_exec_arg_t> args;
        args.reserve(list_.size() + 1);
        for (argument_t &a : list_) {
            if (a.written && a.size && !overlapping_) std::memset(a.data, poison, a.size);
            args.push_back({a.arg, a.memory.get()});
        }
        if (twice_ < args.size()) args.push_back(args[twice_]);
        const mxdnn_status_t s = mxdnn_primitive_execute(p, stream, int(args.size()), args.data());
        FUZZ_CHECK(s == mxdnn_success || mxdnn_get_last_error()[0]);
        for (const argument_t &a : list_) {
            if (!a.written || overlapping_) continue;
            // A scratchpad holds anything, and global scales may be begun before all values are seen.
            if (a.arg == MXDNN_ARG_SCRATCHPAD) continue;
            for (size_t i = 0; i < a.size; i++)
                if (s != mxdnn_success || (!a.elements.empty() && !a.elements[i]))
                    FUZZ_CHECK(a.data[i] == poison);
        }
        return s;
    }

private:
    void add(const arg_desc_t &form, size_t) {
        if (form.optional && !wanted(form.arg)) return;
        argument_t a;
        a.arg = form.arg;
        a.written = form.use == arg_use_t::output;
        a.md = form.md;
        a.packing = form.packing;
        if (has_runtime_dims(a.md)) fill_dims(a.md, form);
        if (form.any_strides && c_.one_in(5)) {
            memory_desc_t other;
            if (draw_strides(c_, other, a.md.ndims, a.md.dims, a.md.dt, !a.written)) a.md = other;
        }
        list_.push_back(std::move(a));
    }

    bool wanted(int arg) {
        if (d_.p.kind == mxdnn_primitive_kind_grouped_matmul_backward_weights) return d_.indices.count(arg);
        if (d_.p.kind != mxdnn_primitive_kind_grouped_matmul)
            return d_.p.kind == mxdnn_primitive_kind_moe_unpermute ? d_.lengths.count(arg) : !c_.one_in(3);
        switch (arg) {
        case MXDNN_ARG_GROUP_EXPERT_IDS:
        case MXDNN_ARG_EXPERT_MAP:
        case MXDNN_ARG_GATHER_IDX:
        case MXDNN_ARG_SCATTER_IDX: return d_.indices.count(arg);
        case MXDNN_ARG_WEIGHTS: return by_table_ = c_.one_in(4), !by_table_;
        case MXDNN_ARG_WEIGHTS_PTRS: return by_table_;
        default: return c_.one_in(2);
        }
    }

    // Dims that the descriptor leaves open: those of the problem with all dims known, or what goes with it.
    void fill_dims(memory_desc_t &md, const arg_desc_t &form) {
        for (const arg_desc_t &k : known_)
            if (k.arg == form.arg && k.md.ndims == md.ndims && k.md.dt == md.dt && !has_runtime_dims(k.md)) {
                md = k.md;
                return;
            }
        mxdnn_dims_t dims;
        for (int i = 0; i < md.ndims; i++)
            dims[i] = md.dims[i] == runtime_dim ? open_dim(form.arg, md, i) : md.dims[i];
        memory_desc_t filled;
        fits_ = fits_ && init_strided(filled, md.ndims, dims, md.dt, nullptr) == mxdnn_success;
        if (fits_) md = filled;
    }

    dim_t open_dim(int arg, const memory_desc_t &, int) {
        const auto known = d_.lengths.find(arg);
        if (known != d_.lengths.end()) return known->second;
        for (const int of : {MXDNN_ARG_SRC, MXDNN_ARG_DST}) {
            const bool of_src = of == MXDNN_ARG_SRC;
            if (arg == (MXDNN_ARG_ATTR_GLOBAL_SCALE | of)) return c_.one_in(2) ? 1 : d_.p.weights.dims[0];
            if (arg == (MXDNN_ARG_ATTR_SCALES | of)) return swizzled_bytes(of_src);
        }
        return c_.below(20);
    }

    const int32_t *index(int arg) const {
        const auto i = d_.indices.find(arg);
        return i == d_.indices.end() || i->second.empty() ? nullptr : i->second.data();
    }
    // Of the scales of grouped rows in the 128x4 order.
    dim_t swizzled_bytes(bool of_src) const {
        const memory_desc_t &md = of_src ? d_.p.src : d_.p.dst;
        const arg_attr_t &a = of_src ? d_.p.attr.src : d_.p.attr.dst;
        const auto grouping = d_.p.attr.row_grouping;
        dim_t rows = md.dims[0];
        const int by_index = of_src ? MXDNN_ARG_GATHER_IDX : MXDNN_ARG_SCATTER_IDX;
        if (grouping != mxdnn_row_grouping_row_ids && !d_.indices.count(by_index)) {
            const int arg =
                    grouping == mxdnn_row_grouping_padded ? MXDNN_ARG_GROUP_COUNTS : MXDNN_ARG_GROUP_OFFSETS;
            row_groups_t g;
            g.grouping = grouping;
            g.bounds = index(arg);
            g.rows = rows;
            g.groups = g.bounds ? d_.lengths.at(arg) - (grouping == mxdnn_row_grouping_starts) : 0;
            rows = g.swizzled_rows_before(g.groups);
        }
        return swizzle_128x4::size(rows, div_up(md.dims[1], std::max<dim_t>(a.scales.groups[1], 1)));
    }

    // One thing is not as it has to be.
    void spoil() {
        if (list_.empty()) return;
        argument_t &a = c_.of(list_);
        memory_desc_t md = a.md;
        const int d = int(c_.below(md.ndims));
        switch (c_.below(7)) {
        case 0: list_.erase(list_.begin() + (&a - list_.data())); return;
        case 1: twice_ = size_t(&a - list_.data()); return;
        case 2: md.dims[d] += c_.one_in(2) ? 1 : -1; break;
        case 3: md.dt = c_.of({mxdnn_f32, mxdnn_s32, mxdnn_u8, mxdnn_bf16, mxdnn_f4_e2m1}); break;
        case 4: std::swap(md.dims[d], md.dims[0]); break;
        // Pointers of a table stay pointers: what they point to, the library cannot know.
        case 5: overlapping_ = list_.size() > 1 && !by_table_; return;
        default:
            if (draw_strides(c_, md, md.ndims, a.md.dims, md.dt)) a.md = md;
            return;
        }
        memory_desc_t other;
        if (is_strided(md) && md.dims[d] >= 0
                && init_strided(other, md.ndims, md.dims, md.dt, nullptr) == mxdnn_success)
            a.md = other;
    }

    void make(argument_t &a) {
        if (!fits_) return;
        const int64_t size = size_of(a.md, a.packing);
        if (size < 0 || size > int64_t(guard_pages_t::most_bytes)) return void(fits_ = false);
        a.size = size_t(size);
        const size_t align = is_packed(a.md)                  ? 16
                             : a.arg == MXDNN_ARG_SCRATCHPAD  ? 64
                             : !overlapping_ || c_.one_in(20) ? 1
                                                              : bytes_of_values(a.md.dt);
        a.data = pages().place(a.size, c_.one_in(2), align);
        if (!a.data) return void(fits_ = false);
        if (overlapping_ && &a != list_.data() && a.size <= list_[0].size) {
            a.data = list_[0].data + (list_[0].size - a.size) / align * align;
            a.written = a.written || list_[0].written;
        } else if (!a.written) {
            fill(a);
            pages().make_read_only(a.data, a.size);
        }
        if (a.written) a.elements = bytes_of_elements(a.md, a.packing, a.size);
        const int base =
                a.arg & ~(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_ATTR_ZERO_POINTS | MXDNN_ARG_ATTR_GLOBAL_SCALE);
        const auto engine = const_cast<mxdnn_engine_t>(
                base == MXDNN_ARG_SRC && p_.src_engine ? p_.src_engine : p_.engine);
        mxdnn_memory_t m = nullptr;
        FUZZ_CHECK(mxdnn_memory_create(&m, &a.md, engine, a.data) == mxdnn_success);
        a.memory.reset(m);
    }

    void fill(argument_t &a) {
        for (size_t i = 0; i < a.size; i++)
            a.data[i] = uint8_t(i % 8 ? word_ >> (i % 8 * 8) : word_ = c_.bits());
        // Values of floating types that are not all nonsense.
        if (a.md.dt == mxdnn_f32 && c_.one_in(2))
            for (size_t i = 0; i + 4 <= a.size; i += 4) {
                const float x = float(int8_t(a.data[i])) / 16.f;
                std::memcpy(a.data + i, &x, 4);
            }
        const auto given = d_.indices.find(a.arg);
        if (given != d_.indices.end() && !given->second.empty())
            std::memcpy(
                    a.data, given->second.data(), std::min(a.size, given->second.size() * sizeof(int32_t)));
        if (a.arg == MXDNN_ARG_WEIGHTS_PTRS) fill_pointers(a);
    }

    // Packed matrices, each of its own; now and then one that is none.
    void fill_pointers(argument_t &a) {
        const size_t bytes = size_t(p_.weights.packed.stride);
        for (size_t i = 0; i + sizeof(uint64_t) <= a.size; i += sizeof(uint64_t)) {
            argument_t matrix;
            matrix.size = bytes;
            matrix.data = pages().place(bytes, true, 16);
            if (!matrix.data) return void(fits_ = false);
            fill(matrix);
            pages().make_read_only(matrix.data, bytes);
            uint64_t at = uint64_t(uintptr_t(matrix.data));
            if (c_.one_in(30)) at = c_.one_in(2) ? 0 : at + 8;
            std::memcpy(a.data + i, &at, sizeof(at));
        }
    }

    choices_t &c_;
    const drawn_t &d_;
    const problem_t &p_;
    const std::vector<arg_desc_t> &args_, &known_;
    std::vector<argument_t> list_;
    bool fits_ = true, by_table_ = false, overlapping_ = false;
    size_t twice_ = SIZE_MAX;
    uint64_t word_ = 0;
};

bool may_be_created(const mxdnn_primitive_desc &pd) {
    int64_t bytes = 0;
    FUZZ_CHECK(
            mxdnn_primitive_desc_query(&pd, mxdnn_query_memory_consumption_s64, 0, &bytes) == mxdnn_success);
    return bytes <= most_scratchpad;
}

void examine_descriptor(const mxdnn_primitive_desc &pd) {
    for (const arg_desc_t &a : pd.pd->args) {
        FUZZ_CHECK(!is_zero(a.md));
        FUZZ_CHECK(size_of(a.md, a.packing) >= 0 || size_of(a.md, a.packing) == runtime_dim);
        FUZZ_CHECK(mxdnn_primitive_desc_query_md(&pd, mxdnn_query_exec_arg_md, a.arg));
        char text[1024];
        size_t size = sizeof(text);
        FUZZ_CHECK(mxdnn_memory_desc_to_string(text, &size, &a.md) == mxdnn_success);
    }
    FUZZ_CHECK(!to_string(pd.pd->problem).empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices_t c(data, size);
    mxdnn_set_max_concurrency(c.one_in(8) ? 3 : 1);
    drawn_t d;
    counts.problems++;
    if (!draw_problem(c, d)) return 0;
    const problem_t asked = with_runtime_dims(c, d.p);
    const pd_ptr_t pd(create_descriptor(asked)), known(create_descriptor(d.p));
    if (!pd || !known) {
        counts.refused++;
        return 0;
    }
    mxdnn_stream_t stream = nullptr;
    const engine_t &engine = exec_engine(pd->pd->problem);
    FUZZ_CHECK(mxdnn_stream_create(&stream, const_cast<mxdnn_engine_t>(&engine), mxdnn_stream_default_flags)
               == mxdnn_success);
    do {
        examine_descriptor(*pd);
        mxdnn_primitive_t made = nullptr;
        if (!may_be_created(*pd)) continue;
        const mxdnn_status_t s = mxdnn_primitive_create(&made, pd.get());
        FUZZ_CHECK((s == mxdnn_success) == (made != nullptr));
        FUZZ_CHECK(made || mxdnn_get_last_error()[0]);
        if (!made) {
            // A target that is only described; all else is created.
            FUZZ_CHECK(s == mxdnn_device_unavailable || s == mxdnn_out_of_memory);
            continue;
        }
        const primitive_ptr_t primitive(made);
        counts.created++;
        if (!d.executes) continue;
        {
            execution_t x(c, d, *pd, *known);
            if (x.fits()) {
                const mxdnn_status_t done = x.execute(made, stream);
                FUZZ_CHECK(done == mxdnn_success || done == mxdnn_invalid_arguments
                           || done == mxdnn_out_of_memory);
                (done == mxdnn_success ? counts.executed : counts.refused_executions)++;
            }
        }
        pages().clear();
    } while (mxdnn_primitive_desc_next_impl(pd.get()) == mxdnn_success);
    mxdnn_stream_destroy(stream);
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    std::vector<fuzz_input_t> seeds;
    for (uint8_t kind = 0; kind < 18; kind++)
        for (uint8_t i = 0; i < 4; i++) seeds.push_back({1, kind, i, uint8_t(kind * 16 + i), 7, i});
    return seeds;
}

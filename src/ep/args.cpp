// SPDX-License-Identifier: Apache-2.0
#include "ep/args.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

// Rows of a memory that may be any number up to a bound.
struct rows_allowed_t {
    dim_t least, most;
};

struct arg_info_t {
    int id;
    const char *name;
    mxdnn_memory_t args_t::*member;
};

constexpr arg_info_t arg_list[] = {
        {MXDNN_ARG_SRC, "SRC", &args_t::src},
        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, "the scales of SRC", &args_t::src_scales},
        {MXDNN_ARG_DST, "DST", &args_t::dst},
        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, "the scales of DST", &args_t::dst_scales},
        {MXDNN_ARG_GROUP_COUNTS, "GROUP_COUNTS", &args_t::counts},
        {MXDNN_ARG_GATHER_IDX, "GATHER_IDX", &args_t::gather},
        {MXDNN_ARG_GROUP_OFFSETS, "GROUP_OFFSETS", &args_t::offsets},
};

// Which arguments a stage has.
bool takes(int index, int id) {
    const stage_t &stage = stages[index];
    switch (id) {
    case MXDNN_ARG_GROUP_COUNTS:
    case MXDNN_ARG_GATHER_IDX: return index == dispatch_forward;
    case MXDNN_ARG_GROUP_OFFSETS: return index == permute_forward;
    default: return stage.op != op_t::compute; // its callback gets the memories of the step
    }
}

mxdnn_engine_kind_t kind_of(mxdnn_engine_t engine) {
    mxdnn_engine_kind_t kind = mxdnn_any_engine;
    mxdnn_engine_get_kind(engine, &kind);
    return kind;
}

// CPU engines have the same memory, whatever their targets are.
bool is_there(mxdnn_engine_t a, mxdnn_engine_t b) {
    return a == b || (kind_of(a) == mxdnn_cpu && kind_of(b) == mxdnn_cpu);
}

// A contiguous tensor of `ndims` dims and the type, whose last dimension is `columns`. Writes its first
// dimension.
status_t check_memory(const plan_t &p, const char *name, mxdnn_memory_t m, int ndims, rows_allowed_t allowed,
        dim_t columns, mxdnn_data_type_t type, dim_t &rows) {
    const_mxdnn_memory_desc_t md = nullptr;
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_get_memory_desc(m, &md), name));
    int found_ndims = 0;
    mxdnn_data_type_t found_type = mxdnn_data_type_undef;
    mxdnn_format_kind_t kind = mxdnn_format_kind_undef;
    const mxdnn_dims_t *dims = nullptr, *strides = nullptr;
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_desc_query(md, mxdnn_query_format_kind, &kind), name));
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_desc_query(md, mxdnn_query_ndims_s32, &found_ndims), name));
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_desc_query(md, mxdnn_query_data_type, &found_type), name));
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_desc_query(md, mxdnn_query_dims, &dims), name));
    if (found_type != type)
        return fail(mxdnn_invalid_data_type, "%s has data type %d; data type %d is needed", name,
                int(found_type), int(type));
    if (kind != mxdnn_blocked && kind != mxdnn_format_kind_grouped)
        return fail(mxdnn_invalid_arguments, "%s is neither a plain nor a grouped tensor", name);
    if (found_ndims != ndims)
        return fail(mxdnn_invalid_shape, "%s has %d dimensions; %d are needed", name, found_ndims, ndims);
    rows = (*dims)[0];
    if (rows < allowed.least || rows > allowed.most)
        return fail(mxdnn_invalid_shape, "%s has %lld entries or rows; possible are %lld to %lld", name,
                static_cast<long long>(rows), static_cast<long long>(allowed.least),
                static_cast<long long>(allowed.most));
    if (ndims == 2 && (*dims)[1] != columns)
        return fail(mxdnn_invalid_shape, "%s has %lld columns; %lld are needed", name,
                static_cast<long long>((*dims)[1]), static_cast<long long>(columns));
    if (kind == mxdnn_blocked && rows > 0) { // the stride of a dimension of one has no meaning
        MXDNN_EP_CHECK(pass_on(mxdnn_memory_desc_query(md, mxdnn_query_strides, &strides), name));
        if (((*dims)[ndims - 1] > 1 && (*strides)[ndims - 1] != 1)
                || (ndims == 2 && rows > 1 && (*strides)[0] != columns))
            return fail(mxdnn_invalid_arguments,
                    "%s has strides; rows have to follow each other without gaps", name);
    }
    mxdnn_engine_t engine = nullptr;
    MXDNN_EP_CHECK(pass_on(mxdnn_memory_get_engine(m, &engine), name));
    if (!is_there(engine, p.engine))
        return fail(mxdnn_invalid_arguments, "%s is memory of another engine than that of the communicator",
                name);
    if (rows > 0 && !data_of(m)) return fail(mxdnn_invalid_arguments, "%s has no buffer", name);
    const uintptr_t bytes = type == mxdnn_s32 ? 4 : type == mxdnn_bf16 ? 2 : 1;
    if (rows > 0 && reinterpret_cast<uintptr_t>(data_of(m)) % bytes)
        return fail(mxdnn_invalid_arguments,
                "%s is at address %p, which is no multiple of the %d bytes of a value", name, data_of(m),
                int(bytes));
    return mxdnn_success;
}

// Rows of a stage with their scales, both or neither passed.
status_t check_rows(const plan_t &p, const char *name, mxdnn_memory_t rows_memory, mxdnn_memory_t scales,
        rows_allowed_t allowed, dim_t columns, const row_format_t &format, dim_t &rows) {
    if (!rows_memory)
        return scales ? fail(mxdnn_invalid_arguments, "the scales of %s are passed without it", name)
                      : mxdnn_success;
    MXDNN_EP_CHECK(check_memory(p, name, rows_memory, 2, allowed, columns, format.type, rows));
    if (format.quantised() != (scales != nullptr))
        return fail(mxdnn_invalid_arguments, "%s is %s; its scales have to be %s", name,
                format.quantised() ? "quantised" : "bf16",
                format.quantised() ? "passed with it" : "left out");
    if (!scales) return mxdnn_success;
    dim_t scale_rows = 0;
    return check_memory(
            p, "the tensor of scales", scales, 2, {rows, rows}, dim_t(format.scales), mxdnn_e8m0, scale_rows);
}

// Counts that are not negative and whose sum is the number of rows; indices of rows that there are. The
// transport checks those of a device.
status_t check_routing(const plan_t &p, args_t &a) {
    dim_t entries = 0;
    MXDNN_EP_CHECK(check_memory(
            p, "GROUP_COUNTS", a.counts, 1, {p.desc.experts, p.desc.experts}, 0, mxdnn_s32, entries));
    a.sent = a.src_rows;
    if (a.gather)
        MXDNN_EP_CHECK(
                check_memory(p, "GATHER_IDX", a.gather, 1, {0, p.desc.max_rows}, 0, mxdnn_s32, a.sent));
    if (a.sent > p.desc.max_rows)
        return fail(mxdnn_invalid_shape, "SRC has %lld rows, all of which are sent; max_rows is %lld",
                static_cast<long long>(a.sent), static_cast<long long>(p.desc.max_rows));
    if (kind_of(p.engine) != mxdnn_cpu) return mxdnn_success;
    const int32_t *counts = static_cast<const int32_t *>(data_of(a.counts));
    dim_t sum = 0;
    for (dim_t e = 0; e < p.desc.experts; e++) {
        if (counts[e] < 0)
            return fail(mxdnn_invalid_arguments, "GROUP_COUNTS[%lld] is %d; a count is 0 or more",
                    static_cast<long long>(e), counts[e]);
        sum += counts[e];
    }
    if (sum != a.sent)
        return fail(mxdnn_invalid_arguments,
                "the sum of GROUP_COUNTS is %lld; it has to be the %lld rows that are sent",
                static_cast<long long>(sum), static_cast<long long>(a.sent));
    if (!a.gather) return mxdnn_success;
    const int32_t *gather = static_cast<const int32_t *>(data_of(a.gather));
    for (dim_t r = 0; r < a.sent; r++)
        if (gather[r] < 0 || gather[r] >= a.src_rows)
            return fail(mxdnn_invalid_arguments, "GATHER_IDX[%lld] is %d; SRC has %lld rows",
                    static_cast<long long>(r), gather[r], static_cast<long long>(a.src_rows));
    return mxdnn_success;
}

rows_allowed_t rows_at(const plan_t &p, int index, place_t place, dim_t sent) {
    switch (place) {
    case place_t::caller:
        return index == dispatch_forward ? rows_allowed_t{0, p.desc.max_tokens} : rows_allowed_t{sent, sent};
    case place_t::arrived: return {p.desc.capacity, p.desc.capacity};
    default: return {p.padded_rows, p.padded_rows};
    }
}

} // namespace

void *data_of(mxdnn_memory_t memory) {
    void *data = nullptr;
    mxdnn_memory_get_data_handle(memory, &data);
    return data;
}

status_t check_stream(const engine &eng, mxdnn_stream_t stream, const char *what) {
    mxdnn_engine_t engine = nullptr;
    MXDNN_EP_CHECK(pass_on(mxdnn_stream_get_engine(stream, &engine), what));
    if (is_there(engine, eng.get())) return mxdnn_success;
    return fail(mxdnn_invalid_arguments, "%s: the stream is of another engine than that of the communicator",
            what);
}

status_t read_args(
        const plan_t &p, int index, dim_t sent, int nargs, const mxdnn_exec_arg_t *args, args_t &a) {
    const stage_t &stage = stages[index];
    a = {};
    if (nargs < 0 || (nargs > 0 && !args))
        return fail(mxdnn_invalid_arguments, "args is a null pointer, or nargs is negative");
    for (int i = 0; i < nargs; i++) {
        const arg_info_t *info = nullptr;
        for (const arg_info_t &known : arg_list)
            if (known.id == args[i].arg) info = &known;
        if (!info || !takes(index, args[i].arg))
            return fail(mxdnn_invalid_arguments, "argument %d is passed, which this stage does not have",
                    args[i].arg);
        if (!args[i].memory) return fail(mxdnn_invalid_arguments, "%s is a null pointer", info->name);
        if (a.*info->member) return fail(mxdnn_invalid_arguments, "%s is passed twice", info->name);
        a.*info->member = args[i].memory;
    }
    if (stage.from == place_t::caller && !a.src) return fail(mxdnn_invalid_arguments, "SRC is not passed");
    if (stage.to == place_t::caller && !a.dst) return fail(mxdnn_invalid_arguments, "DST is not passed");
    dim_t dst_rows = 0;
    MXDNN_EP_CHECK(check_rows(p, "SRC", a.src, a.src_scales, rows_at(p, index, stage.from, sent),
            p.desc.hidden, p.format(stage.from_format), a.src_rows));
    MXDNN_EP_CHECK(check_rows(p, "DST", a.dst, a.dst_scales, rows_at(p, index, stage.to, sent), p.desc.hidden,
            p.format(stage.to_format), dst_rows));
    if (a.offsets) {
        dim_t entries = 0;
        MXDNN_EP_CHECK(check_memory(
                p, "GROUP_OFFSETS", a.offsets, 1, {p.local_experts, p.local_experts}, 0, mxdnn_s32, entries));
    }
    if (index != dispatch_forward) return mxdnn_success;
    if (!a.counts) return fail(mxdnn_invalid_arguments, "GROUP_COUNTS are not passed");
    return check_routing(p, a);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Memory descriptors: every check of what a caller asks for, sizes, equality and words.
//
// Strides count elements, also where two elements share a byte. Rows start on a byte, so 4-bit types
// have stride 1 along one dimension and even strides along the others; 6-bit types take a byte each.
#include "common/memory_desc.hpp"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "common/error.hpp"
#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "common/packed_desc.hpp"

namespace mxdnn {
namespace impl {

namespace {

struct tag_t {
    mxdnn_format_tag_t tag;
    const char *name; // one letter per dimension, outermost first
};

constexpr tag_t tags[] = {{mxdnn_a, "a"}, {mxdnn_ab, "ab"}, {mxdnn_abc, "abc"}, {mxdnn_abcd, "abcd"},
        {mxdnn_ba, "ba"}, {mxdnn_acb, "acb"}, {mxdnn_abdc, "abdc"}};

// Dimensions from the outermost to the innermost.
struct order_t {
    int dim[max_ndims];
};

order_t row_major() {
    order_t o{};
    for (int i = 0; i < max_ndims; i++) o.dim[i] = i;
    return o;
}

order_t order_of(const tag_t &tag) {
    order_t o = row_major();
    for (int i = 0; tag.name[i]; i++) o.dim[i] = tag.name[i] - 'a';
    return o;
}

int ndims_of(const tag_t &tag) {
    int n = 0;
    while (tag.name[n]) n++;
    return n;
}

// A stable sort in place, for at most a dozen indices.
template <typename before_t>
void sort_dims(int *dim, int n, before_t before) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && before(dim[j], dim[j - 1]); j--) std::swap(dim[j], dim[j - 1]);
}

bool is_runtime(dim_t d) { return d == runtime_dim; }

int stored_bits(data_type_t dt, bool dense) {
    return storage_bits(
            data_type_info(dt)->bits, dense ? mxdnn_element_packing_dense : mxdnn_element_packing_bytes);
}

// The number of elements that fill whole bytes. Lengths of rows are rounded up to a multiple of it.
int row_granularity(data_type_t dt) { return stored_bits(dt, false) == 4 ? 2 : 1; }

// a * b as checked_mul does it; runtime_dim if one of them is.
dim_t mul_dims(dim_t a, dim_t b) { return is_runtime(a) || is_runtime(b) ? runtime_dim : checked_mul(a, b); }

status_t too_large(const char *what) {
    return fail(mxdnn_invalid_arguments,
            "memory descriptor: %s is beyond 2^50; check the dimensions and strides for a mistake", what);
}

status_t check_shape(int ndims, const dim_t *dims, data_type_t dt) {
    if (ndims < 1 || ndims > max_ndims)
        return fail(mxdnn_invalid_arguments,
                "memory descriptor: ndims is %d; a tensor has 1 to %d dimensions", ndims, max_ndims);
    if (!dims) return fail(mxdnn_invalid_arguments, "memory descriptor: dims is null");
    if (!data_type_info(dt))
        return fail(mxdnn_invalid_arguments,
                "memory descriptor: data type %d is none; give one of mxdnn_data_type_t other than undef",
                int(dt));
    int64_t elements = 1; // of a tensor in which empty and runtime dims count as 1
    for (int d = 0; d < ndims; d++) {
        if (is_runtime(dims[d])) continue;
        if (dims[d] < 0 || dims[d] > max_dim)
            return fail(mxdnn_invalid_arguments,
                    "memory descriptor: dims[%d] is %" PRId64
                    "; a dimension is 0 to 2^40 or MXDNN_RUNTIME_DIM_VAL",
                    d, int64_t(dims[d]));
        elements = checked_mul(elements, std::max<dim_t>(dims[d], 1));
        if (elements < 0) return too_large("the number of elements");
    }
    return mxdnn_success;
}

// The strides of a tensor without gaps, except that rows start on bytes. Empty dims count as 1. A stride that
// depends on a runtime dim is a runtime value. False if a stride is too large.
bool natural_strides(int ndims, const dim_t *dims, data_type_t dt, const order_t &order, dim_t *strides) {
    dim_t next = 1;
    for (int i = ndims - 1; i >= 0; i--) {
        const int d = order.dim[i];
        strides[d] = next;
        dim_t length = is_runtime(dims[d]) ? runtime_dim : std::max<dim_t>(dims[d], 1);
        if (i == ndims - 1 && !is_runtime(length)) length = round_up(length, row_granularity(dt));
        next = mul_dims(next, length);
        if (next == -1) return false;
    }
    return true;
}

// Bytes from the first element to the end of the last one; -1 if more than max_bytes.
int64_t strided_size(int ndims, const dim_t *dims, const dim_t *strides, data_type_t dt) {
    int64_t last = 0;
    for (int d = 0; d < ndims; d++)
        if (dims[d] == 0) return 0;
    for (int d = 0; d < ndims; d++) {
        if (is_runtime(dims[d]) || is_runtime(strides[d])) return runtime_dim;
        const int64_t step = checked_mul(dims[d] - 1, strides[d]);
        if (step < 0 || last > max_bytes - step) return -1;
        last += step;
    }
    const int64_t bytes = div_up((last + 1) * stored_bits(dt, false), 8);
    return bytes > max_bytes ? -1 : bytes;
}

// Elements that share bytes are neighbours along a dimension of stride 1. If there is no such dimension,
// there is one element.
status_t check_shared_bytes(int ndims, const dim_t *dims, const dim_t *strides, data_type_t dt) {
    int least = -1; // the dim with the smallest stride, among those with more than one element
    for (int d = 0; d < ndims; d++) {
        if (strides[d] == 1) return mxdnn_success;
        if (dims[d] != 1 && (least < 0 || strides[d] < strides[least])) least = d;
    }
    return least < 0 ? mxdnn_success
                     : fail(mxdnn_invalid_arguments,
                             "memory descriptor: the smallest stride of %s is %" PRId64
                             " (strides[%d]); two elements share a byte, so it must be 1",
                             data_type_name(dt), int64_t(strides[least]), least);
}

// Checks strides of a caller: legal values, rows that start on bytes, and no two elements in one place (a
// stride of 0 repeats a dimension on purpose). What depends on runtime values is checked when they are known.
status_t check_strides(int ndims, const dim_t *dims, const dim_t *strides, data_type_t dt) {
    for (int d = 0; d < ndims; d++)
        if (!is_runtime(strides[d]) && (strides[d] < 0 || strides[d] > max_bytes))
            return fail(mxdnn_invalid_arguments,
                    "memory descriptor: strides[%d] is %" PRId64
                    "; a stride is 0 to 2^50 elements or MXDNN_RUNTIME_DIM_VAL",
                    d, int64_t(strides[d]));
    for (int d = 0; d < ndims; d++)
        if (dims[d] == 0) return mxdnn_success;

    // Dimensions with more than one element and a stride other than 0, from the innermost on.
    int by_stride[max_ndims], n = 0;
    bool known = true;
    for (int d = 0; d < ndims; d++) {
        if (is_runtime(dims[d]) || is_runtime(strides[d])) known = false;
        if (dims[d] != 1 && strides[d] != 0 && !is_runtime(strides[d])) by_stride[n++] = d;
    }
    sort_dims(by_stride, n, [&](int a, int b) { return strides[a] < strides[b]; });

    if (row_granularity(dt) == 2) {
        if (known) MXDNN_CHECK(check_shared_bytes(ndims, dims, strides, dt));
        for (int i = 0; i < n; i++) {
            const int d = by_stride[i];
            if (strides[d] % 2 != 0 && (i > 0 || strides[d] != 1))
                return fail(mxdnn_invalid_arguments,
                        "memory descriptor: strides[%d] is %" PRId64
                        "; rows of %s start on a byte, so strides other than the innermost 1 are even",
                        d, int64_t(strides[d]), data_type_name(dt));
        }
    }
    if (!known) return mxdnn_success;
    int64_t smallest = 1; // the smallest stride that does not reach into inner dimensions
    for (int i = 0; i < n; i++) {
        const int d = by_stride[i];
        if (strides[d] < smallest)
            return fail(mxdnn_invalid_arguments,
                    "memory descriptor: strides[%d] is %" PRId64
                    ", so elements overlap; with the dimensions inside it, it must be at least %" PRId64,
                    d, int64_t(strides[d]), smallest);
        smallest = checked_mul(strides[d], dims[d]);
        if (smallest < 0) return too_large("the size");
    }
    return mxdnn_success;
}

void set_shape(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, mxdnn_format_kind_t kind) {
    md = memory_desc_t();
    md.ndims = ndims;
    std::copy(dims, dims + ndims, md.dims);
    md.dt = dt;
    md.kind = kind;
}

status_t init_natural(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const order_t &order) {
    mxdnn_dims_t strides = {};
    if (!natural_strides(ndims, dims, dt, order, strides) || strided_size(ndims, dims, strides, dt) == -1)
        return too_large("the size");
    set_shape(md, ndims, dims, dt, mxdnn_blocked);
    std::copy(strides, strides + ndims, md.strides);
    return mxdnn_success;
}

std::string dims_to_string(int ndims, const dim_t *dims) {
    std::string s;
    for (int d = 0; d < ndims; d++) {
        if (d) s += 'x';
        s += is_runtime(dims[d]) ? "*" : std::to_string(dims[d]);
    }
    return s;
}

bool has_natural_strides(const memory_desc_t &md, const order_t &order) {
    mxdnn_dims_t strides;
    return natural_strides(md.ndims, md.dims, md.dt, order, strides)
           && std::equal(strides, strides + md.ndims, md.strides);
}

// "ab"; with strides that do not follow from the tag "ab:48x1".
std::string strides_to_string(const memory_desc_t &md) {
    for (const tag_t &tag : tags)
        if (ndims_of(tag) == md.ndims && has_natural_strides(md, order_of(tag))) return tag.name;
    order_t order = row_major();
    sort_dims(order.dim, md.ndims, [&](int a, int b) {
        if (is_runtime(md.strides[a]) || is_runtime(md.strides[b]))
            return is_runtime(md.strides[a]) && !is_runtime(md.strides[b]);
        return md.strides[a] > md.strides[b];
    });
    std::string s;
    for (int d = 0; d < md.ndims; d++) s += char('a' + order.dim[d]);
    if (!has_natural_strides(md, order)) s += ":" + dims_to_string(md.ndims, md.strides);
    return s;
}

} // namespace

bool has_runtime_dims(const memory_desc_t &md) {
    for (int d = 0; d < md.ndims; d++)
        if (is_runtime(md.dims[d]) || (is_strided(md) && is_runtime(md.strides[d]))) return true;
    return false;
}

dim_t batch_of(const memory_desc_t &md) {
    dim_t batch = 1;
    for (int d = 0; d < md.ndims - 2; d++) batch = mul_dims(batch, md.dims[d]);
    return batch;
}

void batch_index(const memory_desc_t &md, dim_t entry, dim_t *idx) {
    for (int d = md.ndims - 3; d >= 0; d--) {
        idx[d] = entry % md.dims[d];
        entry /= md.dims[d];
    }
}

status_t init_strided(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const dim_t *strides) {
    MXDNN_CHECK(check_shape(ndims, dims, dt));
    if (!strides) return init_natural(md, ndims, dims, dt, row_major());
    MXDNN_CHECK(check_strides(ndims, dims, strides, dt));
    if (strided_size(ndims, dims, strides, dt) == -1) return too_large("the size");
    set_shape(md, ndims, dims, dt, mxdnn_blocked);
    std::copy(strides, strides + ndims, md.strides);
    return mxdnn_success;
}

status_t init_with_tag(
        memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, mxdnn_format_tag_t tag) {
    MXDNN_CHECK(check_shape(ndims, dims, dt));
    if (tag == mxdnn_format_tag_any) {
        set_shape(md, ndims, dims, dt, mxdnn_format_kind_any);
        return mxdnn_success;
    }
    for (const tag_t &t : tags) {
        if (t.tag != tag) continue;
        if (ndims_of(t) != ndims)
            return fail(mxdnn_invalid_arguments,
                    "memory descriptor: tag %s is for %d dimensions, and there are %d", t.name, ndims_of(t),
                    ndims);
        return init_natural(md, ndims, dims, dt, order_of(t));
    }
    return fail(mxdnn_invalid_arguments,
            "memory descriptor: format tag %d is none; give any, a, ab, abc, abcd, ba, acb or abdc, or strides",
            int(tag));
}

status_t init_grouped(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, int variable_dim,
        dim_t group_count, data_type_t offsets_dt) {
    MXDNN_CHECK(check_shape(ndims, dims, dt));
    if (ndims != 2)
        return fail(mxdnn_invalid_arguments,
                "grouped memory descriptor: ndims is %d; rows and columns make 2", ndims);
    if (variable_dim == 1)
        return fail(mxdnn_unimplemented, "grouped memory descriptor: variable_dim 1 is reserved; groups vary "
                                         "in their rows, dimension 0");
    if (variable_dim != 0)
        return fail(mxdnn_invalid_arguments,
                "grouped memory descriptor: variable_dim is %d; it must be 0, the rows", variable_dim);
    if (group_count < 1 || group_count > INT32_MAX)
        return fail(mxdnn_invalid_arguments,
                "grouped memory descriptor: group_count is %" PRId64 "; it must be 1 to %" PRId32,
                int64_t(group_count), INT32_MAX);
    if (offsets_dt != mxdnn_s32)
        return fail(mxdnn_invalid_arguments,
                "grouped memory descriptor: offsets have type %s; they must have type s32",
                data_type_name(offsets_dt));
    if (!is_runtime(dims[0]) && dims[0] > INT32_MAX)
        return fail(mxdnn_invalid_arguments,
                "grouped memory descriptor: dims[0] is %" PRId64 "; offsets of type s32 reach %" PRId32
                " rows",
                int64_t(dims[0]), INT32_MAX);
    if (plain_size(ndims, dims, dt, false) == -1) return too_large("the size");
    set_shape(md, ndims, dims, dt, mxdnn_format_kind_grouped);
    natural_strides(ndims, dims, dt, row_major(), md.strides);
    md.grouped = {variable_dim, group_count, offsets_dt};
    return mxdnn_success;
}

status_t init_packed(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const quant_t &quant,
        target_family_t family) {
    MXDNN_CHECK(check_shape(ndims, dims, dt));
    if (const char *wrong = check_quant(dt, quant))
        return fail(mxdnn_invalid_arguments, "packed memory descriptor: %s", wrong);
    const data_type_info_t &info = *data_type_info(dt);
    const layout_t *layout = preferred_layout(family, info.bits, !info.is_float);
    if (!layout)
        return fail(mxdnn_unimplemented, "packed memory descriptor: target %s has no layout for %s",
                target_family_name(family), data_type_name(dt));
    return init_packed_as(md, ndims, dims, dt, quant, *layout);
}

status_t init_packed_as(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const quant_t &quant,
        const layout_t &layout) {
    MXDNN_CHECK(check_shape(ndims, dims, dt));
    if (ndims < 2)
        return fail(mxdnn_invalid_arguments,
                "packed memory descriptor: ndims is %d; weights are [..., K, N], 2 to %d dimensions", ndims,
                max_ndims);
    for (int d = 0; d < ndims; d++)
        if (is_runtime(dims[d]))
            return fail(mxdnn_invalid_arguments,
                    "packed memory descriptor: dims[%d] is a runtime value; the dimensions of packed weights "
                    "must be known",
                    d);
    if (const char *wrong = check_quant(dt, quant))
        return fail(mxdnn_invalid_arguments, "packed memory descriptor: %s", wrong);
    const int bits = data_type_info(dt)->bits;
    if (!layout.holds(bits, !data_type_info(dt)->is_float))
        return fail(mxdnn_invalid_arguments,
                "packed memory descriptor: %s has %d bits, and layout %s holds %s of %d", data_type_name(dt),
                bits, layout.name,
                layout.codes == layout_codes_t::integers ? "integers"
                : layout.codes == layout_codes_t::floats ? "floats"
                                                         : "codes",
                layout.bits);

    const packed_shape_t shape = make_packed_shape(dims[ndims - 2], dims[ndims - 1], bits, quant);
    // At most 2^50 elements, so that the arithmetic of layouts cannot overflow int64.
    const int64_t stride = round_up(layout.matrix_bytes(shape), layout.align);
    int64_t size = stride;
    for (int d = 0; d < ndims - 2; d++) size = checked_mul(size, dims[d]);
    if (stride > max_bytes || size < 0 || size > max_bytes) return too_large("the packed size");

    set_shape(md, ndims, dims, dt, mxdnn_format_kind_opaque);
    md.packed.family = layout.family;
    md.packed.layout_id = layout.id;
    md.packed.layout_version = layout.version;
    md.packed.quant = quant;
    md.packed.size = size;
    md.packed.stride = stride;
    md.packed.align = layout.align;
    return mxdnn_success;
}

packed_shape_t shape_of(const memory_desc_t &md) {
    return make_packed_shape(
            dim_from_end(md, 2), dim_from_end(md, 1), data_type_info(md.dt)->bits, md.packed.quant);
}

const layout_t *layout_of(const memory_desc_t &md) {
    const layout_t *layout = find_layout(md.packed.family, md.packed.layout_id);
    return layout && layout->version == md.packed.layout_version ? layout : nullptr;
}

namespace {

// For codes that are stored more densely than the strides say. Dims are known and not empty.
int64_t dense_size(const memory_desc_t &md, int bits) {
    const int inner = inner_dim(md);
    int64_t bytes = div_up(((md.dims[inner] - 1) * md.strides[inner] + 1) * bits, 8);
    for (int d = 0; d < md.ndims; d++)
        if (d != inner && md.dims[d] > 1) bytes += (md.dims[d] - 1) * stride_bytes(md, d, bits);
    return bytes;
}

} // namespace

int64_t size_of(const memory_desc_t &md, mxdnn_element_packing_t packing) {
    switch (md.kind) {
    case mxdnn_blocked: {
        const int64_t bytes = strided_size(md.ndims, md.dims, md.strides, md.dt);
        const int bits = storage_bits(data_type_info(md.dt)->bits, packing);
        return bytes <= 0 || bits == stored_bits(md.dt, false) ? bytes : dense_size(md, bits);
    }
    case mxdnn_format_kind_opaque: return md.packed.size;
    case mxdnn_format_kind_grouped:
        return plain_size(md.ndims, md.dims, md.dt, packing == mxdnn_element_packing_dense);
    default: return 0;
    }
}

int64_t plain_size(int ndims, const dim_t *dims, data_type_t dt, bool dense) {
    if (ndims < 1 || !data_type_info(dt)) return 0;
    bool runtime = false;
    for (int d = 0; d < ndims; d++) {
        if (dims[d] == 0) return 0;
        runtime = runtime || is_runtime(dims[d]);
    }
    if (runtime) return runtime_dim;
    const dim_t columns = dims[ndims - 1];
    if (columns > max_bytes / 8) return -1;
    int64_t bytes = div_up(columns * stored_bits(dt, dense), 8);
    for (int d = 0; d < ndims - 1; d++) bytes = checked_mul(bytes, dims[d]);
    return bytes;
}

int inner_dim(const memory_desc_t &md) {
    // If several dims have stride 1, all but one of them have one element.
    int inner = -1;
    for (int i = md.ndims - 1; i >= 0; i--)
        if (md.strides[i] == 1 && (inner < 0 || md.dims[inner] <= 1)) inner = i;
    return inner < 0 ? md.ndims - 1 : inner;
}

int64_t stride_bytes(const memory_desc_t &md, int dim, int bits) {
    const int64_t stride = md.strides[dim];
    if (bits % 8 == 0) return stride * (bits / 8);
    const int inner = inner_dim(md);
    int64_t row = 0;
    for (int i = 0; i < md.ndims; i++)
        if (i != inner && md.dims[i] > 1 && md.strides[i] > 0 && (row == 0 || md.strides[i] < row))
            row = md.strides[i];
    if (row == 0) return div_up(stride * bits, 8);
    return stride / row * div_up(row * bits, 8) + div_up(stride % row * bits, 8);
}

status_t check_stored_dense(const char *name, const memory_desc_t &md) {
    if (!is_strided(md)) return mxdnn_success;
    for (int d = 0; d < md.ndims; d++)
        if (md.dims[d] == 0 || is_runtime(md.dims[d]) || is_runtime(md.strides[d])) return mxdnn_success;
    const int inner = inner_dim(md);
    if (md.dims[inner] == 1 || md.strides[inner] == 1) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "%s is %s, and its codes are dense; they stand side by side along a dim of stride 1, and none has",
            name, to_string(md).c_str());
}

status_t check_written(const char *name, const memory_desc_t &md) {
    if (!is_strided(md)) return mxdnn_success;
    for (int d = 0; d < md.ndims; d++)
        if (md.dims[d] > 1 && md.strides[d] == 0)
            return fail(mxdnn_invalid_arguments,
                    "%s is written, but strides[%d] is 0 and dims[%d] is %" PRId64
                    ": each element needs a place of its own",
                    name, d, d, int64_t(md.dims[d]));
    return mxdnn_success;
}

bool equal(const memory_desc_t &a, const memory_desc_t &b) {
    if (a.ndims != b.ndims || a.dt != b.dt || a.kind != b.kind
            || !std::equal(a.dims, a.dims + a.ndims, b.dims))
        return false;
    switch (a.kind) {
    case mxdnn_blocked: return std::equal(a.strides, a.strides + a.ndims, b.strides);
    case mxdnn_format_kind_grouped:
        return a.grouped.variable_dim == b.grouped.variable_dim
               && a.grouped.group_count == b.grouped.group_count
               && a.grouped.offsets_dt == b.grouped.offsets_dt;
    case mxdnn_format_kind_opaque: // sizes follow from the other members
        return a.packed.family == b.packed.family && a.packed.layout_id == b.packed.layout_id
               && a.packed.layout_version == b.packed.layout_version && a.packed.quant == b.packed.quant;
    default: return true;
    }
}

namespace {
const char *zero_point_word(zero_point_kind_t zp) {
    switch (zp) {
    case zero_point_kind_t::float_zero: return ":float_zero:";
    case zero_point_kind_t::minimum: return ":minimum:";
    default: return ":zp:";
    }
}
} // namespace

std::string to_string(const memory_desc_t &md) {
    if (is_zero(md)) return "undef";
    std::string s = data_type_name(md.dt);
    switch (md.kind) {
    case mxdnn_format_kind_any: s += ":any"; break;
    case mxdnn_blocked: s += ":blocked:" + strides_to_string(md); break;
    case mxdnn_format_kind_grouped:
        s += ":grouped:" + std::to_string(md.grouped.group_count) + ":"
             + data_type_name(md.grouped.offsets_dt);
        break;
    case mxdnn_format_kind_opaque: {
        const packed_desc_t &p = md.packed;
        const layout_t *layout = find_layout(p.family, p.layout_id);
        s += std::string(":packed:") + target_family_name(p.family) + ":";
        s += layout ? layout->name : "layout" + std::to_string(p.layout_id);
        s += "v" + std::to_string(p.layout_version) + ":" + data_type_name(p.quant.scale_dt) + ":"
             + std::to_string(p.quant.block) + "x1";
        if (p.quant.zp != zero_point_kind_t::none) {
            s += zero_point_word(p.quant.zp);
            s += data_type_name(p.quant.zp_dt);
        }
        if (p.quant.global != global_scale_kind_t::none)
            s += p.quant.global == global_scale_kind_t::one ? ":global:one" : ":global:per_expert";
        break;
    }
    default: s += ":undef"; break;
    }
    return s + ":" + dims_to_string(md.ndims, md.dims);
}

const char *target_family_name(target_family_t f) {
    switch (f) {
    case target_family_t::cpu_x64: return "cpu:x64";
    case target_family_t::cuda: return "cuda";
    case target_family_t::none: break;
    }
    return "none";
}

} // namespace impl
} // namespace mxdnn

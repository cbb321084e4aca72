// SPDX-License-Identifier: Apache-2.0
#include "common/packed_weights.hpp"

#include "common/error.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

status_t check_dims(const char *name, const memory_desc_t &md) {
    if (md.ndims >= 2 && !has_runtime_dims(md)) return mxdnn_success;
    return fail(mxdnn_invalid_shape,
            "%s is `any` and %s; packed weights are [.., K, N], two dims or more, all of them known", name,
            dims_text(md).c_str());
}

} // namespace

status_t resolve_any(const char *name, memory_desc_t &md, const arg_attr_t &a, const engine_t &engine) {
    if (!is_quantised_type(md.dt))
        return fail(mxdnn_invalid_arguments,
                "%s is `any` and %s; only quantised types have a packed layout, so give it a tag", name,
                data_type_name(md.dt));
    MXDNN_CHECK(check_dims(name, md));
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of(name, md, a, q, &axis));
    MXDNN_CHECK(check_block_scales(name, md.dt, q));
    if (axis != 2)
        return fail(mxdnn_invalid_arguments,
                "the blocks of %s run along N (groups %lldx%lld); packed weights have them along K (%lldx1)",
                name, (long long)a.scales.groups[0], (long long)a.scales.groups[1], (long long)q.block);
    memory_desc_t packed;
    MXDNN_CHECK(init_packed(packed, md.ndims, md.dims, md.dt, q, engine.target->family));
    packed.annotation = md.annotation;
    md = packed;
    return mxdnn_success;
}

status_t init_packed_weights(memory_desc_t &md, const engine_t &engine, int ndims, const dim_t *dims,
        data_type_t dt, const attr_t &attr) {
    problem_t p;
    p.kind = mxdnn_primitive_kind_mx_matmul;
    p.engine = &engine;
    p.attr = attr;
    MXDNN_CHECK(init_with_tag(p.weights, ndims, dims, dt, mxdnn_format_tag_any));
    MXDNN_CHECK(check_dims("weights", p.weights));
    MXDNN_CHECK(resolve_weights(p));
    md = p.weights;
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn

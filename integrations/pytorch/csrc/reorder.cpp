// SPDX-License-Identifier: Apache-2.0
#include "reorder.hpp"

#include "call.hpp"

namespace mxdnn_torch {

mxdnn::engine reorder_engine(const packed_desc_t &desc, const place_t &place) {
    if (!place.is_cuda) return host_engine_of(desc.family);
    expect_packed_for(place, desc);
    return engine_of(place);
}

mxdnn::memory::desc plain_desc(const dims_t &dims, dt type) {
    using tag = mxdnn::memory::format_tag;
    return {dims, type, dims.size() == 2 ? tag::ba : dims.size() == 3 ? tag::acb : tag::abdc};
}

void run_reorder(const mxdnn::mx_reorder::primitive_desc &pd, const mxdnn::engine &engine,
        const place_t &place, const arguments_t &arguments) {
    std::vector<call_t::argument_t> described;
    pointers_t pointers;
    for (const auto &a : arguments) {
        described.push_back({a.first, a.second.first});
        pointers.push_back(a.second.second);
    }
    call_t(pd, described, engine).run(stream_of(engine, place), place, pointers.values, pointers.n);
}

void expect_weights(const view_t &view, const char *name, const dims_t &shape) {
    expect_dims(view, name, shape);
    expect_contiguous(view, name);
}

dims_t scale_dims(const packed_desc_t &desc) {
    dims_t dims = desc.dims;
    int64_t &K = dims[dims.size() - 2];
    K = (K + desc.block - 1) / desc.block;
    return dims;
}

} // namespace mxdnn_torch

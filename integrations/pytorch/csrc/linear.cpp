// SPDX-License-Identifier: Apache-2.0
// linear: activation(x [.., K] * weights [N, K]^T + bias [N]), in the type of x.
#include "blob_cache.hpp"
#include "call.hpp"
#include "formats.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

namespace {

// Rows [M, K] of x [.., K]. Two dimensions may have any strides; of more, rows stand at equal distances.
dims_t row_strides(const view_t &x) {
    const size_t n = x.dims.size();
    if (n == 2) return x.strides;
    return {x.dims[n - 1], 1};
}

call_t make_call(const packed_desc_t &weights, const view_t &x, const view_t *bias,
        const std::string &activation, int64_t M, int64_t columns, const mxdnn::engine &engine) {
    const dt type = high_precision(x, "x");
    const mxdnn::memory::desc src({M, weights.K()}, type, row_strides(x));
    const mxdnn::memory::desc dst({M, columns}, type, tag::ab);
    const mxdnn::memory::desc bias_desc =
            bias ? mxdnn::memory::desc({1, weights.N()}, high_precision(*bias, "bias"), tag::ab)
                 : mxdnn::memory::desc();
    mxdnn::primitive_attr attr = attributes_for(x.place);
    mxdnn::post_ops ops;
    append_activation(ops, activation);
    attr.set_post_ops(ops);
    const thread_count_scope_t threads(torch_threads());
    const mxdnn::mx_matmul::primitive_desc pd(engine, src, weights.desc, bias_desc, dst, attr);
    std::vector<call_t::argument_t> arguments = {
            {MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, weights.desc}, {MXDNN_ARG_DST, dst}};
    if (bias) arguments.push_back({MXDNN_ARG_BIAS, bias_desc});
    return call_t(pd, arguments, engine);
}

} // namespace

Tensor linear(const Tensor &x, const Tensor &packed, std::string blob, std::optional<Tensor> bias,
        std::string activation) {
    const auto weights = parse_blob(blob);
    if (weights->dims.size() != 2)
        refuse("the weights are " + to_string(weights->weight_shape())
                + "; linear takes [N, K], grouped_linear takes experts");
    view_t rows = view_of(x, "x");
    if (rows.dims.empty() || rows.dims.back() != weights->K())
        refuse("x has shape " + rows.shape() + "; its last dimension must be " + std::to_string(weights->K())
                + ", the K of the weights");
    const Tensor x_rows = rows.dims.size() == 2 ? x : make_contiguous(x);
    if (rows.dims.size() != 2) rows = view_of(x_rows, "x");
    const view_t bytes = view_of(packed, "packed");
    expect_packed(bytes, *weights);
    expect_place(bytes, "packed", rows.place);
    view_t addend;
    if (bias) {
        addend = view_of(*bias, "bias");
        expect_dims(addend, "bias", {weights->N()});
        expect_place(addend, "bias", rows.place);
        expect_contiguous(addend, "bias");
    }

    const int64_t columns = is_gated(activation) ? weights->N() / 2 : weights->N();
    int64_t M = 1;
    for (size_t i = 0; i + 1 < rows.dims.size(); i++) M *= rows.dims[i];
    dims_t shape(rows.dims.begin(), rows.dims.end() - 1);
    shape.push_back(columns);
    const Tensor y = make_tensor(shape, rows.type, rows.place);
    if (M == 0 || columns == 0) return y;

    const mxdnn::engine engine = engine_of(rows.place);
    key_t key("linear");
    key.add(rows).add(static_cast<int64_t>(weights->id)).add(torch_threads()).add_text(activation);
    if (bias) key.add(addend);
    call_t &call = find_call(key, [&] {
        return make_call(*weights, rows, bias ? &addend : nullptr, activation, M, columns, engine);
    });
    void *const pointers[] = {rows.data, bytes.data, y.data_ptr(), addend.data};
    call.run(stream_of(engine, rows.place), rows.place, pointers, bias ? 4 : 3);
    return y;
}

} // namespace mxdnn_torch

// SPDX-License-Identifier: Apache-2.0
// linear: activation(x [.., K] * weights [N, K]^T + bias [N]), in the type of x.
#include "blob_cache.hpp"
#include "call.hpp"
#include "formats.hpp"
#include "operators.hpp"
#include "source.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

namespace {

// Whether a matrix has its rows, or its columns, one after the other without overlap; a repeated one counts.
bool has_separate_rows(const view_t &x) {
    const int64_t rows = x.dims[0], columns = x.dims[1], down = x.strides[0], along = x.strides[1];
    return down == 0 || along == 0 || rows <= 1 || columns <= 1 || down > along * (columns - 1)
           || along > down * (rows - 1);
}

} // namespace

Tensor linear_of_handles(AtenTensorHandle x, AtenTensorHandle packed, const std::string &blob,
        AtenTensorHandle bias, const std::string &activation) {
    const auto weights = parse_blob(blob);
    if (weights->dims.size() != 2)
        refuse("the weights are " + to_string(weights->weight_shape())
                + "; linear takes [N, K], grouped_linear takes experts");
    const int64_t K = weights->K(), N = weights->N();
    view_t rows = view_of(x, "x");
    if (rows.dims.empty() || rows.dims.back() != K)
        refuse("x has shape " + rows.shape() + "; its last dimension must be " + std::to_string(K)
                + ", the K of the weights");
    high_precision(rows, "x");
    const view_t bytes = view_of(packed, "packed");
    expect_packed(bytes, *weights);
    expect_place(bytes, "packed", rows.place);
    expect_packed_for(rows.place, *weights);
    view_t addend;
    if (bias) {
        addend = view_of(bias, "bias");
        high_precision(addend, "bias");
        expect_dims(addend, "bias", {N});
        expect_place(addend, "bias", rows.place);
        expect_contiguous(addend, "bias");
    }

    const int64_t columns = is_gated(activation) ? N / 2 : N;
    extents_t shape = rows.dims;
    shape.values[shape.n - 1] = columns;
    const Tensor y = make_tensor(shape, rows.type, rows.place);
    // Rows [M, K]: of two dimensions with the strides that they have, of others one after the other.
    std::optional<Tensor> copy;
    const bool is_matrix = rows.dims.size() == 2;
    if (is_matrix ? !has_separate_rows(rows) : !rows.is_contiguous()) {
        AtenTensorHandle same = nullptr;
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(x, &same));
        copy = make_contiguous(Tensor(same));
        rows = view_of(*copy, "x");
    }
    if (!is_matrix) {
        int64_t all = 1;
        for (size_t i = 0; i + 1 < rows.dims.size(); i++) all *= rows.dims[i];
        rows.dims = {all, K};
        rows.strides = {K, 1};
    }
    const int64_t M = rows.dims[0];
    if (M == 0 || columns == 0) return y;

    const mxdnn::engine &engine = engine_of(rows.place);
    const source_t source(rows, weights->recipe, engine);
    const int threads = torch_threads();
    key_t key("linear");
    key.add(rows).add(static_cast<int64_t>(weights->id)).add(threads).add_text(activation);
    if (bias) key.add(static_cast<int64_t>(addend.type));
    call_t &call = find_call(key, [&] {
        const int64_t any = rows_of_problem(M, rows.place);
        const dt type = high_precision(rows, "x");
        const mxdnn::memory::desc bias_desc =
                bias ? mxdnn::memory::desc({1, N}, high_precision(addend, "bias"), tag::ab)
                     : mxdnn::memory::desc();
        mxdnn::primitive_attr attr = attributes_for(rows.place);
        source.set_attributes(attr);
        mxdnn::post_ops ops;
        append_activation(ops, activation);
        attr.set_post_ops(ops);
        const thread_count_scope_t scope(threads);
        const mxdnn::mx_matmul::primitive_desc pd(engine, source.desc(any), weights->desc, bias_desc,
                mxdnn::memory::desc({any, columns}, type, tag::ab), attr);
        std::vector<call_t::argument_t> arguments;
        source.append_arguments(arguments);
        arguments.push_back({MXDNN_ARG_WEIGHTS, weights->desc});
        arguments.push_back({MXDNN_ARG_DST, mxdnn::memory::desc({M, columns}, type, tag::ab)});
        if (bias) arguments.push_back({MXDNN_ARG_BIAS, bias_desc});
        return call_t(pd, arguments, engine);
    });
    pointers_t pointers;
    source.append_pointers(pointers);
    pointers.push_back(bytes.data);
    pointers.push_back(y.data_ptr());
    if (bias) pointers.push_back(addend.data);
    call.run(stream_of(engine, rows.place), rows.place, pointers.values, pointers.n);
    return y;
}

Tensor linear(const Tensor &x, const Tensor &packed, const std::string &blob,
        const std::optional<Tensor> &bias, const std::string &activation) {
    return linear_of_handles(x.get(), packed.get(), blob, bias ? bias->get() : nullptr, activation);
}

} // namespace mxdnn_torch

// SPDX-License-Identifier: Apache-2.0
// grouped_linear: rows of x times the weights [E, N, K] of their experts. Rows of expert e end at
// group_ends[e].
#include <cstring>

#include "blob_cache.hpp"
#include "call.hpp"
#include "formats.hpp"
#include "operators.hpp"
#include "source.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

namespace {

constexpr int64_t most_rows = (int64_t(1) << 31) - 1;

// An index tensor of s32 with one number for each of `n` rows or experts.
view_t index_view(const Tensor &tensor, const char *name, int64_t n, const place_t &place) {
    const view_t view = view_of(tensor, name);
    expect_type(view, name, ScalarType::Int);
    expect_dims(view, name, {n});
    expect_place(view, name, place);
    expect_contiguous(view, name);
    return view;
}

// Rows after the last group belong to no expert and are not written by the primitive.
void clear_rows_without_expert(const Tensor &y, const view_t &ends) {
    const view_t rows = view_of(y, "the result");
    if (rows.place.is_cuda) { // the ends are on the device, where nobody waits for them
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));
        return;
    }
    const int64_t groups = ends.dims[0];
    const int64_t end = groups == 0 ? 0 : static_cast<const int32_t *>(ends.data)[groups - 1];
    const int64_t row = rows.dims[1] * static_cast<int64_t>(y.element_size());
    if (end >= 0 && end < rows.dims[0])
        std::memset(static_cast<char *>(rows.data) + end * row, 0,
                static_cast<size_t>((rows.dims[0] - end) * row));
}

// `clears`: there may be rows that no expert has.
Tensor multiply(const Tensor &x, const Tensor &packed, const std::string &blob, const Tensor &group_ends,
        const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx, const std::optional<Tensor> &scatter_idx,
        const std::optional<Tensor> &topk_weights, std::optional<int64_t> dst_rows, bool clears) {
    const auto weights = parse_blob(blob);
    if (weights->dims.size() != 3)
        refuse("the weights are " + to_string(weights->weight_shape()) + "; grouped_linear takes [E, N, K]");
    const int64_t E = weights->dims[0], K = weights->K(), N = weights->N();
    const view_t rows = view_of(x, "x");
    if (rows.dims.size() != 2 || rows.dims[1] != K)
        refuse("x has shape " + rows.shape() + "; it must have [rows, " + std::to_string(K)
                + "], with the K of the weights");
    high_precision(rows, "x");
    const view_t bytes = view_of(packed, "packed");
    expect_packed(bytes, *weights);
    expect_place(bytes, "packed", rows.place);
    expect_packed_for(rows.place, *weights);
    const view_t ends = index_view(group_ends, "group_ends", E, rows.place);

    // R rows are multiplied: those of x, or as many as are gathered from it.
    int64_t R = rows.dims[0];
    view_t gather, scatter, factors, addend;
    if (gather_idx) {
        gather = view_of(*gather_idx, "gather_idx");
        R = gather.numel();
        gather = index_view(*gather_idx, "gather_idx", R, rows.place);
    }
    if (R > most_rows) refuse("there are " + std::to_string(R) + " rows; at most 2147483647 are possible");
    if (scatter_idx) scatter = index_view(*scatter_idx, "scatter_idx", R, rows.place);
    if (scatter_idx.has_value() != dst_rows.has_value())
        refuse("scatter_idx and dst_rows belong together: pass both or none");
    if (topk_weights) {
        factors = view_of(*topk_weights, "topk_weights");
        if (factors.type != ScalarType::BFloat16) expect_type(factors, "topk_weights", ScalarType::Float);
        expect_dims(factors, "topk_weights", {R});
        expect_place(factors, "topk_weights", rows.place);
        expect_contiguous(factors, "topk_weights");
    }
    if (bias) {
        addend = view_of(*bias, "bias");
        high_precision(addend, "bias");
        expect_dims(addend, "bias", {E, N});
        expect_place(addend, "bias", rows.place);
        expect_contiguous(addend, "bias");
    }

    const int64_t columns = is_gated(activation) ? N / 2 : N, D = dst_rows.value_or(R);
    if (D < 0) refuse("dst_rows is " + std::to_string(D) + "; it must not be negative");
    const Tensor y = make_tensor({D, columns}, rows.type, rows.place);
    if (D == 0 || columns == 0) return y;
    if (!scatter_idx && clears) clear_rows_without_expert(y, ends);
    if (R == 0 || E == 0) { // nothing is multiplied
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));
        return y;
    }

    const mxdnn::engine &engine = engine_of(rows.place);
    const source_t source(rows, weights->recipe, engine);
    key_t key("grouped_linear");
    key.add(rows)
            .add(R)
            .add(D)
            .add(static_cast<int64_t>(weights->id))
            .add(torch_threads())
            .add_text(activation);
    key.add(gather_idx.has_value()).add(scatter_idx.has_value());
    key.add(topk_weights ? static_cast<int64_t>(factors.type) : -1)
            .add(bias ? static_cast<int64_t>(addend.type) : -1);
    call_t &call = find_call(key, [&] {
        const dt type = high_precision(rows, "x");
        const mxdnn::memory::desc bias_desc =
                bias ? mxdnn::memory::desc({E, N}, high_precision(addend, "bias"), tag::ab)
                     : mxdnn::memory::desc();
        mxdnn::primitive_attr attr = attributes_for(rows.place);
        source.set_attributes(attr);
        mxdnn::post_ops ops;
        append_activation(ops, activation);
        attr.set_post_ops(ops);
        const thread_count_scope_t threads(torch_threads());
        const int64_t M = rows.dims[0];
        const mxdnn::grouped_matmul::primitive_desc pd(engine, source.desc(rows_of_problem(M, rows.place)),
                weights->desc, bias_desc,
                mxdnn::memory::desc({rows_of_problem(D, rows.place), columns}, type, tag::ab), attr);
        const auto indices = [](int64_t n) { return mxdnn::memory::desc({n}, dt::s32, tag::a); };
        std::vector<call_t::argument_t> arguments;
        source.append_arguments(arguments);
        arguments.push_back({MXDNN_ARG_WEIGHTS, weights->desc});
        arguments.push_back({MXDNN_ARG_DST, mxdnn::memory::desc({D, columns}, type, tag::ab)});
        arguments.push_back({MXDNN_ARG_GROUP_OFFSETS, indices(E)});
        if (bias) arguments.push_back({MXDNN_ARG_BIAS, bias_desc});
        if (gather_idx) arguments.push_back({MXDNN_ARG_GATHER_IDX, indices(R)});
        if (scatter_idx) arguments.push_back({MXDNN_ARG_SCATTER_IDX, indices(R)});
        if (topk_weights)
            arguments.push_back({MXDNN_ARG_TOPK_WEIGHTS,
                    mxdnn::memory::desc({R}, high_precision(factors, "topk_weights"), tag::a)});
        return call_t(pd, arguments, engine);
    });
    pointers_t pointers;
    source.append_pointers(pointers);
    for (void *p : {bytes.data, y.data_ptr(), ends.data}) pointers.push_back(p);
    if (bias) pointers.push_back(addend.data);
    if (gather_idx) pointers.push_back(gather.data);
    if (scatter_idx) pointers.push_back(scatter.data);
    if (topk_weights) pointers.push_back(factors.data);
    call.run(stream_of(engine, rows.place), rows.place, pointers.values, pointers.n);
    return y;
}

} // namespace

Tensor grouped_linear(const Tensor &x, const Tensor &packed, const std::string &blob,
        const Tensor &group_ends, const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx, const std::optional<Tensor> &scatter_idx,
        const std::optional<Tensor> &topk_weights, std::optional<int64_t> dst_rows) {
    return multiply(x, packed, blob, group_ends, bias, activation, gather_idx, scatter_idx, topk_weights,
            dst_rows, true);
}

Tensor grouped_linear_of_all_rows(const Tensor &x, const Tensor &packed, const std::string &blob,
        const Tensor &group_ends, const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx) {
    return multiply(x, packed, blob, group_ends, bias, activation, gather_idx, std::nullopt, std::nullopt,
            std::nullopt, false);
}

} // namespace mxdnn_torch

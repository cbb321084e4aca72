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

// The tensors of a call, which fit each other; those that are not passed are absent.
struct operands_t {
    view_t rows, packed, ends;
    std::optional<view_t> bias, gather, scatter, factors;
    int64_t multiplied = 0; // rows: those of x, or as many as are gathered from it
};

view_t factors_view(const Tensor &topk_weights, int64_t n, const place_t &place) {
    const view_t view = view_of(topk_weights, "topk_weights");
    if (view.type != ScalarType::BFloat16) expect_type(view, "topk_weights", ScalarType::Float);
    expect_dims(view, "topk_weights", {n});
    expect_place(view, "topk_weights", place);
    expect_contiguous(view, "topk_weights");
    return view;
}

view_t bias_view(const Tensor &bias, const packed_desc_t &weights, const place_t &place) {
    const view_t view = view_of(bias, "bias");
    high_precision(view, "bias");
    expect_dims(view, "bias", {weights.dims[0], weights.N()});
    expect_place(view, "bias", place);
    expect_contiguous(view, "bias");
    return view;
}

operands_t read_operands(const packed_desc_t &weights, const Tensor &x, const Tensor &packed,
        const Tensor &group_ends, const std::optional<Tensor> &bias, const std::optional<Tensor> &gather_idx,
        const std::optional<Tensor> &scatter_idx, const std::optional<Tensor> &topk_weights) {
    if (weights.dims.size() != 3)
        refuse("the weights are " + to_string(weights.weight_shape()) + "; grouped_linear takes [E, N, K]");
    operands_t o;
    o.rows = view_of(x, "x");
    if (o.rows.dims.size() != 2 || o.rows.dims[1] != weights.K())
        refuse("x has shape " + o.rows.shape() + "; it must have [rows, " + std::to_string(weights.K())
                + "], with the K of the weights");
    high_precision(o.rows, "x");
    const place_t &place = o.rows.place;
    o.packed = view_of(packed, "packed");
    expect_packed(o.packed, weights);
    expect_place(o.packed, "packed", place);
    expect_packed_for(place, weights);
    o.ends = index_view(group_ends, "group_ends", weights.dims[0], place);

    o.multiplied = o.rows.dims[0];
    if (gather_idx) {
        o.multiplied = view_of(*gather_idx, "gather_idx").numel();
        o.gather = index_view(*gather_idx, "gather_idx", o.multiplied, place);
    }
    if (o.multiplied > most_rows)
        refuse("there are " + std::to_string(o.multiplied) + " rows; at most 2147483647 are possible");
    if (scatter_idx) o.scatter = index_view(*scatter_idx, "scatter_idx", o.multiplied, place);
    if (topk_weights) o.factors = factors_view(*topk_weights, o.multiplied, place);
    if (bias) o.bias = bias_view(*bias, weights, place);
    return o;
}

// The result's rows and columns, in the type of x.
call_t make_call(const packed_desc_t &weights, const operands_t &o, const source_t &source,
        const std::string &activation, const mxdnn::engine &engine, int64_t dst_rows, int64_t columns) {
    const place_t &place = o.rows.place;
    const dt type = high_precision(o.rows, "x");
    const int64_t E = weights.dims[0], R = o.multiplied;
    const mxdnn::memory::desc bias_desc =
            o.bias ? mxdnn::memory::desc({E, weights.N()}, high_precision(*o.bias, "bias"), tag::ab)
                   : mxdnn::memory::desc();
    mxdnn::primitive_attr attr = attributes_for(place);
    source.set_attributes(attr);
    mxdnn::post_ops ops;
    append_activation(ops, activation);
    attr.set_post_ops(ops);
    const thread_count_scope_t threads(torch_threads());
    const mxdnn::grouped_matmul::primitive_desc pd(engine,
            source.desc(rows_of_problem(o.rows.dims[0], place)), weights.desc, bias_desc,
            mxdnn::memory::desc({rows_of_problem(dst_rows, place), columns}, type, tag::ab), attr);
    const auto indices = [](int64_t n) { return mxdnn::memory::desc({n}, dt::s32, tag::a); };
    std::vector<call_t::argument_t> arguments;
    source.append_arguments(arguments);
    arguments.push_back({MXDNN_ARG_WEIGHTS, weights.desc});
    arguments.push_back({MXDNN_ARG_DST, mxdnn::memory::desc({dst_rows, columns}, type, tag::ab)});
    arguments.push_back({MXDNN_ARG_GROUP_OFFSETS, indices(E)});
    if (o.bias) arguments.push_back({MXDNN_ARG_BIAS, bias_desc});
    if (o.gather) arguments.push_back({MXDNN_ARG_GATHER_IDX, indices(R)});
    if (o.scatter) arguments.push_back({MXDNN_ARG_SCATTER_IDX, indices(R)});
    if (o.factors)
        arguments.push_back({MXDNN_ARG_TOPK_WEIGHTS,
                mxdnn::memory::desc({R}, high_precision(*o.factors, "topk_weights"), tag::a)});
    return call_t(pd, arguments, engine);
}

// In the order of make_call().
pointers_t pointers_of(const operands_t &o, const source_t &source, const Tensor &y) {
    pointers_t pointers;
    source.append_pointers(pointers);
    for (void *p : {o.packed.data, y.data_ptr(), o.ends.data}) pointers.push_back(p);
    for (const std::optional<view_t> *view : {&o.bias, &o.gather, &o.scatter, &o.factors})
        if (*view) pointers.push_back((*view)->data);
    return pointers;
}

// `clears`: there may be rows that no expert has.
Tensor multiply(const Tensor &x, const Tensor &packed, const std::string &blob, const Tensor &group_ends,
        const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx, const std::optional<Tensor> &scatter_idx,
        const std::optional<Tensor> &topk_weights, std::optional<int64_t> dst_rows, bool clears) {
    const auto weights = parse_blob(blob);
    const operands_t o =
            read_operands(*weights, x, packed, group_ends, bias, gather_idx, scatter_idx, topk_weights);
    if (scatter_idx.has_value() != dst_rows.has_value())
        refuse("scatter_idx and dst_rows belong together: pass both or none");
    const int64_t columns = is_gated(activation) ? weights->N() / 2 : weights->N();
    const int64_t D = dst_rows.value_or(o.multiplied);
    if (D < 0) refuse("dst_rows is " + std::to_string(D) + "; it must not be negative");
    const place_t &place = o.rows.place;
    const Tensor y = make_tensor({D, columns}, o.rows.type, place);
    if (D == 0 || columns == 0) return y;
    if (!scatter_idx && clears) clear_rows_without_expert(y, o.ends);
    if (o.multiplied == 0 || weights->dims[0] == 0) { // nothing is multiplied
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));
        return y;
    }

    const mxdnn::engine &engine = engine_of(place);
    const source_t source(o.rows, weights->recipe, engine);
    key_t key("grouped_linear");
    key.add(o.rows)
            .add(o.multiplied)
            .add(D)
            .add(static_cast<int64_t>(weights->id))
            .add(torch_threads())
            .add_text(activation)
            .add(o.gather.has_value())
            .add(o.scatter.has_value())
            .add(o.factors ? static_cast<int64_t>(o.factors->type) : -1)
            .add(o.bias ? static_cast<int64_t>(o.bias->type) : -1);
    call_t &call =
            find_call(key, [&] { return make_call(*weights, o, source, activation, engine, D, columns); });
    const pointers_t pointers = pointers_of(o, source, y);
    call.run(stream_of(engine, place), place, pointers.values, pointers.n);
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

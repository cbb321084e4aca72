// SPDX-License-Identifier: Apache-2.0
// moe_unpermute: rows [R, D] back to where they came from, [dst_rows, D]; with weights [dst_rows, k] the
// weighted sums of k rows each.
#include "call.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

Tensor moe_unpermute(const Tensor &x, const Tensor &permuted_idx, int64_t dst_rows,
        const std::optional<Tensor> &topk_weights) {
    const view_t src = view_of(x, "x");
    if (src.dims.size() != 2) refuse("x has shape " + src.shape() + "; it must be [rows, columns]");
    const dt type = high_precision(src, "x");
    const place_t &place = src.place;
    const int64_t R = src.dims[0], D = src.dims[1];
    const view_t idx = view_of(permuted_idx, "permuted_idx");
    expect_type(idx, "permuted_idx", ScalarType::Int);
    expect_dims(idx, "permuted_idx", {R});
    expect_place(idx, "permuted_idx", place);
    expect_contiguous(idx, "permuted_idx");
    if (dst_rows < 0) refuse("dst_rows is " + std::to_string(dst_rows) + "; it must not be negative");
    view_t factors;
    if (topk_weights) {
        factors = view_of(*topk_weights, "topk_weights");
        if (factors.type != ScalarType::BFloat16) expect_type(factors, "topk_weights", ScalarType::Float);
        if (factors.dims.size() != 2 || factors.dims[0] != dst_rows)
            refuse("topk_weights have shape " + factors.shape() + "; they must be ["
                    + std::to_string(dst_rows) + ", topk], a row for each row of the result");
        expect_place(factors, "topk_weights", place);
        expect_contiguous(factors, "topk_weights");
    }
    const Tensor y = make_tensor({dst_rows, D}, src.type, place);
    if (dst_rows == 0 || D == 0) return y;
    if (R == 0) {
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));
        return y;
    }

    const mxdnn::engine &engine = engine_of(place);
    key_t key("moe_unpermute");
    key.add(src).add(dst_rows).add(torch_threads());
    if (topk_weights) key.add(factors);
    call_t &call = find_call(key, [&] {
        const mxdnn::memory::desc src_desc(src.dims, type, src.strides),
                dst_desc({dst_rows, D}, type, tag::ab);
        const thread_count_scope_t threads(torch_threads());
        const mxdnn::moe_unpermute::primitive_desc pd(engine, src_desc, dst_desc, attributes_for(place));
        std::vector<call_t::argument_t> arguments = {{MXDNN_ARG_SRC, src_desc},
                {MXDNN_ARG_PERMUTED_IDX, mxdnn::memory::desc({R}, dt::s32, tag::a)},
                {MXDNN_ARG_DST, dst_desc}};
        if (topk_weights)
            arguments.push_back({MXDNN_ARG_TOPK_WEIGHTS,
                    mxdnn::memory::desc(factors.dims, high_precision(factors, "topk_weights"), tag::ab)});
        return call_t(pd, arguments, engine);
    });
    void *const pointers[] = {src.data, idx.data, y.data_ptr(), factors.data};
    call.run(stream_of(engine, place), place, pointers, topk_weights ? 4 : 3);
    return y;
}

} // namespace mxdnn_torch

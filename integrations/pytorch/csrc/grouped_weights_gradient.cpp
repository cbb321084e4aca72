// SPDX-License-Identifier: Apache-2.0
// grouped_weights_gradient: for each expert the sum over its rows of grad [.., N]^T * x [.., K], as [E, N,
// K].
#include "call.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

Tensor grouped_weights_gradient(const Tensor &x, const Tensor &grad, const Tensor &group_ends) {
    const view_t rows = view_of(x, "x"), results = view_of(grad, "grad"),
                 ends = view_of(group_ends, "group_ends");
    if (rows.dims.size() != 2) refuse("x has shape " + rows.shape() + "; it must be [rows, K]");
    const dt type = high_precision(rows, "x");
    expect_contiguous(rows, "x");
    if (results.dims.size() != 2 || results.dims[0] != rows.dims[0])
        refuse("grad has shape " + results.shape() + "; it must be [rows, N] with the "
                + std::to_string(rows.dims[0]) + " rows of x");
    expect_type(results, "grad", rows.type);
    expect_contiguous(results, "grad");
    expect_place(results, "grad", rows.place);
    expect_type(ends, "group_ends", ScalarType::Int);
    if (ends.dims.size() != 1) refuse("group_ends has shape " + ends.shape() + "; it must be [experts]");
    expect_contiguous(ends, "group_ends");
    expect_place(ends, "group_ends", rows.place);

    const int64_t R = rows.dims[0], K = rows.dims[1], N = results.dims[1], E = ends.dims[0];
    const Tensor y = make_tensor({E, N, K}, rows.type, rows.place);
    if (E == 0 || N == 0 || K == 0) return y;
    if (R == 0) {
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));
        return y;
    }
    const mxdnn::engine &engine = engine_of(rows.place);
    key_t key("grouped_weights_gradient");
    key.add(rows).add(N).add(E).add(torch_threads());
    call_t &call = find_call(key, [&] {
        const mxdnn::primitive_attr attr = attributes_for(rows.place);
        const thread_count_scope_t threads(torch_threads());
        const int64_t any = rows_of_problem(R, rows.place);
        const mxdnn::memory::desc gradient({E, K, N}, type, tag::acb);
        const mxdnn::grouped_matmul_backward_weights::primitive_desc pd(
                engine, {{any, K}, type, tag::ab}, {{any, N}, type, tag::ab}, gradient, attr);
        return call_t(pd,
                {{MXDNN_ARG_SRC, {{R, K}, type, tag::ab}}, {MXDNN_ARG_DIFF_DST, {{R, N}, type, tag::ab}},
                        {MXDNN_ARG_DIFF_WEIGHTS, gradient},
                        {MXDNN_ARG_GROUP_OFFSETS, {{E}, dt::s32, tag::a}}},
                engine);
    });
    void *const pointers[] = {rows.data, results.data, y.data_ptr(), ends.data};
    call.run(stream_of(engine, rows.place), rows.place, pointers, 4);
    return y;
}

} // namespace mxdnn_torch

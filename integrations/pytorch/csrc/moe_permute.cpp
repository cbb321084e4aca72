// SPDX-License-Identifier: Apache-2.0
// moe_permute: rows [R, D] that came by rank and then by expert, in the order of the experts, each expert's
// padded to a multiple of `alignment`. Rows behind the last expert's are zeros.
#include "call.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

using tag = mxdnn::memory::format_tag;

std::tuple<Tensor, Tensor, Tensor> moe_permute(
        const Tensor &x, const Tensor &counts, int64_t alignment, int64_t dst_rows) {
    const view_t src = view_of(x, "x");
    if (src.dims.size() != 2) refuse("x has shape " + src.shape() + "; it must be [rows, columns]");
    const dt type = high_precision(src, "x");
    const place_t &place = src.place;
    const view_t numbers = view_of(counts, "counts");
    if (numbers.dims.size() != 2)
        refuse("counts have shape " + numbers.shape() + "; they must be [source ranks, experts]");
    expect_type(numbers, "counts", ScalarType::Int);
    expect_place(numbers, "counts", place);
    expect_contiguous(numbers, "counts");
    if (dst_rows < 0) refuse("dst_rows is " + std::to_string(dst_rows) + "; it must not be negative");
    const int64_t D = src.dims[1], ranks = numbers.dims[0], experts = numbers.dims[1];

    const Tensor y = make_tensor({dst_rows, D}, src.type, place);
    const Tensor ends = make_tensor({experts}, ScalarType::Int, place);
    const Tensor source_rows = make_tensor({dst_rows}, ScalarType::Int, place);
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(y.get()));

    const mxdnn::engine &engine = engine_of(place);
    key_t key("moe_permute");
    key.add(src).add(numbers).add(alignment).add(dst_rows).add(torch_threads());
    call_t &call = find_call(key, [&] {
        const mxdnn::memory::desc src_desc(src.dims, type, src.strides),
                dst_desc({dst_rows, D}, type, tag::ab);
        const thread_count_scope_t threads(torch_threads());
        const mxdnn::moe_permute::primitive_desc pd(
                engine, src_desc, dst_desc, ranks, experts, alignment, attributes_for(place));
        return call_t(pd,
                {{MXDNN_ARG_SRC, src_desc},
                        {MXDNN_ARG_GROUP_COUNTS, mxdnn::memory::desc({ranks, experts}, dt::s32, tag::ab)},
                        {MXDNN_ARG_DST, dst_desc},
                        {MXDNN_ARG_GROUP_OFFSETS, mxdnn::memory::desc({experts}, dt::s32, tag::a)},
                        {MXDNN_ARG_PERMUTED_IDX, mxdnn::memory::desc({dst_rows}, dt::s32, tag::a)}},
                engine);
    });
    void *const pointers[] = {src.data, numbers.data, y.data_ptr(), ends.data_ptr(), source_rows.data_ptr()};
    call.run(stream_of(engine, place), place, pointers, 5);
    return {y, ends, source_rows};
}

} // namespace mxdnn_torch

// SPDX-License-Identifier: Apache-2.0
#include "matmul.hpp"

namespace mxdnn_jax {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

std::shared_ptr<const matmul_t> make_grouped_linear(const place_t &place, memory::dim rows, dt x,
        const std::optional<buffer_t> &bias, dt y, blob_t blob, std::string_view activation_text) {
    matmul_t m;
    m.weights = weights_for(place.engine(), blob.begin(), blob.size());
    const memory::dims dims = m.weights.get_dims();
    if (dims.size() != 3)
        fail("grouped_linear multiplies matrices of experts, [experts, K, N]; the blob describes "
                + m.weights.to_string());
    const chosen_activation_t activation = find_activation(activation_text);
    m.columns = activation.columns(dims[2]);
    const grouped_matmul::primitive_desc pd(place.engine(), {{rows, dims[1]}, x, tag::ab}, m.weights,
            bias ? memory::desc({dims[0], dims[2]}, float_type_of(*bias, "bias"), tag::ab) : memory::desc(),
            {{rows, m.columns}, y, tag::ab}, attributes_of(place, activation));
    m.scratchpad = pd.scratchpad_desc();
    m.primitive = grouped_matmul(pd);
    return std::make_shared<matmul_t>(std::move(m));
}

} // namespace

void grouped_linear(place_t &place, buffer_t x, buffer_t packed, buffer_t ends, buffer_t experts, rest_t rest,
        result_t result, blob_t blob, std::string_view activation) {
    static lru_cache_t<matmul_t> cache(max_matmuls);
    const buffer_t y = *result;
    const dt x_type = float_type_of(x, "x"), y_type = float_type_of(y, "y");
    const std::optional<buffer_t> bias = buffer_of(rest);
    const memory::dim rows = rows_of(x, "x"), problem_rows = place.rows_of_problem(rows);
    const auto m = cache.find_or_make(key_of(place, problem_rows, x, bias, y, blob, activation),
            [&] { return make_grouped_linear(place, problem_rows, x_type, bias, y_type, blob, activation); });

    const memory::dims weights = m->weights.get_dims();
    const memory::dim E = weights[0], K = weights[1], N = weights[2];
    const memory::dim groups = rows_of(ends, "ends") == 1 ? ends.dimensions()[0] : -1;
    require_dims(x, {rows, K}, "x");
    require_dims(y, {rows, m->columns}, "y");
    require_bytes(packed, m->weights);
    require_s32(ends, groups, "ends");
    require_s32(experts, groups, "experts");
    if (bias) require_dims(*bias, {E, N}, "bias");
    if (rows == 0 || groups == 0 || m->columns == 0) return;

    const engine &eng = place.engine();
    const memory::desc one_of_each({groups}, dt::s32, tag::a);
    std::unordered_map<int, memory> args{{MXDNN_ARG_SRC, memory_of(x, {{rows, K}, x_type, tag::ab}, eng)},
            {MXDNN_ARG_WEIGHTS, memory_of(packed, m->weights, eng)},
            {MXDNN_ARG_GROUP_OFFSETS, memory_of(ends, one_of_each, eng)},
            {MXDNN_ARG_GROUP_EXPERT_IDS, memory_of(experts, one_of_each, eng)},
            {MXDNN_ARG_DST, memory_of(y, {{rows, m->columns}, y_type, tag::ab}, eng)}};
    if (bias) args[MXDNN_ARG_BIAS] = memory_of(*bias, {{E, N}, float_type_of(*bias, "bias"), tag::ab}, eng);
    execute(place, m->primitive, m->scratchpad, place.stream_of(eng), std::move(args));
}

} // namespace mxdnn_jax

// SPDX-License-Identifier: Apache-2.0
#include "matmul.hpp"

namespace mxdnn_jax {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

std::shared_ptr<const matmul_t> make_linear(const place_t &place, memory::dim rows, dt x,
        const std::optional<buffer_t> &bias, dt y, blob_t blob, std::string_view activation_text) {
    matmul_t m;
    m.weights = weights_for(place.engine(), blob.begin(), blob.size());
    const memory::dims dims = m.weights.get_dims();
    if (dims.size() != 2)
        fail("linear multiplies one matrix; the blob describes " + m.weights.to_string()
                + ". grouped_linear is for matrices of experts");
    const chosen_activation_t activation = find_activation(activation_text);
    m.columns = activation.columns(dims[1]);
    const mx_matmul::primitive_desc pd(place.engine(), {{rows, dims[0]}, x, tag::ab}, m.weights,
            bias ? memory::desc({1, dims[1]}, float_type_of(*bias, "bias"), tag::ab) : memory::desc(),
            {{rows, m.columns}, y, tag::ab}, attributes_of(place, activation));
    m.scratchpad = pd.scratchpad_desc();
    m.primitive = mx_matmul(pd);
    return std::make_shared<matmul_t>(std::move(m));
}

} // namespace

void linear(place_t &place, buffer_t x, buffer_t packed, rest_t rest, result_t result, blob_t blob,
        std::string_view activation) {
    static lru_cache_t<matmul_t> cache(max_matmuls);
    const buffer_t y = *result;
    const dt x_type = float_type_of(x, "x"), y_type = float_type_of(y, "y");
    const std::optional<buffer_t> bias = buffer_of(rest);
    const memory::dim rows = rows_of(x, "x"), problem_rows = place.rows_of_problem(rows);
    const auto m = cache.find_or_make(key_of(place, problem_rows, x, bias, y, blob, activation),
            [&] { return make_linear(place, problem_rows, x_type, bias, y_type, blob, activation); });

    const memory::dims weights = m->weights.get_dims();
    const memory::dim K = weights[0], N = weights[1];
    memory::dims x_dims = dims_of(x), y_dims = x_dims;
    x_dims.back() = K;
    y_dims.back() = m->columns;
    require_dims(x, x_dims, "x");
    require_dims(y, y_dims, "y");
    require_bytes(packed, m->weights);
    if (bias) require_dims(*bias, {N}, "bias");
    if (rows == 0 || m->columns == 0) return;

    const engine &eng = place.engine();
    std::unordered_map<int, memory> args{{MXDNN_ARG_SRC, memory_of(x, {{rows, K}, x_type, tag::ab}, eng)},
            {MXDNN_ARG_WEIGHTS, memory_of(packed, m->weights, eng)},
            {MXDNN_ARG_DST, memory_of(y, {{rows, m->columns}, y_type, tag::ab}, eng)}};
    if (bias) args[MXDNN_ARG_BIAS] = memory_of(*bias, {{1, N}, float_type_of(*bias, "bias"), tag::ab}, eng);
    execute(place, m->primitive, m->scratchpad, place.stream_of(eng), std::move(args));
}

} // namespace mxdnn_jax

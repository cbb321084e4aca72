// SPDX-License-Identifier: Apache-2.0
// pack and unpack. A packed descriptor brings its format, so that no attribute is left but the rounding of
// scales.
#include "failure.hpp"
#include "operations.hpp"
#include "weights.hpp"

namespace mxdnn_jax {

using namespace mxdnn;

namespace {

constexpr struct {
    const char *name;
    mxdnn::scale_rounding rounding;
} roundings[] = {
        {"floor", scale_rounding::floor},
        {"ceil", scale_rounding::ceil},
        {"even", scale_rounding::even},
        {"rceil", scale_rounding::rceil},
};

scale_rounding find_rounding(std::string_view name) {
    for (const auto &r : roundings)
        if (name == r.name) return r.rounding;
    fail("there is no rounding '" + std::string(name) + "'; known are floor, ceil, even, rceil");
}

// Packed weights are memory of an engine of their family. The host packs for families that are not here.
engine engine_of(const memory::desc &packed, const place_t &place) {
    const std::string family = packed.get_target(), own = place.engine().get_target();
    if (own.compare(0, family.size(), family) == 0) return place.engine();
    if (place.engine().get_kind() != engine::kind::cpu)
        fail("a " + own + " packs and unpacks for itself only; the blob describes " + packed.to_string());
    return engine::for_target(family);
}

memory::desc dense(const memory::desc &packed, memory::data_type type) {
    return memory::desc(packed.get_dims(), type, memory::dims());
}

bool is_empty(const memory::dims &dims) {
    for (memory::dim d : dims)
        if (d == 0) return true;
    return false;
}

void reorder(place_t &place, const memory &from, const memory &to, primitive_attr attr) {
    if (place.has_scratch()) attr.set_scratchpad_mode(scratchpad_mode::user);
    const mx_reorder::primitive_desc pd(from, to, attr);
    execute(place, mx_reorder(pd), pd.scratchpad_desc(), place.stream_of(to.get_engine()),
            {{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to}});
}

} // namespace

void pack(place_t &place, buffer_t weights, result_t result, blob_t blob, std::string_view rounding) {
    const buffer_t packed = *result;
    const memory::desc md = weights_of_blob(blob.begin(), blob.size());
    const memory::data_type type = float_type_of(weights, "weights");
    require_dims(weights, md.get_dims(), "weights");
    require_bytes(packed, md);
    primitive_attr attr;
    attr.set_scale_rounding(MXDNN_ARG_DST, find_rounding(rounding));
    if (md.get_size() == 0) return;
    reorder(place, memory_of(weights, dense(md, type), place.engine()),
            memory_of(packed, md, engine_of(md, place)), attr);
}

void unpack(place_t &place, buffer_t packed, result_t result, blob_t blob) {
    const buffer_t weights = *result;
    const memory::desc md = weights_of_blob(blob.begin(), blob.size());
    const memory::data_type type = float_type_of(weights, "weights");
    require_dims(weights, md.get_dims(), "weights");
    require_bytes(packed, md);
    if (is_empty(md.get_dims())) return;
    reorder(place, memory_of(packed, md, engine_of(md, place)),
            memory_of(weights, dense(md, type), place.engine()), primitive_attr());
}

} // namespace mxdnn_jax

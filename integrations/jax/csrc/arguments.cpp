// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <sstream>

#include "failure.hpp"

namespace mxdnn_jax {

using namespace mxdnn;
using dt = memory::data_type;

namespace {

std::string to_string(const memory::dims &dims) {
    std::string text;
    for (memory::dim d : dims) text += (text.empty() ? "" : ",") + std::to_string(d);
    return "[" + text + "]";
}

} // namespace

std::string to_string(const buffer_t &b) {
    std::ostringstream type;
    type << b.element_type();
    return type.str() + to_string(dims_of(b));
}

dt float_type_of(const buffer_t &b, const char *name) {
    switch (b.element_type()) {
    case xla::ffi::F32: return dt::f32;
    case xla::ffi::BF16: return dt::bf16;
    case xla::ffi::F16: return dt::f16;
    default: fail(std::string(name) + " is " + to_string(b) + "; its type has to be f32, bf16 or f16");
    }
}

void require_bytes(const buffer_t &packed, const memory::desc &weights) {
    if (packed.element_type() != xla::ffi::U8 || packed.dimensions().size() != 1
            || size_t(packed.dimensions()[0]) != weights.get_size())
        fail("packed is " + to_string(packed) + "; its blob describes " + weights.to_string()
                + ", which is u8[" + std::to_string(weights.get_size()) + "]");
}

void require_s32(const buffer_t &b, memory::dim length, const char *name) {
    if (b.element_type() != xla::ffi::S32)
        fail(std::string(name) + " is " + to_string(b) + "; its type has to be s32");
    require_dims(b, {length}, name);
}

void require_dims(const buffer_t &b, const memory::dims &dims, const char *name) {
    if (dims_of(b) != dims)
        fail(std::string(name) + " is " + to_string(b) + "; its dimensions have to be " + to_string(dims));
}

memory::dims dims_of(const buffer_t &b) { return memory::dims(b.dimensions().begin(), b.dimensions().end()); }

memory::dim rows_of(const buffer_t &b, const char *name) {
    if (b.dimensions().size() == 0)
        fail(std::string(name) + " is " + to_string(b) + "; it has to have a dimension at least");
    memory::dim rows = 1;
    for (memory::dim d : b.dimensions().first(b.dimensions().size() - 1))
        if (d < 0 || __builtin_mul_overflow(rows, d, &rows))
            fail(std::string(name) + " is " + to_string(b) + ", whose rows cannot be counted");
    return rows;
}

memory memory_of(const buffer_t &b, const memory::desc &md, const engine &eng) {
    return memory(md, eng, b.untyped_data());
}

void execute(place_t &place, const primitive &p, const memory::desc &scratchpad, const stream &st,
        std::unordered_map<int, memory> args) {
    // The descriptor is empty where nothing is needed.
    if (place.has_scratch() && scratchpad)
        args[MXDNN_ARG_SCRATCHPAD] = memory(scratchpad, place.engine(), place.scratch(scratchpad.get_size()));
    p.execute(st, args);
}

} // namespace mxdnn_jax

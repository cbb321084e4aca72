// SPDX-License-Identifier: Apache-2.0
// The one list of data types, and what is looked up in it at run time. Everything that enumerates types
// (tables, dispatch, tests, support pages) starts here.
#pragma once

#include "common/formats/bf16.hpp"
#include "common/formats/e8m0.hpp"
#include "common/formats/f16.hpp"
#include "common/formats/f32.hpp"
#include "common/formats/f4_e2m1.hpp"
#include "common/formats/f6_e2m3.hpp"
#include "common/formats/f6_e3m2.hpp"
#include "common/formats/f8_e4m3.hpp"
#include "common/formats/f8_e5m2.hpp"
#include "common/formats/index_types.hpp"
#include "common/formats/s4.hpp"
#include "common/formats/s8.hpp"
#include "common/formats/type_list.hpp"
#include "common/formats/u4.hpp"
#include "common/formats/u8.hpp"

namespace mxdnn {
namespace impl {

using all_types = type_list< //
        f32_t,               //
        bf16_t,              //
        f16_t,               //
        f8_e4m3_t,           //
        f8_e5m2_t,           //
        f6_e2m3_t,           //
        f6_e3m2_t,           //
        f4_e2m1_t,           //
        s8_t,                //
        u8_t,                //
        s4_t,                //
        u4_t,                //
        e8m0_t,              //
        s32_t,               //
        u64_t>;

using high_precision_types = with_roles_t<role_high_precision, all_types>;
using mx_element_types = with_roles_t<role_mx_element, all_types>;
using affine_element_types = with_roles_t<role_affine_element, all_types>;
using quantized_element_types = with_roles_t<role_mx_element | role_affine_element, all_types>;
using scale_types = with_roles_t<role_scale, all_types>;
using fp4_scale_types = type_list<f8_e4m3_t>; // of blocks of 16 f4_e2m1, beside e8m0
// All types that have decode() and encode().
using numeric_types = with_roles_t<~unsigned(role_index), all_types>;

struct data_type_info_t {
    data_type_t id;
    const char *name;
    int bits;       // of a code; its storage also depends on the packing: plain_bits.hpp
    unsigned roles; // role_t
    bool is_float;  // floating point, not integer
    bool is_high_precision;
    float max; // largest finite value
    int emax;  // exponent of the largest finite value
    // Conversions. Null for index types.
    float (*decode)(uint32_t code);
    uint32_t (*encode)(float x);            // the type's usual conversion
    uint32_t (*encode_saturating)(float x); // for scales

    constexpr bool has_role(unsigned role) const { return (roles & role) != 0; }
};

template <typename T>
constexpr data_type_info_t make_data_type_info() {
    if constexpr ((T::roles & role_index) != 0)
        return {T::id, T::name, T::bits, T::roles, false, false, 0.f, 0, nullptr, nullptr, nullptr};
    else
        return {T::id, T::name, T::bits, T::roles, T::is_float, (T::roles & role_high_precision) != 0, T::max,
                T::emax, T::decode, T::encode, T::encode_saturating};
}

template <typename list>
struct data_type_table_t;
template <typename... types>
struct data_type_table_t<type_list<types...>> {
    static constexpr data_type_info_t rows[sizeof...(types)] = {make_data_type_info<types>()...};
};

// The row of a data type; null for mxdnn_data_type_undef and for values that are not data types.
constexpr const data_type_info_t *data_type_info(data_type_t dt) {
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows)
        if (row.id == dt) return &row;
    return nullptr;
}

constexpr const char *data_type_name(data_type_t dt) {
    const data_type_info_t *info = data_type_info(dt);
    return info ? info->name : "undef";
}

constexpr bool equal_names(const char *a, const char *b) {
    for (; *a && *a == *b; a++, b++) {
    }
    return *a == *b;
}

// The data type with that name; mxdnn_data_type_undef for null and for unknown names.
constexpr data_type_t data_type_from_name(const char *name) {
    if (!name) return mxdnn_data_type_undef;
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows)
        if (equal_names(row.name, name)) return row.id;
    return mxdnn_data_type_undef;
}

// Device code uses the following functions, too. It cannot read the table.
MXDNN_HD constexpr bool has_role(data_type_t dt, unsigned role) {
    unsigned roles = 0;
    visit_type(all_types(), dt, [&](auto t) { roles = decltype(t)::roles; });
    return (roles & role) != 0;
}

MXDNN_HD constexpr bool is_float_type(data_type_t dt) {
    bool is_float = false;
    visit_type(numeric_types(), dt, [&](auto t) { is_float = decltype(t)::is_float; });
    return is_float;
}

// Calls fn(T()) with the traits of a type that has arithmetic. Otherwise returns false and calls nothing.
template <typename F>
MXDNN_HD constexpr bool visit_data_type(data_type_t dt, F &&fn) {
    return visit_type(numeric_types(), dt, fn);
}

} // namespace impl
} // namespace mxdnn

#include "common/formats/named_formats.hpp" // users of the list of types also need the formats made of them

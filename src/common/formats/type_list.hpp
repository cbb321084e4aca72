// SPDX-License-Identifier: Apache-2.0
// A list of types that other lists, tables and dispatch are derived from.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

template <typename... types>
struct type_list {
    static constexpr int size = int(sizeof...(types));
};

namespace detail {

template <unsigned roles, typename kept, typename rest>
struct with_roles;
template <unsigned roles, typename... kept>
struct with_roles<roles, type_list<kept...>, type_list<>> {
    using type = type_list<kept...>;
};
template <bool keep, typename kept, typename T>
struct append {
    using type = kept;
};
template <typename... kept, typename T>
struct append<true, type_list<kept...>, T> {
    using type = type_list<kept..., T>;
};
template <unsigned roles, typename kept, typename T, typename... rest>
struct with_roles<roles, kept, type_list<T, rest...>> {
    using type = typename with_roles<roles, typename append<(T::roles & roles) != 0, kept, T>::type,
            type_list<rest...>>::type;
};

} // namespace detail

// The types of a list that have at least one of the roles, in the order of the list.
template <unsigned roles, typename list>
using with_roles_t = typename detail::with_roles<roles, type_list<>, list>::type;

// Calls fn(T()) with the type of the list whose id is dt; false where there is none.
template <typename F, typename... types>
MXDNN_HD constexpr bool visit_type(type_list<types...>, data_type_t dt, F &&fn) {
    return ((types::id == dt ? (fn(types()), true) : false) || ...);
}

template <typename... types>
MXDNN_HD constexpr bool has_type(type_list<types...>, data_type_t dt) {
    return ((types::id == dt) || ...);
}

// Calls fn(T()) with the type whose id is dt, of a list that has it: of one type there is nothing to choose.
template <typename F, typename first, typename... rest>
MXDNN_HD constexpr void visit_member(type_list<first, rest...>, data_type_t dt, F &&fn) {
    if constexpr (sizeof...(rest) == 0) {
        fn(first());
    } else {
        if (dt == first::id)
            fn(first());
        else
            visit_member(type_list<rest...>(), dt, fn);
    }
}

// Calls fn(T()) with every type of the list.
template <typename F, typename... types>
MXDNN_HD constexpr void for_each_type(type_list<types...>, F &&fn) {
    (fn(types()), ...);
}

// The names of a list's types after some text, as one constant text: "possible are f32, bf16, f16".
template <typename list>
struct text_and_names_t;
template <typename... types>
struct text_and_names_t<type_list<types...>> {
    char text[400] = {};

    constexpr text_and_names_t(const char *before, const char *between = ", ") {
        int n = 0;
        const auto add = [&](const char *s) {
            for (; *s; s++) text[n++] = *s;
        };
        add(before);
        bool first = true;
        ((add(first ? "" : between), first = false, add(types::name)), ...);
    }
};

} // namespace impl
} // namespace mxdnn

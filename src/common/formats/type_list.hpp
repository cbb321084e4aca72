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

// The types of a list that have at least one of the roles, in the list's order.
template <unsigned roles, typename list>
using with_roles_t = typename detail::with_roles<roles, type_list<>, list>::type;

// Calls fn(T()) with the type of the list whose id is dt; false where there is none.
template <typename F, typename... types>
MXDNN_HD constexpr bool visit_type(type_list<types...>, data_type_t dt, F &&fn) {
    return ((types::id == dt ? (fn(types()), true) : false) || ...);
}

// Calls fn(T()) with every type of the list.
template <typename F, typename... types>
MXDNN_HD constexpr void for_each_type(type_list<types...>, F &&fn) {
    (fn(types()), ...);
}

} // namespace impl
} // namespace mxdnn

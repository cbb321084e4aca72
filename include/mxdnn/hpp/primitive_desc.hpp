// SPDX-License-Identifier: Apache-2.0
/// @file
/// The common part of all primitive descriptors.
#ifndef MXDNN_HPP_PRIMITIVE_DESC_HPP
#define MXDNN_HPP_PRIMITIVE_DESC_HPP

#include <cstdint>
#include <string>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/primitive_attr.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_primitive_desc_t> {
    static void destroy(mxdnn_primitive_desc_t p) { mxdnn_primitive_desc_destroy(p); }
};

/// A problem and the implementation chosen for it: the base class of every primitive_desc.
struct primitive_desc_base : public handle<mxdnn_primitive_desc_t> {
    /// Empty.
    primitive_desc_base() = default;

    /// The engine.
    engine get_engine() const { return ask_engine(mxdnn_query_engine); }
    /// The kind.
    primitive::kind get_kind() const {
        return static_cast<primitive::kind>(ask<mxdnn_primitive_kind_t>(mxdnn_query_primitive_kind));
    }

    /// The implementation's name, for example "jit:avx2" or "ref:any".
    std::string impl_info_str() const { return ask<const char *>(mxdnn_query_impl_info_str); }

    /// Moves on to the next implementation that takes the problem. Returns false if there is none.
    bool next_impl() {
        const mxdnn_status_t st = mxdnn_primitive_desc_next_impl(get());
        if (st == mxdnn_last_impl_reached) return false;
        error::wrap_c_api(st, "could not move on to the next implementation");
        return true;
    }

    /// The answer to any query for a memory descriptor; empty where there is none. For query::exec_arg_md
    /// `index` is an execution argument.
    memory::desc query_md(query what, int index = 0) const {
        const_mxdnn_memory_desc_t md =
                mxdnn_primitive_desc_query_md(get(), static_cast<mxdnn_query_t>(what), index);
        if (md == nullptr) return memory::desc();
        mxdnn_memory_desc_t copy = nullptr;
        error::wrap_c_api(mxdnn_memory_desc_clone(&copy, md), "could not clone a memory descriptor");
        return memory::desc(copy);
    }

    /// The source.
    memory::desc src_desc(int index = 0) const { return query_md(query::src_md, index); }
    /// The weights. If they were given as `any`, this is the packed layout that was chosen. Index 1 is the
    /// bias.
    memory::desc weights_desc(int index = 0) const { return query_md(query::weights_md, index); }
    /// The bias; empty for none.
    memory::desc bias_desc() const { return query_md(query::weights_md, 1); }
    /// The destination; index 1 is the second one of an mx_reorder.
    memory::desc dst_desc(int index = 0) const { return query_md(query::dst_md, index); }
    /// The gradient of the destination.
    memory::desc diff_dst_desc() const { return query_md(query::diff_dst_md); }
    /// The gradient of the weights.
    memory::desc diff_weights_desc() const { return query_md(query::diff_weights_md); }
    /// The scratchpad. Empty if none is needed, or if the library allocates it.
    memory::desc scratchpad_desc() const { return query_md(query::scratchpad_md); }
    /// The engine of the scratchpad.
    engine scratchpad_engine() const { return ask_engine(mxdnn_query_scratchpad_engine); }

    /// The answer to any query for an int64_t.
    int64_t query_s64(query what) const { return ask<int64_t>(static_cast<mxdnn_query_t>(what)); }
    /// Number of arguments that are read.
    int num_of_inputs() const { return ask<int>(mxdnn_query_num_of_inputs_s32); }
    /// Number of arguments that are written.
    int num_of_outputs() const { return ask<int>(mxdnn_query_num_of_outputs_s32); }

    /// A copy of the attributes, completed by what the descriptors say (such as the scales of packed
    /// weights).
    primitive_attr get_primitive_attr() const {
        const_mxdnn_primitive_attr_t attr = nullptr;
        error::wrap_c_api(mxdnn_primitive_desc_get_attr(get(), &attr),
                "could not get the attributes of a primitive descriptor");
        mxdnn_primitive_attr_t copy = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_clone(&copy, attr), "could not clone primitive attributes");
        return primitive_attr(copy);
    }

    /// @cond internal
protected:
    explicit primitive_desc_base(mxdnn_primitive_desc_t pd) : handle(pd) {}

    void init(mxdnn_status_t st, mxdnn_primitive_desc_t pd, bool allow_empty, const char *what) {
        if (!allow_empty) error::wrap_c_api(st, what);
        if (st == mxdnn_success) reset(pd);
    }

    /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
    template <typename T>
    static T clone_of(const T &pd) {
        mxdnn_primitive_desc_t copy = nullptr;
        error::wrap_c_api(
                mxdnn_primitive_desc_clone(&copy, pd.get()), "could not clone a primitive descriptor");
        T result;
        result.reset(copy);
        return result;
    }

    template <typename T>
    T ask(mxdnn_query_t what) const {
        T answer = T();
        error::wrap_c_api(mxdnn_primitive_desc_query(get(), what, 0, &answer),
                "could not query a primitive descriptor");
        return answer;
    }

    engine ask_engine(mxdnn_query_t what) const { return engine(ask<mxdnn_engine_t>(what), true); }
    /// @endcond
};

inline primitive::primitive(const primitive_desc_base &pd) {
    mxdnn_primitive_t p = nullptr;
    error::wrap_c_api(mxdnn_primitive_create(&p, pd.get()), "could not create a primitive");
    reset(p);
}

} // namespace mxdnn

#endif

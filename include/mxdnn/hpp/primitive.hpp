// SPDX-License-Identifier: Apache-2.0
/// @file
/// Primitives: compiled implementations, and their execution.
#ifndef MXDNN_HPP_PRIMITIVE_HPP
#define MXDNN_HPP_PRIMITIVE_HPP

#include <unordered_map>
#include <vector>

#include "mxdnn/hpp/memory.hpp"
#include "mxdnn/hpp/stream.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_primitive_t> {
    static void destroy(mxdnn_primitive_t p) { mxdnn_primitive_destroy(p); }
};

struct primitive_desc_base;

/// A compiled implementation of one problem.
struct primitive : public handle<mxdnn_primitive_t> {
    /// Kinds of primitives and of post-ops.
    enum class kind {
        undef = mxdnn_undefined_primitive,
        mx_reorder = mxdnn_primitive_kind_mx_reorder,
        mx_matmul = mxdnn_primitive_kind_mx_matmul,
        grouped_matmul = mxdnn_primitive_kind_grouped_matmul,
        moe_route = mxdnn_primitive_kind_moe_route,
        moe_permute = mxdnn_primitive_kind_moe_permute,
        moe_unpermute = mxdnn_primitive_kind_moe_unpermute,
        grouped_matmul_backward_weights = mxdnn_primitive_kind_grouped_matmul_backward_weights,
        sum = mxdnn_sum,
        eltwise = mxdnn_eltwise,
        binary = mxdnn_binary,
        gated = mxdnn_gated,
    };

    /// Empty.
    primitive() = default;
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit primitive(mxdnn_primitive_t p, bool weak = false) : handle(p, weak) {}
    /// Generates the code of a descriptor's implementation, or takes it from the cache.
    explicit primitive(const primitive_desc_base &pd);

    /// The C descriptor. It lives as long as the primitive.
    const_mxdnn_primitive_desc_t get_primitive_desc() const {
        const_mxdnn_primitive_desc_t pd = nullptr;
        error::wrap_c_api(mxdnn_primitive_get_primitive_desc(get(), &pd),
                "could not get the descriptor of a primitive");
        return pd;
    }

    /// The kind.
    kind get_kind() const {
        mxdnn_primitive_kind_t k = mxdnn_undefined_primitive;
        error::wrap_c_api(mxdnn_primitive_desc_query(get_primitive_desc(), mxdnn_query_primitive_kind, 0, &k),
                "could not get the kind of a primitive");
        return static_cast<kind>(k);
    }

    /// Executes. `args` has a memory for each argument of the primitive (MXDNN_ARG_*). Several threads may
    /// execute one primitive at the same time; in user scratchpad mode each passes its own scratchpad.
    void execute(const stream &astream, const std::unordered_map<int, memory> &args) const {
        // Few arguments stay on the stack, so that an execution allocates nothing.
        enum { few = 32 };
        mxdnn_exec_arg_t on_stack[few];
        std::vector<mxdnn_exec_arg_t> on_heap;
        mxdnn_exec_arg_t *c_args = on_stack;
        if (args.size() > few) {
            on_heap.resize(args.size());
            c_args = on_heap.data();
        }
        int n = 0;
        for (const auto &a : args) {
            c_args[n].arg = a.first;
            c_args[n].memory = a.second.get(true);
            n++;
        }
        error::wrap_c_api(
                mxdnn_primitive_execute(get(), astream.get(), n, c_args), "could not execute a primitive");
    }
};

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
// Implementations: their descriptors (what an implementation makes of a problem), the lists in
// which they stand, and the primitives that they create.
#pragma once

#include <memory>
#include <vector>

#include "common/error.hpp"
#include "common/problem.hpp"
#include "common/scratch_parts.hpp"

namespace mxdnn {
namespace impl {

struct exec_ctx_t;

// A primitive. It never changes after its creation, and any number of threads may execute it.
struct primitive_impl_t {
    virtual ~primitive_impl_t() = default;
    virtual status_t execute(const exec_ctx_t &ctx) const = 0;
};

enum class arg_use_t { input, output };

// An argument of an execution and what it has to look like. An argument with several possible forms is listed
// once for each, one after the other.
struct arg_desc_t {
    int arg;
    arg_use_t use;
    memory_desc_t md; // runtime dims accept any value
    // True for scales and zero points: they are accessed through the strides of the memory that is passed.
    bool any_strides;
    bool optional = false; // an execution may leave it out
    mxdnn_element_packing_t packing = mxdnn_element_packing_bytes;
};

// The plan of one implementation for a problem. Its list entry creates it, and it never changes afterwards.
struct pd_t {
    explicit pd_t(const problem_t &p) : problem(p) {}
    virtual ~pd_t() = default;
    virtual const char *name() const = 0;
    virtual status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const = 0;
    // How the work is divided, in words, if executions do not record it. For verbose output.
    virtual std::string plan_text() const { return ""; }

    problem_t problem;            // with `any` resolved
    std::vector<arg_desc_t> args; // filled by list_args()
    scratch_parts_t scratch;      // parts of the scratchpad that an execution needs
};

// The functions of one kind of primitive, common to all implementations.
struct primitive_kind_t {
    mxdnn_primitive_kind_t kind;
    const char *name;
    // Validates the problem and completes it. Null if there is no implementation of the kind.
    status_t (*prepare)(problem_t &);
    // Fills pd.args from the resolved problem, without the scratchpad.
    void (*list_args)(pd_t &);
    // Checks that the runtime values of one execution agree with each other. Called only if there are runtime
    // values.
    status_t (*check_runtime_dims)(const problem_t &, const exec_ctx_t &);
};

// The row of a kind of primitive; null for other values.
const primitive_kind_t *primitive_kind(mxdnn_primitive_kind_t kind);

// A row of an implementation list.
struct impl_list_item_t {
    // Creates the descriptor, or says why the implementation does not take the problem.
    reason_t (*create)(std::unique_ptr<pd_t> &pd, const problem_t &problem);
    const char *name;
};

template <typename impl_t>
reason_t create_pd(std::unique_ptr<pd_t> &pd, const problem_t &problem) {
    auto p = std::make_unique<typename impl_t::pd_t>(problem);
    const reason_t r = p->init();
    if (r.ok()) pd = std::move(p);
    return r;
}

// An implementation class has a static `impl_name` and a nested pd_t with `reason_t init()`.
template <typename impl_t>
constexpr impl_list_item_t impl_item() {
    return {create_pd<impl_t>, impl_t::impl_name};
}

struct impl_list_t {
    const impl_list_item_t *items;
    size_t size;
};

// The only place where engine kinds and primitive kinds meet.
impl_list_t impl_list(const problem_t &problem);

const char *primitive_kind_name(mxdnn_primitive_kind_t kind);

} // namespace impl
} // namespace mxdnn

// The public handle: a position in a list of implementations.
struct mxdnn_primitive_desc {
    std::shared_ptr<const mxdnn::impl::problem_t> problem;
    mxdnn::impl::impl_list_t list{};
    size_t index = 0; // position in the list of the entry that made `pd`
    std::shared_ptr<const mxdnn::impl::pd_t> pd;
    mxdnn_memory_desc scratchpad_md; // plain bytes; empty if the library allocates the scratchpad
    std::string last_refusal;        // why the last entry that was tried declined

    // Moves to the first entry, from `from` on, that takes the problem.
    mxdnn_status_t advance(size_t from);
};

namespace mxdnn {
namespace impl {

using primitive_desc_t = mxdnn_primitive_desc;

// Prepares the problem, and chooses the first implementation that takes it.
status_t create_primitive_desc(std::unique_ptr<primitive_desc_t> &pd, problem_t &&problem);

status_t query(const primitive_desc_t &pd, mxdnn_query_t what, int index, void *result);
const memory_desc_t *query_md(const primitive_desc_t &pd, mxdnn_query_t what, int index);

} // namespace impl
} // namespace mxdnn

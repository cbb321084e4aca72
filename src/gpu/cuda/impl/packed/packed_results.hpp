// SPDX-License-Identifier: Apache-2.0
// The destination as the kernels of rows write it: rows of high precision in place, or rows of f32 in the
// scratchpad, so many at a time, which are finished apart: device/kernels/finish_results.cu applies post-ops
// that the kernels do not have, and device/kernels/quantise_results.cu makes codes, or the first does where
// it cannot.
#pragma once

#include "common/grouped_exec.hpp"
#include "common/primitive.hpp"
#include "gpu/cuda/interface/finish_results_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Whether rows of this destination can be written or finished; else the reason to decline.
reason_t check_results(const problem_t &p);
// Whether results become codes, and whether they have to be finished apart.
bool makes_result_codes(const problem_t &p);
bool finishes_apart(const problem_t &p);
status_t prepare_results(const problem_t &p);

// For a problem whose results are finished separately: for how many rows there is room, the size in the
// scratchpad, and the distance of rows there, in elements.
int64_t results_at_once(const problem_t &p);
int64_t results_bytes(const problem_t &p);
int64_t results_stride(const problem_t &p);

// Results are computed once and finished; or twice; or once and kept, because a global scale needs all of
// them before the first one becomes codes.
enum class sweep_t { all, looks, stores };

// One execution of such a problem.
class finisher_t {
public:
    // listed: rows of a grouped_matmul that belong to no group do not change; otherwise all rows are
    // finished. applied: all post-ops have been applied, before rows were added.
    finisher_t(const exec_ctx_t &ctx, bool listed, bool applied = false);

    // Calls sweep(sweep_t) for each sweep. It computes all results and has them finished.
    template <typename F>
    status_t run(F &&sweep) {
        if (!args_.all.m.dynamic_global) return sweep(sweep_t::all);
        MXDNN_CHECK(launch(finish_step_t::clear_globals));
        MXDNN_CHECK(sweep(sweep_t::looks));
        MXDNN_CHECK(launch(finish_step_t::make_globals));
        return sweep(sweep_t::stores);
    }

    // Finishes rows [first, first + count) of the destination, from sums with a bias in f32 at `values`.
    // kept: these are results of the previous sweep.
    status_t finish(sweep_t sweep, void *values, int64_t first, int64_t count, bool kept);

private:
    const exec_ctx_t &ctx_;
    const problem_t &p_;
    bool codes_, quick_, applied_;
    finish_results_args_t args_{};

    bool quantises_quickly() const;
    status_t quantise();
    status_t launch(finish_step_t step);
};

// For rows that are added: whether their post-ops can be applied before the addition, column by column; and
// applies them and the weights of rows to the rows of x's list, in place, `stride` elements apart.
bool applies_post_ops_before_sums(const problem_t &p);
status_t apply_post_ops_before_sums(
        const exec_ctx_t &ctx, const grouped_exec_t &x, float *rows, int64_t stride, int64_t columns);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

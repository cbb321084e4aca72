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

// Of a problem whose results are finished apart: how many rows there is room for, what they take of the
// scratchpad, and how far they are apart there, in elements.
int64_t results_at_once(const problem_t &p);
int64_t results_bytes(const problem_t &p);
int64_t results_stride(const problem_t &p);

// Results are made once and all is done with them; or twice, or once and kept, since a global scale is
// computed of all of them before the first becomes codes.
enum class sweep_t { all, looks, stores };

// One execution of such a problem.
class finisher_t {
public:
    // listed: rows of a grouped_matmul that belong to no group stay as they are; else they are all finished.
    // applied: all post-ops have been, where rows met.
    finisher_t(const exec_ctx_t &ctx, bool listed, bool applied = false);

    // Calls sweep(sweep_t) for each of them: it makes all results, and has them finished.
    template <typename F>
    status_t run(F &&sweep) {
        if (!args_.all.m.dynamic_global) return sweep(sweep_t::all);
        MXDNN_CHECK(launch(finish_step_t::clear_globals));
        MXDNN_CHECK(sweep(sweep_t::looks));
        MXDNN_CHECK(launch(finish_step_t::make_globals));
        return sweep(sweep_t::stores);
    }

    // Rows [first, first + count) of the destination, from sums with a bias, in f32 at `values`. kept: they
    // are those that this has made of the sweep before.
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

// Of rows that meet: whether their post-ops can be applied before they do, one column by itself; and
// applies them and the weights of rows to the rows of x's list, where they stand, `stride` elements apart.
bool applies_post_ops_before_sums(const problem_t &p);
status_t apply_post_ops_before_sums(
        const exec_ctx_t &ctx, const grouped_exec_t &x, float *rows, int64_t stride, int64_t columns);

} // namespace cuda
} // namespace impl
} // namespace mxdnn

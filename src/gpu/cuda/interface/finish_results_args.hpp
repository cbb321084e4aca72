// SPDX-License-Identifier: Apache-2.0
// What device/kernels/finish_results.cu and quantise_results.cu are told: rows of a matmul's results, in f32,
// on their way to the destination.
#pragma once

#include "gpu/cuda/interface/quantise_results_args.hpp"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

enum class finish_step_t : int32_t {
    clear_globals, // where the largest magnitudes of results are collected
    apply_ops,     // the steps after sums and bias: in place, or to the destination
    make_globals,
    store_codes, // of any form
    quantise,    // to MX and NVFP4, as quantise_results_args_t says
};

struct finish_results_args_t {
    grouped_args_t all; // for an mx_matmul only `m`
    bool grouped = false;
    bool listed = false; // rows of no group, or of an expert that is not here, do not change
    finish_step_t step = finish_step_t::apply_ops;
    float *values = nullptr;     // from row `first` on
    int64_t stride = 0;          // elements, a multiple of 8
    int64_t first = 0, rows = 0; // rows of the destination, counted through its matrices
    // For apply_ops.
    bool applies = false;                  // applies post-ops; otherwise they have been applied
    bool finds_largest = false;            // for the global scales
    bool to_dst = false;                   // writes dst, of f32, bf16 or f16 with contiguous columns
    packed::quantise_results_args_t quick; // for quantise
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

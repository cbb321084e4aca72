// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured in this process: the limit that kernels are held against.
#pragma once

namespace bench {

struct ceilings_t {
    double read_gbs = 0;    // GB/s: the best of several numbers of streams per thread
    double copy_gbs = 0;    // GB/s read plus written
    double bf16_gflops = 0; // of the fastest exact dot-product instruction for bf16 products
    double f32_gflops = 0;
    const char *bf16_instruction = "", *f32_instruction = "";
    int streams = 1; // that read_gbs was reached with
};

// Measured once per number of threads, then kept.
const ceilings_t &ceilings(int threads);

} // namespace bench

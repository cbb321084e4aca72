// SPDX-License-Identifier: Apache-2.0
// GoogleTest in every rank: rank 0 speaks, and the others say what failed.
#pragma once

#include <cstdint>

namespace ep_test {

constexpr int64_t timeout_ms = 60000; // of what is meant to succeed, on a machine that is busy

// The same on all ranks; MXDNN_TEST_SEED repeats a run.
unsigned seed_of_run();

// What main() of such a program does.
int run_on_all_ranks(int argc, char **argv);

} // namespace ep_test

// SPDX-License-Identifier: Apache-2.0
// What holds for a whole command line, and the tally of its tests.
#pragma once

#include <cstdint>
#include <string>

#include "mxdnn/mxdnn.hpp"

namespace bench {

struct settings_t {
    // Mode letters.
    bool list = false, init = false, run = false, correctness = true, performance = false;
    std::string engine = "cpu"; // or a target
    int threads = 0;            // 0: the machine's
    uint32_t seed = 1;
    std::string impl;         // only implementations whose name contains this
    bool best_only = false;   // correctness of the first implementation, not of all
    std::string against;      // peer to time beside
    bool plant_fault = false; // alter a result before it is compared: the self-test of comparisons
    bool cold_weights = false;
    bool small_pages = false; // data of problems, as in a file that is mapped
    bool random = false;      // problems are being drawn at random
    int64_t random_size = 1;  // ... so many times as large as usual, at most
    double ms_per_problem = 600;
    std::string perf_template =
            "perf,%engine%,%impl%,%prb%,%Gops%,%time%,%Gflops%,%gbw%,%roof%,%against%,%vs%";
};

// Outcomes of the problems of a run.
struct tally_t {
    int passed = 0, skipped = 0, refused = 0, failed = 0, total = 0;
};

extern settings_t settings;
extern tally_t tally;

// Refused by the library with a message, which is allowed for a problem drawn at random.
enum class outcome_t { passed, skipped, refused, failed, listed };

// Counts the outcome and prints its line: "3:PASSED (12 ms) __REPRO: --mx_matmul ...".
void report(outcome_t outcome, const std::string &repro, const std::string &note, double ms);

mxdnn::engine make_engine();
// One for all problems of an engine. That of a device has scratchpads, which take time to allocate.
mxdnn::stream stream_of(const mxdnn::engine &e);

} // namespace bench

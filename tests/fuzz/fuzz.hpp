// SPDX-License-Identifier: Apache-2.0
// What a fuzz target is: libFuzzer's entry point, and good inputs to start from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using fuzz_input_t = std::vector<uint8_t>;

// Aborts where a rule of the target is broken; its result is 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

std::vector<fuzz_input_t> fuzz_seeds();

#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                     \
            std::abort();                                                                                    \
        }                                                                                                    \
    } while (0)

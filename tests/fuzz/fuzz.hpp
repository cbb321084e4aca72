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

// Whether a terminal can print it: bytes of an input have become escapes.
inline bool is_sentence(const char *text) {
    for (const char *c = text; *c; c++)
        if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    return *text != 0;
}

#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                     \
            std::abort();                                                                                    \
        }                                                                                                    \
    } while (0)

// SPDX-License-Identifier: Apache-2.0
// How a program ends that says its results on standard output.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

// The status of the program. What was not written was not said; to a reader that has gone there is nothing to
// say.
inline int end_of_output(const char *program, int status) {
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
    if (errno != EPIPE)
        std::fprintf(stderr, "%s: cannot write to standard output: %s\n", program, std::strerror(errno));
    return status ? status : 1;
}

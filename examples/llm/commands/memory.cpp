// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <cstdio>

#include <sys/resource.h>

namespace llm {

void print_memory(const model_t &m) {
    fflush(stdout); // what was printed before comes first where both are one terminal or file
    rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        fprintf(stderr, "peak memory of the host: %.2f GB", double(usage.ru_maxrss) * 1024e-9);
    if (const size_t device = m.engine->device_bytes())
        fprintf(stderr, ", memory of the device: %.2f GB", double(device) * 1e-9);
    fprintf(stderr, "\n");
}

} // namespace llm

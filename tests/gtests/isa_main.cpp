// SPDX-License-Identifier: Apache-2.0
// main() of tests that run once under every ISA cap. Skips with a message where the machine lacks the ISA.
// Fails where the requested cap is not in force.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "cpu/cpu_settings.hpp"
#include "cpu/x64/isa.hpp"

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    using namespace mxdnn::impl;
    if (const char *wanted = std::getenv("MXDNN_TEST_REQUIRE_ISA")) {
        const char *active = x64::isa_name(best_cpu_isa());
        if (std::strcmp(wanted, active) != 0) {
            x64::cpu_isa_t isa;
            if (!x64::isa_from_name(wanted, &isa) || x64::mayiuse(isa)) {
                std::printf("the cap %s is not in force: %s is\n", wanted, active);
                return 1;
            }
            std::printf("MXDNN_SKIP_ALL: this machine has %s, not %s\n", active, wanted);
            return 0;
        }
    }
    return RUN_ALL_TESTS();
}

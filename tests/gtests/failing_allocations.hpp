// SPDX-License-Identifier: Apache-2.0
// Memory that runs out when a test says so; link failing_allocations.cpp, which stands in for malloc, its
// relatives and mmap. operator new asks malloc.
#pragma once

#include <cstdint>

namespace failing {

// The n-th allocation from now on fails, counted from 1 over all threads, and where `and_all_after`, all
// after it.
void arm(int64_t n, bool and_all_after);
// Allocations of threads other than this one fail.
void arm_others();
// Nothing fails any more. True: something did.
bool disarm();

// Allocations that have not been given back.
int64_t live();

} // namespace failing

// SPDX-License-Identifier: Apache-2.0
// Allocations that fail when a test asks for it. Link failing_allocations.cpp, which replaces malloc, its
// relatives and mmap. operator new calls malloc.
#pragma once

#include <cstdint>

namespace failing {

// The n-th allocation from now on fails, counted from 1 over all threads. With `and_all_after`, all later
// ones fail too.
void arm(int64_t n, bool and_all_after);
// Allocations of threads other than this one fail.
void arm_others();
// Ends the failures. Returns true if an allocation failed.
bool disarm();

// Number of allocations that have not been freed.
int64_t live();

} // namespace failing

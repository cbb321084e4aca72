// SPDX-License-Identifier: Apache-2.0
// Number of operator new calls of this program so far; link count_allocations.cpp.
#pragma once

long count_of_allocations();

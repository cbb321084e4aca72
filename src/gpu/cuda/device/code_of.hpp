// SPDX-License-Identifier: Apache-2.0
// Which of the code that a file is compiled to a device runs. A device of a later architecture than those
// that were named at build time runs code of an earlier one, which lacks the instructions of its own.
#pragma once

#include <initializer_list>

namespace mxdnn {
namespace impl {
namespace cuda {

// The architecture (900 for 9.0) of the code that a device of this capability (90 for 9.0) runs, of a file
// that is compiled for these, in ascending order: machine code of its own major version, else the PTX of the
// least one.
constexpr int code_of(std::initializer_list<int> compiled_for, int capability) {
    int code = *compiled_for.begin();
    for (int a : compiled_for)
        if (a / 100 == capability / 10 && a <= capability * 10) code = a;
    return code;
}

static_assert(
        code_of({800, 900}, 86) == 800 && code_of({800, 900}, 90) == 900, "machine code of 8.0 and 9.0");
static_assert(code_of({800}, 90) == 800, "PTX of 8.0 on 9.0");
static_assert(code_of({800, 900}, 100) == 800, "PTX of 8.0 on 10.0, not machine code of 9.0");
static_assert(code_of({800, 1000}, 103) == 1000, "machine code of 10.0 on 10.3");
static_assert(code_of({800, 1030}, 100) == 800, "no machine code of 10.3 on 10.0");
static_assert(code_of({900, 1000}, 120) == 900, "PTX of 9.0 on 12.0");

} // namespace cuda
} // namespace impl
} // namespace mxdnn

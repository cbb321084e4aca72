// SPDX-License-Identifier: Apache-2.0
// The C++ headers in a program without exceptions: what is right works, and a mistake ends the program with
// the sentence that an exception would have had.
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#error "this file is compiled with -fno-exceptions"
#endif
#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_cuda.hpp"
#include "mxdnn/mxdnn_threadpool.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

int main() {
    using mxdnn::memory;
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    memory m(memory::desc({2, 3}, memory::data_type::f32, memory::format_tag::ab), eng);
    if (m.get_desc().get_size() != 24) return 1;

    std::signal(SIGABRT, [](int) {
        std::puts("aborted as it should");
        std::fflush(stdout);
        std::_Exit(0);
    });
    const memory::desc refused(memory::dims{2, -3}, memory::data_type::f32, memory::format_tag::ab);
    std::puts("a mistake went on");
    return 1;
}

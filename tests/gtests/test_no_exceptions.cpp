// SPDX-License-Identifier: Apache-2.0
// The C++ headers in a program without exceptions. Right calls work. A mistake ends the program with the
// sentence that an exception would contain.
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#error "this file is compiled with -fno-exceptions"
#endif
#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_cuda.hpp"
#include "mxdnn/mxdnn_threadpool.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

int main() {
    using mxdnn::memory;
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    memory m(memory::desc({2, 3}, memory::data_type::f32, memory::format_tag::ab), eng);
    if (m.get_desc().get_size() != 24) return 1;

    std::signal(SIGABRT, [](int) {
        // A signal handler may call few other functions.
        static constexpr char text[] = "aborted as it should\n";
        const ssize_t written = write(STDOUT_FILENO, text, sizeof(text) - 1);
        std::_Exit(written > 0 ? 0 : 1);
    });
    const memory::desc refused(memory::dims{2, -3}, memory::data_type::f32, memory::format_tag::ab);
    std::puts("a mistake went on");
    return 1;
}

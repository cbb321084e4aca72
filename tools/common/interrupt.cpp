// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace interrupt {

namespace {

// The thread that runs the handler and those that look are others.
std::atomic<int> kept{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may use nothing else");

extern "C" void keep(int signal) { kept.store(signal, std::memory_order_relaxed); }

} // namespace

void install() {
    struct sigaction action = {}, old;
    action.sa_handler = keep;
    action.sa_flags = int(SA_RESETHAND);
    for (const int s : {SIGINT, SIGTERM, SIGHUP})
        if (sigaction(s, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(s, &action, nullptr); // nohup
    for (const int s : {SIGXFSZ, SIGPIPE}) std::signal(s, SIG_IGN);
}

int received() { return kept.load(std::memory_order_relaxed); }

void check() {
    if (const int signal = received()) throw std::runtime_error("ended by signal " + std::to_string(signal));
}

void finish(int signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    std::_Exit(128 + signal); // where the signal is blocked
}

} // namespace interrupt

// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace interrupt {

namespace {

volatile std::sig_atomic_t kept = 0;

extern "C" void keep(int signal) { kept = signal; }

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

int received() { return kept; }

void check() {
    if (kept) throw std::runtime_error("ended by signal " + std::to_string(int(kept)));
}

void finish(int signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    std::_Exit(128 + signal); // where the signal is blocked
}

} // namespace interrupt

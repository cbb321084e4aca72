// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP as something to look at, so that work in progress is undone before the program
// ends.
#pragma once

namespace interrupt {

// From now on the first of these signals is kept; a second one ends the program at once. Files that grow too
// large and pipes that nobody reads are errors of write() instead of signals.
void install();

// The signal that has come, or 0.
int received();

// Throws std::runtime_error when one has.
void check();

// Ends the program by that signal, so that its parent sees it.
[[noreturn]] void finish(int signal);

} // namespace interrupt

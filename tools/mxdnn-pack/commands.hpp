// SPDX-License-Identifier: Apache-2.0
// What mxdnn-pack does; doc/reference/mxdnn-pack.md. Every command throws std::exception with a sentence.
#pragma once

#include <mxdnn/mxdnn.hpp>

#include "options.hpp"

namespace mxdnn_pack {

mxdnn::engine make_engine(const options_t &options);
// How many threads; the library itself then works in the thread that calls it.
unsigned use_threads(const options_t &options);

void pack(const options_t &options);
void unpack(const options_t &options);
// Prints a line per packed tensor; returns whether all are whole and usable on the target.
bool list(const options_t &options);
// Prints what is damaged; returns whether all is whole.
bool verify(const options_t &options);
// Prints how far packed weights are from what they were made of, worst first.
void diff(const options_t &options);

} // namespace mxdnn_pack

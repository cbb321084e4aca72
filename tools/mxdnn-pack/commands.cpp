// SPDX-License-Identifier: Apache-2.0
// What all commands begin with.
#include "commands.hpp"

namespace mxdnn_pack {

mxdnn::engine make_engine(const options_t &o) {
    return o.target.empty() ? mxdnn::engine(mxdnn::engine::kind::cpu, 0)
                            : mxdnn::engine::for_target(o.target);
}

unsigned use_threads(const options_t &o) {
    const int all = mxdnn::get_max_concurrency();
    (void)mxdnn::set_max_concurrency(1);
    return o.threads ? o.threads : unsigned(all);
}

} // namespace mxdnn_pack

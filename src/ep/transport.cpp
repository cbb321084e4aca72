// SPDX-License-Identifier: Apache-2.0
#include "ep/transport.hpp"

#include <cstdio>

namespace mxdnn {
namespace ep {
namespace impl {

void transport_t::defer(status_t status) {
    if (deferred_ != mxdnn_success) return;
    deferred_ = status;
    std::snprintf(why_deferred_, sizeof(why_deferred_), "%s", last_error());
}

void transport_t::take_deferred(verdict_t &verdict) {
    const status_t status = deferred_;
    deferred_ = mxdnn_success;
    if (status == mxdnn_success || verdict.status != mxdnn_success) return;
    fail(status, "%s", why_deferred_);
    verdict =
            make_verdict(status, rank_, question_t(verdict.question), verdict.values, verdict_t::max_values);
}

const transport_info_t *find_transport(mxdnn_ep_transport_t id) {
    for (const transport_info_t *t = transports; t->name; t++)
        if (t->id == id) return t;
    return nullptr;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn

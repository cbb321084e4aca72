// SPDX-License-Identifier: Apache-2.0
// What threads are to do: a reference to a function of a thread's number and the number of threads.
#pragma once

namespace mxdnn {
namespace impl {

struct body_t {
    const void *object = nullptr;
    void (*function)(const void *object, int ithr, int nthr) = nullptr;

    void operator()(int ithr, int nthr) const { function(object, ithr, nthr); }
};

template <typename F>
body_t body_of(const F &f) {
    return {&f,
            [](const void *object, int ithr, int nthr) { (*static_cast<const F *>(object))(ithr, nthr); }};
}

} // namespace impl
} // namespace mxdnn

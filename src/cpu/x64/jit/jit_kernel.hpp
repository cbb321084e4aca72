// SPDX-License-Identifier: Apache-2.0
// A kernel that was generated at run time, as its callers see it.
#pragma once

#include <cstddef>

namespace mxdnn {
namespace impl {
namespace x64 {

class jit_kernel_t {
public:
    virtual ~jit_kernel_t() = default;

    const char *name() const { return name_; }
    const void *code() const { return code_; }
    size_t code_size() const { return code_size_; }

    // args is the structure of the kernel's kind (kernel_types.hpp).
    void operator()(const void *args) const { reinterpret_cast<void (*)(const void *)>(code_)(args); }

protected:
    const char *name_ = nullptr; // of the row in the kernel list: it outlives every kernel
    void *code_ = nullptr;
    size_t code_size_ = 0;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn

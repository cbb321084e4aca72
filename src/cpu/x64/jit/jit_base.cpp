// SPDX-License-Identifier: Apache-2.0
// Where code is generated, its constants, and the way to a kernel.
#include "cpu/x64/jit/jit_base.hpp"

#include <cstring>

#include "common/per_thread.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// No kernel is larger than this.
struct alignas(64) code_buffer_t {
    uint8_t bytes[256 << 10];
};

// Null if there is no memory.
uint8_t *code_buffer() {
    code_buffer_t *const buffer = per_thread_t<code_buffer_t>::get();
    return buffer ? buffer->bytes : nullptr;
}

} // namespace

jit_base_t::jit_base_t() : jit_base_t(code_buffer()) {}

// Xbyak must not allocate memory itself, because it would make its pages writable and executable. If there is
// no memory, it gets a buffer that has no room for code.
jit_base_t::jit_base_t(uint8_t *buffer)
    : Xbyak::CodeGenerator(buffer ? sizeof(code_buffer_t) : size_t(max_constants) * constant_bytes,
            buffer ? buffer : no_code),
      begin_(const_cast<uint8_t *>(getCode()) + max_constants * constant_bytes) {
    if (!buffer) Xbyak::local::SetError(Xbyak::ERR_CANT_ALLOC);
    setSize(size_t(max_constants) * constant_bytes);
}

alignas(64) uint8_t jit_base_t::no_code[max_constants * constant_bytes];

Xbyak::Address jit_base_t::constant(const void *bytes, size_t n) {
    if (constants_ == max_constants) Xbyak::local::SetError(Xbyak::ERR_CODE_IS_TOO_BIG);
    if (Xbyak::GetError())
        return ptr[rip + static_cast<const void *>(begin_)]; // no code is produced in this case
    uint8_t *const made = place_of_constant(constants_);
    for (size_t at = 0; at < constant_bytes; at += n) std::memcpy(made + at, bytes, n);
    const auto differs = [&](const uint8_t *other) {
        uint64_t a, b; // most constants differ in the first 8 bytes
        std::memcpy(&a, made, sizeof(a));
        std::memcpy(&b, other, sizeof(b));
        return a != b || std::memcmp(other, made, constant_bytes) != 0;
    };
    int i = 0;
    while (differs(place_of_constant(i))) i++;
    if (i == constants_) constants_++;
    return ptr[rip + static_cast<const void *>(place_of_constant(i))];
}

status_t jit_base_t::finish(const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    if (!Xbyak::GetError()) generate();
    if (!Xbyak::GetError()) ready();
    if (const int error = Xbyak::GetError()) {
        *reason = Xbyak::ConvertErrorToString(error);
        Xbyak::ClearError();
        return error == Xbyak::ERR_CANT_ALLOC ? mxdnn_out_of_memory : mxdnn_runtime_error;
    }
    const size_t entry = size_t(constants_) * constant_bytes;
    return jit_kernel_t::make(
            name, begin_ - entry, size_t(getCurr() - begin_) + entry, entry, kernel, reason);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

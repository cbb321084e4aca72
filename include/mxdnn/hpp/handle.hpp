// SPDX-License-Identifier: Apache-2.0
/// @file
/// Shared ownership of the C API's objects.
#ifndef MXDNN_HPP_HANDLE_HPP
#define MXDNN_HPP_HANDLE_HPP

#include <memory>

#include "mxdnn/hpp/error.hpp"

namespace mxdnn {

/// How a C handle is released; one specialisation for each kind of object.
template <typename T>
struct handle_traits {};

/// Shared ownership of one C object. Empty until reset() or a constructor fills it.
template <typename T>
class handle {
public:
    /// Empty.
    handle() = default;

    /// Owns `t` from now on. When `weak`, it only refers to `t`, whose owner must live longer.
    explicit handle(T t, bool weak = false) { reset(t, weak); }

    /// Releases the present object, then does what the constructor does.
    void reset(T t, bool weak = false) { data_.reset(static_cast<void *>(t), weak ? leave : destroy); }

    /// The C handle. If there is none, it throws, or returns null with `allow_empty`.
    T get(bool allow_empty = false) const {
        if (!data_ && !allow_empty) error::raise(mxdnn_invalid_arguments, "object is not initialized");
        return static_cast<T>(data_.get());
    }

    /// Whether there is an object.
    explicit operator bool() const { return static_cast<bool>(data_); }

protected:
    /// Whether both refer to the same object.
    bool is_same(const handle &other) const { return data_ == other.data_; }

private:
    static void destroy(void *t) { handle_traits<T>::destroy(static_cast<T>(t)); }
    static void leave(void *) {}

    // Of void: owners of all kinds of objects are the same type, which compiles once.
    std::shared_ptr<void> data_;
};

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
// Objects that each thread has one of.
#pragma once

#include <memory>
#include <new>

#include <pthread.h>

namespace mxdnn {
namespace impl {

// Created when a thread first asks for it, destroyed when the thread ends. A thread_local object of a class
// would end the process if its destructor cannot be registered for lack of memory.
template <typename T>
class per_thread_t {
public:
    // The object of this thread; null if there is no memory.
    static T *get() {
        if (value_) return value_;
        static const key_t key;
        std::unique_ptr<T> made(new (std::nothrow) T);
        if (!made || !key.known || pthread_setspecific(key.key, made.get()) != 0) return nullptr;
        return value_ = made.release();
    }

private:
    struct key_t {
        pthread_key_t key;
        const bool known;
        key_t() : known(pthread_key_create(&key, destroy) == 0) {}
        key_t(const key_t &) = delete;
        key_t &operator=(const key_t &) = delete;
        // The library may be unloaded before its threads end.
        ~key_t() {
            if (known) pthread_key_delete(key);
        }
    };
    static void destroy(void *value) {
        value_ = nullptr;
        delete static_cast<T *>(value);
    }

    static inline thread_local T *value_ = nullptr;
};

} // namespace impl
} // namespace mxdnn

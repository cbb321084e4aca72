// SPDX-License-Identifier: Apache-2.0
#include "common/scratchpad.hpp"

#include <atomic>
#include <cstddef>
#include <new>

#include "common/per_thread.hpp"

namespace mxdnn {
namespace impl {

namespace {
// Aligned. Counted like all other allocations of the library.
constexpr std::align_val_t alignment{64};

enum state_t { idle, taken, left_behind }; // left_behind: taken, and its thread has ended
} // namespace

struct scratch_buffer_t {
    char *data = nullptr;
    int64_t size = 0;
    std::atomic<state_t> state{idle};
    scratch_buffer_t *next = nullptr;

    ~scratch_buffer_t() { ::operator delete(data, alignment); }
    bool grow(int64_t bytes) {
        ::operator delete(data, alignment);
        data = static_cast<char *>(::operator new(std::size_t(bytes), alignment, std::nothrow));
        size = data ? bytes : 0;
        return data != nullptr;
    }
};

namespace {

struct thread_buffers_t {
    scratch_buffer_t *first = nullptr;

    ~thread_buffers_t() {
        for (scratch_buffer_t *b = first, *next = nullptr; b; b = next) {
            next = b->next;
            if (b->state.exchange(left_behind) == idle) delete b;
        }
        first = nullptr;
    }

    // The smallest idle buffer that is large enough, or the largest one after growing it. So the executions
    // that run at the same time in this thread soon have buffers that suffice. Only this thread takes idle
    // buffers.
    scratch_buffer_t *find(int64_t bytes) {
        scratch_buffer_t *best = nullptr;
        for (scratch_buffer_t *b = first; b; b = b->next) {
            if (b->state.load(std::memory_order_acquire) != idle) continue;
            const bool better =
                    !best
                    || (best->size < bytes ? b->size > best->size : b->size >= bytes && b->size < best->size);
            if (better) best = b;
        }
        if (!best) {
            best = new (std::nothrow) scratch_buffer_t;
            if (!best) return nullptr;
            best->next = first;
            first = best;
        }
        return best->size >= bytes || best->grow(bytes) ? best : nullptr;
    }
};

scratch_buffer_t *find_buffer(int64_t bytes) {
    thread_buffers_t *const buffers = per_thread_t<thread_buffers_t>::get();
    return buffers ? buffers->find(bytes) : nullptr;
}

} // namespace

char *scratchpad_t::take(int64_t bytes) {
    scratch_buffer_t *b = find_buffer(bytes);
    if (!b) return nullptr;
    b->state.store(taken, std::memory_order_relaxed);
    buffer_ = b;
    return b->data;
}

scratchpad_t::~scratchpad_t() {
    if (!buffer_) return;
    state_t expected = taken;
    if (!buffer_->state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel)) delete buffer_;
}

bool reserve_scratchpad(int64_t bytes) { return find_buffer(bytes) != nullptr; }

} // namespace impl
} // namespace mxdnn

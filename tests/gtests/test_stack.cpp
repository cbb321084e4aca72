// SPDX-License-Identifier: Apache-2.0
// Executions need little stack, with any implementation of any primitive: doc/reference/threads.md says how
// much.
#include <pthread.h>
#include <sys/mman.h>

#include "executed_problems.hpp"

using namespace api_test;

namespace {

// A thread's stack whose bytes tell whether they were written. Below it is a page that cannot be accessed.
class painted_stack_t {
public:
    static constexpr size_t bytes = 1 << 20;
    painted_stack_t() {
        base_ = static_cast<uint8_t *>(mmap(nullptr, guard + bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (base_ == MAP_FAILED || mprotect(base_, guard, PROT_NONE) != 0) std::abort();
    }
    painted_stack_t(const painted_stack_t &) = delete;
    painted_stack_t &operator=(const painted_stack_t &) = delete;
    ~painted_stack_t() { munmap(base_, guard + bytes); }

    // The bytes that work() takes, with those of an empty thread.
    template <typename F>
    size_t of(F &&work) {
        std::memset(base_ + guard, paint, bytes);
        pthread_attr_t attr;
        pthread_t thread;
        pthread_attr_init(&attr);
        pthread_attr_setstack(&attr, base_ + guard, bytes);
        const auto run = [](void *w) -> void * {
            (*static_cast<std::remove_reference_t<F> *>(w))();
            return nullptr;
        };
        if (pthread_create(&thread, &attr, run, &work) != 0) std::abort();
        pthread_join(thread, nullptr);
        pthread_attr_destroy(&attr);
        const uint8_t *p = base_ + guard;
        while (p < base_ + guard + bytes && *p == paint) p++;
        return size_t(base_ + guard + bytes - p);
    }

private:
    static constexpr size_t guard = 1 << 16;
    static constexpr uint8_t paint = 0xa5;
    uint8_t *base_;
};

} // namespace

// The largest is that of a reorder whose blocks all hold NaN, with AVX-512: 74 KB. Compilers differ.
TEST(stack, of_executions) {
    constexpr size_t most = 96 << 10;
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(1);
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const mxdnn::stream str(eng);
    painted_stack_t stack;
    const size_t empty = stack.of([] {});
    for_each_execution(eng, [&](auto kind, auto pd, const std::vector<std::pair<int, memory>> &args) {
        using prim_t = typename decltype(kind)::type;
        const std::vector<mxdnn_exec_arg_t> list = in_c(args);
        do {
            const prim_t prim(pd);
            const auto execute = [&] {
                mxdnn_status_t status = mxdnn_runtime_error;
                const size_t used = stack.of([&] {
                    status = mxdnn_primitive_execute(prim.get(), str.get(), int(list.size()), list.data());
                });
                EXPECT_OK(status);
                EXPECT_LE(used - empty, most) << pd.impl_info_str();
            };
            execute();
            if (!std::is_same<prim_t, mxdnn::mx_reorder>::value) continue;
            const memory &from = args[0].second;
            std::memset(from.get_data_handle(), 0xff, from.get_desc().get_size());
            execute();
            std::memset(from.get_data_handle(), 0, from.get_desc().get_size());
        } while (pd.next_impl());
    });
}

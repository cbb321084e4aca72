// SPDX-License-Identifier: Apache-2.0
// Executions allocate nothing, with any implementation of any primitive. test_grouped_matmul has more of
// grouped_matmul.
#include "count_allocations.hpp"
#include "executed_problems.hpp"

using namespace api_test;

TEST(no_allocations, in_executions) {
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(1); // threads of oneTBB allocate when they first join
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const mxdnn::stream str(eng);
    // Every implementation, the first execution, too.
    for_each_execution(eng, [&](auto kind, auto pd, const std::vector<std::pair<int, memory>> &args) {
        const std::vector<mxdnn_exec_arg_t> list = in_c(args);
        std::string last;
        do {
            SCOPED_TRACE(last = pd.impl_info_str());
            const typename decltype(kind)::type prim(pd);
            for (int i = 0; i < 2; i++) {
                const long before = count_of_allocations();
                EXPECT_OK(mxdnn_primitive_execute(prim.get(), str.get(), int(list.size()), list.data()));
                EXPECT_EQ(count_of_allocations() - before, 0);
            }
        } while (pd.next_impl());
        EXPECT_EQ(last.substr(0, 4), "ref:");
    });
}

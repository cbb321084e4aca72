// SPDX-License-Identifier: Apache-2.0
// What kernels stand on: the ISA in force, and memory that holds code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "cpu/x64/jit/jit_dump.hpp"
#include "cpu/x64/jit/jit_profile.hpp"
#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

TEST(isa, cap_limits_what_may_be_used) {
    const cpu_isa_t cap = isa_cap();
    set_isa_cap(cpu_isa_t::avx512_core_amx);
    const cpu_isa_t machine = best_isa();
    std::printf("this machine has %s\n", isa_name());
    for (int i = 0; i <= int(cpu_isa_t::avx512_core_amx); i++) {
        const cpu_isa_t isa = cpu_isa_t(i);
        EXPECT_EQ(mayiuse(isa), isa <= machine) << isa_name(isa);
        set_isa_cap(isa);
        EXPECT_EQ(best_isa(), std::min(isa, machine));
        EXPECT_STREQ(isa_name(), isa_name(std::min(isa, machine)));
        set_isa_cap(cpu_isa_t::avx512_core_amx);

        cpu_isa_t found = cpu_isa_t::none;
        EXPECT_EQ(isa_from_name(isa_name(isa), &found), isa != cpu_isa_t::none);
        EXPECT_EQ(found, isa);
    }
    cpu_isa_t unknown = cpu_isa_t::avx2;
    EXPECT_FALSE(isa_from_name("avx3", &unknown));
    EXPECT_EQ(unknown, cpu_isa_t::avx2);
    set_isa_cap(cap);
}

TEST(isa, caches_have_a_size) {
    const cache_sizes_t &c = cache_sizes();
    std::printf("L1d %lld, L2 %lld, L3 per core %lld bytes\n", (long long)c.l1d, (long long)c.l2,
            (long long)c.l3_per_core);
    EXPECT_GE(c.l1d, 8 << 10);
    EXPECT_GT(c.l2, c.l1d);
    EXPECT_GT(c.l3_per_core, 0);
}

TEST(jit, dump_writes_the_code) {
    if (!mayiuse(cpu_isa_t::avx2)) GTEST_SKIP() << "no kernel runs here: this machine lacks avx2";
    std::string dir = ::testing::TempDir() + "mxdnn_test_XXXXXX";
    ASSERT_TRUE(mkdtemp(&dir[0]));
    char *const before = getcwd(nullptr, 0);
    ASSERT_TRUE(before && chdir(dir.c_str()) == 0);
    const kernel_row_t *row = find_kernel(kernel_kind_t::dense, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto silent = make(*row, {}, 1, 1, 1);
    // A link that stands there is replaced and not followed.
    const std::string path = "mxdnn_dump_" + std::string(row->name) + ".0.bin";
    ASSERT_EQ(symlink("elsewhere", path.c_str()), 0);
    set_jit_dump(true);
    const auto kernel = make(*row, {}, 1, 1, 1);
    set_jit_dump(false);
    EXPECT_NE(access("elsewhere", F_OK), 0) << "the link was followed";
    std::FILE *f = std::fopen(path.c_str(), "rb");
    ASSERT_TRUE(f) << path;
    std::vector<uint8_t> bytes(kernel->code_size() + 1);
    const size_t n = std::fread(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
    EXPECT_EQ(n, kernel->code_size());
    EXPECT_EQ(std::memcmp(bytes.data(), kernel->code(), kernel->code_size()), 0);
    EXPECT_NE(std::remove(path.c_str()), -1);
    EXPECT_EQ(chdir(before), 0);
    EXPECT_EQ(rmdir(dir.c_str()), 0) << "more than one dump was written";
    std::free(before);
}

TEST(jit, profile_writes_a_line_for_perf) {
    if (!mayiuse(cpu_isa_t::avx2)) GTEST_SKIP() << "no kernel runs here: this machine lacks avx2";
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map"; // where perf looks
    std::remove(path.c_str());
    const kernel_row_t *row = find_kernel(kernel_kind_t::dense, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto silent = make(*row, {}, 1, 1, 1);
    set_jit_profile(true);
    const auto kernel = make(*row, {}, 1, 1, 1);
    set_jit_profile(false);
    std::FILE *f = std::fopen(path.c_str(), "r");
    ASSERT_TRUE(f) << path;
    unsigned long long at = 0;
    size_t size = 0;
    char name[128], more;
    EXPECT_EQ(std::fscanf(f, "%llx %zx %127s", &at, &size, name), 3);
    EXPECT_EQ(std::fscanf(f, " %c", &more), EOF) << "more than one line was written";
    std::fclose(f);
    std::remove(path.c_str());
    EXPECT_EQ(at, reinterpret_cast<uintptr_t>(kernel->code()));
    EXPECT_EQ(size, kernel->code_size());
    EXPECT_STREQ(name, row->name);
}

// Code must not be writable once it can be executed.
TEST(jit, code_is_not_writable) {
    if (!mayiuse(cpu_isa_t::avx2)) GTEST_SKIP() << "no kernel runs here: this machine lacks avx2";
    const kernel_row_t *row = find_kernel(kernel_kind_t::dense, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto kernel = make(*row, {}, 1, 1, 1);
    std::FILE *maps = std::fopen("/proc/self/maps", "r");
    ASSERT_TRUE(maps);
    bool found = false;
    char line[512], access[8];
    while (std::fgets(line, sizeof(line), maps)) {
        unsigned long first, last;
        if (std::sscanf(line, "%lx-%lx %7s", &first, &last, access) != 3) continue;
        const auto at = reinterpret_cast<unsigned long>(kernel->code());
        if (at < first || at >= last) continue;
        found = true;
        EXPECT_EQ(std::string(access).substr(0, 3), "r-x");
    }
    std::fclose(maps);
    EXPECT_TRUE(found);
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// What kernels need: the ISA in force, and memory for code.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
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
    set_isa_cap(cpu_isa_t::all);
    const cpu_isa_t machine = best_isa();
    std::printf("this machine has %s\n", isa_name());
    EXPECT_TRUE(mayiuse(cpu_isa_t::none));
    for (const isa_row_t &row : isa_list) {
        EXPECT_EQ(mayiuse(row.isa), includes(machine, row.isa)) << row.name;
        set_isa_cap(row.isa);
        EXPECT_EQ(best_isa(), best_named_isa(machine & row.isa)) << row.name;
        EXPECT_STREQ(isa_name(), isa_name(best_named_isa(machine & row.isa)));
        set_isa_cap(cpu_isa_t::all);
    }
    set_isa_cap(cpu_isa_t::none);
    EXPECT_EQ(best_isa(), cpu_isa_t::none);
    EXPECT_FALSE(mayiuse(cpu_isa_t::avx2));
    set_isa_cap(cap);
}

TEST(isa, names) {
    for (const isa_row_t &row : isa_list) {
        EXPECT_STREQ(isa_name(row.isa), row.name);
        EXPECT_EQ(std::string("cpu:x64:") + row.name, row.target);
        cpu_isa_t found = cpu_isa_t::none;
        EXPECT_TRUE(isa_from_name(row.name, &found));
        EXPECT_EQ(found, row.isa);
    }
    EXPECT_STREQ(isa_name(cpu_isa_t::none), "none");
    cpu_isa_t unknown = cpu_isa_t::avx2;
    EXPECT_FALSE(isa_from_name("avx3", &unknown));
    EXPECT_FALSE(isa_from_name("none", &unknown));
    EXPECT_EQ(unknown, cpu_isa_t::avx2);
    // A set without a name is shown as the first one that has all of it.
    EXPECT_STREQ(isa_name(cpu_isa_t::avx2 | cpu_isa_t(feature_avx512_vnni)), "avx512_core_bf16");
}

// Each row comes after the rows that it includes. So the last row that fits is the best one.
TEST(isa, list_is_in_order) {
    for (const isa_row_t &early : isa_list)
        for (const isa_row_t *late = &early + 1; late != std::end(isa_list); late++)
            EXPECT_FALSE(includes(early.isa, late->isa)) << early.name << " includes " << late->name;
}

// A set is named after the best ISA that it contains completely, whatever else it has.
TEST(isa, sets_are_compared_by_inclusion) {
    const auto without = [](cpu_isa_t set, uint32_t features) {
        return cpu_isa_t(uint32_t(set) & ~features);
    };
    constexpr cpu_isa_t amx = cpu_isa_t::avx512_core_amx;
    EXPECT_EQ(best_named_isa(cpu_isa_t::all), isa_list[std::size(isa_list) - 1].isa);
    EXPECT_EQ(best_named_isa(without(amx, feature_amx_int8)), cpu_isa_t::avx512_core_bf16);
    EXPECT_EQ(best_named_isa(without(amx, feature_avx512_vbmi)), cpu_isa_t::avx512_core); // Cooper Lake
    EXPECT_EQ(best_named_isa(without(amx, feature_avx512)), cpu_isa_t::avx2);
    EXPECT_EQ(best_named_isa(without(amx, feature_avx2)), cpu_isa_t::none);
    EXPECT_EQ(best_named_isa(cpu_isa_t::avx512_core_bf16 | cpu_isa_t(1u << 31)), cpu_isa_t::avx512_core_bf16);
    EXPECT_FALSE(includes(cpu_isa_t::avx512_core_bf16, amx));
    EXPECT_TRUE(includes(amx, cpu_isa_t::avx512_core_bf16));
    EXPECT_TRUE(includes(amx, cpu_isa_t::none));
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
    const kernel_row_t *row = find_kernel(kernel_kind_t::gemm, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto silent = make(*row, {}, 1, 1, 1);
    // An existing link is replaced and not followed.
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
    const kernel_row_t *row = find_kernel(kernel_kind_t::gemm, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto silent = make(*row, {}, 1, 1, 1);
    set_jit_profile(true);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); // a pipe without a reader is not waited for
    ASSERT_TRUE(make(*row, {}, 1, 1, 1));
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK); // with a reader it is not written to
    ASSERT_TRUE(reader >= 0 && make(*row, {}, 1, 1, 1));
    char byte;
    EXPECT_LE(read(reader, &byte, 1), 0);
    ::close(reader);
    std::remove(path.c_str());
    const std::string elsewhere = path + ".elsewhere";
    ASSERT_EQ(symlink(elsewhere.c_str(), path.c_str()), 0); // and a link is not followed
    ASSERT_TRUE(make(*row, {}, 1, 1, 1));
    EXPECT_NE(access(elsewhere.c_str(), F_OK), 0);
    std::remove(path.c_str());
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
    const kernel_row_t *row = find_kernel(kernel_kind_t::gemm, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
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

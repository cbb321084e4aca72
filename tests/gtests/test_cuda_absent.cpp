// SPDX-License-Identifier: Apache-2.0
// Without a device, or without libmxdnn_cuda, the library works, counts no engines, and says what is missing.
// Runs with MXDNN_CUDA_LIBRARY set to a missing file, and to a library that is not part of mxdnn.
#include <fstream>

#include "common/engine.hpp"
#include "gpu/cuda/arch.hpp"
#include "gpu/cuda/library.hpp"
#include "test_api_util.hpp"

using namespace api_test;
namespace cuda = mxdnn::impl::cuda;

namespace {

TEST(cuda_absent, engines_are_refused_with_what_is_missing) {
    EXPECT_EQ(mxdnn_engine_get_count(mxdnn_cuda), 0u);
    mxdnn_engine_t e = nullptr;
    EXPECT_REFUSED(mxdnn_device_unavailable, mxdnn_engine_create(&e, mxdnn_cuda, 0), "cuda engine 0",
            "this machine has 0", "libmxdnn_cuda.so", "/nonexistent/libmxdnn_cuda.so", "MXDNN_CUDA_LIBRARY");
}

TEST(cuda_absent, targets_describe_and_refuse_primitives) {
    const mxdnn::engine e = mxdnn::engine::for_target("cuda:sm_90");
    const mxdnn::stream s(e); // on the host
    mxdnn::primitive_attr a = mxfp4_weights_attr();
    const mxdnn::mx_matmul::primitive_desc pd(e, memory::desc({3, 64}, dt::bf16, tag::ab),
            memory::desc({64, 32}, dt::f4_e2m1, tag::ab), memory::desc({3, 32}, dt::bf16, tag::ab), a);
    EXPECT_NE(pd.impl_info_str().find("cuda"), std::string::npos) << pd.impl_info_str();
    mxdnn_primitive_t p = nullptr;
    EXPECT_REFUSED(mxdnn_device_unavailable, mxdnn_primitive_create(&p, pd.get()), "cuda:sm_90");
}

TEST(cuda_absent, files_that_are_not_the_library_are_named) {
    std::string why;
    EXPECT_EQ(cuda::open_library("/nonexistent/x.so", why), nullptr);
    EXPECT_NE(why.find("/nonexistent/x.so"), std::string::npos) << why;
    why.clear();
    EXPECT_EQ(cuda::open_library("/nonexistent/\x1b[31m.so", why), nullptr);
    EXPECT_NE(why.find("/nonexistent/?[31m.so"), std::string::npos) << why;
    // Another project's library opens, but it has no table.
    why.clear();
    EXPECT_EQ(cuda::open_library("libm.so.6", why), nullptr);
    EXPECT_NE(why.find("another release"), std::string::npos) << why;
    const std::string text = testing::TempDir() + "no_library.so";
    std::ofstream(text) << "text";
    why.clear();
    EXPECT_EQ(cuda::open_library(text, why), nullptr);
    EXPECT_NE(why.find(text), std::string::npos) << why;
}

TEST(cuda_absent, tables_of_other_releases_are_refused) {
    const mxdnn_version_t *v = mxdnn_version();
    const std::string release =
            std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
    cuda::table_t table{};
    table.version = cuda::table_version;
    table.kernels = uint32_t(cuda::kernel_id_t::count);
    table.release = release.c_str();
    EXPECT_EQ(cuda::why_not_ours(&table), "");
    cuda::table_t other = table;
    other.kernels++;
    EXPECT_NE(cuda::why_not_ours(&other).find("another release"), std::string::npos);
    other = table;
    other.version++;
    EXPECT_NE(cuda::why_not_ours(&other).find("another release"), std::string::npos);
    other = table;
    other.release = "999.1.0";
    EXPECT_NE(cuda::why_not_ours(&other).find("999.1.0"), std::string::npos);
    EXPECT_NE(cuda::why_not_ours(nullptr).find("another release"), std::string::npos);
}

TEST(cuda_absent, architectures_have_targets) {
    const auto target = [](int major, int minor) -> std::string {
        cuda::device_info_t d{};
        d.compute_major = major;
        d.compute_minor = minor;
        const cuda::arch_t *arch = cuda::find_arch(d);
        return arch ? arch->target : "none";
    };
    EXPECT_EQ(target(7, 5), "none");
    EXPECT_EQ(target(8, 0), "cuda:sm_80");
    EXPECT_EQ(target(8, 9), "cuda:sm_80");
    EXPECT_EQ(target(9, 0), "cuda:sm_90");
    EXPECT_EQ(target(10, 3), "cuda:sm_100");
    EXPECT_EQ(target(12, 1), "cuda:sm_120");
}

// Rows are in the order of compute capability, and contain all assumptions about a device.
TEST(cuda_absent, architectures_are_whole_rows_in_order) {
    int before = 0;
    for (const cuda::arch_t *a : cuda::arch_list) {
        EXPECT_GT(a->capability, before);
        before = a->capability;
        EXPECT_EQ(std::string("cuda:") + a->name(), a->target);
        EXPECT_GT(a->sm_count, 0) << a->target;
        EXPECT_GE(a->shared_bytes, 48 << 10) << a->target;
        EXPECT_GT(a->l2_bytes, 0) << a->target;
        for (const char *name : a->aliases)
            if (name) {
                EXPECT_EQ(mxdnn::engine::for_target(name).get(), mxdnn::engine::for_target(a->target).get())
                        << name;
            }
    }
}

// If libmxdnn_cuda is present but no device is, the sentence comes from the driver.
TEST(cuda_absent, the_built_library_opens_without_a_driver) {
    const char *built = std::getenv("MXDNN_TEST_CUDA_LIBRARY");
    if (!built) GTEST_SKIP() << "libmxdnn_cuda is not part of this build";
    std::string why;
    const cuda::table_t *table = cuda::open_library(built, why);
    ASSERT_NE(table, nullptr) << why;
    int count = -1;
    const cuda::result_t r = table->device_count(&count);
    if (r.ok()) {
        EXPECT_GT(count, 0);
    } else {
        EXPECT_EQ(count, 0);
        EXPECT_NE(std::string(r.text).find("CUDA driver"), std::string::npos) << r.text;
    }
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Without a device, or without libmxdnn_cuda: the library works, counts no engines, and says what is missing.
// Run with MXDNN_CUDA_LIBRARY naming a file that does not exist, and with one that is no library of mxdnn's.
#include <fstream>

#include "common/engine.hpp"
#include "gpu/cuda/device.hpp"
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
    // A library of something else opens, but has no table.
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
    const auto arch = [](int major, int minor) {
        cuda::device_info_t d{};
        d.compute_major = major;
        d.compute_minor = minor;
        return cuda::arch_of(d);
    };
    EXPECT_EQ(arch(7, 5), 0);
    EXPECT_EQ(arch(8, 0), 80);
    EXPECT_EQ(arch(8, 9), 80);
    EXPECT_EQ(arch(9, 0), 90);
    EXPECT_EQ(arch(10, 3), 100);
    EXPECT_EQ(arch(12, 1), 120);
    for (int a : {80, 90, 100, 120}) EXPECT_GT(cuda::assumed_device(a).sm_count, 0);
}

// Where the library was built and no device is there, the sentence is the driver's.
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

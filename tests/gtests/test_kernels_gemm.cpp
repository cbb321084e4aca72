// SPDX-License-Identifier: Apache-2.0
// Every gemm kernel: it rounds each of k products and sums once, so its bound is gamma(k + 2) of their
// magnitudes.
#include <cstring>

#include "gtests/kernel_cases.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {
namespace {

class gemm_kernels : public kernel_test_t {};
INSTANTIATE_TEST_SUITE_P(
        list, gemm_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::gemm)), row_name);

TEST_P(gemm_kernels, sums) {
    rng_t g(seed());
    const int64_t size = bytes_of(row().compute_dt);
    int turn = 0;
    for (int rows = 1; rows <= row().max_rows; rows++)
        for (int panels : panels_of(row())) {
            const auto kernel = make(row(), {}, 1, rows, panels);
            ASSERT_TRUE(kernel);
            for (int64_t k : {0, 32, 64, 96, 512, 2880}) {
                if (brief() && k > 96) continue;
                for (bool accumulate : {false, true}) {
                    const guarded_t::place_t place = places[turn++ % 3];
                    const int64_t columns = panels * panel_columns;
                    const int64_t src_stride = k * size + 32, wei_stride = k * panel_columns * size + 64;
                    const int64_t acc_stride = columns * 4 + 64;
                    guarded_t src(size_t((rows - 1) * src_stride + k * size), place),
                            wei(size_t((panels - 1) * wei_stride + k * panel_columns * size), place),
                            acc(size_t((rows - 1) * acc_stride + columns * 4), place);
                    std::vector<float> x(size_t(rows * k)), w(size_t(columns * k)), a(size_t(rows * columns));
                    const auto random = [&] {
                        return decode(row().compute_dt, encode(row().compute_dt, uniform(g, -1, 1)));
                    };
                    std::memset(src.data(), 0xff, src.size());
                    std::memset(wei.data(), 0xff, wei.size());
                    for (int64_t i = 0; i < int64_t(acc.size()) / 4; i++)
                        std::memcpy(acc.data() + i * 4, &poison, 4);
                    for (int64_t r = 0; r < rows; r++)
                        for (int64_t i = 0; i < k; i++)
                            store(row().compute_dt, src.data() + r * src_stride, i,
                                    x[size_t(r * k + i)] = random());
                    for (int64_t n = 0; n < columns; n++)
                        for (int64_t i = 0; i < k; i++) {
                            const int64_t c = n % panel_columns;
                            const int64_t at = row().compute_dt == mxdnn_bf16
                                                       ? (i / 2 * panel_columns + c) * 2 + i % 2
                                                       : i * panel_columns + c;
                            store(row().compute_dt, wei.data() + n / panel_columns * wei_stride, at,
                                    w[size_t(n * k + i)] = random());
                        }
                    if (accumulate)
                        for (int64_t r = 0; r < rows; r++)
                            for (int64_t n = 0; n < columns; n++)
                                store(mxdnn_f32, acc.data() + r * acc_stride, n,
                                        a[size_t(r * columns + n)] = float(uniform(g, -1, 1)));
                    gemm_args_t args = {};
                    args.src = src.data();
                    args.src_stride = src_stride;
                    args.wei = wei.data();
                    args.wei_stride = wei_stride;
                    args.k = k;
                    args.acc = acc.data<float>();
                    args.acc_stride = acc_stride;
                    args.accumulate = accumulate;
                    jit_call(*kernel, args);
                    ASSERT_TRUE(src.intact() && wei.intact() && acc.intact())
                            << row().name << " writes beside its buffers";
                    for (int64_t r = 0; r < rows; r++) {
                        const uint8_t *out = acc.data() + r * acc_stride;
                        for (int64_t n = 0; n < columns; n++) {
                            want_t want;
                            double magnitude = std::fabs(want.value = a[size_t(r * columns + n)]);
                            for (int64_t i = 0; i < k; i++) {
                                const double product = double(x[size_t(r * k + i)]) * w[size_t(n * k + i)];
                                want.value += product;
                                magnitude += std::fabs(product);
                            }
                            want.bound = gamma(double(k + 2)) * magnitude + double(k) * std::exp2(-126);
                            float got;
                            std::memcpy(&got, out + n * 4, 4);
                            ASSERT_TRUE(close(got, want))
                                    << row().name << " rows=" << rows << " panels=" << panels << " k=" << k
                                    << " accumulate=" << accumulate << " row " << r << " column " << n
                                    << " MXDNN_TEST_SEED=" << seed();
                        }
                        for (int64_t i = columns * 4; r + 1 < rows && i < acc_stride; i += 4)
                            ASSERT_EQ(std::memcmp(out + i, &poison, 4), 0)
                                    << row().name << " writes between the rows of acc";
                    }
                }
            }
        }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Every kernel of kind gemm or gradient: it rounds each of k products and sums once, so its bound is
// gamma(k + 2) of their magnitudes.
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
INSTANTIATE_TEST_SUITE_P(
        gradients, gemm_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::gradient)), row_name);

bool is_gradient(const kernel_row_t &row) { return row.kind == kernel_kind_t::gradient; }

// Rows of source and columns of decoded panels, between guard pages, with gaps.
struct operands_t {
    const int64_t rows, columns, k, size, src_stride, wei_stride;
    guarded_t src, wei;
    std::vector<float> x, w;

    operands_t(const kernel_row_t &row, int rows_, int panels, int64_t k_, guarded_t::place_t place, rng_t &g)
        : rows(rows_), columns(panels * panel_columns), k(k_), size(bytes_of(row.compute_dt)),
          src_stride(k * size + 32), wei_stride(k * panel_columns * size + 64),
          src(size_t((rows - 1) * src_stride + k * size), place),
          wei(size_t((panels - 1) * wei_stride + k * panel_columns * size), place), x(size_t(rows * k)),
          w(size_t(columns * k)) {
        const auto random = [&] { return decode(row.compute_dt, encode(row.compute_dt, uniform(g, -1, 1))); };
        std::memset(src.data(), 0xff, src.size());
        std::memset(wei.data(), 0xff, wei.size());
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < k; i++)
                store(row.compute_dt, src.data() + r * src_stride, i, x[size_t(r * k + i)] = random());
        for (int64_t n = 0; n < columns; n++)
            for (int64_t i = 0; i < k; i++) {
                const int64_t c = n % panel_columns;
                const int64_t at = row.compute_dt == mxdnn_bf16 ? (i / 2 * panel_columns + c) * 2 + i % 2
                                                                : i * panel_columns + c;
                store(row.compute_dt, wei.data() + n / panel_columns * wei_stride, at,
                        w[size_t(n * k + i)] = random());
            }
    }

    gemm_args_t args() const {
        gemm_args_t a = {};
        a.src = src.data();
        a.src_stride = src_stride;
        a.wei = wei.data();
        a.wei_stride = wei_stride;
        a.k = k;
        a.fetch = wei.data(); // steps lead beyond its end, which is allowed
        a.fetch_step = 640;
        return a;
    }

    // The sum of a row and a column, and of what was there before.
    want_t want(int64_t r, int64_t n, float before) const {
        want_t sum;
        double magnitude = std::fabs(sum.value = before);
        for (int64_t i = 0; i < k; i++) {
            const double product = double(x[size_t(r * k + i)]) * w[size_t(n * k + i)];
            sum.value += product;
            magnitude += std::fabs(product);
        }
        sum.bound = gamma(double(k + 2)) * magnitude + double(k) * std::exp2(-126);
        return sum;
    }
};

// f32 sums in rows with gaps.
struct sums_t {
    const int64_t rows, columns, stride;
    guarded_t acc;
    std::vector<float> before;

    sums_t(int64_t rows_, int64_t columns_, bool accumulate, guarded_t::place_t place, rng_t &g)
        : rows(rows_), columns(columns_), stride(columns * 4 + 64),
          acc(size_t((rows - 1) * stride + columns * 4), place), before(size_t(rows * columns)) {
        for (int64_t i = 0; i < int64_t(acc.size()) / 4; i++) std::memcpy(acc.data() + i * 4, &poison, 4);
        for (int64_t r = 0; accumulate && r < rows; r++)
            for (int64_t n = 0; n < columns; n++)
                store(mxdnn_f32, acc.data() + r * stride, n,
                        before[size_t(r * columns + n)] = float(uniform(g, -1, 1)));
    }
};

std::string where(const kernel_row_t &row, const operands_t &o, bool accumulate) {
    return std::string(row.name) + " rows=" + std::to_string(o.rows) + " columns=" + std::to_string(o.columns)
           + " k=" + std::to_string(o.k) + " accumulate=" + std::to_string(accumulate)
           + " MXDNN_TEST_SEED=" + std::to_string(seed());
}

TEST_P(gemm_kernels, sums) {
    rng_t g(seed());
    int turn = 0;
    const int each = is_gradient(row()) ? 32 : 1;
    for (int rows = each; rows <= row().max_rows; rows += each)
        for (int panels : panels_of(row())) {
            const auto kernel = make(row(), {}, 1, rows, panels);
            ASSERT_TRUE(kernel);
            for (int64_t k : {0, 32, 64, 96, 512, 2880}) {
                if (brief() && k > 96) continue;
                for (bool accumulate : {false, true}) {
                    const guarded_t::place_t place = places[turn++ % 3];
                    const operands_t o(row(), rows, panels, k, place, g);
                    sums_t s(rows, o.columns, accumulate, place, g);
                    gemm_args_t args = o.args();
                    args.acc = s.acc.data<float>();
                    args.acc_stride = s.stride;
                    args.accumulate = accumulate;
                    jit_call(*kernel, args);
                    ASSERT_TRUE(o.src.intact() && o.wei.intact() && s.acc.intact())
                            << row().name << " writes beside its buffers";
                    for (int64_t r = 0; r < rows; r++) {
                        const uint8_t *out = s.acc.data() + r * s.stride;
                        for (int64_t n = 0; n < o.columns; n++) {
                            float got;
                            std::memcpy(&got, out + n * 4, 4);
                            ASSERT_TRUE(close(got, o.want(r, n, s.before[size_t(r * o.columns + n)])))
                                    << where(row(), o, accumulate) << " row " << r << " column " << n;
                        }
                        for (int64_t i = o.columns * 4; r + 1 < rows && i < s.stride; i += 4)
                            ASSERT_EQ(std::memcmp(out + i, &poison, 4), 0)
                                    << row().name << " writes between the rows of acc";
                    }
                }
            }
        }
}

// Results are stored instead of sums: scaled, with a bias, in the type of the destination. Fewer panels than
// the kernel's leave the other columns as they are. acc is only read.
TEST_P(gemm_kernels, results) {
    if (is_gradient(row())) GTEST_SKIP() << "sums only";
    rng_t g(seed());
    int turn = 0;
    for (data_type_t dt : {mxdnn_bf16, mxdnn_f32})
        for (int rows = 1; rows <= row().max_rows; rows++)
            for (int panels : panels_of(row())) {
                const auto kernel = make(row(), {}, 1, rows, panels, decoded_t::dropped, dt);
                ASSERT_TRUE(kernel);
                for (int64_t k : {0, 32, 160}) {
                    const bool accumulate = turn % 2, row_scales = turn / 2 % 2;
                    const int64_t columns = (turn / 4 % 2 ? 1 : panels) * panel_columns, size = bytes_of(dt);
                    const guarded_t::place_t place = places[turn++ % 3];
                    const operands_t o(row(), rows, panels, k, place, g);
                    sums_t s(rows, o.columns, accumulate, place, g);
                    const int64_t stride = o.columns * size + 32;
                    guarded_t dst(size_t((rows - 1) * stride + columns * size), place);
                    std::memset(dst.data(), 0xa5, dst.size());
                    std::vector<float> bias(size_t(o.columns)), scales(size_t(rows), 1.f);
                    for (float &b : bias) b = float(uniform(g, -1, 1));
                    for (float &f : scales)
                        if (row_scales) f = float(uniform(g, -2, 2));
                    if (turn % 5 == 0) bias[0] = NAN;
                    gemm_args_t args = o.args();
                    args.acc = s.acc.data<float>();
                    args.acc_stride = s.stride;
                    args.accumulate = accumulate;
                    args.dst = dst.data();
                    args.dst_stride = stride;
                    args.columns = columns;
                    args.scale = 0.75f;
                    args.row_scales = row_scales ? scales.data() : nullptr;
                    args.bias = bias.data();
                    const std::vector<uint8_t> acc(s.acc.data(), s.acc.data() + s.acc.size());
                    jit_call(*kernel, args);
                    ASSERT_TRUE(dst.intact() && s.acc.intact()) << row().name << " writes beside its buffers";
                    ASSERT_EQ(std::memcmp(acc.data(), s.acc.data(), acc.size()), 0) << row().name;
                    for (int64_t r = 0; r < rows; r++) {
                        const uint8_t *out = dst.data() + r * stride;
                        for (int64_t n = 0; n < columns; n++) {
                            want_t want = o.want(r, n, s.before[size_t(r * o.columns + n)]);
                            const double factor = 0.75 * scales[size_t(r)];
                            want.value = want.value * factor + bias[size_t(n)];
                            // The factor, the product and the sum are rounded to f32, the result to the type.
                            want.bound = want.bound * std::fabs(factor)
                                         + (std::fabs(want.value) + 2) * gamma(3) + std::exp2(-126);
                            if (dt == mxdnn_bf16)
                                want.bound += (std::fabs(want.value) + want.bound) * std::exp2(-8);
                            uint32_t code = 0;
                            std::memcpy(&code, out + n * size, size_t(size));
                            ASSERT_TRUE(close(decode(dt, code), want))
                                    << where(row(), o, accumulate) << " " << data_type_name(dt) << " row "
                                    << r << " column " << n;
                        }
                        for (int64_t i = columns * size; r + 1 < rows && i < stride; i++)
                            ASSERT_EQ(out[i], 0xa5) << row().name << " writes beside the columns";
                    }
                }
            }
}

} // namespace
} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

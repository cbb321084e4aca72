// SPDX-License-Identifier: Apache-2.0
#include "gtests/kernel_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu/x64/matmul_plan.hpp"
#include "gtests/every_format.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {

bool brief() {
    static const bool b = std::getenv("MXDNN_TEST_BRIEF") != nullptr;
    return b;
}

uint64_t seed() {
    static const uint64_t s = [] {
        const char *given = std::getenv("MXDNN_TEST_SEED");
        const uint64_t v = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
        std::printf("MXDNN_TEST_SEED=%llu\n", (unsigned long long)v);
        return v;
    }();
    return s;
}

const std::vector<format_t> &all_formats() {
    static const std::vector<format_t> formats = [] {
        std::vector<format_t> v;
        for_each_format([&](const data_type_info_t &elem, const quant_t &q) {
            if (q.global == global_scale_kind_t::none) v.push_back({elem.id, q});
        });
        return v;
    }();
    return formats;
}

std::vector<format_t> formats_of(const kernel_row_t &row) {
    std::vector<format_t> v;
    for (const format_t &f : all_formats()) {
        if (!row.takes(f.dt, f.quant)) continue;
        // int4 has many: one small and one large block, and one scale type with each kind of zero.
        if (brief() && (f.quant.block == 64 || f.quant.block == 128)) continue;
        if (brief() && f.quant.zp != zero_point_kind_t::none && f.quant.scale_dt != f.quant.zp_dt
                && !(f.quant.scale_dt == mxdnn_f32 && f.quant.zp_dt == mxdnn_u8))
            continue;
        v.push_back(f);
    }
    return v;
}

std::vector<int> panels_of(const kernel_row_t &row) {
    std::vector<int> v;
    for (int p : row.panels)
        if (p) v.push_back(p);
    return v;
}

const std::vector<int64_t> &lengths() {
    static const std::vector<int64_t> full = {
            1, 31, 32, 33, 64, 100, 128, 129, 160, 256, 257, 300, 2880, 2863};
    static const std::vector<int64_t> few = {1, 33, 160, 300};
    return brief() ? few : full;
}

std::vector<const kernel_row_t *> rows_of_kind(kernel_kind_t kind) {
    std::vector<const kernel_row_t *> v;
    kernel_list().for_each([&](const kernel_row_t &r) {
        if (r.kind == kind) v.push_back(&r);
    });
    return v;
}

std::string row_name(const ::testing::TestParamInfo<const kernel_row_t *> &info) { return info.param->name; }

std::unique_ptr<jit_kernel_t> make(const kernel_row_t &row, const format_t &f, int64_t K, int rows,
        int panels, decoded_t decoded, data_type_t dst_dt, int64_t k_rows) {
    kernel_params_t p;
    p.wei_dt = f.dt;
    p.quant = f.quant;
    p.K = K;
    p.k_rows = k_rows;
    p.rows = rows;
    p.panels = panels;
    p.decoded = decoded;
    p.dst_dt = dst_dt;
    p.fetches_near = fetches_near(row.family);
    std::unique_ptr<jit_kernel_t> kernel;
    const char *reason = nullptr;
    const status_t status = create_kernel(row, p, &kernel, &reason);
    EXPECT_EQ(status, mxdnn_success) << row.name << ": " << (reason ? reason : "no reason");
    if (kernel) {
        EXPECT_STREQ(kernel->name(), row.name);
        EXPECT_GT(kernel->code_size(), 0u);
    }
    return kernel;
}

std::string where(const kernel_row_t &row, const format_t &f, int64_t K, int rows, int panels) {
    return std::string(row.name) + " " + f.str() + " K=" + std::to_string(K) + " rows=" + std::to_string(rows)
           + " panels=" + std::to_string(panels) + " MXDNN_TEST_SEED=" + std::to_string(seed());
}

double uniform(rng_t &g, double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(g); }
uint32_t below(rng_t &g, uint32_t n) { return uint32_t(g() % n); }

float decode(data_type_t dt, uint32_t code) { return data_type_info(dt)->decode(code); }
uint32_t encode(data_type_t dt, double x) { return data_type_info(dt)->encode(float(x)); }

bool is_number(data_type_t dt, uint32_t code) { return std::isfinite(decode(dt, code)); }

uint32_t random_code(rng_t &g, data_type_t dt) {
    for (;;) {
        const uint32_t c = below(g, 1u << data_type_info(dt)->bits);
        if (is_number(dt, c)) return c;
    }
}

// Scales of very different sizes, of both signs where the type has two, subnormal ones among those
// of narrow types.
uint32_t random_scale(rng_t &g, data_type_t dt) {
    if (dt == mxdnn_e8m0) return 127 - 12 + below(g, 25);
    if (dt == mxdnn_f8_e4m3) return random_code(g, dt);
    const double magnitude = std::exp2(uniform(g, -16, 4));
    return encode(dt, below(g, 2) ? magnitude : -magnitude);
}

matrix_t::element_t matrix_t::element_of(uint32_t code, uint32_t scale, uint32_t zero_point) const {
    const quant_t &q = format.quant;
    element_t e = {decode(format.dt, code), decode(q.scale_dt, scale), 0, 0};
    if (format.dt == mxdnn_s8 && q.scale_dt != mxdnn_e8m0) e.code /= s8_t::step; // integers
    if (q.zp != zero_point_kind_t::none) {
        e.zero = decode(q.zp_dt, zero_point);
        e.code -= q.zp == zero_point_kind_t::u8 ? e.zero : float(code_of_added(q.zp));
    }
    e.tile = decode(mxdnn_bf16, encode(mxdnn_bf16, value(e)));
    return e;
}

void matrix_t::fill(rng_t &g) {
    const packed_view_t v = view();
    const quant_t &q = format.quant;
    elements_.resize(size_t(shape.K * shape.N));
    for (int64_t n = 0; n < shape.N; n++) {
        uint32_t scale = 0, zero_point = 0;
        for (int64_t k = 0; k < shape.K; k++) {
            if (k % shape.block == 0) {
                v.set_scale(k, n, scale = random_scale(g, q.scale_dt));
                if (q.zp == zero_point_kind_t::u8)
                    v.set_zero_point(k, n, zero_point = below(g, 8) ? below(g, 16) : below(g, 256));
                if (is_added(q.zp)) v.set_zero_point(k, n, zero_point = encode(q.zp_dt, uniform(g, -2, 2)));
            }
            const uint32_t code = random_code(g, format.dt);
            v.set_code(k, n, code);
            elements_[size_t(n * shape.K + k)] = element_of(code, scale, zero_point);
        }
    }
    fresh_ = true;
}

void matrix_t::read() const {
    const packed_view_t v = view();
    const bool has_zero_points = format.quant.zp != zero_point_kind_t::none;
    elements_.resize(size_t(shape.K * shape.N));
    for (int64_t n = 0; n < shape.N; n++)
        for (int64_t k = 0; k < shape.K; k++)
            elements_[size_t(n * shape.K + k)] =
                    element_of(v.code(k, n), v.scale(k, n), has_zero_points ? v.zero_point(k, n) : 0);
    fresh_ = true;
}

int64_t bytes_of(data_type_t dt) { return data_type_info(dt)->bits / 8; }

void store(data_type_t dt, void *to, int64_t index, float value) {
    if (dt == mxdnn_bf16) {
        const uint16_t code = uint16_t(encode(mxdnn_bf16, value));
        std::memcpy(static_cast<uint8_t *>(to) + index * 2, &code, 2);
    } else {
        std::memcpy(static_cast<uint8_t *>(to) + index * 4, &value, 4);
    }
}

float decoded_at(const kernel_row_t &row, const uint8_t *dst, int64_t k, int64_t column) {
    if (row.compute_dt == mxdnn_bf16) {
        uint16_t code;
        std::memcpy(&code, dst + ((k / 2 * panel_columns + column) * 2 + k % 2) * 2, 2);
        return decode(mxdnn_bf16, code);
    }
    float v;
    std::memcpy(&v, dst + (k * panel_columns + column) * 4, 4);
    return v;
}

double gamma(double n) {
    const double u = std::exp2(-24);
    return n * u / (1 - n * u);
}

want_t want_on_tiles(const float *x, const matrix_t &w, int64_t n) {
    want_t want;
    double magnitude = 0, flushed = 0;
    for (int64_t k = 0; k < w.shape.K; k++) {
        const double v = w.element(k, n).tile;
        want.value += x[k] * v;
        magnitude += std::fabs(x[k] * v);
        flushed += std::isfinite(x[k]) ? std::fabs(double(x[k])) * std::exp2(-126) : 0;
    }
    const double padded_k = double(round_up(w.shape.K, k_step));
    want.bound = gamma(padded_k + 2) * magnitude + padded_k * std::exp2(-126) + flushed;
    return want;
}

::testing::AssertionResult close(float got, const want_t &want) {
    if (std::isnan(want.value) && std::isnan(got)) return ::testing::AssertionSuccess();
    if (std::isinf(want.value) && (double(got) == want.value || (want.or_nan && std::isnan(got))))
        return ::testing::AssertionSuccess();
    if (std::fabs(double(got) - want.value) <= want.bound) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "got " << got << ", want " << want.value << " +- " << want.bound;
}

} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

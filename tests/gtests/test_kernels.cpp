// SPDX-License-Identifier: Apache-2.0
// Every row of the kernel list, times every format that it takes, times rows, panels and lengths of
// K, against sums in double precision over the layout's map and the formats' traits.
//
// The bound. u is half an ulp of 1 in f32, and gamma(n) = n u / (1 - n u). A direct kernel rounds a
// product, the additions of a block's sum (at most `block`, then a few to join independent sums),
// the scaled sum, and one addition per block: no term passes through more than
// n = block + blocks + 8 roundings, so
//     |got - want| <= gamma(n) * sum |x| |code value| |scale|   (+ |x| |zero|)
// and the exact sum in double precision adds nothing that counts. Products that are subnormal
// before a format's power of two is made up for lose up to 2^-136 each (f32), and bf16 dot products
// take numbers below 2^-126 for zero: an absolute term of K * that * the largest scale. Dense
// kernels round each of k products and sums once: gamma(k + 2). Decoding to f32 has no bound: its
// bits are fixed by the format's rule; decoding to bf16 rounds that once more, to nearest even, except
// below the smallest normal number.
//
// MXDNN_TEST_SEED repeats a run; MXDNN_TEST_BRIEF=1 tests fewer sizes and formats, for emulators.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "common/formats/named_formats.hpp"
#include "common/layouts/layout_list.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/isa.hpp"
#include "cpu/x64/jit/jit_dump.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "gtests/jit_call.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// --- what is run ---

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

struct format_t {
    data_type_t dt;
    quant_t quant;

    std::string str() const {
        std::string s = std::string(data_type_name(dt)) + ":" + data_type_name(quant.scale_dt) + ":"
                        + std::to_string(quant.block);
        if (quant.zp == zero_point_kind_t::u8) s += ":zp";
        if (quant.zp == zero_point_kind_t::float_zero)
            s += std::string(":zero_") + data_type_name(quant.zp_dt);
        return s;
    }
    int bits() const { return data_type_info(dt)->bits; }
};

// Everything that the formats' own rules allow, without global scales, which no kernel reads.
const std::vector<format_t> &all_formats() {
    static const std::vector<format_t> formats = [] {
        std::vector<format_t> v;
        for (const data_type_info_t &elem : data_type_table_t<quantized_element_types>::rows)
            for (const data_type_info_t &scale : data_type_table_t<scale_types>::rows)
                for (dim_t block : {16, 32, 64, 128, 256})
                    for (zero_point_kind_t zp :
                            {zero_point_kind_t::none, zero_point_kind_t::u8, zero_point_kind_t::float_zero})
                        for (data_type_t zp_dt :
                                {mxdnn_data_type_undef, mxdnn_u8, mxdnn_bf16, mxdnn_f16, mxdnn_f32}) {
                            quant_t q;
                            q.scale_dt = scale.id;
                            q.block = block;
                            q.zp = zp;
                            q.zp_dt = zp_dt;
                            if (!check_quant(elem.id, q)) v.push_back({elem.id, q});
                        }
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

// --- values ---

using rng_t = std::mt19937_64;

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

// One packed matrix of N columns, and its values.
struct matrix_t {
    format_t format;
    packed_shape_t shape;
    const layout_t *layout;
    std::vector<uint8_t> bytes;

    matrix_t(const format_t &f, int64_t K, int64_t N) : format(f) {
        shape = make_packed_shape(K, N, f.bits(), f.quant);
        layout = preferred_layout(target_family_t::cpu_x64, f.bits());
        bytes.assign(size_t(layout->matrix_bytes(shape)), 0);
    }
    // To change the matrix, or to read it.
    packed_view_t view() {
        fresh_ = false;
        return {layout, shape, bytes.data()};
    }
    packed_view_t view() const { return {layout, shape, const_cast<uint8_t *>(bytes.data())}; }
    int64_t panel_bytes() const { return n16_frame_t::panel_bytes(shape); }

    void fill(rng_t &g) {
        const packed_view_t v = view();
        for (int64_t n = 0; n < shape.N; n++)
            for (int64_t k = 0; k < shape.K; k++) {
                v.set_code(k, n, random_code(g, format.dt));
                if (k % shape.block) continue;
                v.set_scale(k, n, random_scale(g, format.quant.scale_dt));
                if (format.quant.zp == zero_point_kind_t::u8)
                    v.set_zero_point(k, n, below(g, 8) ? below(g, 16) : below(g, 256));
                if (format.quant.zp == zero_point_kind_t::float_zero)
                    v.set_zero_point(k, n, encode(format.quant.zp_dt, uniform(g, -2, 2)));
            }
    }

    // An element is (code * scale) [+ zero]; the code less its zero point, exact.
    struct element_t {
        float code, scale, zero;
    };
    const element_t &element(int64_t k, int64_t n) const {
        if (!fresh_) read();
        return elements_[size_t(n * shape.K + k)];
    }
    // The format's rule, in f32.
    float value(int64_t k, int64_t n) const {
        const element_t &e = element(k, n);
        const float product = mul_f32(e.code, e.scale);
        return format.quant.zp == zero_point_kind_t::float_zero ? add_f32(product, e.zero) : product;
    }

private:
    // Through the layout's map, bit by bit: slow, so it is done once.
    mutable std::vector<element_t> elements_;
    mutable bool fresh_ = false;

    void read() const {
        const packed_view_t v = view();
        elements_.resize(size_t(shape.K * shape.N));
        for (int64_t n = 0; n < shape.N; n++)
            for (int64_t k = 0; k < shape.K; k++) {
                element_t &e = elements_[size_t(n * shape.K + k)];
                e.code = decode(format.dt, v.code(k, n));
                e.scale = decode(format.quant.scale_dt, v.scale(k, n));
                e.zero = 0;
                if (format.quant.zp == zero_point_kind_t::none) continue;
                e.zero = decode(format.quant.zp_dt, v.zero_point(k, n));
                e.code -= format.quant.zp == zero_point_kind_t::u8 ? e.zero : 8;
            }
        fresh_ = true;
    }
};

// --- source and result in guarded memory ---

struct problem_t {
    const kernel_row_t &row;
    const matrix_t &w;
    int rows, panels;
    std::vector<float> x; // [rows][K], values that the compute type has
    int64_t padded_k, blocks;
    guarded_t::place_t place = guarded_t::at_end;

    problem_t(const kernel_row_t &row, const matrix_t &w, int rows, int panels)
        : row(row), w(w), rows(rows), panels(panels), x(size_t(rows * w.shape.K)),
          padded_k(round_up(w.shape.K, k_step)), blocks(div_up(w.shape.K, w.shape.block)) {}

    // The row as int8 kernels read it.
    void pack_int8(int64_t r, void *to) const {
        const int64_t K = w.shape.K, n = div_up(K, int8_row_t::block);
        std::vector<int8_t> codes(static_cast<size_t>(K));
        for (int64_t k = 0; k < K; k++)
            codes[size_t(k)] = int8_t(src(r, k) / scale(r, k)); // exact: a power of two
        std::vector<float> s(static_cast<size_t>(n));
        for (int64_t b = 0; b < n; b++) s[size_t(b)] = scale(r, b * int8_row_t::block);
        pack_int8_row(codes.data(), s.data(), 0, K, K, w.format.dt, to);
    }
    float scale(int64_t r, int64_t k) const {
        return scales.empty()
                       ? 1.f
                       : scales[size_t(r * div_up(w.shape.K, int8_row_t::block) + k / int8_row_t::block)];
    }

    float &src(int64_t r, int64_t k) { return x[size_t(r * w.shape.K + k)]; }
    float src(int64_t r, int64_t k) const { return x[size_t(r * w.shape.K + k)]; }

    // Of int8 rows: blocks of s8 have a power of two each, at most 1, as prepared rows have.
    std::vector<float> scales;

    void fill(rng_t &g, double magnitude = 1) {
        if (row.compute_dt == mxdnn_s8) {
            scales.resize(size_t(rows * div_up(w.shape.K, int8_row_t::block)));
            for (float &s : scales) s = float(std::exp2(-double(below(g, 12))));
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < w.shape.K; k++)
                src(r, k) = row.compute_dt == mxdnn_s8
                                    ? float(int(below(g, 256)) - 128) * scale(r, k)
                                    : decode(row.compute_dt,
                                            encode(row.compute_dt, uniform(g, -1, 1) * magnitude));
    }
};

int64_t bytes_of(data_type_t dt) { return data_type_info(dt)->bits / 8; }

void store(data_type_t dt, void *to, int64_t index, float value) {
    if (dt == mxdnn_bf16) {
        const uint16_t code = uint16_t(encode(mxdnn_bf16, value));
        std::memcpy(static_cast<uint8_t *>(to) + index * 2, &code, 2);
    } else {
        std::memcpy(static_cast<uint8_t *>(to) + index * 4, &value, 4);
    }
}

constexpr uint32_t poison = 0x7fbadbadu; // a NaN

// Calls a direct kernel; results in [rows][panels * 16].
std::vector<float> run_direct(
        const jit_kernel_t &kernel, const problem_t &p, void *kept = nullptr, int64_t kept_stride = 0) {
    const int64_t size = bytes_of(p.row.compute_dt), columns = p.panels * panel_columns;
    // A gap between rows, which must stay untouched, and no gap after the last one.
    const bool int8 = p.row.compute_dt == mxdnn_s8;
    const int64_t row_bytes = int8 ? int8_row_t::bytes(p.w.shape.K) : p.padded_k * size;
    const int64_t src_stride = row_bytes + (p.rows > 1 ? 64 : 0), acc_stride = columns * 4 + 64;
    const int64_t src_bytes = (p.rows - 1) * src_stride + row_bytes;
    const int64_t acc_bytes = (p.rows - 1) * acc_stride + columns * 4;
    const int64_t xsum_stride = p.blocks * 4 + 4;
    const bool has_xsum = p.w.format.quant.zp == zero_point_kind_t::float_zero;

    guarded_t src(size_t(src_bytes), p.place), acc(size_t(acc_bytes), p.place);
    const size_t wei_bytes = size_t(p.panels * p.w.panel_bytes());
    guarded_t wei(wei_bytes, p.place);
    std::memcpy(wei.data(), p.w.bytes.data(), wei_bytes);
    guarded_t xsum(size_t(has_xsum ? (p.rows - 1) * xsum_stride + p.blocks * 4 : 4), p.place);

    std::memset(src.data(), 0xff, src.size()); // NaN between the rows
    for (int r = 0; r < p.rows; r++) {
        uint8_t *to = src.data() + r * src_stride;
        if (int8) {
            p.pack_int8(r, to);
            continue;
        }
        std::memset(to, 0, size_t(p.padded_k * size));
        for (int64_t k = 0; k < p.w.shape.K; k++) store(p.row.compute_dt, to, k, p.src(r, k));
        if (!has_xsum) continue;
        for (int64_t b = 0; b < p.blocks; b++) {
            double s = 0;
            for (int64_t k = b * p.w.shape.block; k < std::min((b + 1) * p.w.shape.block, p.w.shape.K); k++)
                s += p.src(r, k);
            store(mxdnn_f32, xsum.data() + r * xsum_stride, b, float(s));
        }
    }
    for (int64_t i = 0; i < acc_bytes / 4; i++) std::memcpy(acc.data() + i * 4, &poison, 4);
    const std::vector<uint8_t> src_before(src.data(), src.data() + src_bytes);

    direct_args_t args = {};
    args.src = src.data();
    args.src_stride = src_stride;
    args.wei = wei.data();
    args.wei_stride = p.w.panel_bytes();
    args.acc = acc.data<float>();
    args.acc_stride = acc_stride;
    args.xsum = has_xsum ? xsum.data<float>() : nullptr;
    args.xsum_stride = xsum_stride;
    args.rows = p.rows;
    args.kept = kept;
    args.kept_stride = kept_stride;
    jit_call(kernel, args);

    EXPECT_TRUE(src.intact() && wei.intact() && acc.intact() && xsum.intact()) << "writes beside its buffers";
    EXPECT_EQ(std::memcmp(src_before.data(), src.data(), size_t(src_bytes)), 0) << "writes to its source";
    EXPECT_EQ(std::memcmp(p.w.bytes.data(), wei.data(), wei_bytes), 0) << "writes to its weights";
    std::vector<float> out(size_t(p.rows * columns));
    for (int r = 0; r < p.rows; r++) {
        const uint8_t *from = acc.data() + r * acc_stride;
        std::memcpy(&out[size_t(r * columns)], from, size_t(columns * 4));
        for (int64_t i = columns * 4; r + 1 < p.rows && i < acc_stride; i += 4)
            EXPECT_EQ(std::memcmp(from + i, &poison, 4), 0) << "writes between the rows of acc";
    }
    return out;
}

double gamma(double n) {
    const double u = std::exp2(-24);
    return n * u / (1 - n * u);
}

struct want_t {
    double value = 0, bound = 0;
    bool or_nan = false; // in place of Inf
};

want_t want_direct(const problem_t &p, int64_t r, int64_t n) {
    want_t w;
    // Sums with the scale and with the zero are apart, so an Inf in both can meet its negative.
    w.or_nan = p.w.format.quant.zp == zero_point_kind_t::float_zero;
    double magnitude = 0, largest_scale = 0, flushed = 0;
    for (int64_t k = 0; k < p.w.shape.K; k++) {
        const matrix_t::element_t &e = p.w.element(k, n);
        const double x = p.src(r, k), c = e.code, s = e.scale;
        const double z = w.or_nan ? e.zero : 0;
        if (p.row.on_tiles) {
            // A weight is what the format's rule makes of it, and less than 2^-126 may be 0.
            const double v = p.w.value(k, n);
            w.value += x * v;
            magnitude += std::fabs(x * v);
            flushed += std::isfinite(x) ? std::fabs(x) * std::exp2(-126) : 0;
            continue;
        }
        w.value += x * (c * s + z);
        magnitude += std::fabs(x) * (std::fabs(c * s) + std::fabs(z));
        largest_scale = std::max(largest_scale, std::fabs(s));
    }
    const double roundings = p.row.on_tiles ? double(p.padded_k + 2)
                                            : double(std::min(p.w.shape.K, p.w.shape.block) + p.blocks + 8);
    const double tiny = std::exp2(p.row.compute_dt == mxdnn_bf16 ? -126 : -136);
    w.bound =
            gamma(roundings) * magnitude + double(p.padded_k) * tiny * std::max(1., largest_scale) + flushed;
    return w;
}

::testing::AssertionResult close(float got, const want_t &want) {
    if (std::isnan(want.value) && std::isnan(got)) return ::testing::AssertionSuccess();
    if (std::isinf(want.value) && (double(got) == want.value || (want.or_nan && std::isnan(got))))
        return ::testing::AssertionSuccess();
    if (std::fabs(double(got) - want.value) <= want.bound) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "got " << got << ", want " << want.value << " +- " << want.bound;
}

std::unique_ptr<jit_kernel_t> make(
        const kernel_row_t &row, const format_t &f, int64_t K, int rows, int panels) {
    kernel_params_t p;
    p.wei_dt = f.dt;
    p.quant = f.quant;
    p.K = K;
    p.rows = rows;
    p.panels = panels;
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

// Checks all results; says where the first wrong one is.
void check_direct(const problem_t &p, const std::vector<float> &got) {
    const int64_t columns = p.panels * panel_columns;
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t n = 0; n < columns; n++) {
            const auto ok = close(got[size_t(r * columns + n)], want_direct(p, r, n));
            if (!ok)
                FAIL() << where(p.row, p.w.format, p.w.shape.K, p.rows, p.panels) << " row " << r
                       << " column " << n << ": " << ok.message();
        }
}

// --- per row of the list ---

std::vector<const kernel_row_t *> rows_of_kind(kernel_kind_t kind) {
    std::vector<const kernel_row_t *> v;
    kernel_list().for_each([&](const kernel_row_t &r) {
        if (r.kind == kind) v.push_back(&r);
    });
    return v;
}

std::string row_name(const ::testing::TestParamInfo<const kernel_row_t *> &info) { return info.param->name; }

class kernel_test_t : public ::testing::TestWithParam<const kernel_row_t *> {
protected:
    void SetUp() override {
        if (!mayiuse(GetParam()->isa))
            GTEST_SKIP() << GetParam()->name << " was not run: this machine has " << isa_name() << ", not "
                         << isa_name(GetParam()->isa);
    }
    const kernel_row_t &row() const { return *GetParam(); }
};

class direct_kernels : public kernel_test_t {};
class decode_kernels : public kernel_test_t {};
class dense_kernels : public kernel_test_t {};

INSTANTIATE_TEST_SUITE_P(
        list, direct_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::direct)), row_name);
INSTANTIATE_TEST_SUITE_P(
        list, decode_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::decode)), row_name);
INSTANTIATE_TEST_SUITE_P(
        list, dense_kernels, ::testing::ValuesIn(rows_of_kind(kernel_kind_t::dense)), row_name);

constexpr guarded_t::place_t places[] = {guarded_t::at_end, guarded_t::at_start, guarded_t::at_16};

TEST_P(direct_kernels, sums) {
    rng_t g(seed());
    int turn = 0;
    for (const format_t &f : formats_of(row())) {
        // All rows and panels for one format of every element and scale type; the others, which
        // differ in how they load parameters, take turns.
        const bool thorough = !brief() && (f.quant.block <= 32 && f.quant.zp_dt != mxdnn_bf16);
        for (int64_t K : lengths()) {
            const std::vector<int> panels = panels_of(row());
            matrix_t w(f, K, panels.back() * panel_columns);
            w.fill(g);
            // Long sums in double precision take their time.
            const bool all = thorough && K < 300;
            for (int rows = 1; rows <= row().max_rows; rows++)
                for (size_t i = 0; i < panels.size(); i++) {
                    const int combinations = row().max_rows * int(panels.size());
                    if (!all && (rows - 1) * int(panels.size()) + int(i) != turn % combinations) continue;
                    problem_t p(row(), w, rows, panels[i]);
                    p.fill(g);
                    p.place = places[turn % 3];
                    const auto kernel = make(row(), f, K, rows, panels[i]);
                    ASSERT_TRUE(kernel);
                    check_direct(p, run_direct(*kernel, p));
                    if (HasFailure()) return;
                }
            turn++;
        }
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

// Direct kernels on tiles can leave decoded panels for dense ones: the same as decode kernels make.
TEST_P(direct_kernels, kept_panels_are_decoded_panels) {
    if (!row().on_tiles) GTEST_SKIP() << row().name << " decodes in registers";
    rng_t g(seed());
    for (const format_t &f : formats_of(row()))
        for (int64_t K : lengths())
            for (int rows : {17, 32}) {
                matrix_t w(f, K, 2 * panel_columns);
                w.fill(g);
                if (f.quant.scale_dt == mxdnn_e8m0)
                    w.view().set_scale(below(g, uint32_t(K)), below(g, 32), 0xff);
                kernel_params_t k;
                k.wei_dt = f.dt;
                k.quant = f.quant;
                k.K = K;
                const kernel_row_t *decode_row = find_kernel(kernel_kind_t::decode, row().isa, f.dt, f.quant);
                const auto decoder = make(*decode_row, f, K, 1, 1);
                k.rows = rows;
                k.panels = 2;
                k.keeps_panels = true;
                std::unique_ptr<jit_kernel_t> kernel;
                const char *reason = nullptr;
                ASSERT_EQ(create_kernel(row(), k, &kernel, &reason), mxdnn_success) << reason;
                problem_t p(row(), w, rows, 2);
                p.fill(g);
                const int64_t panel_bytes = p.padded_k * panel_columns * 2, stride = panel_bytes + 64;
                guarded_t kept(size_t(stride + panel_bytes), guarded_t::at_end);
                std::memset(kept.data(), 0xff, kept.size());
                check_direct(p, run_direct(*kernel, p, kept.data(), stride));
                ASSERT_TRUE(kept.intact());
                for (int i = 0; i < 2; i++) {
                    std::vector<uint8_t> want(size_t(panel_bytes), 0xff);
                    const int64_t tile = n16_frame_t::tile_rows(w.shape);
                    decode_args_t args = {};
                    args.wei = w.bytes.data() + i * w.panel_bytes();
                    args.tiles = K / tile;
                    args.tail = K % tile;
                    args.dst = want.data();
                    jit_call(*decoder, args);
                    // Not bit by bit: which way a tile is decoded, the slow one if another panel needs
                    // it, shows in the signs of zeros.
                    for (int64_t k = 0; k < p.padded_k; k++)
                        for (int64_t n = 0; n < panel_columns; n++) {
                            const float a = decoded_at(row(), want.data(), k, n);
                            const float b = decoded_at(row(), kept.data() + i * stride, k, n);
                            ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
                                    << where(row(), f, K, rows, 2) << " panel " << i << " row " << k
                                    << " column " << n << ": " << b << " and " << a;
                        }
                }
                for (int64_t i = panel_bytes; i < stride; i++)
                    ASSERT_EQ(kept.data()[i], 0xff) << "writes between the panels";
                if (HasFailure()) return;
            }
}

// How many panels a call covers must not show in the result: threads split N anywhere.
TEST_P(direct_kernels, panels_do_not_change_bits) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        const std::vector<int> panels = panels_of(row());
        matrix_t w(f, K, panels.back() * panel_columns);
        w.fill(g);
        for (int rows : {1, row().max_rows}) {
            problem_t p(row(), w, rows, panels.back());
            p.fill(g);
            const auto all = run_direct(*make(row(), f, K, rows, p.panels), p);
            p.panels = 1;
            const auto one = run_direct(*make(row(), f, K, rows, 1), p);
            for (int r = 0; r < rows; r++)
                ASSERT_EQ(std::memcmp(&one[size_t(r * panel_columns)],
                                  &all[size_t(r * panels.back() * panel_columns)], panel_columns * 4),
                        0)
                        << where(row(), f, K, rows, panels.back()) << " row " << r;
        }
    }
}

// A NaN scale reaches its column and no other, also where all codes and sources are zero.
TEST_P(direct_kernels, nan_scale_stays_in_its_column) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 300;
        const int panels = panels_of(row()).back(), rows = row().max_rows;
        matrix_t w(f, K, panels * panel_columns);
        w.fill(g);
        const uint32_t nan = f.quant.scale_dt == mxdnn_f8_e4m3 && below(g, 2)
                                     ? 0xff
                                     : uint32_t(f.quant.scale_dt == mxdnn_e8m0      ? e8m0_t::nan_code
                                                : f.quant.scale_dt == mxdnn_f8_e4m3 ? f8_e4m3_t::nan_code
                                                : f.quant.scale_dt == mxdnn_bf16    ? bf16_t::nan_code
                                                : f.quant.scale_dt == mxdnn_f16     ? f16_t::nan_code
                                                                                    : f32_t::nan_code);
        const int64_t block = below(g, uint32_t(div_up(K, f.quant.block))),
                      column = below(g, uint32_t(w.shape.N));
        w.view().set_scale(block * f.quant.block, column, nan);
        for (bool zeros : {false, true}) {
            problem_t p(row(), w, rows, panels);
            if (!zeros) p.fill(g);
            const auto got = run_direct(*make(row(), f, K, rows, panels), p);
            for (int r = 0; r < rows; r++)
                for (int64_t n = 0; n < w.shape.N; n++)
                    ASSERT_EQ(std::isnan(got[size_t(r * w.shape.N + n)]), n == column)
                            << where(row(), f, K, rows, panels) << " row " << r << " column " << n
                            << ", NaN in block " << block << " of column " << column;
            check_direct(p, got);
        }
    }
}

// Codes and sources that are no numbers, and scales at both ends of what f32 has.
TEST_P(direct_kernels, special_values) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        const int64_t K = 160;
        const int panels = panels_of(row()).back(), rows = row().max_rows;
        matrix_t w(f, K, panels * panel_columns);
        w.fill(g);
        const auto kernel = make(row(), f, K, rows, panels);
        const auto run = [&](const char *what, problem_t &p) {
            SCOPED_TRACE(what);
            check_direct(p, run_direct(*kernel, p));
        };
        problem_t p(row(), w, rows, panels);
        if (f.dt == mxdnn_f8_e4m3 || f.dt == mxdnn_f8_e5m2) {
            std::vector<uint32_t> specials = {0x7f, 0xff};
            if (f.dt == mxdnn_f8_e5m2) specials = {0x7c, 0xfc, 0x7d, 0x7e, 0x7f, 0xff};
            for (int64_t n = 0; n < w.shape.N; n++)
                if (n % 3) w.view().set_code(below(g, K), n, specials[below(g, uint32_t(specials.size()))]);
            p.fill(g);
            run("NaN and Inf codes", p);
            for (int64_t k = 0; k < K; k++) p.src(0, k) = 0; // Inf times zero
            run("NaN and Inf codes times zero", p);
            w.fill(g);
        }
        if (row().compute_dt == mxdnn_s8) continue; // has no such sources, and powers of two up to 1
        p.fill(g);
        const float inf = std::numeric_limits<float>::infinity();
        p.src(0, below(g, K)) = inf;
        p.src(rows - 1, below(g, K)) = std::nanf("");
        run("NaN and Inf sources", p);

        if (f.quant.scale_dt != mxdnn_e8m0) continue;
        for (uint32_t byte : {0u, 1u, 2u, 253u, 254u}) {
            for (int64_t n = 0; n < w.shape.N; n++)
                for (int64_t k = 0; k < K; k += f.quant.block) w.view().set_scale(k, n, byte);
            p.fill(g, std::exp2(byte < 3 ? 90. : -90.));
            run(byte < 3 ? "smallest scales" : "largest scales", p);
        }
    }
}

::testing::AssertionResult same_value(const kernel_row_t &row, float got, float want) {
    if (std::isnan(got) && std::isnan(want)) return ::testing::AssertionSuccess();
    if (row.compute_dt == mxdnn_bf16) {
        const float rounded = decode(mxdnn_bf16, encode(mxdnn_bf16, want));
        const float smallest = exp2_f32(-126); // dot products take less than that for zero
        if (got == rounded || (std::fabs(want) < smallest && std::fabs(got) <= smallest))
            return ::testing::AssertionSuccess();
    } else if (bits_of(got) == bits_of(want)) {
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "got " << got << ", want " << want;
}

// Decodes `tiles` whole tiles from the first one on, and the tail; compares with the format's rule.
void check_decode(const kernel_row_t &row, const jit_kernel_t &kernel, const matrix_t &w, int64_t first_tile,
        int64_t tiles, bool tail, guarded_t::place_t place) {
    const int64_t tile_rows = n16_frame_t::tile_rows(w.shape);
    const int64_t first = first_tile * tile_rows,
                  rows = tiles * tile_rows + (tail ? w.shape.K % tile_rows : 0);
    const int64_t padded = round_up(rows, k_step);
    guarded_t wei(size_t(w.panel_bytes()), place),
            dst(size_t(padded * panel_columns * bytes_of(row.compute_dt)), place);
    std::memcpy(wei.data(), w.bytes.data(), wei.size());
    std::memset(dst.data(), 0xff, dst.size());
    decode_args_t args = {};
    args.wei = wei.data() + n16_frame_t::tile(w.shape, first, 0);
    args.tiles = tiles;
    args.tail = tail;
    args.dst = dst.data();
    jit_call(kernel, args);
    ASSERT_TRUE(wei.intact() && dst.intact()) << row.name << " writes beside its buffers";
    ASSERT_EQ(std::memcmp(w.bytes.data(), wei.data(), wei.size()), 0) << row.name << " writes to its weights";
    for (int64_t k = 0; k < padded; k++)
        for (int64_t n = 0; n < panel_columns; n++) {
            const float want = k < rows ? w.value(first + k, n) : 0.f;
            ASSERT_TRUE(same_value(row, decoded_at(row, dst.data(), k, n), want))
                    << where(row, w.format, w.shape.K, 1, 1) << " row " << first + k << " column " << n;
        }
}

TEST_P(decode_kernels, values) {
    rng_t g(seed());
    int turn = 0;
    for (const format_t &f : formats_of(row()))
        for (int64_t K : lengths()) {
            matrix_t w(f, K, panel_columns);
            w.fill(g);
            const auto kernel = make(row(), f, K, 1, 1);
            ASSERT_TRUE(kernel);
            const int64_t tiles = K / n16_frame_t::tile_rows(w.shape);
            const bool tail = K % n16_frame_t::tile_rows(w.shape) != 0;
            check_decode(row(), *kernel, w, 0, tiles, tail, places[turn++ % 3]);
            // Parts: a middle tile, and the tail alone.
            if (tiles > 1) check_decode(row(), *kernel, w, 1, 1, false, places[turn++ % 3]);
            if (tiles && tail) check_decode(row(), *kernel, w, tiles, 0, true, places[turn++ % 3]);
            if (HasFailure()) return;
        }
}

// Every code under every scale byte; under many scales of wider types, those that overflow or
// vanish among them.
TEST_P(decode_kernels, all_codes_under_all_scales) {
    rng_t g(seed());
    for (const format_t &f : formats_of(row())) {
        if (f.quant.block > 32) continue;
        const int codes = 1 << f.bits();
        const int64_t per_scale = div_up(codes, f.quant.block); // blocks that hold all codes
        const int64_t scales = data_type_info(f.quant.scale_dt)->bits == 8 && !brief() ? 256 : 64;
        const int64_t K = div_up(scales * per_scale, int64_t(panel_columns)) * f.quant.block;
        matrix_t w(f, K, panel_columns);
        w.fill(g);
        int64_t i = 0; // block in the order of columns, then rows
        for (int64_t k0 = 0; k0 < K; k0 += f.quant.block)
            for (int64_t n = 0; n < panel_columns; n++, i++) {
                const uint32_t s = uint32_t(i / per_scale % scales);
                uint32_t bits = s;
                if (scales != 256 || data_type_info(f.quant.scale_dt)->bits != 8)
                    bits = s < 2 ? s : uint32_t(g() >> (64 - data_type_info(f.quant.scale_dt)->bits));
                w.view().set_scale(k0, n, bits);
                for (int64_t k = 0; k < f.quant.block; k++)
                    w.view().set_code(k0 + k, n, uint32_t((i % per_scale * f.quant.block + k) % codes));
            }
        const auto kernel = make(row(), f, K, 1, 1);
        ASSERT_TRUE(kernel);
        const int64_t tile_rows = n16_frame_t::tile_rows(w.shape);
        check_decode(row(), *kernel, w, 0, K / tile_rows, K % tile_rows != 0, guarded_t::at_end);
        if (HasFailure()) return;
    }
}

TEST_P(dense_kernels, sums) {
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
                    dense_args_t args = {};
                    args.src = src.data();
                    args.src_stride = src_stride;
                    args.wei = wei.data();
                    args.wei_stride = wei_stride;
                    args.k = k;
                    args.acc = acc.data<float>();
                    args.acc_stride = acc_stride;
                    args.accumulate = accumulate;
                    args.rows = rows;
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

// --- the list itself ---

TEST(kernel_list, names_are_unique_and_begin_with_their_isa) {
    std::set<std::string> names;
    kernel_list().for_each([&](const kernel_row_t &r) {
        EXPECT_TRUE(names.insert(r.name).second) << r.name << " is listed twice";
        const char *kind = r.kind == kernel_kind_t::direct   ? "_direct"
                           : r.kind == kernel_kind_t::decode ? "_decode"
                                                             : "_dense";
        EXPECT_EQ(std::string(r.name).find(std::string(isa_name(r.isa)) + kind), 0u) << r.name;
    });
}

TEST(kernel_list, rows_are_complete) {
    kernel_list().for_each([&](const kernel_row_t &r) {
        EXPECT_GE(r.max_rows, 1) << r.name;
        EXPECT_GE(r.panels[0], 1) << r.name;
        EXPECT_TRUE(r.takes && r.make) << r.name;
        EXPECT_TRUE(r.compute_dt == mxdnn_f32 || r.compute_dt == mxdnn_bf16
                    || (r.compute_dt == mxdnn_s8 && r.kind == kernel_kind_t::direct))
                << r.name;
        bool any = false;
        for (const format_t &f : all_formats()) any = any || r.takes(f.dt, f.quant);
        EXPECT_TRUE(any) << r.name << " takes no format at all";
    });
}

TEST(kernel_list, every_format_has_kernels_at_every_isa) {
    for (cpu_isa_t isa : {cpu_isa_t::avx2, cpu_isa_t::avx512_core, cpu_isa_t::avx512_core_bf16,
                 cpu_isa_t::avx512_core_amx})
        for (const format_t &f : all_formats()) {
            const auto *direct = find_kernel(kernel_kind_t::direct, isa, f.dt, f.quant);
            const auto *decode = find_kernel(kernel_kind_t::decode, isa, f.dt, f.quant);
            ASSERT_TRUE(direct && decode) << f.str() << " " << isa_name(isa);
            EXPECT_LE(int(direct->isa), int(isa));
            const auto *dense = find_kernel(kernel_kind_t::dense, isa, f.dt, f.quant, decode->compute_dt);
            ASSERT_TRUE(dense) << f.str() << " " << isa_name(isa);
            EXPECT_EQ(dense->compute_dt, decode->compute_dt);
            const auto *f32 = find_kernel(kernel_kind_t::direct, isa, f.dt, f.quant, mxdnn_f32);
            ASSERT_TRUE(f32);
            EXPECT_EQ(f32->compute_dt, mxdnn_f32);
        }
}

TEST(kernel_list, selection_is_by_isa_and_format) {
    quant_t mx;
    mx.scale_dt = mxdnn_e8m0;
    mx.block = 32;
    const auto name = [&](kernel_kind_t kind, cpu_isa_t isa, data_type_t dt, const quant_t &q) {
        const kernel_row_t *r = find_kernel(kind, isa, dt, q, mxdnn_f32);
        return std::string(r ? r->name : "none");
    };
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f4_e2m1, mx), "avx2_direct_4bit");
    EXPECT_EQ(
            name(kernel_kind_t::direct, cpu_isa_t::avx512_core, mxdnn_f6_e3m2, mx), "avx512_core_direct_f6");
    EXPECT_EQ(name(kernel_kind_t::decode, cpu_isa_t::avx2, mxdnn_f8_e4m3, mx), "avx2_decode_f8");
    EXPECT_EQ(name(kernel_kind_t::decode, cpu_isa_t::avx2, mxdnn_s8, mx), "avx2_decode_s8");
    EXPECT_EQ(name(kernel_kind_t::dense, cpu_isa_t::avx512_core, mxdnn_s8, mx), "avx512_core_dense");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::none, mxdnn_f4_e2m1, mx), "none");
    mx.block = 64;
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f4_e2m1, mx), "none");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, mxdnn_f8_e4m3, mx), "none");
}

TEST(kernel_list, wrong_parameters_are_refused_with_a_reason) {
    const kernel_row_t *row = rows_of_kind(kernel_kind_t::direct).back();
    const format_t f = formats_of(*row).front();
    const auto refused = [&](data_type_t dt, int64_t K, int rows, int panels) {
        kernel_params_t p;
        p.wei_dt = dt;
        p.quant = f.quant;
        p.K = K;
        p.rows = rows;
        p.panels = panels;
        std::unique_ptr<jit_kernel_t> kernel;
        const char *reason = nullptr;
        const status_t status = create_kernel(*row, p, &kernel, &reason);
        return status == mxdnn_invalid_arguments && !kernel && reason && *reason;
    };
    EXPECT_TRUE(refused(f.dt, 32, 0, 1));
    EXPECT_TRUE(refused(f.dt, 32, row->max_rows + 1, 1));
    EXPECT_TRUE(refused(f.dt, 32, 1, 0));
    EXPECT_TRUE(refused(f.dt, 32, 1, 3));
    EXPECT_TRUE(refused(f.dt, 0, 1, 1));
    EXPECT_TRUE(refused(mxdnn_f32, 32, 1, 1));
}

// --- what kernels stand on ---

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
    char dir[] = "/tmp/mxdnn_test_XXXXXX";
    ASSERT_TRUE(mkdtemp(dir));
    char *const before = getcwd(nullptr, 0);
    ASSERT_TRUE(before && chdir(dir) == 0);
    const kernel_row_t *row = find_kernel(kernel_kind_t::dense, cpu_isa_t::avx2, mxdnn_data_type_undef, {});
    const auto silent = make(*row, {}, 1, 1, 1);
    set_jit_dump(true);
    const auto kernel = make(*row, {}, 1, 1, 1);
    set_jit_dump(false);
    const std::string path = "mxdnn_dump_" + std::string(row->name) + ".0.bin";
    std::FILE *f = std::fopen(path.c_str(), "rb");
    ASSERT_TRUE(f) << path;
    std::vector<uint8_t> bytes(kernel->code_size() + 1);
    const size_t n = std::fread(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
    EXPECT_EQ(n, kernel->code_size());
    EXPECT_EQ(std::memcmp(bytes.data(), kernel->code(), kernel->code_size()), 0);
    EXPECT_NE(std::remove(path.c_str()), -1);
    EXPECT_EQ(chdir(before), 0);
    EXPECT_EQ(rmdir(dir), 0) << "more than one dump was written";
    std::free(before);
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
} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of kernels: formats to run, packed matrices and their values, creation of kernels, and
// the error bound of their results.
//
// MXDNN_TEST_SEED repeats a run; MXDNN_TEST_BRIEF=1 tests fewer sizes and formats, for emulators.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "common/layouts/layout_list.hpp"
#include "cpu/x64/isa.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "gtests/jit_call.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace test {

// ---- what is run ----

bool brief();
uint64_t seed();

struct format_t {
    data_type_t dt;
    quant_t quant;

    std::string str() const {
        std::string s = std::string(data_type_name(dt)) + ":" + data_type_name(quant.scale_dt) + ":"
                        + std::to_string(quant.block);
        if (quant.zp == zero_point_kind_t::u8) s += ":zp";
        if (quant.zp == zero_point_kind_t::float_zero)
            s += std::string(":zero_") + data_type_name(quant.zp_dt);
        if (quant.zp == zero_point_kind_t::minimum) s += std::string(":min_") + data_type_name(quant.zp_dt);
        return s;
    }
    int bits() const { return data_type_info(dt)->bits; }
};

// Everything that the formats' own rules allow, without global scales, which no kernel reads.
const std::vector<format_t> &all_formats();
std::vector<format_t> formats_of(const kernel_row_t &row);
std::vector<int> panels_of(const kernel_row_t &row);
const std::vector<int64_t> &lengths(); // of K

std::vector<const kernel_row_t *> rows_of_kind(kernel_kind_t kind);
std::string row_name(const ::testing::TestParamInfo<const kernel_row_t *> &info);

// A test of one row of the kernel list.
class kernel_test_t : public ::testing::TestWithParam<const kernel_row_t *> {
protected:
    void SetUp() override {
        if (!mayiuse(GetParam()->isa))
            GTEST_SKIP() << GetParam()->name << " was not run: this machine has " << isa_name() << ", not "
                         << isa_name(GetParam()->isa);
    }
    const kernel_row_t &row() const { return *GetParam(); }
};

std::unique_ptr<jit_kernel_t> make(const kernel_row_t &row, const format_t &f, int64_t K, int rows,
        int panels, decoded_t decoded = decoded_t::dropped, data_type_t dst_dt = mxdnn_data_type_undef,
        int64_t k_rows = 0);
// For messages.
std::string where(const kernel_row_t &row, const format_t &f, int64_t K, int rows, int panels);

// ---- values ----

using rng_t = std::mt19937_64;

double uniform(rng_t &g, double lo, double hi);
uint32_t below(rng_t &g, uint32_t n);
float decode(data_type_t dt, uint32_t code);
uint32_t encode(data_type_t dt, double x);

// One packed matrix of N columns, and its values.
struct matrix_t {
    format_t format;
    packed_shape_t shape;
    const layout_t *layout;
    std::vector<uint8_t> bytes;

    matrix_t(const format_t &f, int64_t K, int64_t N) : format(f) {
        shape = make_packed_shape(K, N, f.bits(), f.quant);
        layout = preferred_layout(target_family_t::cpu_x64, f.bits(), false);
        bytes.assign(size_t(layout->matrix_bytes(shape)), 0);
    }
    // To change the matrix, or to read it.
    packed_view_t view() {
        fresh_ = false;
        return {layout, shape, bytes.data()};
    }
    packed_view_t view() const { return {layout, shape, const_cast<uint8_t *>(bytes.data())}; }
    int64_t panel_bytes() const { return n16_frame_t::panel_bytes(shape); }

    void fill(rng_t &g);

    // An element is (code * scale) [+ zero]; the code less its zero point, exact. On tiles it is bf16.
    struct element_t {
        float code, scale, zero, tile;
    };
    const element_t &element(int64_t k, int64_t n) const {
        if (!fresh_) read();
        return elements_[size_t(n * shape.K + k)];
    }
    // The format's rule, in f32.
    float value(int64_t k, int64_t n) const { return value(element(k, n)); }

private:
    // Codes and scales as filled in, or as read once through the layout's map, which is slow.
    mutable std::vector<element_t> elements_;
    mutable bool fresh_ = false;

    float value(const element_t &e) const {
        const float product = mul_f32(e.code, e.scale);
        return is_added(format.quant.zp) ? add_f32(product, e.zero) : product;
    }
    element_t element_of(uint32_t code, uint32_t scale, uint32_t zero_point) const;
    void read() const;
};

// ---- memory ----

constexpr guarded_t::place_t places[] = {guarded_t::at_end, guarded_t::at_start, guarded_t::at_16};
constexpr uint32_t poison = 0x7fbadbadu; // a NaN

int64_t bytes_of(data_type_t dt);
void store(data_type_t dt, void *to, int64_t index, float value);
// Of a panel in the order of the kernel's compute type.
float decoded_at(const kernel_row_t &row, const uint8_t *panel, int64_t k, int64_t column);

// ---- the bound ----

double gamma(double n);

struct want_t {
    double value = 0, bound = 0;
    bool or_nan = false; // in place of Inf
};

// Of a row of source times column n, on tiles: a weight is what the format's rule makes of it, as bf16, and
// less than 2^-126 may be 0; every product and sum is rounded once.
want_t want_on_tiles(const float *x, const matrix_t &w, int64_t n);

::testing::AssertionResult close(float got, const want_t &want);

} // namespace test
} // namespace x64
} // namespace impl
} // namespace mxdnn

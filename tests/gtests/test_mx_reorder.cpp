// SPDX-License-Identifier: Apache-2.0
// mx_reorder: every implementation gives, byte for byte, what the reference gives, in every direction,
// format, orientation and size; touches nothing beside its results; and codes that came from elsewhere stay
// as they are.
#include <cstdlib>
#include <random>

#include "reorder_cases.hpp"

using namespace reorder_test;

namespace {

constexpr dim sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 127, 129, 160, 256, 257, 300};

dim pick(std::mt19937 &rng) { return sizes[rng() % (sizeof(sizes) / sizeof(sizes[0]))]; }

void vary(side_t &s, std::mt19937 &rng) {
    s.padding = rng() % 3 ? 0 : dim(rng() % 7);
    s.scales_transposed = rng() % 3 == 0;
    s.swizzled = s.form == form_t::plain && bytes_of(s.format->scale) == 1 && rng() % 3 == 0;
    s.dense = s.form == form_t::plain && s.format->bits == 6 && rng() % 2;
}

unsigned seed_of_run() {
    const char *given = std::getenv("MXDNN_TEST_SEED");
    static const unsigned seed = given ? unsigned(std::atoll(given)) : std::random_device()();
    return seed;
}

// Every type, axis and orientation of a pair of forms, in sizes drawn at random.
void check_all(const format_t &f, form_t src, form_t dst, bool given, const format_t *to = nullptr) {
    const unsigned seed = seed_of_run();
    std::mt19937 rng(
            seed ^ unsigned(std::hash<std::string>()(f.name)) ^ unsigned(src) * 7 ^ unsigned(dst) * 31);
    testing::Test::RecordProperty("seed", int(seed));
    const bool high = src == form_t::high || dst == form_t::high;
    for (dt type : {dt::f32, dt::bf16, dt::f16})
        for (bool rows : {true, false})
            for (bool src_last : {true, false})
                for (bool dst_last : {true, false}) {
                    if (!high && type != dt::f32) continue;
                    if (!rows && (src == form_t::packed || dst == form_t::packed)) continue;
                    for (int i = 0; i < 3; i++) {
                        problem_t p;
                        p.seed = unsigned(rng());
                        p.src.form = src;
                        p.dst.form = dst;
                        p.src.type = p.dst.type = type;
                        p.src.rows_blocked = p.dst.rows_blocked = rows;
                        p.src.last_contiguous = src_last;
                        p.dst.last_contiguous = dst_last;
                        if (src != form_t::high) p.src.format = &f;
                        if (dst != form_t::high) p.dst.format = to ? to : &f;
                        p.dst.given = given;
                        vary(p.src, rng);
                        vary(p.dst, rng);
                        do {
                            p.dims = {pick(rng), pick(rng)};
                        } while (p.dims[0] == 1 && p.dims[1] == 1); // no order to speak of
                        if (i == 1) p.dims.insert(p.dims.begin(), 3);
                        const bool no_even = p.dst.format && p.dst.format->elem == dt::s8;
                        p.rounding = static_cast<mxdnn::scale_rounding>(rng() % 4);
                        if (no_even && p.rounding == mxdnn::scale_rounding::even)
                            p.rounding = mxdnn::scale_rounding::floor;
                        SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed));
                        reorder_test_t(p).check();
                        if (testing::Test::HasFailure()) return;
                    }
                }
}

constexpr dt value_types[] = {dt::bf16, dt::bf16, dt::f32, dt::f16};

// Between values and whole blocks of whole panels, or of as many plain lines, nothing in which is out of the
// ordinary; all orders.
void check_panels(const format_t &f) {
    const unsigned seed = seed_of_run();
    std::mt19937 rng(seed ^ unsigned(std::hash<std::string>()(f.name)) ^ 17);
    constexpr dim ks[] = {32, 64, 96, 128, 160, 256, 288, 544, 576},
                  ns[] = {32, 48, 64, 96, 256, 272, 320, 544};
    for (form_t codes_are : {form_t::packed, form_t::plain})
        for (bool to_high : {false, true})
            for (bool last : {true, false})
                for (dim k : ks) {
                    if (!to_high && !f.computable()) continue;
                    problem_t p;
                    p.usual = true;
                    p.seed = unsigned(rng());
                    side_t &high = to_high ? p.dst : p.src, &codes = to_high ? p.src : p.dst;
                    high.type = value_types[rng() % 4];
                    high.last_contiguous = last;
                    high.padding = rng() % 3 ? 0 : dim(rng() % 3);
                    codes.form = codes_are;
                    codes.format = &f;
                    codes.last_contiguous = codes_are == form_t::plain && rng() % 4 == 0;
                    p.dims = {k, ns[rng() % 8]};
                    p.rounding = static_cast<mxdnn::scale_rounding>(rng() % (f.elem == dt::s8 ? 2 : 4));
                    SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed));
                    reorder_test_t(p).check();
                    if (testing::Test::HasFailure()) return;
                }
}

// More lines and positions than are worked on together, alone on one thread: what is written does not stay in
// its cache and goes around it. Both orders of the high-precision side.
void check_large(const format_t &f) {
    const unsigned seed = seed_of_run();
    std::mt19937 rng(seed ^ unsigned(std::hash<std::string>()(f.name)));
    const int threads = mxdnn::get_max_concurrency();
    mxdnn::set_max_concurrency(1);
    for (form_t high_is : {form_t::plain, form_t::packed}) // what the other side is
        for (bool to_high : {false, true})
            for (bool last : {true, false}) {
                if (!to_high && !f.computable()) continue;
                problem_t p;
                p.usual = last == to_high;
                p.seed = unsigned(rng());
                side_t &high = to_high ? p.dst : p.src, &other = to_high ? p.src : p.dst;
                high.type = value_types[rng() % 4];
                high.last_contiguous = last;
                other.form = high_is;
                other.format = &f;
                other.last_contiguous = rng() % 2;
                vary(other, rng);
                p.dims = {dim(700 + rng() % 40), dim(1030 + rng() % 40)};
                SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed));
                reorder_test_t(p).check();
                if (testing::Test::HasFailure()) break;
            }
    mxdnn::set_max_concurrency(threads);
}

// Codes as they are, likewise.
void check_large_moves(const format_t &f) {
    const unsigned seed = seed_of_run();
    std::mt19937 rng(seed ^ unsigned(std::hash<std::string>()(f.name)) ^ 29);
    const int threads = mxdnn::get_max_concurrency();
    mxdnn::set_max_concurrency(1);
    for (form_t from : {form_t::packed, form_t::plain})
        for (form_t to : {form_t::packed, form_t::plain}) {
            problem_t p;
            p.seed = unsigned(rng());
            p.src.form = from;
            p.dst.form = to;
            const bool copies = from == to; // with nothing that pads
            for (side_t *side : {&p.src, &p.dst}) {
                side->format = &f;
                side->last_contiguous = false;
                side->padding = copies ? 0 : dim(rng() % 2);
            }
            p.dims = copies ? std::vector<dim>{1280, 816}
                            : std::vector<dim>{dim(1088 + rng() % 80), dim(1030 + rng() % 40)};
            SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed));
            reorder_test_t(p).check();
            if (testing::Test::HasFailure()) break;
        }
    mxdnn::set_max_concurrency(threads);
}

class Formats : public testing::TestWithParam<format_t> {};

} // namespace

TEST_P(Formats, QuantiseToPlain) {
    if (GetParam().computable()) check_all(GetParam(), form_t::high, form_t::plain, false);
}
TEST_P(Formats, QuantiseWithGivenScales) { check_all(GetParam(), form_t::high, form_t::plain, true); }
TEST_P(Formats, QuantiseToPacked) {
    if (GetParam().computable()) check_all(GetParam(), form_t::high, form_t::packed, false);
}
TEST_P(Formats, DequantisePlain) { check_all(GetParam(), form_t::plain, form_t::high, false); }
TEST_P(Formats, DequantisePacked) { check_all(GetParam(), form_t::packed, form_t::high, false); }
TEST_P(Formats, Pack) { check_all(GetParam(), form_t::plain, form_t::packed, false); }
TEST_P(Formats, Unpack) { check_all(GetParam(), form_t::packed, form_t::plain, false); }
TEST_P(Formats, Repack) { check_all(GetParam(), form_t::packed, form_t::packed, false); }
TEST_P(Formats, MovePlain) { check_all(GetParam(), form_t::plain, form_t::plain, false); }
TEST_P(Formats, Panels) { check_panels(GetParam()); }
TEST_P(Formats, Large) { check_large(GetParam()); }
TEST_P(Formats, LargeMoves) { check_large_moves(GetParam()); }
TEST_P(Formats, Requantise) {
    for (const format_t &to : formats) {
        if (!to.computable() || to.elem == GetParam().elem || to.global == global_t::given) continue;
        check_all(GetParam(), form_t::plain, form_t::plain, false, &to);
        check_all(GetParam(), form_t::packed, form_t::packed, false, &to);
        if (HasFailure()) return;
    }
}

// A set of experts of 20 GB: described, not allocated.
TEST(ReorderScratchpad, DoesNotGrowWithTheTensor) {
    for (const format_t &f : formats) {
        if (!f.computable()) continue;
        for (bool last : {true, false}) {
            problem_t p;
            p.src.type = dt::bf16;
            p.src.last_contiguous = last;
            p.dst.form = form_t::packed;
            p.dst.format = &f;
            p.dims = {128, 8192, 8192};
            mxdnn::mx_reorder::primitive_desc pd = reorder_test_t(p).pd;
            do {
                EXPECT_LE(pd.get()->pd->scratchpad_bytes, int64_t(64) << 20)
                        << p.text() << " " << pd.impl_info_str();
            } while (pd.next_impl());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Reorder, Formats, testing::ValuesIn(formats),
        [](const testing::TestParamInfo<format_t> &i) { return std::string(i.param.name); });

// SPDX-License-Identifier: Apache-2.0
// mx_reorder. Every implementation gives the bytes of the reference, in every direction, format, orientation
// and size, and writes nothing else. Codes from other sources stay unchanged.
#include <cstdlib>
#include <random>

#include "cpu/x64/reorder/reorder_worker.hpp"
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

// Between usual values and whole blocks of whole panels, or of as many plain lines, in all orders.
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

// More lines and positions than are processed together, on one thread. Results are larger than its cache, so
// stores bypass it. Both orders of the high-precision side.
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

// A side with its bytes; scales and global scale where it is plain, and what is given.
struct bytes_t {
    form_t form = form_t::high;
    const format_t *format = nullptr;
    std::vector<uint8_t> elements, scales;
    float global = 0;
};

// Of a matrix, by every implementation; `given`: the destination's global scale is.
void reorder(const bytes_t &from, bytes_t &to, const memory::dims &dims, bool given,
        mxdnn::scale_rounding rounding = mxdnn::scale_rounding::floor) {
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    mxdnn::primitive_attr attr;
    std::unordered_map<int, memory> args;
    const auto desc = [&](const bytes_t &x) {
        return x.form == form_t::packed ? packed_desc(eng, *x.format, dims)
                                        : memory::desc(dims, x.format ? x.format->elem : dt::f32, tag::ab);
    };
    const auto add = [&](int arg, const bytes_t &x) {
        const bool is_dst = arg == MXDNN_ARG_DST;
        const auto data = [](const std::vector<uint8_t> &v) { return const_cast<uint8_t *>(v.data()); };
        args[arg] = memory(desc(x), eng, data(x.elements));
        if (x.form == form_t::high || (x.form == form_t::packed && !is_dst)) return;
        const format_t &f = *x.format;
        attr.set_scales(
                arg, 3, {f.block, 1}, f.scale, false, is_dst ? f.mode : reorder_test::mode_t::static_sazp);
        if (is_dst && f.mode == mx) attr.set_scale_rounding(arg, rounding);
        const memory::desc scales({(dims[0] + f.block - 1) / f.block, dims[1]}, f.scale, tag::ab);
        if (x.form == form_t::plain) args[MXDNN_ARG_ATTR_SCALES | arg] = memory(scales, eng, data(x.scales));
        if (f.global == global_t::none) return;
        attr.set_global_scale(
                arg, is_dst && !given ? reorder_test::mode_t::dynamic_fp : reorder_test::mode_t::static_sazp);
        if (x.form == form_t::plain || given)
            args[MXDNN_ARG_ATTR_GLOBAL_SCALE | arg] =
                    memory(memory::desc({1}, dt::f32, tag::a), eng, const_cast<float *>(&x.global));
    };
    to.elements.resize(desc(to).get_size());
    if (to.form == form_t::plain) to.scales.resize(size_t(dims[0] * dims[1]) * 4);
    add(MXDNN_ARG_SRC, from);
    add(MXDNN_ARG_DST, to);
    mxdnn::mx_reorder::primitive_desc pd(eng, desc(from), eng, desc(to), attr);
    bytes_t first;
    do {
        std::fill(to.elements.begin(), to.elements.end(), uint8_t(0xa5));
        std::fill(to.scales.begin(), to.scales.end(), uint8_t(0xa5));
        mxdnn::stream s(eng);
        mxdnn::mx_reorder(pd).execute(s, args);
        if (first.elements.empty()) first = to;
        EXPECT_EQ(to.elements, first.elements) << pd.impl_info_str();
        EXPECT_EQ(to.scales, first.scales) << pd.impl_info_str();
    } while (pd.next_impl());
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
// Not every machine has kernels for panels. The space for their tiles must suffice for every format.
TEST_P(Formats, TilesOfPanelsHaveRoom) {
    using namespace mxdnn::impl;
    const format_t &f = GetParam();
    packed_shape_t shape;
    shape.block = f.block;
    shape.bits = f.bits;
    shape.scale_bytes = bytes_of(f.scale);
    shape.zp_bytes = f.zeros == zeros_t::none ? 0 : bytes_of(f.zero);
    const int64_t panels = x64::panel_lines_of(int(f.block)) / n16_frame_t::columns;
    EXPECT_LE(panels * n16_frame_t::tile_bytes(shape, n16_frame_t::tile_rows(shape)), x64::most_tiles_bytes);
}
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

// Packed codes of 4 bits, of as many elements that tables of codes pay, and of 8 bits: of usual scales, and
// of any.
TEST_P(Formats, RequantiseLarge) {
    const format_t &from = GetParam();
    if (from.bits == 6) return;
    std::mt19937 rng(seed_of_run() ^ unsigned(std::hash<std::string>()(from.name)));
    for (const format_t &to : formats) {
        const bool same = to.elem == from.elem && to.scale == from.scale && to.block == from.block;
        if (!to.computable() || same || to.global == global_t::given) continue;
        for (bool usual : {true, false}) {
            problem_t p;
            p.usual = usual;
            p.seed = unsigned(rng());
            p.src.form = p.dst.form = form_t::packed;
            p.src.format = &from;
            p.dst.format = &to;
            p.dims = {256 + 32 * dim(rng() % 5), 257 + dim(rng() % 64)};
            p.rounding = static_cast<mxdnn::scale_rounding>(rng() % (to.elem == dt::s8 ? 2 : 4));
            SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed_of_run()));
            reorder_test_t(p).check();
            if (HasFailure()) return;
        }
    }
}

// Packed codes of every magnitude, in blocks of every largest one, of usual scales and of any.
TEST_P(Formats, RequantiseEveryMagnitude) {
    const format_t &from = GetParam();
    if (from.zeros != zeros_t::none || from.global != global_t::none) return;
    std::mt19937 rng(seed_of_run() ^ unsigned(std::hash<std::string>()(from.name)));
    const bool is_integer = from.elem == dt::s4 || from.elem == dt::s8;
    const uint32_t sign = 1u << (from.bits - 1);
    const memory::dims dims = {256, std::max<dim>(5 * sign, 160)};
    bytes_t plain, packed;
    plain.form = form_t::plain;
    packed.form = form_t::packed;
    plain.format = packed.format = &from;
    plain.elements.resize(size_t(dims[0] * dims[1] * (from.bits == 4 ? 1 : 2) / 2));
    for (dim k = 0; k < dims[0]; k++)
        for (dim n = 0; n < dims[1]; n++) {
            const uint32_t largest = uint32_t(n) % sign + is_integer,
                           m = k % from.block == n % from.block ? largest
                                                                : uint32_t(k + n / sign * 31) % (largest + 1);
            const bool negative = rng() % 2 || m == sign;
            const uint32_t code = !negative ? m : is_integer ? (2 * sign - m) % (2 * sign) : m | sign;
            const size_t i = size_t(k * dims[1] + n);
            if (from.bits == 4)
                plain.elements[i / 2] |= uint8_t(code << i % 2 * 4);
            else
                plain.elements[i] = uint8_t(code);
        }
    const int scale_bytes = bytes_of(from.scale);
    plain.scales.resize(size_t(dims[0] / from.block * dims[1] * scale_bytes));
    const guarded_t usual(plain.scales.size() / 2, true, 0, 0);
    fill_argument(usual, MXDNN_ARG_ATTR_SCALES, from.scale, rng, true);
    std::copy_n(usual.data(), usual.size(), plain.scales.begin());
    for (size_t i = usual.size(); i < plain.scales.size(); i++) plain.scales[i] = uint8_t(rng());
    reorder(plain, packed, dims, false);
    for (const format_t &f : formats) {
        const bool same = f.elem == from.elem && f.scale == from.scale && f.block == from.block;
        if (f.zeros != zeros_t::none || same || f.global == global_t::given) continue;
        const bool any_rounding = f.mode == mx && f.elem != dt::s8;
        for (bool drawn : {false, true}) {
            if (drawn && !any_rounding) continue;
            const auto rounding = static_cast<mxdnn::scale_rounding>(drawn ? 1 + rng() % 3 : 0);
            SCOPED_TRACE(std::string(f.name) + " rounding " + std::to_string(int(rounding))
                         + " MXDNN_TEST_SEED=" + std::to_string(seed_of_run()));
            bytes_t to;
            to.form = form_t::packed;
            to.format = &f;
            reorder(packed, to, dims, false, rounding);
        }
    }
}

// Codes of NVFP4 under another global scale, and of another format, become what their values become: those of
// NVFP4 do not move, and the given scale stays, whatever the forms.
TEST(ReorderGlobalScale, ThatIsGivenIsTheDestinations) {
    const auto format = [](const std::string &name) {
        for (const format_t &f : formats)
            if (name == f.name) return &f;
        return static_cast<const format_t *>(nullptr);
    };
    const memory::dims dims = {80, 33};
    bytes_t values;
    std::mt19937 rng(5);
    std::normal_distribution<float> normal;
    values.elements.resize(size_t(dims[0] * dims[1]) * 4);
    for (size_t i = 0; i < values.elements.size(); i += 4) {
        const float x = normal(rng);
        std::memcpy(&values.elements[i], &x, 4);
    }
    for (const char *from_name : {"nvfp4_two_level", "s4_bf16_32", "mxfp8"})
        for (form_t from_form : {form_t::plain, form_t::packed})
            for (form_t to_form : {form_t::plain, form_t::packed}) {
                SCOPED_TRACE(std::string(from_name) + " " + std::to_string(int(from_form))
                             + std::to_string(int(to_form)));
                bytes_t from, decoded, want, got;
                from.form = from_form;
                from.format = format(from_name);
                reorder(values, from, dims, false);
                reorder(from, decoded, dims, false);
                got.form = want.form = to_form;
                got.format = want.format = format("nvfp4_two_level");
                got.global = want.global = 0.375f;
                reorder(decoded, want, dims, true);
                reorder(from, got, dims, true);
                EXPECT_EQ(got.elements, want.elements);
                EXPECT_EQ(got.scales, want.scales);
                EXPECT_EQ(got.global, 0.375f);
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
                EXPECT_LE(pd.get()->pd->scratch.size(), int64_t(64) << 20)
                        << p.text() << " " << pd.impl_info_str();
            } while (pd.next_impl());
        }
    }
}

// bf16 to NVFP4, whose kernels compare with bounds: blocks of every largest magnitude, with what is at and
// next to the bounds between codes. In rows and in lines, to packed bytes and to plain codes.
TEST(ReorderNvfp4, EveryBound) {
    using namespace mxdnn::impl;
    constexpr dim K = nvfp4_block, N = 1 << 15;
    constexpr float bounds[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.f};
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const format_t &format = *std::find_if(
            formats.begin(), formats.end(), [](const format_t &f) { return f.name == std::string("nvfp4"); });
    std::vector<uint16_t> lines(K * N), rows(K * N);
    for (uint32_t n = 0; n < uint32_t(N); n++) {
        const float scale = f8_e4m3_t::decode(nvfp4_scale(n << 16));
        for (uint32_t k = 0; k < uint32_t(K); k++) {
            const uint32_t bound = bf16_t::encode(bounds[(n + k / 3) % 7] * scale),
                           x = k == n % uint32_t(K) ? n : std::min(n, bound + k % 3 - 1);
            lines[n * K + k] = rows[k * N + n] = uint16_t(x | (n + k) % 2 << 15);
        }
    }
    for (bool to_rows : {false, true})
        for (bool packed : {false, true}) {
            const memory::desc from({K, N}, dt::bf16, to_rows ? tag::ab : tag::ba),
                    to = packed ? packed_desc(eng, format, {K, N})
                                : memory::desc({K, N}, dt::f4_e2m1, tag::ba);
            mxdnn::primitive_attr attr;
            attr.set_scales(MXDNN_ARG_DST, 3, {K, 1}, dt::f8_e4m3, false, fp);
            mxdnn::mx_reorder::primitive_desc pd(eng, from, eng, to, attr);
            std::vector<std::vector<uint8_t>> codes, scales;
            do {
                codes.emplace_back(to.get_size(), uint8_t(0xa5));
                scales.emplace_back(N, uint8_t(0xa5));
                std::unordered_map<int, memory> args{
                        {MXDNN_ARG_SRC, memory(from, eng, to_rows ? rows.data() : lines.data())},
                        {MXDNN_ARG_DST, memory(to, eng, codes.back().data())}};
                if (!packed)
                    args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] =
                            memory(memory::desc({1, N}, dt::f8_e4m3, tag::ab), eng, scales.back().data());
                mxdnn::mx_reorder(pd).execute(mxdnn::stream(eng), args);
            } while (pd.next_impl());
            ASSERT_EQ(pd.impl_info_str(), "ref:any");
            for (size_t i = 0; i + 1 < codes.size(); i++) {
                EXPECT_TRUE(codes[i] == codes.back()) << i << to_rows << packed;
                EXPECT_TRUE(scales[i] == scales.back()) << i << to_rows << packed;
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Reorder, Formats, testing::ValuesIn(formats),
        [](const testing::TestParamInfo<format_t> &i) { return std::string(i.param.name); });

// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups, and of weights that are packed for both directions, on a device. Every byte
// equals the host's, and bytes that belong to no group keep their poison.
#include "cuda_call.hpp"
#include "rows_in_groups.hpp"

using namespace cuda_test;
using namespace rows_in_groups;
using mxdnn::mx_reorder;
using mxdnn::row_grouping;

namespace {

using pd_t = mx_reorder::primitive_desc;
// The scales of all groups, and `spare` more rows of them.
memory::desc scales_of(const format_t &f, const std::vector<dim> &rows, dim spare, dim C) {
    dim n = spare;
    for (const dim r : rows) n += f.scale_dims(r, C)[f.swizzled];
    if (f.swizzled) return memory::desc({1, n}, dt::e8m0, tag::ab);
    return memory::desc({n, f.scale_dims(1, C)[1]}, dt::e8m0, tag::ab);
}
bytes_t offsets(const groups_t &g, bool starts) {
    const std::vector<int32_t> v = g.offsets(starts);
    bytes_t b(v.size() * 4);
    std::memcpy(b.data(), v.data(), b.size());
    return b;
}

std::vector<dim> many_groups() {
    std::vector<dim> rows;
    for (dim i = 0; i < 75; i++) rows.push_back(i * 37 % 97 * (i % 3));
    return rows;
}
const groups_t all_groups[] = {
        {{5, 0, 33, 64, 1}, 3}, {{128, 32, 256}, 0}, {{0, 0}, 2}, {{200, 1, 130, 0}, 70}, {many_groups(), 1}};

// Random values, with rows of NaN and of zeros, and single NaN, Inf and subnormals.
bytes_t values(dt type, dim rows, dim C, std::mt19937 &rng) {
    const size_t width = type == dt::f32 ? 4 : 2;
    bytes_t b(size_t(rows * C) * width);
    for (dim i = 0; i < rows * C; i++) {
        const dim row = i / C;
        float x = std::ldexp(float(int(rng() % 2001) - 1000), int(rng() % 12) - 14);
        if (row % 61 == 7) x = NAN;
        if (row % 61 == 9) x = 0;
        uint32_t code = mxdnn::impl::encode_value(mxdnn_data_type_t(type), x);
        if (row % 5 == 4 && rng() % 128 == 0) code = uint32_t(rng());
        std::memcpy(&b[size_t(i) * width], &code, width);
    }
    return b;
}

// One call: the groups, and what its sides are.
struct problem_t {
    const groups_t &groups;
    dim C;
    format_t src;
    std::vector<format_t> dst;
    bool starts = false, runtime = false;
    mxdnn::scale_rounding rounding = mxdnn::scale_rounding::rceil;

    memory::desc rows(const format_t &f, bool known) const {
        return memory::desc::grouped(
                {known ? groups.all() : MXDNN_RUNTIME_DIM_VAL, C}, f.type, 0, dim(groups.rows.size()));
    }
    pd_t pd(const mxdnn::engine &e) const {
        constexpr int args[] = {MXDNN_ARG_DST, MXDNN_ARG_DST_1};
        mxdnn::primitive_attr attr;
        attr.set_row_grouping(starts ? row_grouping::starts : row_grouping::ends);
        src.describe(attr, MXDNN_ARG_SRC, false);
        for (size_t i = 0; i < dst.size(); i++) dst[i].describe(attr, args[i], true, rounding);
        const memory::desc from = rows(src, !runtime), to = rows(dst[0], !runtime);
        return dst.size() == 1 ? pd_t(e, from, e, to, attr)
                               : pd_t(e, from, e, to, rows(dst[1], !runtime), attr);
    }
    shapes_t shapes() const {
        shapes_t s;
        const auto add = [&](int arg, const format_t &f) {
            s[arg] = rows(f, true);
            // More than enough.
            if (f.quantised())
                s[MXDNN_ARG_ATTR_SCALES | arg] = scales_of(f, groups.rows, f.swizzled ? 1024 : 3, C);
        };
        add(MXDNN_ARG_SRC, src);
        add(MXDNN_ARG_DST, dst[0]);
        if (dst.size() > 1) add(MXDNN_ARG_DST_1, dst[1]);
        s[MXDNN_ARG_GROUP_OFFSETS] = memory::desc({dim(groups.rows.size()) + starts}, dt::s32, tag::a);
        return s;
    }
    std::string text() const {
        std::string t = std::to_string(groups.all()) + " rows in " + std::to_string(groups.rows.size())
                        + " groups, " + std::to_string(C) + " columns, type " + std::to_string(int(src.type));
        for (const format_t &f : dst)
            t += " to " + std::to_string(int(f.type)) + (f.of_rows ? " of rows" : " of columns")
                 + (f.swizzled ? " swizzled" : "");
        return t;
    }
    // Payloads of NaN may differ.
    bytes_t same_nan(int arg, bytes_t b) const {
        if (arg != MXDNN_ARG_DST || dst[0].type != dt::bf16) return b;
        for (size_t i = 0; i + 2 <= b.size(); i += 2)
            if ((b[i + 1] & 0x7f) == 0x7f && b[i] > 0x80) b[i] = 0xc0, b[i + 1] = 0x7f;
        return b;
    }
    // The device's implementations against the host's first one.
    void expect_host_bytes(const values_t &in, const char *impl) const {
        const values_t want = run(pd(cpu()), cpu(), in, shapes());
        pd_t device = pd(gpu());
        ASSERT_EQ(std::string(device.impl_info_str()), impl) << text();
        do {
            const values_t got = run(device, gpu(), in, shapes());
            ASSERT_EQ(got.size(), want.size()) << text();
            for (const auto &w : want)
                ASSERT_EQ(same_nan(w.first, got.at(w.first)), same_nan(w.first, w.second))
                        << text() << ", " << device.impl_info_str() << ", argument " << w.first;
        } while (device.next_impl());
    }
};

const dt elements[] = {dt::f8_e4m3, dt::f8_e5m2, dt::f6_e2m3, dt::f6_e3m2, dt::s8};

TEST(cuda_groups, quantise_along_either_dim_as_the_host_does) {
    std::mt19937 rng(3);
    int count = 0;
    for (const groups_t &g : all_groups)
        for (const dim C : {16, 40, 97, 240, 384})
            for (const bool of_rows : {false, true})
                for (const bool swizzled : {false, true}) {
                    const int n = count++;
                    const dt from = n % 7 == 5 ? dt::f32 : n % 3 == 1 ? dt::f16 : dt::bf16;
                    const dt to = n % 9 == 8 ? dt::f4_e2m1 : elements[n % 5];
                    problem_t p{g, C, {from}, {{to, of_rows, swizzled}}, n % 2 == 1, n % 4 == 2};
                    if (n % 3 == 0 && to != dt::s8) p.rounding = mxdnn::scale_rounding::floor;
                    const bool fast = C % 16 == 0 && from != dt::f32 && to != dt::f4_e2m1;
                    p.expect_host_bytes({{MXDNN_ARG_SRC, values(from, g.all(), C, rng)},
                                                {MXDNN_ARG_GROUP_OFFSETS, offsets(g, p.starts)}},
                            fast ? "groups:sm_80" : "ref:groups");
                    if (HasFatalFailure()) return;
                }
    EXPECT_GT(count, 90);
}

TEST(cuda_groups, quantise_along_both_dims_as_the_host_does) {
    std::mt19937 rng(4);
    int count = 0;
    for (const groups_t &g : all_groups)
        for (const dim C : {40, 48, 288})
            for (int ways = 0; ways < 8; ways++) {
                const int n = count++;
                const dt from = n % 5 == 3 ? dt::f16 : dt::bf16, to = elements[n % 5];
                const bool rows_first = ways & 1;
                const problem_t p{g, C, {from},
                        {{to, rows_first, bool(ways & 2)}, {to, !rows_first, bool(ways & 4)}}, n % 2 == 1,
                        n % 4 == 2};
                p.expect_host_bytes({{MXDNN_ARG_SRC, values(from, g.all(), C, rng)},
                                            {MXDNN_ARG_GROUP_OFFSETS, offsets(g, p.starts)}},
                        C % 16 ? "two:any" : "groups:sm_80");
                if (HasFatalFailure()) return;
            }
}

// Every bf16, in blocks of each dim, is the host's code.
TEST(cuda_groups, every_bf16) {
    const groups_t g{{512, 0, 511, 1}, 0};
    const dim C = 64;
    bytes_t in(size_t(g.all() * C * 2));
    for (dim i = 0; i < g.all() * C; i++) {
        // Neighbours differ by little, so that few blocks are all zeros.
        const uint16_t code =
                uint16_t(i / C % 32 + i % 32 * 32 + i / (32 * C) % 2 * 0x8000 + i / (64 * C) * 0x400);
        std::memcpy(&in[size_t(i) * 2], &code, 2);
    }
    for (const dt to : elements)
        for (const mxdnn::scale_rounding r : {mxdnn::scale_rounding::rceil, mxdnn::scale_rounding::floor}) {
            if (to == dt::s8 && r == mxdnn::scale_rounding::floor) continue;
            problem_t p{g, C, {dt::bf16}, {{to, false, false}, {to, true, false}}};
            p.rounding = r;
            p.expect_host_bytes(
                    {{MXDNN_ARG_SRC, in}, {MXDNN_ARG_GROUP_OFFSETS, offsets(g, false)}}, "groups:sm_80");
            if (HasFatalFailure()) return;
        }
}

// Back to values, and codes to codes with scales in the other order.
TEST(cuda_groups, dequantise_and_move_as_the_host_does) {
    std::mt19937 rng(5);
    for (const groups_t &g : all_groups)
        for (const dim C : {33, 64})
            for (const bool of_rows : {false, true})
                for (const bool swizzled : {false, true})
                    for (const bool moves : {false, true}) {
                        const format_t from{dt::f8_e4m3, of_rows, swizzled};
                        const format_t to =
                                moves ? format_t{dt::f8_e4m3, of_rows, !swizzled} : format_t{dt::bf16};
                        const problem_t make{g, C, {dt::bf16}, {from}}, back{g, C, from, {to}};
                        const bytes_t ends = offsets(g, false);
                        const values_t codes = run(make.pd(cpu()), cpu(),
                                {{MXDNN_ARG_SRC, values(dt::bf16, g.all(), C, rng)},
                                        {MXDNN_ARG_GROUP_OFFSETS, ends}},
                                make.shapes());
                        back.expect_host_bytes(
                                {{MXDNN_ARG_SRC, codes.at(MXDNN_ARG_DST)},
                                        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                                                codes.at(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST)},
                                        {MXDNN_ARG_GROUP_OFFSETS, ends}},
                                "ref:groups");
                        if (HasFatalFailure()) return;
                    }
}

// Offsets on a device are not checked. With any offsets, no byte outside of the rows and scales is accessed,
// and groups without room for their scales are not written.
TEST(cuda_groups, wrong_offsets_write_nothing_outside) {
    std::mt19937 rng(6);
    const groups_t g{{40, 50, 60}, 0};
    const dim C = 64;
    for (const bool of_rows : {false, true})
        for (const bool swizzled : {false, true}) {
            const problem_t p{g, C, {dt::bf16}, {{dt::f8_e4m3, of_rows, swizzled}}};
            shapes_t shapes = p.shapes();
            constexpr int scales = MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST;
            const bytes_t x = values(dt::bf16, g.all(), C, rng);
            // Room for the scales of two groups.
            const std::vector<dim> two(g.rows.begin(), g.rows.begin() + 2);
            shapes[scales] = scales_of(p.dst[0], two, 0, C);
            pd_t pd = p.pd(gpu());
            do {
                SCOPED_TRACE(std::string(pd.impl_info_str()));
                const values_t got = run(pd, gpu(),
                        {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_GROUP_OFFSETS, offsets(g, false)}}, shapes);
                const bytes_t &codes = got.at(MXDNN_ARG_DST);
                for (size_t i = size_t(90 * C); i < codes.size(); i++) ASSERT_EQ(codes[i], 0xc3) << i;
                const groups_t less{two, 60};
                const problem_t alone{less, C, {dt::bf16}, p.dst};
                shapes_t fit = alone.shapes();
                fit[scales] = shapes[scales];
                const values_t want = run(alone.pd(cpu()), cpu(),
                        {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_GROUP_OFFSETS, offsets(less, false)}}, fit);
                ASSERT_EQ(codes, want.at(MXDNN_ARG_DST));
                ASSERT_EQ(got.at(scales), want.at(scales));
                const int32_t wild[][3] = {
                        {INT32_MAX, INT32_MAX, INT32_MAX}, {INT32_MIN, 3, -9}, {150, 0, 150}, {-1, 200, 100}};
                for (const auto &w : wild) {
                    bytes_t b(sizeof(w));
                    std::memcpy(b.data(), w, sizeof(w));
                    run(pd, gpu(), {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_GROUP_OFFSETS, b}}, shapes);
                }
            } while (pd.next_impl());
        }
}

// Weights of both directions: the second destination has the transposed matrix.
TEST(cuda_groups, pack_both_directions_as_the_host_does) {
    std::mt19937 rng(8);
    const mxdnn::engine target = mxdnn::engine::for_target(gpu().get_target());
    for (const memory::dims &dims : {memory::dims{96, 70}, memory::dims{256, 384}, memory::dims{3, 64, 64},
                 memory::dims{2, 33, 160}, memory::dims{2, 320, 200}})
        for (const dt from : {dt::bf16, dt::f32})
            for (const dt to : {dt::f8_e4m3, dt::f6_e2m3, dt::f4_e2m1})
                for (const bool n_first : {false, true})
                    for (const bool turned_first : {false, true}) {
                        const size_t nd = dims.size();
                        const tag order = nd == 2   ? n_first ? tag::ba : tag::ab
                                          : n_first ? tag::acb
                                                    : tag::abc;
                        const memory::desc src(dims, from, order), any(dims, to, tag::any);
                        mxdnn::primitive_attr attr;
                        for (const bool second : {false, true}) {
                            memory::dims g(nd, 1);
                            g[nd - (second == turned_first ? 2 : 1)] = block;
                            attr.set_scales(second ? MXDNN_ARG_DST_1 : MXDNN_ARG_DST, (1 << nd) - 1, g,
                                    dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
                        }
                        const values_t in = {{MXDNN_ARG_SRC,
                                values(from, src.get_size() / dims[nd - 1] / (from == dt::f32 ? 4 : 2),
                                        dims[nd - 1], rng)}};
                        const pd_t host(target, src, target, any, any, attr);
                        pd_t device(gpu(), src, gpu(), any, any, attr);
                        ASSERT_EQ(host.dst_desc(0), device.dst_desc(0));
                        ASSERT_EQ(host.dst_desc(1), device.dst_desc(1));
                        const values_t want = run(host, target, in);
                        ASSERT_EQ(std::string(device.impl_info_str()),
                                to != dt::f4_e2m1 ? "both_axes:sm_80" : "two:any");
                        do {
                            SCOPED_TRACE(src.to_string() + " " + device.impl_info_str());
                            const values_t got = run(device, gpu(), in);
                            for (const auto &w : want) ASSERT_EQ(got.at(w.first), w.second) << w.first;
                        } while (device.next_impl());
                    }
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights. Every implementation is within the bound of sums in f32, for all
// groupings, types and orders. Padding and missing rows add nothing. Wrong arguments are refused before
// anything is written. Runs under each ISA.
#include <algorithm>
#include <functional>

#include "common/formats/quantize_block.hpp"
#include "cpu/x64/gradient/gradient_plan.hpp"
#include "cpu/x64/isa.hpp"
#include "test_api_util.hpp"

using namespace api_test;
using mxdnn::row_grouping;
using mxdnn::impl::data_type_info;
using mxdnn::impl::decode_value;
using mxdnn::impl::div_up;
using backward_t = mxdnn::grouped_matmul_backward_weights;

namespace {

using dim = memory::dim;
using args_t = std::unordered_map<int, memory>;
constexpr dim block = 32;

mxdnn_data_type_t c_type(dt t) { return static_cast<mxdnn_data_type_t>(t); }
dim bytes_of(dt t) { return data_type_info(c_type(t))->bits / 8; }
bool is_f8(dt t) { return bytes_of(t) == 1; }

uint32_t load(const std::vector<uint8_t> &v, dim i, dim bytes) {
    uint32_t code = 0;
    std::memcpy(&code, v.data() + i * bytes, size_t(bytes));
    return code;
}
void store(std::vector<uint8_t> &v, dim i, dim bytes, uint32_t code) {
    std::memcpy(v.data() + i * bytes, &code, size_t(bytes));
}

struct shape_t {
    std::vector<dim> groups; // rows that count
    dim K, N;
    row_grouping grouping = row_grouping::ends;
    dim alignment = 1; // groups are padded to it, at least one; 1: no padding
    dim spare = 0;     // rows after the last group
    bool three_dims = false, by_rank = false;

    bool padded() const { return grouping == row_grouping::padded; }
    dim count() const { return dim(groups.size()); }
    dim largest() const { return groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()); }
    // Rows of a group with its padding.
    dim places(dim g) const {
        if (padded()) return largest() + spare;
        return alignment == 1 ? groups[size_t(g)]
                              : std::max<dim>(1, div_up(groups[size_t(g)], alignment)) * alignment;
    }
    dim first(dim g) const { return g == 0 ? 0 : first(g - 1) + places(g - 1); }
    dim rows() const { return first(count()) + (padded() ? 0 : spare); }
    dim first_block(dim g) const { return g == 0 ? 0 : first_block(g - 1) + div_up(places(g - 1), block); }
};

// Rows of src or diff_dst. Rows that do not count are NaN.
struct operand_t {
    const shape_t &s;
    dt type;
    dim columns;
    std::vector<uint8_t> data, scales;

    operand_t(const shape_t &shape, dt t, dim c, std::mt19937 &rng)
        : s(shape), type(t), columns(c), data(size_t(s.rows() * c * bytes_of(t)), 0xff),
          scales(is_f8(t) ? size_t(s.first_block(s.count()) * c) : 0, 0xff) {
        std::normal_distribution<float> normal(0, 1);
        std::uniform_int_distribution<uint32_t> code(0, 255), scale(120, 130);
        for (dim g = 0; g < s.count(); g++) {
            for (dim i = 0; i < s.groups[size_t(g)] * columns; i++) {
                uint32_t x = data_type_info(c_type(t))->encode(normal(rng));
                while (is_f8(t) && !std::isfinite(decode_value(c_type(t), x = code(rng)))) {
                }
                store(data, s.first(g) * columns + i, bytes_of(t), x);
            }
            for (dim i = 0; is_f8(t) && i < div_up(s.groups[size_t(g)], block) * columns; i++)
                scales[size_t(s.first_block(g) * columns + i)] = uint8_t(scale(rng));
        }
    }
    double value(dim g, dim row, dim c) const {
        const uint32_t code = load(data, (s.first(g) + row) * columns + c, bytes_of(type));
        if (!is_f8(type)) return double(decode_value(c_type(type), code));
        const uint8_t scale = scales[size_t((s.first_block(g) + row / block) * columns + c)];
        return double(decode_value(c_type(type), code)) * double(decode_value(mxdnn_e8m0, scale));
    }
    memory::dims dims(dim rows) const {
        if (s.three_dims) return {s.count(), s.largest() + s.spare, columns};
        return {rows, columns};
    }
    memory::desc desc(bool runtime_rows) const {
        return memory::desc(dims(runtime_rows ? runtime : s.rows()), type, s.three_dims ? tag::abc : tag::ab);
    }
    void add(args_t &args, int arg, const mxdnn::engine &eng) {
        args[arg] = memory(desc(false), eng, data.data());
        if (!is_f8(type)) return;
        memory::dims d = {s.first_block(s.count()), columns};
        if (s.three_dims) d = {s.count(), div_up(s.largest() + s.spare, block), columns};
        args[MXDNN_ARG_ATTR_SCALES | arg] =
                memory(memory::desc(d, dt::e8m0, s.three_dims ? tag::abc : tag::ab), eng, scales.data());
    }
};

struct BackwardWeights : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    unsigned seed = 5;
    void TearDown() override { mxdnn::set_max_concurrency(0); }

    struct problem_t {
        shape_t shape;
        dt type = dt::bf16, to = dt::f32;
        tag order = tag::abc;
        float sum = 0; // its scale; 0: no sum
        bool runtime_rows = false;
        dt second = dt::undef; // type of diff_dst if it is another
    };

    // Everything of one execution.
    struct execution_t {
        const problem_t &p;
        operand_t src, diff_dst;
        std::vector<uint8_t> old, result;
        std::vector<int32_t> offsets, counts;
        args_t args;
        mxdnn::primitive_attr attr;
        memory::desc to;

        execution_t(const problem_t &problem, const mxdnn::engine &eng, std::mt19937 &rng)
            : p(problem), src(p.shape, p.type, p.shape.K, rng),
              diff_dst(p.shape, p.second == dt::undef ? p.type : p.second, p.shape.N, rng),
              to({p.shape.count(), p.shape.K, p.shape.N}, p.to, p.order) {
            const shape_t &s = p.shape;
            std::normal_distribution<float> normal(0, 1);
            for (dim i = 0; i < s.count() * s.K * s.N; i++) {
                old.resize(old.size() + size_t(bytes_of(p.to)));
                store(old, i, bytes_of(p.to), data_type_info(c_type(p.to))->encode(normal(rng)));
            }
            result = old;
            if (s.grouping == row_grouping::starts) offsets.push_back(0);
            for (dim g = 0; g < s.count(); g++) offsets.push_back(int32_t(s.first(g) + s.places(g)));
            // Three ranks: none, some, and the others.
            if (s.by_rank) counts.assign(size_t(s.count()), 0);
            for (dim n : s.groups) counts.push_back(int32_t(s.by_rank ? n / 3 : n));
            for (dim n : s.groups)
                if (s.by_rank) counts.push_back(int32_t(n - n / 3));
            src.add(args, MXDNN_ARG_SRC, eng);
            diff_dst.add(args, MXDNN_ARG_DIFF_DST, eng);
            args[MXDNN_ARG_DIFF_WEIGHTS] = memory(to, eng, result.data());
            const dim n = s.count();
            if (!s.padded())
                args[MXDNN_ARG_GROUP_OFFSETS] =
                        memory(memory::desc({dim(offsets.size())}, dt::s32, tag::a), eng, offsets.data());
            if (s.padded() || s.alignment > 1)
                args[MXDNN_ARG_GROUP_COUNTS] = memory(s.by_rank ? memory::desc({3, n}, dt::s32, tag::ab)
                                                                : memory::desc({n}, dt::s32, tag::a),
                        eng, counts.data());
            attr.set_row_grouping(s.grouping);
            const std::vector<dim> groups =
                    s.three_dims ? std::vector<dim>{1, block, 1} : std::vector<dim>{block, 1};
            const int mask = s.three_dims ? 7 : 3;
            if (is_f8(p.type)) {
                attr.set_scales(MXDNN_ARG_SRC, mask, groups, dt::e8m0);
                attr.set_scales(MXDNN_ARG_DIFF_DST, mask, groups, dt::e8m0);
            }
            mxdnn::post_ops po;
            if (p.sum != 0) po.append_sum(p.sum);
            attr.set_post_ops(po);
        }
        dim at(dim g, dim k, dim n) const {
            const shape_t &s = p.shape;
            return g * s.K * s.N + (p.order == tag::abc ? k * s.N + n : n * s.K + k);
        }
        // Whether the results are within the bound of any order of sums in f32, and one rounding to the type.
        void check(bool bf16_products) const {
            // Decoded once, since each row is used many times.
            const auto values = [&](const operand_t &o, dim g) {
                std::vector<double> v;
                for (dim r = 0; r < p.shape.groups[size_t(g)]; r++)
                    for (dim c = 0; c < o.columns; c++) v.push_back(o.value(g, r, c));
                return v;
            };
            const shape_t &s = p.shape;
            constexpr double u = 1. / (1 << 24), smallest = 1.18e-38;
            const double unit = p.to == dt::f32 ? u : p.to == dt::bf16 ? 1. / 256 : 1. / 2048;
            for (dim g = 0; g < s.count(); g++) {
                const std::vector<double> xs = values(src, g), ys = values(diff_dst, g);
                for (dim k = 0; k < s.K; k++)
                    for (dim n = 0; n < s.N; n++) {
                        double v = 0, size = 0, flushed = 0;
                        const dim rows = s.groups[size_t(g)];
                        for (dim r = 0; r < rows; r++) {
                            const double x = xs[size_t(r * s.K + k)], y = ys[size_t(r * s.N + n)];
                            v += x * y;
                            size += std::fabs(x * y);
                            if (bf16_products) flushed += smallest * (1 + std::fabs(x) + std::fabs(y));
                        }
                        const double before =
                                decode_value(c_type(p.to), load(old, at(g, k, n), bytes_of(p.to)));
                        const double got =
                                decode_value(c_type(p.to), load(result, at(g, k, n), bytes_of(p.to)));
                        v += p.sum * before;
                        size += 2 * std::fabs(p.sum * before);
                        double bound =
                                (double(rows) + 16) * u * size * 1.01 + flushed + 1e-44 * double(rows + 1);
                        bound += unit * (std::fabs(v) + bound) + (p.to == dt::f16 ? 6e-8 : 1e-40);
                        if (rows == 0 && p.sum == 0) bound = 0;
                        ASSERT_LE(std::fabs(got - v), bound) << "group " << g << " k " << k << " n " << n;
                    }
            }
        }
    };

    // Dot products and tiles of bf16 take subnormal numbers for zero.
    static bool has_bf16_products(const backward_t::primitive_desc &pd) {
        const std::string impl = pd.impl_info_str();
        return impl.find("bf16") != std::string::npos || impl.find("amx") != std::string::npos;
    }

    void by_each(const problem_t &p,
            const std::function<void(execution_t &, const backward_t::primitive_desc &)> &body) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 rng(seed++);
        execution_t x(p, eng, rng);
        backward_t::primitive_desc pd(
                eng, x.src.desc(p.runtime_rows), x.diff_dst.desc(p.runtime_rows), x.to, x.attr);
        do {
            SCOPED_TRACE(pd.impl_info_str());
            x.result = p.sum != 0 ? x.old : std::vector<uint8_t>(x.old.size(), 0xff);
            x.args[MXDNN_ARG_DIFF_WEIGHTS] = memory(x.to, eng, x.result.data());
            body(x, pd);
        } while (pd.next_impl());
    }
    void check(const problem_t &p) {
        by_each(p, [&](execution_t &x, const backward_t::primitive_desc &pd) {
            backward_t(pd).execute(str, x.args);
            x.check(has_bf16_products(pd));
        });
    }
};

// Results that bypass the caches of the one thread, from whole cache lines on and from between.
TEST_F(BackwardWeights, LargeResults) {
    mxdnn::set_max_concurrency(1);
    const dim N = 512;
    int turn = 0;
    for (dt to : {dt::f32, dt::bf16, dt::f16})
        for (tag order : {tag::abc, tag::acb}) {
            const dim odd = turn++ % 2, K = mxdnn::impl::x64::cache_sizes().l2 / 2 / N / bytes_of(to) + 1;
            check({{{1}, K + odd, N + odd}, dt::bf16, to, order});
        }
}

TEST_F(BackwardWeights, EveryTypeAndOrder) {
    for (dt type : {dt::f32, dt::bf16, dt::f16, dt::f8_e4m3, dt::f8_e5m2})
        for (dt to : {dt::f32, dt::bf16, dt::f16})
            for (tag order : {tag::abc, tag::acb}) {
                // f8_e5m2 has values whose sums are beyond f16.
                if (to == dt::f16 && is_f8(type)) continue;
                SCOPED_TRACE(testing::Message()
                             << "type " << int(type) << " to " << int(to) << " order " << int(order));
                check({{{5, 0, 33, 64, 1}, 37, 50}, type, to, order});
            }
    check({{{5, 0, 40}, 20, 17}, dt::f8_e4m3, dt::f32, tag::abc, 0, false, dt::f8_e5m2});
}

TEST_F(BackwardWeights, SizesAroundEveryEdge) {
    for (dt type : {dt::f32, dt::bf16, dt::f8_e4m3})
        for (dim n : {1, 15, 16, 17, 31, 33, 70}) {
            check({{{n, 2, 300}, n, 3}, type});
            check({{{n, 257}, 3, n}, type, dt::bf16, tag::acb});
        }
    // Several blocks of columns and of rows.
    check({{{270, 7}, 210, 530}, dt::bf16});
}

TEST_F(BackwardWeights, GroupingsAndPadding) {
    for (dt type : {dt::f32, dt::bf16, dt::f8_e5m2})
        for (bool runtime_rows : {false, true}) {
            shape_t s{{5, 0, 40, 32}, 20, 33, row_grouping::starts};
            s.spare = 3;
            check({s, type, dt::f32, tag::abc, 0, runtime_rows});
            for (dim alignment : {16, 32, 128})
                for (bool by_rank : {false, true}) {
                    shape_t a{{5, 0, 40, 32}, 20, 33};
                    a.alignment = alignment;
                    a.by_rank = by_rank;
                    check({a, type, dt::bf16, tag::abc, 0, runtime_rows});
                }
            for (bool three_dims : {false, true}) {
                shape_t p{{5, 0, 40, 32}, 20, 33, row_grouping::padded};
                p.spare = 3;
                p.three_dims = three_dims;
                check({p, type, dt::f32, tag::acb, 0, runtime_rows && !three_dims});
            }
        }
}

TEST_F(BackwardWeights, SumAddsAndKeepsWhatHasNoRows) {
    for (float scale : {1.f, .5f})
        for (dt to : {dt::f32, dt::bf16}) check({{{5, 0, 40}, 20, 33}, dt::bf16, to, tag::abc, scale});
    // Not one bit changes, not even of -0.
    by_each({{{0, 0}, 3, 40}, dt::bf16, dt::bf16, tag::abc, 1.f},
            [&](execution_t &x, const backward_t::primitive_desc &pd) {
                for (dim i = 0; i < 3 * 40; i += 2) store(x.result, i, 2, 0x8000);
                const std::vector<uint8_t> before = x.result;
                backward_t(pd).execute(str, x.args);
                EXPECT_EQ(before, x.result);
            });
}

TEST_F(BackwardWeights, NothingToDo) {
    check({{{}, 4, 4}});
    check({{{0, 0}, 4, 4}});
    check({{{3, 2}, 0, 4}});
    check({{{3, 2}, 4, 0}});
}

TEST_F(BackwardWeights, NanOfOneGroupStaysThere) {
    for (dt type : {dt::f32, dt::bf16, dt::f8_e4m3})
        by_each({{{7, 9, 40}, 20, 33}, type}, [&](execution_t &x, const backward_t::primitive_desc &pd) {
            const dim row = x.p.shape.first(1) + 2, bytes = bytes_of(type);
            const uint32_t old = load(x.src.data, row * 20 + 4, bytes);
            store(x.src.data, row * 20 + 4, bytes,
                    is_f8(type) ? 0x7f : data_type_info(c_type(type))->encode(NAN));
            backward_t(pd).execute(str, x.args);
            for (dim g = 0; g < 3; g++)
                for (dim k = 0; k < 20; k++)
                    for (dim n = 0; n < 33; n++)
                        ASSERT_EQ(std::isnan(decode_value(mxdnn_f32, load(x.result, x.at(g, k, n), 4))),
                                g == 1 && k == 4)
                                << g << " " << k << " " << n;
            store(x.src.data, row * 20 + 4, bytes, old);
        });
}

TEST_F(BackwardWeights, SameBitsForAnyNumberOfThreads) {
    std::vector<uint8_t> first;
    std::string name;
    for (int threads : {1, 2, 5}) {
        mxdnn::set_max_concurrency(threads);
        seed = 99;
        by_each({{{300, 0, 41, 7}, 150, 190}}, [&](execution_t &x, const backward_t::primitive_desc &pd) {
            backward_t(pd).execute(str, x.args);
            if (threads == 1 && first.empty()) first = x.result, name = pd.impl_info_str();
            if (pd.impl_info_str() == name) {
                EXPECT_EQ(first, x.result);
            }
        });
    }
}

TEST_F(BackwardWeights, WrongArgumentsAreRefusedBeforeAnythingIsWritten) {
    struct wrong_t {
        std::function<void(execution_t &)> change;
        std::initializer_list<word_t> says;
    };
    shape_t s{{5, 0, 40}, 20, 33};
    s.alignment = 32;
    const wrong_t all[] = {
            {[](execution_t &x) { x.offsets[1] = 0; }, {"GROUP_OFFSETS[1] is 0", "never decrease"}},
            {[](execution_t &x) { x.offsets[2] = 129; }, {"GROUP_OFFSETS[2] is 129", "0 to 128"}},
            {[](execution_t &x) { x.offsets[0] = -1; }, {"GROUP_OFFSETS[0] is -1"}},
            {[](execution_t &x) { x.counts[0] = 33; }, {"33 rows of group 0", "has 32"}},
            {[](execution_t &x) { x.counts[2] = -1; }, {"GROUP_COUNTS[2] is -1", "at least 0"}},
    };
    for (const wrong_t &w : all)
        by_each({s, dt::f8_e4m3}, [&](execution_t &x, const backward_t::primitive_desc &pd) {
            const std::vector<int32_t> offsets = x.offsets, counts = x.counts;
            w.change(x);
            std::vector<mxdnn_exec_arg_t> args;
            for (const auto &a : x.args) args.push_back({a.first, a.second.get(true)});
            const backward_t primitive(pd);
            EXPECT_REFUSED(mxdnn_invalid_arguments,
                    mxdnn_primitive_execute(primitive.get(), str.get(), int(args.size()), args.data()));
            EXPECT_TRUE(refused(mxdnn_invalid_arguments, mxdnn_invalid_arguments, w.says));
            EXPECT_EQ(x.result, std::vector<uint8_t>(x.result.size(), 0xff));
            std::copy(offsets.begin(), offsets.end(), x.offsets.begin());
            std::copy(counts.begin(), counts.end(), x.counts.begin());
        });
}

TEST_F(BackwardWeights, ImpossibleProblemsAreRefused) {
    const memory::desc src({8, 20}, dt::bf16, tag::ab), diff({8, 33}, dt::bf16, tag::ab),
            to({3, 20, 33}, dt::f32, tag::abc);
    const auto create = [&](const memory::desc &a, const memory::desc &b, const memory::desc &c,
                                const mxdnn::primitive_attr &attr = mxdnn::primitive_attr()) {
        mxdnn_primitive_desc_t pd = nullptr;
        const mxdnn_status_t s = mxdnn_grouped_matmul_backward_weights_primitive_desc_create(
                &pd, eng.get(), a.get(), b.get(), c.get(), attr.get());
        mxdnn_primitive_desc_destroy(pd);
        return s;
    };
    EXPECT_OK(create(src, diff, to));
    EXPECT_OK(create(memory::desc::grouped({8, 20}, dt::bf16, 0, 3), diff, to));
    EXPECT_REFUSED(mxdnn_invalid_shape, create(diff, src, to), "K is 33 in src and 20");
    EXPECT_REFUSED(mxdnn_invalid_shape, create(src, diff, memory::desc({20, 33}, dt::f32, tag::ab)),
            "[groups, K, N]");
    EXPECT_REFUSED(
            mxdnn_invalid_shape, create(src, memory::desc({9, 33}, dt::bf16, tag::ab), to), "same rows");
    EXPECT_REFUSED(mxdnn_invalid_shape, create(memory::desc::grouped({8, 20}, dt::bf16, 0, 4), diff, to),
            "src has 4 groups", "have 3");
    EXPECT_REFUSED(mxdnn_unimplemented, create(src, memory::desc({8, 33}, dt::f32, tag::ab), to),
            "src is bf16 and diff_dst is f32");
    EXPECT_REFUSED(mxdnn_invalid_data_type, create(src, diff, memory::desc({3, 20, 33}, dt::s32, tag::abc)),
            "diff_weights are s32");
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(src, diff, memory::desc({3, 20, 33}, dt::f32, tag::any)),
            "diff_weights", "plain");
    mxdnn::primitive_attr by_id;
    by_id.set_row_grouping(row_grouping::row_ids);
    EXPECT_REFUSED(mxdnn_unimplemented, create(src, diff, to, by_id), "row_ids");
    mxdnn::primitive_attr relu;
    mxdnn::post_ops ops;
    ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0, 0);
    relu.set_post_ops(ops);
    EXPECT_REFUSED(mxdnn_unimplemented, create(src, diff, to, relu), "sum");
    // Blocks along the columns, which the sums do not run along.
    const memory::desc src8({8, 20}, dt::f8_e4m3, tag::ab), diff8({8, 33}, dt::f8_e4m3, tag::ab);
    mxdnn::primitive_attr columns;
    columns.set_scales(MXDNN_ARG_SRC, 3, {1, block}, dt::e8m0);
    columns.set_scales(MXDNN_ARG_DIFF_DST, 3, {block, 1}, dt::e8m0);
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, create(src8, diff8, to, columns), "blocks of src run along its columns");
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(src8, diff8, to), "src", "no scales");
    mxdnn::primitive_attr plain;
    plain.set_scales(MXDNN_ARG_DIFF_DST, 3, {block, 1}, dt::e8m0);
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(src, diff, to, plain), "diff_dst is bf16");
    mxdnn::primitive_attr of_weights;
    of_weights.set_scales(MXDNN_ARG_WEIGHTS, 3, {block, 1}, dt::e8m0);
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, create(src, diff, to, of_weights), "attributes of src and diff_dst");
    constexpr dim most = 1 << 20;
    EXPECT_OK(create(src, diff, memory::desc({most, 20, 33}, dt::f32, tag::abc)));
    EXPECT_REFUSED(mxdnn_invalid_shape,
            create(src, diff, memory::desc({most + 1, 20, 33}, dt::f32, tag::abc)), "1048577 groups");
    EXPECT_REFUSED(mxdnn_invalid_data_type, create(memory::desc({8, 20}, dt::s32, tag::ab), diff, to),
            "src is s32; possible are f32 bf16 f16");
    const auto scaled = [](mxdnn::quantization_mode mode = mxdnn::quantization_mode::static_sazp) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_SRC, 3, {block, 1}, dt::e8m0, false, mode);
        a.set_scales(MXDNN_ARG_DIFF_DST, 3, {block, 1}, dt::e8m0);
        return a;
    };
    EXPECT_OK(create(src8, diff8, to, scaled()));
    EXPECT_REFUSED(mxdnn_unimplemented, create(memory::desc({8, 20}, dt::s8, tag::ab), diff8, to, scaled()),
            "src is s8 with e8m0 scales");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            create(src8, diff8, to, scaled(mxdnn::quantization_mode::dynamic_mx)), "src has dynamic scales");
    mxdnn::primitive_attr swizzled = scaled();
    swizzled.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
    EXPECT_REFUSED(
            mxdnn_unimplemented, create(src8, diff8, to, swizzled), "scales of src are in the 128x4 order");
    // No other primitive has attributes of diff_dst.
    mxdnn_primitive_desc_t pd = nullptr;
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_mx_reorder_primitive_desc_create(
                    &pd, src.get(), eng.get(), src.get(), eng.get(), plain.get()),
            "diff_dst");
}

// Scales may lie in any order.
TEST_F(BackwardWeights, TransposedScales) {
    by_each({{{33, 0, 64}, 20, 33}, dt::f8_e4m3}, [&](execution_t &x, const backward_t::primitive_desc &pd) {
        const dim blocks = x.p.shape.first_block(3);
        std::vector<uint8_t> turned(x.diff_dst.scales.size());
        for (dim b = 0; b < blocks; b++)
            for (dim c = 0; c < 33; c++)
                turned[size_t(c * blocks + b)] = x.diff_dst.scales[size_t(b * 33 + c)];
        x.args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DIFF_DST] =
                memory(memory::desc({blocks, 33}, dt::e8m0, tag::ba), eng, turned.data());
        backward_t(pd).execute(str, x.args);
        x.check(has_bf16_products(pd));
    });
}

TEST_F(BackwardWeights, ScalesOfTooFewBlocksAreRefused) {
    by_each({{{33, 1}, 20, 33}, dt::f8_e4m3}, [&](execution_t &x, const backward_t::primitive_desc &pd) {
        x.args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                memory(memory::desc({2, 20}, dt::e8m0, tag::ab), eng, x.src.scales.data());
        std::vector<mxdnn_exec_arg_t> args;
        for (const auto &a : x.args) args.push_back({a.first, a.second.get(true)});
        const backward_t primitive(pd);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_execute(primitive.get(), str.get(), int(args.size()), args.data()),
                "scales of src have 2 rows", "need 3");
    });
}

// Blocks are whole kernel calls and cover the gradient. Each thread has several tasks where that is possible.
TEST(gradient_plan, blocks) {
    using namespace mxdnn::impl::x64;
    for (int64_t l2 : {int64_t(256) << 10, int64_t(1) << 20, int64_t(2) << 20})
        for (int threads : {1, 8, 64})
            for (int64_t left : {1, 64, 2880, 7168})
                for (int64_t right : {1, 100, 5760}) {
                    const gradient_plan_t p = plan_gradient({4, left, right}, {l2, threads, 14, 32});
                    EXPECT_GT(p.left, 0);
                    EXPECT_EQ(p.left % 14, 0);
                    EXPECT_EQ(p.right % 32, 0);
                    const int64_t bytes = p.left * p.right * 4 + (p.left + p.right) * gradient_step_bytes;
                    EXPECT_LE(bytes, std::max<int64_t>(l2, 400 << 10)) << left << " " << right;
                    const int64_t tasks = 4 * div_up(left, p.left) * div_up(right, p.right);
                    if (left * right > 1 << 20) {
                        EXPECT_GE(tasks, 4 * threads) << left << " " << right;
                    }
                }
}

} // namespace

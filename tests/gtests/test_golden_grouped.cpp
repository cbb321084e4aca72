// SPDX-License-Identifier: Apache-2.0
// grouped_matmul, every option of it, against results that a script computed from the documents without the
// library, by every implementation that takes the problem. Only the public API is used here.
#include <algorithm>
#include <cmath>

#include "golden_grouped/cases.hpp"
#include "gtests/golden/case_values.hpp"

namespace golden_grouped {

using api_test::dt;
using api_test::tag;
using golden::array_t;
using golden::type_of;
using golden::value_at;
using mxdnn::memory;
using mxdnn::quantization_mode;

namespace {

using dim = memory::dim;
const mxdnn::engine &cpu() {
    static const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    return e;
}
const mxdnn::stream &stream() {
    static const mxdnn::stream s(cpu());
    return s;
}

// The meaning of a word for rows: a type, or a quantised type with its scales.
struct rows_type_t {
    dt elem, scale = dt::undef;
    dim block = 0; // 0: one scale per row
};
rows_type_t rows_type(const std::string &word) {
    if (word == "mxfp8") return {dt::f8_e4m3, dt::e8m0, 32};
    if (word == "mxfp8_e5m2") return {dt::f8_e5m2, dt::e8m0, 32};
    if (word == "mxfp6") return {dt::f6_e2m3, dt::e8m0, 32};
    if (word == "mxfp4") return {dt::f4_e2m1, dt::e8m0, 32};
    if (word == "mxint8") return {dt::s8, dt::e8m0, 32};
    if (word == "nvfp4") return {dt::f4_e2m1, dt::f8_e4m3, 16};
    if (word == "int4") return {dt::s4, dt::bf16, 32};
    if (word == "s8row_f32") return {dt::s8, dt::f32, 0};
    if (word == "s8row_bf16") return {dt::s8, dt::bf16, 0};
    return {type_of(word)};
}

// Bytes that memories are made of, alive as long as the arguments.
struct buffers_t {
    std::vector<std::vector<uint8_t>> all;
    void *copy(const std::vector<uint8_t> &bytes) {
        all.push_back(bytes);
        all.back().resize(std::max<size_t>(bytes.size(), 1));
        return all.back().data();
    }
    memory put(const memory::desc &md, const array_t &a) {
        EXPECT_EQ(md.get_size(), a.bytes.size()) << md.to_string();
        return memory(md, cpu(), copy(a.bytes));
    }
};

struct weights_t {
    const format_t &f;
    std::unordered_map<int, memory> plain; // codes, scales, zero points and global scale
    buffers_t buffers;

    void describe(mxdnn::primitive_attr &a, int arg) const {
        a.set_scales(arg, 7, {f.block, 1}, type_of(f.scale));
        if (f.zero != "none") a.set_zero_points(arg, 7, {f.block, 1}, type_of(f.zero));
        if (f.global) a.set_global_scale(arg, quantization_mode::static_sazp);
    }

    // With `nan`, a scale of expert 2, column 5 is NaN.
    weights_t(const format_t &format, int arg, bool nan) : f(format) {
        const auto &c = cases();
        const memory::desc codes({c.E, c.K, c.N}, type_of(f.elem), tag::abc);
        const auto params = [&](const std::string &what, const std::string &type) {
            return memory::desc(
                    memory::dims(f[what].dims.begin(), f[what].dims.end()), type_of(type), tag::abc);
        };
        plain[arg] = buffers.put(codes, f["codes"]);
        array_t scales = f["scales"];
        if (nan) scales.bytes[size_t((2 * scales.dims[1] + 1) * scales.dims[2] + 5)] = 0xff;
        plain[MXDNN_ARG_ATTR_SCALES | arg] = buffers.put(params("scales", f.scale), scales);
        if (f.zero != "none")
            plain[MXDNN_ARG_ATTR_ZERO_POINTS | arg] = buffers.put(params("zeros", f.zero), f["zeros"]);
        if (f.global)
            plain[MXDNN_ARG_ATTR_GLOBAL_SCALE | arg] =
                    buffers.put(memory::desc({c.E}, dt::f32, tag::a), f["global"]);
    }
};

memory pack(const format_t &f, const memory::desc &packed, bool nan) {
    const weights_t from(f, MXDNN_ARG_FROM, nan);
    mxdnn::primitive_attr a;
    from.describe(a, MXDNN_ARG_FROM);
    auto args = from.plain;
    const memory to(packed, cpu());
    args[MXDNN_ARG_TO] = to;
    mxdnn::mx_reorder(
            mxdnn::mx_reorder::primitive_desc(cpu(), args.at(MXDNN_ARG_FROM).get_desc(), cpu(), packed, a))
            .execute(stream(), args);
    return to;
}

constexpr uint8_t poison = 0xa5;
constexpr size_t guard = 64; // bytes behind an output that stay as they are

struct output_t {
    std::vector<uint8_t> bytes;
    size_t size = 0;
    explicit output_t(size_t n = 0) : bytes(n + guard, poison), size(n) {}
    memory as(const memory::desc &md) {
        EXPECT_EQ(md.get_size(), size) << md.to_string();
        return memory(md, cpu(), bytes.data());
    }
    void check_guard() const {
        for (size_t i = size; i < bytes.size(); i++)
            ASSERT_EQ(bytes[i], poison) << "behind the end: " << i - size;
    }
};

struct run_t {
    const case_t &c;
    const format_t &f;
    bool runtime; // rows are known only at execution
    dim E = cases().E, K = cases().K, N = cases().N;
    rows_type_t src, dst;
    std::string grouping, act;
    bool gated, gather, scatter, padded;
    dim groups, src_rows, dst_rows, columns;

    run_t(const case_t &the_case, bool runtime_rows)
        : c(the_case), f(cases().formats.at(c.get("format", ""))), runtime(runtime_rows),
          src(rows_type(c.get("src", "bf16"))), dst(rows_type(c.get("dst", "f32"))),
          grouping(c.get("grouping", "")), act(c.get("act", "none")), gated(act != "none" && act != "relu2"),
          gather(c.has("gather")), scatter(c.has("scatter")), padded(grouping == "padded") {
        groups = c["bounds"].dims[0] - (grouping == "starts");
        src_rows = c["src"].dims[0];
        dst_rows = c["written"].dims[0];
        columns = gated ? N / 2 : N;
    }

    // Rows that groups divide are grouped. Rows that indices select are plain. Padded groups have 3
    // dims.
    memory::desc rows_desc(dim rows, dim width, dt type, bool by_index, bool unknown) const {
        const dim r = unknown ? api_test::runtime : rows;
        if (by_index || grouping == "row_ids") return memory::desc({r, width}, type, tag::ab);
        if (!padded) return memory::desc::grouped({r, width}, type, 0, groups);
        if (c.flag("flat")) return memory::desc({r, width}, type, tag::ab);
        return memory::desc({groups, unknown ? api_test::runtime : rows / groups, width}, type, tag::abc);
    }
    memory::desc src_desc(bool unknown) const { return rows_desc(src_rows, K, src.elem, gather, unknown); }
    memory::desc dst_desc(bool unknown) const {
        return rows_desc(dst_rows, columns, dst.elem, scatter, unknown);
    }

    // Of the memory of scales, which follow the rows, or are bytes of the 128x4 order.
    memory::desc scales_desc(
            const memory::desc &rows, const rows_type_t &t, const array_t &a, bool swizzled) const {
        memory::dims d = rows.get_dims();
        if (swizzled && d.size() == 3) return memory::desc({d[0], a.dims[0] / d[0]}, t.scale, tag::ab);
        if (swizzled) return memory::desc({1, a.dims[0]}, t.scale, tag::ab);
        d.back() = t.block ? (d.back() + t.block - 1) / t.block : 1;
        return memory::desc(d, t.scale, d.size() == 3 ? tag::abc : tag::ab);
    }

    mxdnn::primitive_attr attr() const {
        mxdnn::primitive_attr a;
        const auto mask = [&](bool by_index, bool per_row) {
            const int nd = int(src_like_ndims(by_index));
            return per_row ? (1 << (nd - 1)) - 1 : (1 << nd) - 1;
        };
        if (src.scale != dt::undef) {
            if (src.block)
                a.set_scales(MXDNN_ARG_SRC, mask(gather, false), {1, src.block}, src.scale);
            else
                a.set_scales(MXDNN_ARG_SRC, mask(gather, true), {}, src.scale);
        }
        if (c.has("src_global")) a.set_global_scale(MXDNN_ARG_SRC, quantization_mode::static_sazp);
        if (c.flag("swizzle_src")) a.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
        if (dst.scale != dt::undef)
            a.set_scales(MXDNN_ARG_DST, mask(scatter, false), {1, dst.block}, dst.scale, false,
                    c.flag("static")        ? quantization_mode::static_sazp
                    : dst.scale == dt::e8m0 ? quantization_mode::dynamic_mx
                                            : quantization_mode::dynamic_fp);
        if (c.has("dst_global")) a.set_global_scale(MXDNN_ARG_DST, quantization_mode::dynamic_fp);
        if (c.flag("swizzle_dst")) a.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
        static const std::map<std::string, mxdnn::row_grouping> kinds{{"ends", mxdnn::row_grouping::ends},
                {"starts", mxdnn::row_grouping::starts}, {"padded", mxdnn::row_grouping::padded},
                {"row_ids", mxdnn::row_grouping::row_ids}};
        a.set_row_grouping(kinds.at(grouping));
        if (c.get("topk_on", "output") == "input")
            a.set_topk_weights_placement(mxdnn::topk_weights_placement::on_input);
        if (c.flag("experts"))
            a.set_expert_range(std::stoll(c.get("first", "0")), std::stoll(c.get("experts", "0")));
        static const std::map<std::string, mxdnn::algorithm> gates{{"silu", mxdnn::algorithm::gated_silu},
                {"swiglu_oai", mxdnn::algorithm::gated_swiglu_oai},
                {"geglu_erf", mxdnn::algorithm::gated_gelu_erf},
                {"geglu_tanh", mxdnn::algorithm::gated_gelu_tanh}};
        mxdnn::post_ops ops;
        if (gated)
            ops.append_gated(gates.at(act), 1.25f, 1.5f,
                    c.flag("halves") ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
        if (act == "relu2") ops.append_eltwise(mxdnn::algorithm::eltwise_relu2, 0.f, 0.f);
        if (c.has("old")) ops.append_sum(std::stof(c.get("beta", "0")));
        a.set_post_ops(ops);
        return a;
    }
    size_t src_like_ndims(bool by_index) const { return padded && !by_index && !c.flag("flat") ? 3 : 2; }

    memory::desc bias_desc() const {
        return c.has("bias") ? memory::desc({E, N}, type_of(c.get("bias", "")), tag::ab) : memory::desc();
    }

    mxdnn::grouped_matmul::primitive_desc describe() const {
        mxdnn::primitive_attr a = attr();
        const bool nan = c.flag("nan"), plain = c.flag("plain");
        weights_t(f, MXDNN_ARG_WEIGHTS, nan).describe(a, MXDNN_ARG_WEIGHTS);
        return mxdnn::grouped_matmul::primitive_desc(cpu(), src_desc(runtime),
                memory::desc({E, K, N}, type_of(f.elem), plain ? tag::abc : tag::any), bias_desc(),
                dst_desc(runtime), a);
    }

    // Packed experts are far apart. Those without rows have no memory.
    void scatter_experts(
            const memory &packed, std::vector<memory> &experts, std::vector<uint64_t> &table) const {
        int64_t stride = 0;
        ASSERT_EQ(mxdnn_memory_desc_query(packed.get_desc().get(), mxdnn_query_expert_stride_s64, &stride),
                mxdnn_success);
        const std::vector<int32_t> ends = c["bounds"].as<int32_t>();
        experts.resize(size_t(E));
        table.assign(size_t(E), 0);
        for (dim e = E; e-- > 0;) {
            if (ends[size_t(e)] == (e ? ends[size_t(e - 1)] : 0)) continue;
            experts[size_t(e)] = memory(memory::desc({stride}, dt::u8, tag::a), cpu());
            void *to = experts[size_t(e)].get_data_handle();
            std::memcpy(to, static_cast<const char *>(packed.get_data_handle()) + e * stride, size_t(stride));
            table[size_t(e)] = reinterpret_cast<uintptr_t>(to);
        }
    }

    void check_floats(
            const std::vector<uint8_t> &got, const std::vector<uint8_t> &before, bool rounds_weights) const {
        const std::vector<uint8_t> &written = c["written"].bytes;
        const std::vector<float> want = c["want"].as<float>(),
                                 bound = c[rounds_weights && c.has("rounded") ? "rounded" : "bound"]
                                                 .as<float>();
        const size_t width = dst.elem == dt::f32 ? 4 : 2;
        const double half_ulp = dst.elem == dt::f32 ? 0x1p-24 : dst.elem == dt::bf16 ? 0x1p-8 : 0x1p-11;
        const double step = dst.elem == dt::f32 ? 0x1p-149 : dst.elem == dt::bf16 ? 0x1p-133 : 0x1p-24;
        int wrong = 0;
        for (dim r = 0; r < dst_rows; r++)
            for (dim n = 0; n < columns; n++) {
                const size_t i = size_t(r * columns + n);
                if (!written[size_t(r)]) {
                    if (std::memcmp(&got[i * width], &before[i * width], width) != 0 && wrong++ < 3)
                        ADD_FAILURE() << "[" << r << ", " << n << "] is written";
                    continue;
                }
                const double w = double(want[i]), x = value_at(got, dst.elem, i),
                             e = double(bound[i]) + half_ulp * (std::fabs(w) + double(bound[i])) + step;
                if ((std::isnan(w) ? std::isnan(x) : std::fabs(x - w) <= e) || wrong++ >= 3) continue;
                ADD_FAILURE() << "[" << r << ", " << n << "]: " << x << ", expected " << w << " within " << e;
            }
        EXPECT_EQ(wrong, 0);
    }

    static void check_bytes(const char *what, const std::vector<uint8_t> &got,
            const std::vector<uint8_t> &want, const std::vector<uint8_t> &written) {
        int wrong = 0;
        for (size_t i = 0; i < want.size(); i++) {
            const uint8_t w = written[i] ? want[i] : poison;
            if (got[i] != w && wrong++ < 3)
                ADD_FAILURE() << what << " byte " << i << ": " << int(got[i]) << ", expected " << int(w)
                              << (written[i] ? "" : " (never written)");
        }
        EXPECT_EQ(wrong, 0);
    }

    void execute(const mxdnn::grouped_matmul::primitive_desc &pd, const memory &packed) const {
        buffers_t b;
        std::unordered_map<int, memory> args;
        const auto vector = [&](int arg, const char *name, dt type) {
            if (!c.has(name)) return;
            const auto &d = c[name].dims;
            args[arg] = b.put(
                    memory::desc(memory::dims(d.begin(), d.end()), type, d.size() == 2 ? tag::ab : tag::a),
                    c[name]);
        };
        args[MXDNN_ARG_SRC] = b.put(src_desc(false), c["src"]);
        if (c.has("src_scales"))
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                    b.put(scales_desc(src_desc(false), src, c["src_scales"], c.flag("swizzle_src")),
                            c["src_scales"]);
        vector(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC, "src_global", dt::f32);
        vector(padded                   ? MXDNN_ARG_GROUP_COUNTS
                : grouping == "row_ids" ? MXDNN_ARG_ROW_EXPERT_IDS
                                        : MXDNN_ARG_GROUP_OFFSETS,
                "bounds", dt::s32);
        vector(MXDNN_ARG_GROUP_EXPERT_IDS, "group_ids", dt::s32);
        vector(MXDNN_ARG_EXPERT_MAP, "map", dt::s32);
        vector(MXDNN_ARG_GATHER_IDX, "gather", dt::s32);
        vector(MXDNN_ARG_SCATTER_IDX, "scatter", dt::s32);
        vector(MXDNN_ARG_TOPK_WEIGHTS, "topk", c.get("topk", "") == "bf16" ? dt::bf16 : dt::f32);
        vector(MXDNN_ARG_EXPERT_ALPHA, "alpha", dt::f32);
        vector(MXDNN_ARG_ACTIVATION_PARAMS, "params", dt::f32);
        if (c.has("bias")) args[MXDNN_ARG_BIAS] = b.put(bias_desc(), c["bias"]);

        std::vector<memory> experts;
        std::vector<uint64_t> table;
        const weights_t plain(f, MXDNN_ARG_WEIGHTS, c.flag("nan"));
        if (c.flag("plain")) {
            for (const auto &m : plain.plain) args[m.first] = m.second;
        } else if (c.flag("pointers")) {
            scatter_experts(packed, experts, table);
            args[MXDNN_ARG_WEIGHTS_PTRS] = memory(memory::desc({E}, dt::u64, tag::a), cpu(), table.data());
        } else {
            args[MXDNN_ARG_WEIGHTS] = packed;
        }

        output_t y(dst_desc(false).get_size()), scales, global;
        if (c.has("old")) std::copy(c["old"].bytes.begin(), c["old"].bytes.end(), y.bytes.begin());
        const std::vector<uint8_t> before = y.bytes;
        args[MXDNN_ARG_DST] = y.as(dst_desc(false));
        if (c.has("scales")) {
            scales = output_t(c["scales"].bytes.size());
            if (c.flag("static"))
                std::copy(c["scales"].bytes.begin(), c["scales"].bytes.end(), scales.bytes.begin());
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] =
                    scales.as(scales_desc(dst_desc(false), dst, c["scales"], c.flag("swizzle_dst")));
        }
        if (c.has("dst_global")) {
            global = output_t(c["dst_global"].bytes.size());
            args[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST] =
                    global.as(memory::desc({c["dst_global"].dims[0]}, dt::f32, tag::a));
        }
        mxdnn::grouped_matmul(pd).execute(stream(), args);

        for (const output_t *o : {&y, &scales, &global}) o->check_guard();
        const std::string impl = pd.impl_info_str();
        if (c.has("want")) {
            const bool bf16 = impl.find("bf16") != std::string::npos || impl.find("amx") != std::string::npos;
            return check_floats(y.bytes, before, bf16);
        }
        const size_t row_bytes = size_t(c["codes"].dims[1]);
        std::vector<uint8_t> rows_written;
        for (uint8_t w : c["written"].bytes) rows_written.insert(rows_written.end(), row_bytes, w);
        check_bytes("codes", y.bytes, c["codes"].bytes, rows_written);
        // Given ones stay as they are.
        const std::vector<uint8_t> all(c["scales"].bytes.size(), 1);
        check_bytes("scales", scales.bytes, c["scales"].bytes,
                c.flag("static") ? all : c["scales_written"].bytes);
        if (c.has("dst_global"))
            check_bytes("global scale", global.bytes, c["dst_global"].bytes,
                    std::vector<uint8_t>(c["dst_global"].bytes.size(), 1));
    }
};

class golden_grouped_case : public testing::TestWithParam<size_t> {};

TEST_P(golden_grouped_case, by_every_implementation) {
    const case_t &c = cases().cases[GetParam()];
    for (const bool runtime : {false, true}) {
        const run_t r(c, runtime);
        mxdnn::grouped_matmul::primitive_desc pd = r.describe();
        memory packed;
        if (!c.flag("plain")) packed = pack(r.f, pd.weights_desc(), c.flag("nan"));
        std::string impl;
        do {
            impl = pd.impl_info_str();
            SCOPED_TRACE(impl + (runtime ? ", runtime rows" : ""));
            r.execute(pd, packed);
        } while (pd.next_impl());
        EXPECT_EQ(impl, "ref:any");
    }
}

std::vector<size_t> all_cases() {
    std::vector<size_t> v(cases().cases.size());
    for (size_t i = 0; i < v.size(); i++) v[i] = i;
    return v;
}

INSTANTIATE_TEST_SUITE_P(all, golden_grouped_case, testing::ValuesIn(all_cases()),
        [](const testing::TestParamInfo<size_t> &i) { return cases().cases[i.param].name; });

TEST(golden_grouped, every_option_is_here) {
    std::string names;
    for (const char *needed : {"gather", "scatter", "topk", "alpha", "params", "group_ids", "map", "old",
                 "src_global", "dst_global", "src_scales", "scales", "bias"}) {
        bool found = false;
        for (const case_t &c : cases().cases) found = found || c.has(needed);
        if (!found) names += std::string(" ") + needed;
    }
    EXPECT_EQ(names, "");
    EXPECT_EQ(cases().formats.size(), 14u);
    EXPECT_GE(cases().cases.size(), 118u);
}

} // namespace

} // namespace golden_grouped

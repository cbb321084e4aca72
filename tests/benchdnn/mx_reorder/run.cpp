// SPDX-License-Identifier: Apache-2.0
// Runs one mx_reorder problem: every implementation must give the same bits as the scalar rules.
#include <cmath>
#include <cstdio>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/driver.hpp"
#include "benchdnn/common/tensor.hpp"
#include "benchdnn/mx_reorder/problem.hpp"

namespace bench {
namespace mx_reorder {

using namespace mxdnn::impl;
using pd_t = mxdnn::mx_reorder::primitive_desc;
using mxdnn::memory;

namespace {

constexpr int dst_args[] = {MXDNN_ARG_DST, MXDNN_ARG_DST_1};

// The packed descriptor that mx_matmul would choose for weights of this type.
memory::desc packed_desc(const mxdnn::engine &eng, const std::vector<int64_t> &dims, const tensor_type_t &t) {
    mxdnn::primitive_attr attr;
    set_quant(attr, MXDNN_ARG_WEIGHTS, t, dims.size(), int(dims.size()) - 2, false);
    memory::dims src = dims, dst = dims;
    src[dims.size() - 2] = dst[dims.size() - 2] = 1;
    src.back() = dims[dims.size() - 2];
    return mxdnn::mx_matmul::primitive_desc(eng,
            memory::desc(src, memory::data_type::f32, tensor_t::row_major(src)),
            memory::desc(dims, cpp(t.dt), memory::format_tag::any),
            memory::desc(dst, memory::data_type::f32, tensor_t::row_major(dst)), attr)
            .weights_desc();
}

// One side of a reorder: plain values, plain codes and scales, or packed bytes.
struct form_t {
    operand_t plain; // a packed side has one, too: what it is filled from, or read into
    memory::desc packed_md;
    buffer_t packed;
    bool is_packed = false;

    form_t(const mxdnn::engine &eng, const problem_t &p, const side_t &s) : is_packed(s.packed()) {
        if (is_packed) {
            packed_md = packed_desc(eng, p.dims, s.type);
            packed = buffer_t(packed_md.get_size(), 64);
        }
        const std::string batch =
                is_packed || (&s != &p.src && p.batch_strides == "same") ? "outer" : p.batch_strides;
        plain = operand_t(tensor_t(p.dims,
                                  strides_of(p.dims, is_packed ? "ba" : s.tag, s.type.dt,
                                          is_packed ? 0 : p.row_pad, batch),
                                  s.type.dt, s.type.dense),
                s.type, is_packed ? int(p.dims.size()) - 2 : s.axis,
                p.scales_like_codes && !is_packed ? s.tag : "ab");
    }

    // The descriptor for the primitive descriptor: with "rows" the dim before the last is a runtime value,
    // with "all" every dim and every stride except the stride of 1.
    memory::desc desc(const std::string &runtime_dims) const {
        if (is_packed) return packed_md;
        const tensor_t &t = plain.codes();
        memory::dims dims = t.dims, strides = t.strides;
        if (runtime_dims == "rows") dims[dims.size() - 2] = MXDNN_RUNTIME_DIM_VAL;
        if (runtime_dims == "all") {
            dims.assign(dims.size(), MXDNN_RUNTIME_DIM_VAL);
            for (int64_t &s : strides)
                if (s != 1) s = MXDNN_RUNTIME_DIM_VAL;
        }
        return memory::desc(dims, cpp(t.dt), strides);
    }
    double size() const { return is_packed ? double(packed.size()) : plain.size(); }
    // `quantises`: its codes are computed, not moved.
    void add_args(int arg, const mxdnn::engine &e, bool quantises, args_t &args) const {
        if (!is_packed) return plain.add_args(arg, e, args);
        args[arg] = memory(packed_md, e, packed.data());
        if (plain.quantised.given_global && quantises)
            args[MXDNN_ARG_ATTR_GLOBAL_SCALE | arg] = plain.quantised.global.memory(e);
    }
    // What the primitive writes.
    void poison() const {
        if (is_packed) packed.poison();
        plain.poison();
    }
    // Copies what is given to another form of the same destination.
    void take_given(const form_t &from) const {
        const quantised_t &q = plain.quantised, &f = from.plain.quantised;
        const auto copy = [](const tensor_t &to, const tensor_t &t) {
            if (!to.dims.empty()) std::memcpy(to.bytes.data(), t.bytes.data(), t.bytes.size());
        };
        if (q.given) copy(q.scales, f.scales);
        if (q.given) copy(q.zero_points, f.zero_points);
        if (q.given_global) copy(q.global, f.global);
    }

    // Packed bytes to the plain copy and back, element by element through the layout's map.
    void exchange(bool to_packed) const {
        const memory_desc_t &md = *reinterpret_cast<const memory_desc_t *>(packed_md.get());
        const quantised_t &quantised = plain.quantised;
        std::vector<int64_t> matrices = quantised.codes.dims;
        const size_t nd = matrices.size();
        const int64_t K = matrices[nd - 2], N = matrices[nd - 1];
        matrices[nd - 2] = matrices[nd - 1] = 1;
        if (to_packed) std::memset(packed.data(), 0, packed.size());
        const packed_view_t first{layout_of(md), shape_of(md), packed.data()};
        int64_t entry = 0;
        for_each(matrices, [&](const int64_t *matrix) {
            packed_view_t view = first;
            view.data += entry * md.packed.stride;
            int64_t idx[max_ndims];
            std::copy(matrix, matrix + nd, idx);
            if (to_packed) {
                view.set_global(quantised.global_of(idx));
            } else if (!quantised.global.dims.empty()) {
                const int64_t g = quantised.global.dims[0] == 1 ? 0 : entry;
                quantised.global.set_code(&g, bits_of(view.global()));
            }
            for_each({K, N}, [&](const int64_t *kn) {
                std::copy(kn, kn + 2, idx + nd - 2);
                exchange_element(to_packed, view, idx);
            });
            entry++;
        });
    }

private:
    void exchange_element(bool to_packed, packed_view_t &view, const int64_t *idx) const {
        const quantised_t &quantised = plain.quantised;
        const size_t nd = quantised.codes.dims.size();
        const int64_t k = idx[nd - 2], n = idx[nd - 1];
        int64_t b[max_ndims];
        std::copy(idx, idx + nd, b);
        b[nd - 2] /= quantised.quant.block;
        const bool zp = !quantised.zero_points.dims.empty(), first = k % quantised.quant.block == 0;
        if (to_packed) {
            view.set_code(k, n, quantised.codes.code(idx));
            if (first) view.set_scale(k, n, quantised.scale(b));
            if (first && zp) view.set_zero_point(k, n, quantised.zero_points.code(b));
        } else {
            quantised.codes.set_code(idx, view.code(k, n));
            if (first) quantised.set_scale(b, view.scale(k, n));
            if (first && zp) quantised.zero_points.set_code(b, view.zero_point(k, n));
        }
    }
};

// Codes are copied unchanged, except under given scales. Packed bytes contain their own.
bool moves(const problem_t &p, const side_t &to, const operand_t &src, const operand_t &dst) {
    return src.is_quantised && dst.is_quantised && p.src.type.dt == to.type.dt
           && p.src.type.quant == to.type.quant && src.quantised.axis == dst.quantised.axis
           && !(dst.quantised.given_global && !dst.quantised.given && !dst.quantised.global.dims.empty())
           && (p.src.packed() || to.packed() || !dst.quantised.given);
}

// Any code, under any scale and zero point in one block in 16.
void fill_with_odd_codes(const quantised_t &q, rng_t &rng) {
    const auto any_of = [&](data_type_t dt) {
        const int bits = data_type_info(dt)->bits;
        return uint32_t(rng()) & uint32_t((uint64_t(1) << bits) - 1);
    };
    for_each(q.codes.dims, [&](const int64_t *idx) { q.codes.set_code(idx, any_of(q.codes.dt)); });
    for_each(q.blocks, [&](const int64_t *block) {
        if (rng() % 16) return;
        q.set_scale(block, any_of(q.quant.scale_dt));
        if (!q.zero_points.dims.empty()) q.zero_points.set_code(block, any_of(q.quant.zp_dt));
    });
}

void fill_source(const problem_t &p, const operand_t &src, rng_t &rng) {
    fill_random(src, rng);
    if (p.values != "special") return;
    if (src.is_quantised) return fill_with_odd_codes(src.quantised, rng);
    // One element in 64 is something that rounds, saturates, or poisons its block.
    const float odd[] = {
            NAN, INFINITY, -INFINITY, 0.f, -0.f, 1e-45f, -1e-40f, 3e38f, -3e38f, 6.f, 448.f, 7.5f, 1e-3f};
    std::uniform_int_distribution<int> one_in(0, 63), which(0, int(sizeof(odd) / sizeof(odd[0])) - 1);
    const tensor_t &t = src.plain;
    const data_type_info_t *info = data_type_info(t.dt);
    for_each(t.dims, [&](const int64_t *idx) {
        if (one_in(rng) == 0) t.set_code(idx, info->encode(odd[which(rng)]));
    });
}

void fill(const problem_t &p, form_t &src, const std::vector<form_t> &dst) {
    rng_t rng(settings.seed);
    fill_source(p, src.plain, rng);
    if (src.is_packed) src.exchange(true);
    for (const form_t &d : dst) {
        d.plain.fill_given(rng);
        if (p.values == "special" && d.plain.quantised.given) fill_with_odd_codes(d.plain.quantised, rng);
    }
}

// The destination that the scalar rules give, in `want` (plain forms; a packed one in its plain copy).
void expect(const problem_t &p, const side_t &to, const operand_t &src, const operand_t &want) {
    if (!want.is_quantised) {
        const data_type_info_t *info = data_type_info(want.plain.dt);
        return for_each(
                p.dims, [&](const int64_t *idx) { want.plain.set_code(idx, info->encode(src.value(idx))); });
    }
    const quantised_t &q = want.quantised;
    const bool copy = moves(p, to, src, want);
    if (!q.global.dims.empty() && (copy || !q.given_global)) {
        std::vector<float> amax(size_t(q.global.dims[0]), 0.f);
        for_each(p.dims, [&](const int64_t *idx) {
            size_t entry = 0;
            for (size_t i = 0; i + 2 < p.dims.size(); i++) entry = entry * size_t(p.dims[i]) + size_t(idx[i]);
            if (amax.size() == 1) entry = 0;
            amax[entry] = nvfp4_global_amax(amax[entry], src.value(idx));
        });
        for (int64_t i = 0; i < q.global.dims[0]; i++)
            q.global.set_code(
                    &i, copy ? src.quantised.global.code(&i) : bits_of(nvfp4_global_scale(amax[size_t(i)])));
    }
    if (to.type.swizzled && (copy || !q.given))
        std::memset(q.scales.bytes.data(), 0, q.scales.bytes.size()); // padding
    for_each(q.blocks, [&](const int64_t *block) {
        int64_t idx[max_ndims];
        std::copy(block, block + p.dims.size(), idx);
        const int64_t first = block[q.axis] * q.quant.block;
        const int n = int(std::min(q.quant.block, p.dims[size_t(q.axis)] - first));
        float x[256];
        uint8_t codes[256];
        block_params_t params;
        for (int i = 0; i < n; i++) {
            idx[q.axis] = first + i;
            if (copy)
                codes[i] = uint8_t(src.quantised.codes.code(idx));
            else
                x[i] = src.value(idx);
        }
        if (copy) {
            params = src.quantised.params(idx);
        } else if (q.given) {
            params = q.params(idx);
            for (int i = 0; i < n; i++)
                codes[i] = uint8_t(quantize_element(to.type.dt, q.quant, params, q.global_of(idx), x[i]));
        } else {
            params = quantize_block(to.type.dt, q.quant, p.rounding, q.global_of(idx), x, n, codes);
        }
        q.set_scale(block, params.scale);
        if (!q.zero_points.dims.empty()) q.zero_points.set_code(block, params.zp);
        for (int i = 0; i < n; i++) {
            idx[q.axis] = first + i;
            q.codes.set_code(idx, codes[i]);
        }
    });
}

void compare(const tensor_t &got, const tensor_t &want, const char *what, mismatch_t &bad,
        const operand_t *src = nullptr) {
    if (want.dims.empty()) return;
    for_each(want.dims, [&](const int64_t *idx) {
        const uint32_t g = got.code(idx), w = want.code(idx);
        if (g == w) return;
        // NaNs of a high-precision type are alike.
        if (has_role(want.dt, role_high_precision) && std::isnan(decode_value(want.dt, g))
                && std::isnan(decode_value(want.dt, w)))
            return;
        // Which zero a NaN becomes under a given scale of 0 hangs on its sign, and arithmetic may change
        // that.
        if (src && std::isnan(src->value(idx)) && decode_value(want.dt, g) == 0
                && decode_value(want.dt, w) == 0)
            return;
        char s[80];
        std::snprintf(s, sizeof(s), " expected 0x%x got 0x%x, bound: the same bits", w, g);
        bad.add(what + (" " + index_text(idx, want.dims.size())) + s);
    });
}
void compare(const operand_t &got, const operand_t &want, const operand_t &src, mismatch_t &bad) {
    compare(got.plain, want.plain, "value", bad);
    compare(got.quantised.codes, want.quantised.codes, "code", bad, got.quantised.given ? &src : nullptr);
    compare(got.quantised.scales, want.quantised.scales, "scale", bad);
    compare(got.quantised.zero_points, want.quantised.zero_points, "zero point", bad);
    compare(got.quantised.global, want.quantised.global, "global scale", bad);
}

// Packed sides say themselves how they are quantised, except for what is found on the way there.
mxdnn::primitive_attr make_attr(const problem_t &p) {
    mxdnn::primitive_attr attr;
    const size_t nd = p.dims.size();
    const auto axis = [&](const side_t &side) { return side.packed() ? int(nd) - 2 : side.axis; };
    if (!p.src.packed()) set_quant(attr, MXDNN_ARG_SRC, p.src.type, nd, axis(p.src), false);
    for (size_t i = 0; i < p.dst.size(); i++) {
        const tensor_type_t &type = p.dst[i].type;
        set_quant(attr, dst_args[i], type, nd, axis(p.dst[i]), true);
        if (type.quantised)
            attr.set_scale_rounding(dst_args[i], static_cast<mxdnn::scale_rounding>(p.rounding));
    }
    return attr;
}

pd_t make_pd(
        const mxdnn::engine &eng, const problem_t &p, const form_t &src, const std::vector<form_t> &dst) {
    const mxdnn::primitive_attr attr = make_attr(p);
    const std::string &runtime = p.runtime_dims;
    if (dst.size() == 1) return pd_t(eng, src.desc(runtime), eng, dst[0].desc(runtime), attr);
    return pd_t(eng, src.desc(runtime), eng, dst[0].desc(runtime), dst[1].desc(runtime), attr);
}

std::vector<form_t> make_destinations(const mxdnn::engine &eng, const problem_t &p) {
    std::vector<form_t> dst;
    for (const side_t &side : p.dst) dst.emplace_back(eng, p, side);
    return dst;
}

// ---- rows in groups: each group is a matrix of its own ----

// One side: the matrices, and the memories in which they stand one after the other.
struct grouped_form_t {
    std::vector<operand_t> each;
    memory::desc md, scales_md;
    buffer_t rows, scales;

    grouped_form_t(const problem_t &p, const side_t &s, const std::vector<int64_t> &counts) {
        int64_t all = p.spare, bytes = 0;
        for (const int64_t n : counts) {
            const std::vector<int64_t> dims = {n, p.dims[1]};
            each.emplace_back(tensor_t(dims, strides_of(dims, "ab", s.type.dt), s.type.dt, s.type.dense),
                    s.type, s.axis);
            all += n;
            bytes += int64_t(each.back().quantised.scales.bytes.size());
        }
        const std::vector<int64_t> line = {1, p.dims[1]};
        const int64_t row_bytes = int64_t(
                tensor_t(line, strides_of(line, "ab", s.type.dt), s.type.dt, s.type.dense).bytes.size());
        md = memory::desc::grouped({p.runtime_dims == "rows" ? MXDNN_RUNTIME_DIM_VAL : all, p.dims[1]},
                cpp(s.type.dt), 0, p.groups);
        rows = buffer_t(size_t(all * row_bytes));
        scales = buffer_t(size_t(bytes));
        if (!s.type.quantised) return;
        const int64_t width = s.type.swizzled ? bytes : each[0].quantised.blocks[1];
        scales_md = memory::desc({s.type.swizzled ? 1
                                         : width  ? bytes / width
                                                  : 0,
                                         width},
                memory::data_type::e8m0, memory::format_tag::ab);
    }
    void add_args(int arg, const mxdnn::engine &e, const problem_t &p, args_t &args) const {
        int64_t all = p.spare;
        for (const operand_t &one : each) all += one.codes().dims[0];
        const memory::desc known = memory::desc::grouped({all, p.dims[1]}, md.get_data_type(), 0, p.groups);
        args[arg] = memory(known, e, rows.data());
        if (each[0].is_quantised) args[MXDNN_ARG_ATTR_SCALES | arg] = memory(scales_md, e, scales.data());
    }
    // Copies the matrices to the memories, or back. Returns how many bytes of rows belong to matrices.
    size_t exchange(bool to_memories) const {
        size_t at = 0, scale_at = 0;
        const auto copy = [&](const buffer_t &whole, size_t &from, const buffer_t &part) {
            if (to_memories)
                std::memcpy(whole.data() + from, part.data(), part.size());
            else
                std::memcpy(part.data(), whole.data() + from, part.size());
            from += part.size();
        };
        for (const operand_t &one : each) {
            copy(rows, at, one.codes().bytes);
            if (one.is_quantised) copy(scales, scale_at, one.quantised.scales.bytes);
        }
        return at;
    }
};

void run_groups(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine(), host = host_engine(eng);
        const mxdnn::stream stream = stream_of(eng);
        const std::vector<int64_t> counts = group_rows(p, settings.seed);
        const grouped_form_t src = create([&] { return grouped_form_t(p, p.src, counts); });
        std::vector<grouped_form_t> dst, want;
        for (const side_t &side : p.dst) {
            dst.push_back(create([&] { return grouped_form_t(p, side, counts); }));
            want.emplace_back(p, side, counts);
        }
        const pd_t pd = create([&] {
            mxdnn::primitive_attr attr = make_attr(p);
            attr.set_row_grouping(p.starts ? mxdnn::row_grouping::starts : mxdnn::row_grouping::ends);
            if (dst.size() == 1) return pd_t(eng, src.md, eng, dst[0].md, attr);
            return pd_t(eng, src.md, eng, dst[0].md, dst[1].md, attr);
        });
        std::vector<int32_t> bounds(size_t(p.starts), 0);
        for (const int64_t n : counts) bounds.push_back((bounds.empty() ? 0 : bounds.back()) + int32_t(n));
        rng_t rng(settings.seed);
        for (const operand_t &one : src.each) fill_source(p, one, rng);
        src.rows.poison();
        src.exchange(true);
        args_t args = {{MXDNN_ARG_GROUP_OFFSETS,
                memory(memory::desc({int64_t(bounds.size())}, memory::data_type::s32, memory::format_tag::a),
                        host, bounds.data())}};
        src.add_args(MXDNN_ARG_SRC, host, p, args);
        for (size_t i = 0; i < dst.size(); i++) dst[i].add_args(dst_args[i], host, p, args);
        std::string wrong;
        if (settings.correctness) {
            for (size_t i = 0; i < dst.size(); i++)
                for (size_t g = 0; g < counts.size(); g++) {
                    problem_t one = p;
                    one.dims[0] = counts[g];
                    expect(one, p.dst[i], src.each[g], want[i].each[g]);
                }
            wrong = check_each(pd, names, [&](const pd_t &each, mismatch_t &bad) {
                for (const grouped_form_t &d : dst) d.rows.poison(), d.scales.poison();
                execute(mxdnn::mx_reorder(each), stream, args);
                if (settings.plant_fault && dst[0].rows.size()) dst[0].rows.data()[0] ^= 1;
                for (size_t i = 0; i < dst.size(); i++) {
                    const size_t end = dst[i].exchange(false);
                    for (size_t g = 0; g < counts.size(); g++)
                        compare(dst[i].each[g], want[i].each[g], src.each[g], bad);
                    for (size_t at = end; at < dst[i].rows.size(); at++)
                        bad.same("byte after the last group", {int64_t(at)}, 0xA5, dst[i].rows.data()[at]);
                }
            });
        }
        double bytes = double(src.rows.size() + src.scales.size());
        for (const grouped_form_t &d : dst) bytes += double(d.rows.size() + d.scales.size());
        if (wrong.empty()) run_and_time<mxdnn::mx_reorder>(pd, stream, args, p.repro, bytes);
        return wrong;
    });
}

} // namespace

void run(const problem_t &p) {
    if (p.groups) return run_groups(p);
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const mxdnn::stream stream = stream_of(eng);
        form_t src = create([&] { return form_t(eng, p, p.src); });
        const std::vector<form_t> dst = create([&] { return make_destinations(eng, p); });
        const pd_t pd = create([&] { return make_pd(eng, p, src, dst); });
        fill(p, src, dst);
        args_t args;
        src.add_args(MXDNN_ARG_SRC, host_engine(eng), false, args);
        for (size_t i = 0; i < dst.size(); i++)
            dst[i].add_args(
                    dst_args[i], host_engine(eng), !moves(p, p.dst[i], src.plain, dst[i].plain), args);
        std::string wrong;
        if (settings.correctness) {
            const std::vector<form_t> want = make_destinations(eng, p);
            for (size_t i = 0; i < dst.size(); i++) {
                want[i].take_given(dst[i]);
                expect(p, p.dst[i], src.plain, want[i].plain);
            }
            wrong = check_each(pd, names, [&](const pd_t &each, mismatch_t &bad) {
                for (const form_t &d : dst) d.poison();
                execute(mxdnn::mx_reorder(each), stream, args);
                for (const form_t &d : dst)
                    if (d.is_packed) d.exchange(false);
                if (settings.plant_fault) {
                    int64_t idx[max_ndims];
                    for (size_t i = 0; i < p.dims.size(); i++) idx[i] = p.dims[i] / 2;
                    const tensor_t &t = dst.back().plain.codes();
                    t.set_code(idx, t.code(idx) ^ 1);
                }
                for (size_t i = 0; i < dst.size(); i++) {
                    compare(dst[i].plain, want[i].plain, src.plain, bad);
                    if (!dst[i].is_packed) compare_gaps(dst[i].plain.codes(), bad);
                }
            });
        }
        // A global scale has to be known before anything is written under it: the source is read twice.
        bool twice = false;
        double bytes = src.size();
        for (size_t i = 0; i < dst.size(); i++) {
            bytes += dst[i].size();
            twice = twice
                    || (dst[i].plain.is_quantised && !src.plain.is_quantised
                            && p.dst[i].type.quant.global != global_scale_kind_t::none);
        }
        if (wrong.empty())
            run_and_time<mxdnn::mx_reorder>(pd, stream, args, p.repro, bytes + (twice ? src.size() : 0));
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace mx_reorder
} // namespace bench

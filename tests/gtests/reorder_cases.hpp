// SPDX-License-Identifier: Apache-2.0
// A reorder of test_mx_reorder: its two sides, their data, and a comparison of every implementation with the
// reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>

#include <sys/mman.h>
#include <unistd.h>

#include "common/formats/quantize_block.hpp"
#include "common/packed_desc.hpp"
#include "common/primitive_desc.hpp"
#include "cpu/x64/isa.hpp"
#include "test_api_util.hpp"

namespace reorder_test {

using namespace api_test;

using mode_t = mxdnn::quantization_mode;
using dim = memory::dim;

// ---- memory whose last (or first) byte is next to a page that cannot be accessed ----

class guarded_t {
public:
    // `apart` more bytes stay unused behind it.
    guarded_t(size_t size, bool at_end, size_t offset, size_t apart) : size_(size) {
        const size_t page = size_t(sysconf(_SC_PAGESIZE));
        inside_ = (size + offset + page - 1) / page * page + page; // never empty
        total_ = inside_ + 2 * page + apart;
        base_ = static_cast<uint8_t *>(mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED || mprotect(base_ + page, inside_, PROT_READ | PROT_WRITE) != 0) std::abort();
        first_ = base_ + page;
        data_ = at_end ? first_ + inside_ - size : first_ + offset;
    }
    guarded_t(const guarded_t &) = delete;
    ~guarded_t() { munmap(base_, total_); }

    uint8_t *data() const { return data_; }
    size_t size() const { return size_; }
    void fill(uint8_t byte) const { std::memset(first_, byte, inside_); }
    // All accessible bytes, so that stray writes are found too.
    std::vector<uint8_t> everything() const { return {first_, first_ + inside_}; }

private:
    size_t size_, inside_, total_;
    uint8_t *base_, *first_, *data_;
};

// ---- formats ----

enum class zeros_t { none, u8, floating, minimum };
enum class global_t { none, computed, given };

struct format_t {
    const char *name;
    dt elem;
    int bits;
    dt scale;
    dim block;
    mode_t mode; // that computes it
    zeros_t zeros = zeros_t::none;
    dt zero = dt::u8;
    global_t global = global_t::none;

    bool computable() const { return zeros != zeros_t::floating; }
};

constexpr mode_t mx = mode_t::dynamic_mx, fp = mode_t::dynamic_fp, affine = mode_t::dynamic_affine;

// Every format in blocks with a name, two levels of scales, and int4 and int8 in all their forms.
inline const std::vector<format_t> formats = [] {
    std::vector<format_t> all;
    for (const auto &f : mxdnn::impl::named_formats) {
        const mode_t mode = mode_t(dynamic_mode_of(f.elem, f.quant));
        if (mode == affine) continue;
        all.push_back({f.name, dt(f.elem), mxdnn::impl::data_type_info(f.elem)->bits, dt(f.quant.scale_dt),
                f.quant.block, mode});
    }
    const format_t more[] = {
            {"nvfp4_two_level", dt::f4_e2m1, 4, dt::f8_e4m3, 16, fp, zeros_t::none, dt::u8,
                    global_t::computed},
            {"nvfp4_given_global", dt::f4_e2m1, 4, dt::f8_e4m3, 16, fp, zeros_t::none, dt::u8,
                    global_t::given},
            {"s4_bf16_32", dt::s4, 4, dt::bf16, 32, affine},
            {"s4_f16_128", dt::s4, 4, dt::f16, 128, affine},
            {"s4_f32_256", dt::s4, 4, dt::f32, 256, affine},
            {"u4_bf16_64", dt::u4, 4, dt::bf16, 64, affine, zeros_t::u8},
            {"u4_f16_32", dt::u4, 4, dt::f16, 32, affine, zeros_t::u8},
            {"u4_f32_256", dt::u4, 4, dt::f32, 256, affine, zeros_t::u8},
            {"u4_float_zero_bf16_32", dt::u4, 4, dt::bf16, 32, affine, zeros_t::floating, dt::bf16},
            {"u4_float_zero_f32_128", dt::u4, 4, dt::f32, 128, affine, zeros_t::floating, dt::f16},
            {"u4_min_f16_32", dt::u4, 4, dt::f16, 32, affine, zeros_t::minimum, dt::f16},
            {"u4_min_f32_128", dt::u4, 4, dt::f32, 128, affine, zeros_t::minimum, dt::bf16},
            {"s8_f16_32", dt::s8, 8, dt::f16, 32, affine},
            {"s8_bf16_128", dt::s8, 8, dt::bf16, 128, affine},
            {"s8_f32_256", dt::s8, 8, dt::f32, 256, affine},
    };
    all.insert(all.end(), std::begin(more), std::end(more));
    return all;
}();

inline bool has_decoder(const format_t &f) {
    using namespace mxdnn::impl;
    quant_t q;
    q.scale_dt = data_type_t(f.scale);
    q.block = f.block;
    return decoder_of(data_type_t(f.elem), q) != decoder_t::none;
}

inline int bytes_of(dt t) { return t == dt::f32 ? 4 : t == dt::bf16 || t == dt::f16 ? 2 : 1; }

// ---- one side of a reorder ----

enum class form_t { high, plain, packed };

struct side_t {
    form_t form = form_t::high;
    dt type = dt::f32; // of high precision
    const format_t *format = nullptr;
    bool rows_blocked = true;    // blocks run along the dim before the last
    bool last_contiguous = true; // ab, or ba
    dim padding = 0;             // elements from the end of a row to the next
    bool swizzled = false, dense = false, scales_transposed = false;
    bool given = false;           // a destination whose scales are the caller's
    const char *target = nullptr; // target for which the side is packed; null: this machine's
    bool for_fp8 = false;         // packed in n64_f4
};

struct problem_t {
    side_t src, dst;
    memory::dims dims; // batch, K, N
    mxdnn::scale_rounding rounding = mxdnn::scale_rounding::floor;
    unsigned seed = 0;
    bool usual = false; // only values and scales of usual sizes; otherwise also special ones

    std::string text() const {
        std::string s;
        for (const side_t *x : {&src, &dst}) {
            s += x->form == form_t::high ? "high" : x->form == form_t::plain ? "plain:" : "packed:";
            s += x->format ? x->format->name
                           : std::to_string(bytes_of(x->type)) + (x->type == dt::bf16 ? "b" : "");
            s += x->rows_blocked ? ":K" : ":N";
            s += x->last_contiguous ? ":ab" : ":ba";
            s += "+" + std::to_string(x->padding) + (x->swizzled ? ":128x4" : "") + (x->dense ? ":dense" : "")
                 + (x->scales_transposed ? ":scalesT" : "") + (x->given ? ":given" : "")
                 + (x->target ? std::string(":") + x->target : "") + (x->for_fp8 ? ":n64_f4" : "") + " ";
        }
        for (dim d : dims) s += std::to_string(d) + "x";
        return s + " rounding " + std::to_string(int(rounding)) + " seed " + std::to_string(seed)
               + (usual ? " usual" : "");
    }
};

inline memory::dims strides_of(const side_t &s, const memory::dims &dims) {
    const size_t n = dims.size(), inner = s.last_contiguous ? n - 1 : n - 2,
                 outer = s.last_contiguous ? n - 2 : n - 1;
    memory::dims strides(n);
    strides[inner] = 1;
    const bool shares = s.format && s.format->bits == 4;
    strides[outer] = std::max<dim>(dims[inner], 1) + s.padding;
    if (shares) strides[outer] += strides[outer] % 2;
    dim next = strides[outer] * std::max<dim>(dims[outer], 1);
    for (size_t i = n - 2; i-- > 0;) {
        strides[i] = next;
        next *= std::max<dim>(dims[i], 1);
    }
    return strides;
}

inline memory::desc packed_desc(const mxdnn::engine &eng, const format_t &f, const memory::dims &dims) {
    mxdnn::primitive_attr a;
    const int mask = (1 << dims.size()) - 1;
    a.set_scales(MXDNN_ARG_WEIGHTS, mask, {f.block, 1}, f.scale);
    if (f.zeros != zeros_t::none) a.set_zero_points(MXDNN_ARG_WEIGHTS, mask, {f.block, 1}, f.zero);
    if (f.zeros == zeros_t::minimum)
        a.set_zero_points_kind(MXDNN_ARG_WEIGHTS, mxdnn::zero_points_kind::minimum);
    if (f.global != global_t::none) a.set_global_scale(MXDNN_ARG_WEIGHTS, mode_t::static_sazp);
    memory::dims src = dims, dst = dims;
    src[dims.size() - 2] = dst[dims.size() - 2] = 1;
    src[dims.size() - 1] = dims[dims.size() - 2];
    return mxdnn::mx_matmul::primitive_desc(eng, memory::desc(src, dt::f32, memory::dims()),
            memory::desc(dims, f.elem, tag::any), memory::desc(dst, dt::f32, memory::dims()), a)
            .weights_desc();
}

inline memory::desc desc_of(const mxdnn::engine &eng, const side_t &s, const memory::dims &dims) {
    if (s.form == form_t::packed) {
        const memory::desc own = packed_desc(eng, *s.format, dims);
        if (!s.for_fp8) return own;
        using namespace mxdnn::impl;
        auto *md = new memory_desc_t(*own.get());
        EXPECT_EQ(init_packed_as(*md, own.get()->ndims, own.get()->dims, own.get()->dt,
                          own.get()->packed.quant, *find_layout(target_family_t::cuda, n64_f4_t::id)),
                mxdnn_success);
        return memory::desc(md);
    }
    return memory::desc(dims, s.format ? s.format->elem : s.type, strides_of(s, dims));
}

// Bytes from the first element to the last. Dense rows are shorter than the descriptor assumes.
inline size_t bytes_of(const side_t &s, const memory::desc &md) {
    if (!s.dense) return md.get_size();
    const memory::dims dims = md.get_dims(), strides = md.get_strides();
    // Where both of the last dims have stride 1, the one with more than one element is contiguous.
    const size_t n = dims.size(), inner = strides[n - 1] == 1 && dims[n - 1] != 1 ? n - 1
                                          : strides[n - 2] == 1                   ? n - 2
                                                                                  : n - 1;
    // A row takes whole bytes. Longer strides are multiples of a row.
    dim row = 0;
    for (size_t i = 0; i < n; i++)
        if (i != inner && dims[i] > 1 && strides[i] > 0 && (row == 0 || strides[i] < row)) row = strides[i];
    const auto in_bytes = [](dim elements) { return (elements * 6 + 7) / 8; };
    dim bytes = in_bytes(dims[inner]);
    for (size_t i = 0; i < n; i++)
        if (i != inner && dims[i] > 1)
            bytes += (dims[i] - 1) * (strides[i] / row * in_bytes(row) + in_bytes(strides[i] % row));
    return size_t(bytes);
}

inline void set_attr(mxdnn::primitive_attr &a, int arg, const side_t &s, const problem_t &p, bool moves) {
    if (s.form != form_t::plain) return;
    const format_t &f = *s.format;
    const bool is_dst = arg == MXDNN_ARG_DST, computed = is_dst && !s.given;
    const int mask = (1 << p.dims.size()) - 1;
    const memory::dims groups = s.rows_blocked ? memory::dims{f.block, 1} : memory::dims{1, f.block};
    a.set_scales(arg, mask, groups, f.scale, false, computed ? f.mode : mode_t::static_sazp);
    if (f.zeros != zeros_t::none) a.set_zero_points(arg, mask, groups, f.zero);
    if (f.zeros == zeros_t::minimum) a.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
    if (f.global != global_t::none)
        a.set_global_scale(arg, computed && (moves || f.global == global_t::computed) ? mode_t::dynamic_fp
                                                                                      : mode_t::static_sazp);
    if (s.swizzled) a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    if (s.dense) a.set_element_packing(arg, mxdnn::element_packing::dense);
    if (computed) a.set_scale_rounding(arg, p.rounding);
}

// ---- data ----

inline uint32_t encode(dt type, float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    if (type == dt::bf16) return to_bf16(x);
    if (type == dt::f32) return u;
    const uint32_t sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000) return sign | 0x7e00;
    if (mag >= 0x47800000) return sign | 0x7c00;
    return mag < 0x38800000 ? sign : sign | ((mag - 0x38000000) >> 13); // truncated; any value will do
}

// Values of many magnitudes. Some blocks have special values.
inline void fill_values(const guarded_t &g, dt type, std::mt19937 &rng, bool usual) {
    constexpr int usual_styles[] = {0, 0, 0, 0, 20, 23, 25, 26};
    const int bytes = bytes_of(type);
    std::normal_distribution<float> normal;
    float size = 1;
    int style = 0;
    for (size_t i = 0; i + bytes <= g.size(); i += bytes) {
        if (i / bytes % 16 == 0) {
            style = usual ? usual_styles[rng() % 8] : int(rng() % 40);
            size = std::ldexp(1.f, usual || style < 20 ? int(rng() % 6) - 3 : int(rng() % 250) - 125);
        }
        uint32_t u = encode(type, normal(rng) * size);
        if (style == 20) u = 0;
        if (style == 21)
            u = rng() & (type == dt::f32 ? 0x807fffff : type == dt::bf16 ? 0x807f : 0x83ff); // subnormal
        if (style == 22 && rng() % 8 == 0) u = uint32_t(rng());                              // anything
        if (style == 23) u = encode(type, std::ldexp(float(rng() % 64), -3));                // ties
        if (style == 23 && u != 0) u += rng() % 3 - 1; // and what is next to them
        if (style == 24 && rng() % 16 == 0) u = encode(type, std::ldexp(1.f, 200)); // Inf
        if (style == 25) u = encode(type, -0.f);
        if (style == 26 && rng() % 64 == 0) u = encode(type, std::ldexp(normal(rng) * size, -14)); // tiny
        std::memcpy(g.data() + i, &u, size_t(bytes));
    }
}

inline void fill_bytes(const guarded_t &g, std::mt19937 &rng) {
    for (size_t i = 0; i < g.size(); i++) g.data()[i] = uint8_t(rng());
}

// Scales: any bytes; zeros and the global scale: mostly of a usual size.
inline void fill_argument(const guarded_t &g, int arg, dt type, std::mt19937 &rng, bool usual) {
    const bool plain_bytes = arg & MXDNN_ARG_ATTR_ZERO_POINTS ? type == dt::u8 : bytes_of(type) == 1;
    if (!usual && plain_bytes && rng() % 2) return fill_bytes(g, rng);
    const int bytes = bytes_of(type);
    for (size_t i = 0; i + bytes <= g.size(); i += bytes) {
        uint32_t u = bytes == 1 ? uint32_t(rng() % 16 + (type == dt::e8m0 ? 120 : 0))
                                : encode(type, std::ldexp(1.f + float(rng() % 97) / 97, int(rng() % 9) - 6));
        if (!usual && bytes > 1 && rng() % 24 == 0) u = uint32_t(rng());
        std::memcpy(g.data() + i, &u, size_t(bytes));
    }
}

// ---- running ----

struct buffers_t {
    std::map<int, std::unique_ptr<guarded_t>> data;
    std::map<int, memory::desc> descs;

    std::unordered_map<int, memory> args(const mxdnn::engine &src_eng, const mxdnn::engine &dst_eng) const {
        std::unordered_map<int, memory> m;
        for (const auto &d : descs) {
            const bool of_dst = (d.first & 0xff) == MXDNN_ARG_DST;
            m[d.first] = memory(d.second, of_dst ? dst_eng : src_eng, data.at(d.first)->data());
        }
        return m;
    }
};

// Scales and zero points may lie in any order.
inline memory::desc transposed(const memory::desc &md) {
    const memory::dims dims = md.get_dims();
    side_t s;
    s.last_contiguous = false;
    s.padding = 1;
    return memory::desc(dims, md.get_data_type(), strides_of(s, dims));
}

struct reorder_test_t {
    mxdnn::engine src_eng, eng; // of either side; the destination's runs the reorder
    const problem_t &p;
    mxdnn::mx_reorder::primitive_desc pd;
    std::mt19937 rng;
    bool moves;

    explicit reorder_test_t(const problem_t &problem, const mxdnn::engine *dst_eng = nullptr)
        : src_eng(dst_eng ? *dst_eng : engine_of(problem.src)),
          eng(dst_eng ? *dst_eng : engine_of(problem.dst)), p(problem), rng(problem.seed) {
        mxdnn::primitive_attr a;
        moves = p.src.format && p.src.format == p.dst.format && !p.dst.given;
        set_attr(a, MXDNN_ARG_SRC, p.src, p, moves);
        set_attr(a, MXDNN_ARG_DST, p.dst, p, moves);
        if (p.dst.form == form_t::packed && p.dst.format->mode == mx && !moves) {
            a.set_scales(MXDNN_ARG_DST, (1 << p.dims.size()) - 1, {p.dst.format->block, 1},
                    p.dst.format->scale, false, mx);
            a.set_scale_rounding(MXDNN_ARG_DST, p.rounding);
        }
        if (p.dst.form == form_t::packed && p.dst.format->global == global_t::given
                && p.src.form == form_t::high)
            a.set_global_scale(MXDNN_ARG_DST, mode_t::static_sazp);
        pd = mxdnn::mx_reorder::primitive_desc(
                src_eng, desc_of(src_eng, p.src, p.dims), eng, desc_of(eng, p.dst, p.dims), a);
    }

    static mxdnn::engine engine_of(const side_t &s) {
        return s.target ? mxdnn::engine::for_target(s.target) : mxdnn::engine(mxdnn::engine::kind::cpu, 0);
    }

    bool is_output(int arg) const {
        const auto w = writes_.find(arg);
        return arg == MXDNN_ARG_DST || (w != writes_.end() && w->second);
    }

    void add(buffers_t &b, int arg, const memory::desc &md, size_t bytes) {
        // Packed bytes need 16-byte alignment, and get no more than that.
        const bool at_end = rng() % 2;
        b.data[arg] = std::make_unique<guarded_t>(bytes, at_end, 16 * (rng() % 3), md.get_size());
        b.descs[arg] = md;
    }

    // All implementations get the same inputs. Outputs are poisoned first.
    buffers_t make() {
        rng.seed(p.seed);
        buffers_t b;
        for (bool is_src : {true, false}) {
            const side_t &s = is_src ? p.src : p.dst;
            const int arg = is_src ? MXDNN_ARG_SRC : MXDNN_ARG_DST;
            const memory::desc md = is_src ? pd.src_desc() : pd.dst_desc();
            add(b, arg, md, bytes_of(s, md));
            for (int what :
                    {MXDNN_ARG_ATTR_SCALES, MXDNN_ARG_ATTR_ZERO_POINTS, MXDNN_ARG_ATTR_GLOBAL_SCALE}) {
                memory::desc q = pd.query_md(mxdnn::query::exec_arg_md, what | arg);
                if (!q) continue;
                if (s.scales_transposed && what != MXDNN_ARG_ATTR_GLOBAL_SCALE
                        && !(s.swizzled && what == MXDNN_ARG_ATTR_SCALES))
                    q = transposed(q);
                add(b, what | arg, q, q.get_size());
                const bool global_in =
                        what == MXDNN_ARG_ATTR_GLOBAL_SCALE && s.format->global == global_t::given && !moves;
                writes_[what | arg] = !is_src && !s.given && !global_in;
            }
        }
        for (auto &d : b.data) {
            d.second->fill(0xa5);
            if (is_output(d.first)) continue;
            const dt type = b.descs[d.first].get_data_type();
            if (d.first != MXDNN_ARG_SRC)
                fill_argument(*d.second, d.first, type, rng, p.usual);
            else if (p.src.form == form_t::high)
                fill_values(*d.second, type, rng, p.usual);
            else if (p.src.form == form_t::packed && p.usual)
                fill_packed(*d.second);
            else
                fill_bytes(*d.second, rng);
        }
        return b;
    }

    // Any codes under usual scales, packed by the reference.
    void fill_packed(const guarded_t &g) {
        problem_t q = p;
        q.src = q.dst = side_t();
        q.src.form = form_t::plain;
        q.dst.form = form_t::packed;
        q.src.format = q.dst.format = p.src.format;
        q.dst.target = p.src.target;
        q.dst.for_fp8 = p.src.for_fp8;
        reorder_test_t t(q);
        while (t.pd.impl_info_str() != "ref:any" && t.pd.next_impl()) {
        }
        const buffers_t b = t.make();
        t.run(t.pd, b);
        std::memcpy(g.data(), b.data.at(MXDNN_ARG_DST)->data(), g.size());
    }

    void run(const mxdnn::mx_reorder::primitive_desc &each, const buffers_t &b) const {
        mxdnn::mx_reorder(each).execute(mxdnn::stream(eng), b.args(src_eng, eng));
    }

    // Of all buffers. Inputs must not change either.
    static std::map<int, std::vector<uint8_t>> snapshot(const buffers_t &b) {
        std::map<int, std::vector<uint8_t>> m;
        for (const auto &d : b.data) m[d.first] = d.second->everything();
        return m;
    }

    // Runs every implementation. The last one, the reference, gives the expected bytes.
    void check(const char *first = "simd:") {
        bool has_simd = mxdnn::impl::x64::mayiuse(mxdnn::impl::x64::cpu_isa_t::avx2);
        for (const side_t *side : {&p.src, &p.dst})
            if (side->format && !has_decoder(*side->format)) has_simd = false;
        std::vector<std::pair<std::string, std::map<int, std::vector<uint8_t>>>> results;
        do {
            const buffers_t b = make();
            run(pd, b);
            results.emplace_back(pd.impl_info_str(), snapshot(b));
        } while (pd.next_impl());
        ASSERT_EQ(results.back().first, "ref:any");
        if (has_simd) {
            EXPECT_EQ(results.front().first.substr(0, std::strlen(first)), first) << p.text();
        }
        for (size_t i = 0; i + 1 < results.size(); i++)
            for (const auto &want : results.back().second)
                compare(results[i].first, want.first, results[i].second.at(want.first), want.second);
    }

    // Any NaN equals any other in a high-precision destination: the payload that a product keeps is
    // unspecified.
    std::vector<uint8_t> without_payloads(int arg, std::vector<uint8_t> bytes) const {
        if (arg != MXDNN_ARG_DST || p.dst.form != form_t::high) return bytes;
        const size_t size = size_t(bytes_of(p.dst.type));
        for (size_t i = 0; i + size <= bytes.size(); i += size) {
            uint32_t code = 0;
            std::memcpy(&code, &bytes[i], size);
            const auto type = static_cast<mxdnn_data_type_t>(p.dst.type);
            if (std::isnan(mxdnn::impl::decode_value(type, code))) std::memset(&bytes[i], 0xff, size);
        }
        return bytes;
    }

    void compare(const std::string &impl, int arg, const std::vector<uint8_t> &got_bytes,
            const std::vector<uint8_t> &want_bytes) {
        const std::vector<uint8_t> got = without_payloads(arg, got_bytes),
                                   want = without_payloads(arg, want_bytes);
        if (got == want) return;
        size_t i = 0;
        while (got[i] == want[i]) i++;
        ADD_FAILURE() << impl << " differs from ref:any in argument " << arg << " at byte " << i << " of "
                      << want.size() << ": " << int(got[i]) << ", expected " << int(want[i]) << "\n  "
                      << p.text();
    }

private:
    std::map<int, bool> writes_;
};

} // namespace reorder_test

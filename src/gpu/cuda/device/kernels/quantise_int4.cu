// SPDX-License-Identifier: Apache-2.0
// Values to int4, plain or packed, whatever the order of either side. Blocks are long, so a tile's values are
// needed twice: for the extremes of its blocks, and for their codes. In between values of 16 bits stay in
// registers; those of 32 are read again, from cache.
#include "gpu/cuda/device/kernels/quantise_int4.cuh"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/device/tiles/params.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// A patch is eight rows, whose codes are a word, of one column, or of as many columns as 16 bytes of a line
// have.
constexpr int tile_k = tile_rows(4), patch = 8, patches = tile_k / patch, least_block = 32,
              blocks = tile_k / least_block;

// ---- extremes ----

// The largest value in words of values; NaN if there is one.
__device__ __forceinline__ uint32_t most(bf16_words_t, uint32_t a, uint32_t b) {
    uint32_t d;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
__device__ __forceinline__ uint32_t most(f16_words_t, uint32_t a, uint32_t b) {
    uint32_t d;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
__device__ __forceinline__ uint32_t most(f32_words_t, uint32_t a, uint32_t b) {
    uint32_t d;
    asm("max.NaN.f32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
template <typename words_t>
constexpr uint32_t signs = words_t::per_word == 2 ? 0x80008000u : 0x80000000u;

// The largest value and the negative of the smallest one, among the values and zero.
template <typename words_t>
struct extremes_t {
    static constexpr bool in_word = words_t::per_word == 2; // the largest is in the low half
    uint32_t w[in_word ? 1 : 2];

    __device__ void add(const extremes_t &o) {
#pragma unroll
        for (int i = 0; i < (in_word ? 1 : 2); i++) w[i] = most(words_t(), w[i], o.w[i]);
    }
    __device__ float2 values() const {
        float v[2];
        words_t::values(w[0], v);
        if constexpr (!in_word) words_t::values(w[1], v + 1);
        return make_float2(v[0], v[1]);
    }
};
// For the negatives of lo, and hi, which are words of neighbouring columns: those of one column.
template <typename words_t>
__device__ __forceinline__ extremes_t<words_t> extremes_of(uint32_t hi, uint32_t minus_lo, int column) {
    if constexpr (words_t::per_word == 2)
        return {{__byte_perm(hi, minus_lo, column ? 0x7632 : 0x5410)}};
    else
        return {{hi, minus_lo}};
}

// ---- The part of the source of a thread ----

template <typename words_t, bool along_k>
struct patch_t {
    static constexpr int per_word = words_t::per_word, width = 4 / per_word;
    static constexpr int columns = along_k ? 1 : 16 / width, words = patch * columns / per_word;
    static constexpr int across = tile_n / columns, passes = patches * across / threads;
    uint32_t w[words];

    // Neighbouring threads have neighbouring bytes.
    __device__ static int column(int pass) {
        const int i = pass * threads + int(threadIdx.x);
        return along_k ? i / patches : i % across * columns;
    }
    __device__ static int row(int pass) {
        const int i = pass * threads + int(threadIdx.x);
        return (along_k ? i % patches : i / across) * patch;
    }
    // whole: there are no edges, and lines begin at multiples of 16 bytes.
    template <bool whole>
    __device__ __forceinline__ void load(const tile_args_t &a, const tile_place_t &at, int pass) {
        const int n = column(pass), k = row(pass);
        const uint8_t *p = a.src.data + at.matrix * a.src.batch_step;
        p += along_k ? (at.n + n) * a.src.line_step + (at.k + k) * width
                     : (at.k + k) * a.src.line_step + (at.n + n) * width;
        // Of a line, and which.
        const int rows = min(at.rows - k, patch), left = min(at.columns - n, columns),
                  bytes = along_k ? (left > 0 ? rows : 0) * width : left * width;
#pragma unroll
        for (int j = 0; j < words / 4; j++) {
            const uint8_t *from = along_k ? p + 16 * j : p + j * a.src.line_step;
            const int valid = along_k ? bytes - 16 * j : j < rows ? bytes : 0;
            const uint4 v = whole ? *reinterpret_cast<const uint4 *>(from) : load_some(from, valid);
            w[4 * j] = v.x, w[4 * j + 1] = v.y, w[4 * j + 2] = v.z, w[4 * j + 3] = v.w;
        }
    }
    __device__ __forceinline__ void load(const tile_args_t &a, const tile_place_t &at, int pass) {
        if (at.whole && a.src.aligned)
            load<true>(a, at, pass);
        else
            load<false>(a, at, pass);
    }
    // The word with row i of column c, and the place in it.
    __device__ static constexpr int word(int c, int i) {
        return along_k ? i / per_word : (i * columns + c) / per_word;
    }
    __device__ __forceinline__ float value(int c, int i) const {
        float x[per_word];
        words_t::values(w[word(c, i)], x);
        return x[(along_k ? i : c) % per_word];
    }
    // Calls f(column, extremes of the column).
    template <typename F>
    __device__ __forceinline__ void each_extremes(const F &f) const {
        constexpr int together = along_k ? 1 : columns / per_word; // words of a row
#pragma unroll
        for (int t = 0; t < together; t++) {
            uint32_t hi = w[t], minus_lo = w[t] ^ signs<words_t>;
#pragma unroll
            for (int i = together; i < words; i += together) {
                hi = most(words_t(), hi, w[t + i]);
                minus_lo = most(words_t(), minus_lo, w[t + i] ^ signs<words_t>);
            }
            extremes_t<words_t> e = extremes_of<words_t>(hi, minus_lo, 0);
            if constexpr (per_word == 2) {
                const extremes_t<words_t> other = extremes_of<words_t>(hi, minus_lo, 1);
                if (along_k)
                    e.add(other);
                else
                    f(t * per_word + 1, other);
            }
            f(t * (along_k ? 1 : per_word), e);
        }
    }
};

// ---- codes ----

// The nearest f32 to x / scale, from the nearest reciprocal and the remainder. For scales beyond these bounds
// an intermediate result might not be exact. Within them, only for quotients far below a half.
__device__ __forceinline__ bool has_quotients(float scale) {
    return scale > exp2_f32(-100) && scale < exp2_f32(100);
}
__device__ __forceinline__ float quotient(float x, float scale, float reciprocal) {
    float q = mul_f32(x, reciprocal);
    // The first step is within one unit in the last place, the second one gives the nearest number.
    for (int i = 0; i < 2; i++) q = __fmaf_rn(__fmaf_rn(-q, scale, x), reciprocal, q);
    return q;
}

// How the values of a block become codes. For values and scales of 16 bits, two instructions round a quotient
// as the nearest f32 to it is rounded. The quotient is an integer plus a half, or at least 2^-13 of a step
// away from one, as both operands have at most 11 bits. So it may be off by 2^-14. The first instruction
// rounds it to multiples of that, which keeps halves. The second one rounds to integers. This holds for
// quotients that are not large.
struct coder_t {
    float scale, reciprocal; // the second is 0 where values are divided
    int zp;
    bool snaps;
};
constexpr float snapping = 1.5f * (1 << 9), rounding = 1.5f * (1 << 23);
constexpr int raised = 256;

// The integer is in the low half, `raised` more.
__device__ __forceinline__ uint32_t snapped(float x, float reciprocal) {
    return bits_of(__fadd_rn(__fmaf_rn(x, reciprocal, snapping), rounding + float(raised) - snapping));
}

// Eight codes of a column. Low halves of rounded sums are integers, even with `raised` added; two of them are
// clamped together, and four such pairs lie over each other.
template <typename element_t>
__device__ __forceinline__ uint32_t snapped_codes(const float (&x)[patch], const coder_t &c) {
    const uint32_t least = uint32_t(raised + int(element_t::lowest) - c.zp), low = least * 0x10001u,
                   high = low + 15 * 0x10001u;
    uint32_t bits[patch];
#pragma unroll
    for (int i = 0; i < patch; i++) bits[i] = snapped(x[i], c.reciprocal);
    uint32_t w = 0;
#pragma unroll
    for (int i = patch / 2 - 1; i >= 0; i--) {
        const uint32_t pair = __byte_perm(bits[i], bits[i + patch / 2], 0x5410);
        w = w * 16 + __vminu2(__vmaxu2(pair, low), high);
    }
    return (w - least * 0x11111111u) ^ (element_t::lowest < 0 ? 0x88888888u : 0u);
}
template <typename element_t>
__device__ __forceinline__ uint32_t divided_codes(const float (&x)[patch], const coder_t &c) {
    uint32_t w = 0;
#pragma unroll
    for (int i = 0; i < patch; i++) {
        const float q = c.reciprocal != 0 ? quotient(x[i], c.scale, c.reciprocal) : div_f32(x[i], c.scale);
        const int steps = min(max(__float2int_rn(q), -1024), 1024) + c.zp; // NaN is 0
        const int code = min(max(steps, int(element_t::lowest)), int(element_t::highest));
        w |= uint32_t(code & 15) << i * 4;
    }
    return w;
}

// ---- scales and zero points ----

// Those of a block are those of a block of its extremes.
template <typename element_t>
__device__ __forceinline__ void any_params(
        const tile_args_t &a, float hi, float minus_lo, block_params_t &p, coder_t &c) {
    quant_t q;
    q.scale_dt = a.scale_dt;
    q.block = dim_t(1) << a.block_shift;
    q.zp = a.zp;
    q.zp_dt = a.zp_dt;
    const float x[2] = {hi, -minus_lo};
    p = choose_params(element_t::id, q, a.rounding, 1.f, x, 2).params;
    c.scale = decode_value(a.scale_dt, p.scale);
    c.reciprocal = has_quotients(c.scale) ? div_f32(1.f, c.scale) : 0.f;
}
// The same with few instructions, for scales of 16 bits that are neither very large nor very small.
template <typename element_t>
__device__ __forceinline__ bool usual_params(
        const tile_args_t &a, float hi, float minus_lo, block_params_t &p, coder_t &c) {
    constexpr bool is_signed = element_t::lowest < 0;
    constexpr float steps = is_signed ? 7.5f : 15.f;
    const float range = is_signed ? fmaxf(hi, minus_lo) : __fadd_rn(hi, minus_lo);
    if (a.scale_bytes != 2 || !(range > exp2_f32(-60) && range < exp2_f32(60))) return false;
    const float wanted = quotient(range, steps, 1 / steps);
    if (a.scale_dt == mxdnn_bf16) {
        p.scale = bits_of(bf16_to_float(to_bf16(wanted))) >> 16;
        c.scale = float_of(p.scale << 16);
    } else {
        p.scale = to_f16(wanted);
        c.scale = f16_to_float(uint16_t(p.scale));
    }
    if (!(c.scale > 0.f && is_finite(c.scale))) return false; // of f16
    c.reciprocal = approximate_inverse(c.scale);
    if (!is_signed)
        p.zp = uint32_t(min(int(snapped(minus_lo, c.reciprocal) & 0xffffu) - raised, int(u4_t::highest)));
    return true;
}

template <typename words_t>
struct int4_tile_t {
    code_tile_t<4> codes;
    extremes_t<words_t> extremes[tile_n][patches + 1]; // an odd number of words, because of the banks
    coder_t coders[blocks][tile_n + 1];

    // Of blocks, and of columns that lanes have at a time, eight apart, in different banks.
    __device__ coder_t &coder(int b, int column) { return coders[b][column % 8 * 8 + column / 8]; }
};

// Calls f(block, column, extremes of the block, whether it has any values).
template <typename words_t, typename F>
__device__ __forceinline__ void each_block(
        const int4_tile_t<words_t> &t, const tile_args_t &a, const tile_place_t &at, const F &f) {
    const int of_block = (1 << a.block_shift) / patch;
#pragma unroll 1
    for (int i = threadIdx.x; i < patches / of_block * tile_n; i += threads) {
        const int column = i % tile_n, b = i / tile_n;
        extremes_t<words_t> e{};
#pragma unroll 4
        for (int j = 0; j < of_block; j++) e.add(t.extremes[column][b * of_block + j]);
        f(b, column, e.values(), column < at.columns && b * of_block * patch < at.rows);
    }
}
template <typename words_t>
__device__ __forceinline__ void put_params(int4_tile_t<words_t> &t, const tile_args_t &a, int b, int column,
        const block_params_t &p, coder_t &c) {
    t.codes.scale[b][column] = p.scale;
    t.codes.zp[b][column] = p.zp;
    c.zp = a.zp_bytes ? int(p.zp) : 0;
    t.coder(b, column) = c;
}
// The codes of a patch; encode(values, coder).
template <typename p_t, typename words_t, typename F>
__device__ __forceinline__ void put_codes(int4_tile_t<words_t> &t, const tile_args_t &a,
        const tile_place_t &at, const p_t &of, int pass, const F &encode) {
#pragma unroll
    for (int c = 0; c < p_t::columns; c++) {
        const int column = p_t::column(pass) + c, row = p_t::row(pass);
        float x[patch];
#pragma unroll
        for (int i = 0; i < patch; i++) x[i] = of.value(c, i);
        uint32_t w = encode(x, t.coder(row >> a.block_shift, column));
        if (!at.whole) {
            const int rows = column < at.columns ? at.rows - row : 0;
            if (rows < patch) w &= rows > 0 ? (1u << rows * 4) - 1 : 0u;
        }
        t.codes.template at<uint32_t>(column, row) = w;
    }
}

template <typename element_t, typename words_t, bool along_k>
__device__ __forceinline__ void quantise(
        int4_tile_t<words_t> &t, const tile_args_t &a, const tile_place_t &at) {
    using p_t = patch_t<words_t, along_k>;
    constexpr bool kept = words_t::per_word == 2;
    p_t p[kept ? p_t::passes : 1];
    if (kept && at.whole && a.src.aligned) {
#pragma unroll
        for (int pass = 0; pass < (kept ? p_t::passes : 0); pass++) p[pass].template load<true>(a, at, pass);
    } else if (kept) {
#pragma unroll
        for (int pass = 0; pass < (kept ? p_t::passes : 0); pass++) p[pass].template load<false>(a, at, pass);
    }
#pragma unroll(kept ? p_t::passes : 1)
    for (int pass = 0; pass < p_t::passes; pass++) {
        p_t &of = p[kept ? pass : 0];
        if (!kept) of.load(a, at, pass);
        of.each_extremes([&](int c, const extremes_t<words_t> &e) {
            t.extremes[p_t::column(pass) + c][p_t::row(pass) / patch] = e;
        });
    }
    __syncthreads();
    bool usual = true;
    each_block(t, a, at, [&](int b, int column, const float2 &ends, bool is) {
        block_params_t params; // zero for padding
        coder_t c{};
        c.snaps = !is || (kept && usual_params<element_t>(a, ends.x, ends.y, params, c));
        usual &= c.snaps;
        put_params(t, a, b, column, params, c);
    });
    usual = __syncthreads_and(usual);
    if constexpr (kept)
        if (usual) {
#pragma unroll
            for (int pass = 0; pass < p_t::passes; pass++)
                put_codes(t, a, at, p[pass], pass, [](const float(&x)[patch], const coder_t &c) {
                    return snapped_codes<element_t>(x, c);
                });
            return;
        }
    // Some block is not usual, and kept registers would be in the way.
    each_block(t, a, at, [&](int b, int column, const float2 &ends, bool) {
        if (t.coder(b, column).snaps) return;
        block_params_t params;
        coder_t c{};
        any_params<element_t>(a, ends.x, ends.y, params, c);
        put_params(t, a, b, column, params, c);
    });
    __syncthreads();
#pragma unroll 1
    for (int pass = 0; pass < p_t::passes; pass++) {
        p_t again;
        again.load(a, at, pass);
        put_codes(t, a, at, again, pass, [](const float(&x)[patch], const coder_t &c) {
            return c.snaps ? snapped_codes<element_t>(x, c) : divided_codes<element_t>(x, c);
        });
    }
}

template <typename element_t, typename words_t>
__global__ void __launch_bounds__(threads, 5) quantise_int4(const __grid_constant__ tile_args_t a) {
    __shared__ int4_tile_t<words_t> t;
    tile_place_t at;
    if (!find_place<4>(a, at)) return;
    start_of_early_kernel();
    if (a.src.lines_along_k)
        quantise<element_t, words_t, true>(t, a, at);
    else
        quantise<element_t, words_t, false>(t, a, at);
    __syncthreads();
    store_tile<4>(t.codes, a, a.dst, at);
}

using kernel_t = void (*)(tile_args_t);

template <typename words_t>
kernel_t find(data_type_t to) {
    return to == mxdnn_s4 ? quantise_int4<s4_t, words_t> : quantise_int4<u4_t, words_t>;
}
kernel_t find(data_type_t from, data_type_t to) {
    return visit_words(from, [&](auto words) { return find<decltype(words)>(to); });
}

} // namespace

bool is_of_int4(const tile_args_t &a) { return a.dst.dt == mxdnn_s4 || a.dst.dt == mxdnn_u4; }

cudaError_t prepare_quantise_int4(const tile_args_t *a) {
    if (a) return load_kernel(find(a->src.dt, a->dst.dt));
    for (const data_type_t from : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
        for (const data_type_t to : {mxdnn_s4, mxdnn_u4})
            if (const cudaError_t e = load_kernel(find(from, to))) return e;
    return cudaSuccess;
}

cudaError_t launch_quantise_int4(const launch_t &at, const tile_args_t &a) {
    return launch_kernel(at, find(a.src.dt, a.dst.dt), {tile_grid(a), threads, 0, early}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// Values to int4, plain or packed, whatever the order of either side. Blocks are long, so a tile's values are
// read twice: for the extremes of its blocks, and for their codes, when they are in cache.
#include "gpu/cuda/device/kernels/quantise_int4.cuh"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/device/tiles/params.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// No block is shorter than a strip or longer than a tile.
constexpr int tile_k = tile_rows(4), strip = 32, strips = tile_k / strip;

struct extremes_t {
    float lo, hi;
    uint32_t amax; // magnitude bits, NaN's too

    __device__ void add(float x) {
        if (x < lo) lo = x;
        if (x > hi) hi = x;
        amax = max(amax, magnitude_bits(x));
    }
    __device__ void add(const extremes_t &e) {
        if (e.lo < lo) lo = e.lo;
        if (e.hi > hi) hi = e.hi;
        amax = max(amax, e.amax);
    }
};

// A block's scale and zero point are those of a block of its extremes.
__device__ block_params_t params_of(const tile_args_t &a, const extremes_t &e) {
    quant_t q;
    q.scale_dt = a.scale_dt;
    q.block = dim_t(1) << a.block_shift;
    q.zp = a.zp;
    q.zp_dt = a.zp_dt;
    const float poison = e.amax >= f32_inf_bits ? float_of(f32_nan_bits) : 0.f;
    const float x[3] = {e.lo, e.hi, poison};
    uint8_t codes[3];
    return quantize_block(a.dst.dt, q, a.rounding, 1.f, x, 3, codes);
}

// A thread's strip: a column where lines run along k, else as many as a word has.
template <typename words_t, bool along_k>
struct strip_t {
    static constexpr int per_word = words_t::per_word, width = 4 / per_word;
    static constexpr int columns = along_k ? 1 : per_word, words = along_k ? strip / per_word : strip;
    static constexpr int passes = strips * tile_n / columns / threads;

    int column, row; // of the tile
    uint32_t w[words];

    // Neighbouring threads have neighbouring bytes.
    __device__ strip_t(const tile_args_t &a, const tile_place_t &at, int pass) {
        const int i = pass * threads + threadIdx.x;
        column = along_k ? i / strips : i % (tile_n / columns) * columns;
        row = (along_k ? i % strips : i / (tile_n / columns)) * strip;
        const int rows = min(at.rows - row, strip), across = at.columns - column;
        const uint8_t *p = a.src.data + at.matrix * a.src.batch_step;
        if (along_k) {
            p += (at.n + column) * a.src.line_step + (at.k + row) * width;
            const int bytes = across > 0 ? rows * width : 0;
#pragma unroll
            for (int j = 0; j < words; j += 4) {
                const uint4 v = a.src.aligned && bytes == strip * width
                                        ? reinterpret_cast<const uint4 *>(p)[j / 4]
                                        : load_some(p + 4 * j, bytes - 4 * j);
                w[j] = v.x, w[j + 1] = v.y, w[j + 2] = v.z, w[j + 3] = v.w;
            }
        } else {
            p += (at.k + row) * a.src.line_step + (at.n + column) * width;
            const bool whole = a.src.aligned && across >= columns && rows == strip;
#pragma unroll
            for (int j = 0; j < words; j++)
                w[j] = whole ? *reinterpret_cast<const uint32_t *>(p + j * a.src.line_step)
                             : load_some(p + j * a.src.line_step, j < rows ? min(across * width, 4) : 0).x;
        }
    }
    __device__ __forceinline__ float value(int c, int i) const {
        float x[per_word];
        words_t::values(w[along_k ? i / per_word : i], x);
        return x[along_k ? i % per_word : c];
    }
};

// The nearest f32 to x / scale, by the nearest reciprocal and what is left over. Of scales beyond these
// bounds something on the way might not be exact; of those within, only quotients that are far below a half.
struct divisor_t {
    float scale, reciprocal;
    bool usual;
    __device__ explicit divisor_t(float s)
        : scale(s), reciprocal(div_f32(1.f, s)), usual(s > exp2_f32(-100) && s < exp2_f32(100)) {}
    template <bool is_usual>
    __device__ __forceinline__ float quotient(float x) const {
        if (!is_usual) return div_f32(x, scale);
        float q = mul_f32(x, reciprocal);
        // Within one unit of the last place after the first time, the nearest after the second.
        for (int i = 0; i < 2; i++) q = __fmaf_rn(__fmaf_rn(-q, scale, x), reciprocal, q);
        return q;
    }
};

struct int4_tile_t {
    code_tile_t<4> codes;
    extremes_t extremes[strips][tile_n];
};

template <typename element_t, typename words_t, bool along_k>
__device__ __forceinline__ void quantise(int4_tile_t &t, const tile_args_t &a, const tile_place_t &at) {
    using s_t = strip_t<words_t, along_k>;
#pragma unroll 1
    for (int pass = 0; pass < s_t::passes; pass++) {
        const s_t s(a, at, pass);
#pragma unroll
        for (int c = 0; c < s_t::columns; c++) {
            extremes_t e{0, 0, 0};
#pragma unroll
            for (int i = 0; i < strip; i++) e.add(s.value(c, i));
            t.extremes[s.row / strip][s.column + c] = e;
        }
    }
    __syncthreads();
    const int of_block = (1 << a.block_shift) / strip;
    for (int i = threadIdx.x; i < strips / of_block * tile_n; i += threads) {
        const int column = i % tile_n, b = i / tile_n;
        block_params_t p; // zero in padding
        if (column < at.columns && b * of_block * strip < at.rows) {
            extremes_t e = t.extremes[b * of_block][column];
            for (int j = 1; j < of_block; j++) e.add(t.extremes[b * of_block + j][column]);
            p = params_of(a, e);
        }
        t.codes.scale[b][column] = p.scale;
        t.codes.zp[b][column] = p.zp;
    }
    __syncthreads();
#pragma unroll 1
    for (int pass = 0; pass < s_t::passes; pass++) {
        const s_t s(a, at, pass);
#pragma unroll
        for (int c = 0; c < s_t::columns; c++) {
            const int column = s.column + c, b = s.row >> a.block_shift;
            const int rows = column < at.columns ? at.rows - s.row : 0;
            const divisor_t divisor(decode_value(a.scale_dt, t.codes.scale[b][column]));
            const int zp = a.zp_bytes ? int(t.codes.zp[b][column]) : 0;
            uint32_t w[strip / 8];
            const auto encode = [&](auto usual) {
#pragma unroll
                for (int i = 0; i < strip; i++) {
                    const float q = divisor.template quotient<decltype(usual)::value>(s.value(c, i));
                    const int steps = min(max(__float2int_rn(q), -1024), 1024) + zp; // NaN is 0
                    const int code = min(max(steps, int(element_t::lowest)), int(element_t::highest));
                    const uint32_t bits = i < rows ? uint32_t(code & 15) << i % 8 * 4 : 0;
                    w[i / 8] = i % 8 ? w[i / 8] | bits : bits;
                }
            };
            if (divisor.usual)
                encode(std::true_type());
            else
                encode(std::false_type());
            t.codes.template at<uint4>(column, s.row) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}

template <typename element_t, typename words_t>
__global__ void __launch_bounds__(threads, 6) quantise_int4(const __grid_constant__ tile_args_t a) {
    __shared__ int4_tile_t t;
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

bool is_of_int4(const tile_args_t &a) { return has_role(a.dst.dt, role_affine_element); }

cudaError_t prepare_quantise_int4() {
    for (const data_type_t from : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
        for (const data_type_t to : {mxdnn_s4, mxdnn_u4})
            if (const cudaError_t e = load_kernel(find(from, to))) return e;
    return cudaSuccess;
}

cudaError_t launch_quantise_int4(const launch_t &at, const tile_args_t &a) {
    return launch_kernel(at, find(a.src.dt, a.dst.dt), {tile_grid(a), threads, 0, true}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// mx_reorder from high precision to MX with codes of a byte, along both dims of a matrix at once: a CTA keeps
// a square of the source in shared memory, and makes two tiles of each side of it. Whole squares whose codes
// lie as they are made have a kernel of their own, quantise_squares.cu.
#include <type_traits>

#include "gpu/cuda/device/kernels/quantise_squares.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/tiles/params.cuh"
#include "gpu/cuda/device/tiles/quantise.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// The threads (x, y) of a CTA with the same y make a tile: for each side, the tiles of a square side by side.
constexpr int side = both_axes_rows, teams = side / tile_n;

// Of 16-bit or 32-bit values.
template <int value_bytes>
struct square_t {
    // Lines are 16 bytes longer than their values, so that threads of different lines use different banks.
    static constexpr int line = side * value_bytes, pitch = line + 16;
    alignas(16) uint8_t values[side * pitch];
};
using mx_tile_t = code_tile_t<8, 32, false>;
template <int value_bytes>
struct shared_t {
    square_t<value_bytes> square;
    mx_tile_t tile[teams];
};
template <typename words_t>
using shared_of_t = shared_t<4 / words_t::per_word>;

// `lines` lines of `bytes` bytes exist; the rest becomes zero. A barrier has to follow.
template <int value_bytes>
__device__ __forceinline__ void load_square(
        square_t<value_bytes> &s, const uint8_t *p, int64_t line_step, bool aligned, int lines, int bytes) {
    using square_t = square_t<value_bytes>;
    constexpr int parts = square_t::line / 16, at_once = teams * threads / parts;
    const int part = threadIdx.x % parts * 16, first = (threadIdx.y * threads + threadIdx.x) / parts;
    const uint32_t to = uint32_t(__cvta_generic_to_shared(s.values + first * square_t::pitch + part));
    p += first * line_step + part;
    if (aligned && lines == side && bytes == square_t::line) {
#pragma unroll
        for (int i = 0; i < side; i += at_once)
            ptx::copy_16(to + i * square_t::pitch, p + i * line_step, true);
        ptx::copies_wait();
        return;
    }
    for (int i = 0; i < side; i += at_once)
        *reinterpret_cast<uint4 *>(s.values + (first + i) * square_t::pitch + part) =
                load_some(p + i * line_step, first + i < lines ? bytes - part : 0);
}

// The tile of a team in the square, as side_source_t.
template <int value_bytes>
struct square_source_t {
    using square_t = cuda::square_t<value_bytes>;
    const square_t &s;
    bool along_k;

    // Eight threads read 16 bytes at a time, as far apart as they have values: four of each of two lines, or
    // two of each of four. Those of different lines are in different banks.
    template <int parts>
    __device__ static thread_place_t place_of(int thread) {
        static_assert(parts == 8 && square_t::pitch % 128 == 16, "a line is 16 bytes further");
        constexpr int together = 8 / value_bytes, lines = 8 / together;
        return {thread % together + thread / 8 % lines * together,
                thread / (8 * lines) * lines + thread / together % lines};
    }
    __device__ bool lines_along_k() const { return along_k; }
    __device__ static constexpr bool whole() { return true; } // missing elements are zeros
    __device__ static constexpr int64_t line_step() { return square_t::pitch; }
    template <int width>
    __device__ __forceinline__ const uint8_t *at(int line, int element) const {
        const int column = threadIdx.y * tile_n;
        return s.values + (along_k ? line + column : line) * square_t::pitch
               + (along_k ? element : element + column) * width;
    }
};

template <typename format_t, typename words_t>
__device__ __forceinline__ void quantise_side(
        shared_of_t<words_t> &s, const tile_args_t &a, int64_t matrix, int64_t k, int64_t n) {
    mx_tile_t &t = s.tile[threadIdx.y];
    const tile_place_t at = place_at<8>(a, matrix, k, n + threadIdx.y * tile_n);
    const square_source_t<4 / words_t::per_word> source{s.square, a.src.lines_along_k};
    // Codes that are computed along lines, for lines, need not be collected.
    const bool lines =
            at.whole && a.src.lines_along_k && !a.dst.packed && a.dst.lines_along_k && a.dst.aligned;
    if (lines)
        quantise_lines<format_t, words_t>(t, a, source, a.dst, at, 1.f);
    else if (at.columns > 0)
        quantise_tile<format_t, words_t>(t, a, source, at, 1.f);
    __syncthreads();
    if (at.columns <= 0) return;
    if (lines)
        store_params(t, a, a.dst, at);
    else
        store_tile<format_t::element::bits>(t, a, a.dst, at);
}

// The same as one function for both sides.
template <typename format_t, typename words_t>
__device__ __noinline__ void quantise_any_side(const tile_args_t &a, int64_t matrix, int64_t k, int64_t n) {
    extern __shared__ __align__(16) uint8_t bytes[];
    quantise_side<format_t, words_t>(*reinterpret_cast<shared_of_t<words_t> *>(bytes), a, matrix, k, n);
}

// For the usual format, which only memory limits, the code is inlined for each side. For others it is longer.
template <typename format_t, int value_bytes>
__global__ void __launch_bounds__(teams *threads, 8 / value_bytes)
        quantise_both_axes(const __grid_constant__ both_axes_args_t args) {
    extern __shared__ __align__(16) uint8_t bytes[];
    shared_t<value_bytes> &s = *reinterpret_cast<shared_t<value_bytes> *>(bytes);
    const tile_args_t &a = args.first;
    const uint32_t columns = uint32_t(div_up(a.N, int64_t(side)));
    const uint32_t column = blockIdx.z * max_grid_y + blockIdx.y, matrix = column / columns;
    if (matrix >= a.batch) return;
    start_of_early_kernel();
    const int64_t k = int64_t(blockIdx.x) * side, n = int64_t(column - matrix * columns) * side;
    const int rows = a.K - k < side ? int(a.K - k) : side, cols = a.N - n < side ? int(a.N - n) : side;
    const bool along_k = a.src.lines_along_k;
    load_square(s.square,
            a.src.data + matrix * a.src.batch_step + (along_k ? n : k) * a.src.line_step
                    + (along_k ? k : n) * value_bytes,
            a.src.line_step, a.src.aligned, along_k ? cols : rows, (along_k ? rows : cols) * value_bytes);
    __syncthreads();
    const auto quantise = [&](auto words) {
        using words_t = decltype(words);
        if constexpr (std::is_same_v<typename format_t::element, f8_e4m3_t>) {
            quantise_side<format_t, words_t>(s, args.first, matrix, k, n);
            __syncthreads();
            quantise_side<format_t, words_t>(s, args.second, matrix, n, k);
        } else {
            quantise_any_side<format_t, words_t>(args.first, matrix, k, n);
            __syncthreads();
            quantise_any_side<format_t, words_t>(args.second, matrix, n, k);
        }
    };
    if constexpr (value_bytes == 4)
        quantise(f32_words_t());
    else if (a.src.dt == mxdnn_bf16)
        quantise(bf16_words_t());
    else
        quantise(f16_words_t());
}

using kernel_t = void (*)(both_axes_args_t);

int value_bytes_of(data_type_t src_dt) { return src_dt == mxdnn_f32 ? 4 : 2; }
int shared_bytes(data_type_t src_dt) {
    return int(src_dt == mxdnn_f32 ? sizeof(shared_t<4>) : sizeof(shared_t<2>));
}

kernel_t find(data_type_t dt, data_type_t src_dt) {
    kernel_t k = nullptr;
    visit_type(mx_element_types(), dt, [&](auto e) {
        using format_t = mx_quantiser_t<decltype(e)>;
        if constexpr (decltype(e)::bits != 4)
            k = value_bytes_of(src_dt) == 4 ? quantise_both_axes<format_t, 4>
                                            : quantise_both_axes<format_t, 2>;
    });
    return k;
}

cudaError_t prepare(const void *args) {
    const auto *a = static_cast<const both_axes_args_t *>(args);
    cudaError_t e = prepare_quantise_squares(a);
    const auto load = [&](data_type_t dt, data_type_t src_dt) {
        const kernel_t k = find(dt, src_dt);
        if (k && e == cudaSuccess) e = load_kernel(k, shared_bytes(src_dt));
    };
    if (a)
        load(a->first.dst.dt, a->first.src.dt);
    else
        for_each_type(mx_element_types(), [&](auto t) {
            for (const data_type_t src_dt : {mxdnn_bf16, mxdnn_f32}) load(decltype(t)::id, src_dt);
        });
    return e;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const both_axes_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    for (const tile_args_t *side_args : {&a.first, &a.second})
        if (side_args->clear_bytes > 0)
            if (const cudaError_t e = cudaMemsetAsync(side_args->clear, 0, size_t(side_args->clear_bytes), s))
                return e;
    if (is_of_squares(a)) return launch_quantise_squares(at, a);
    const dim3 grid =
            tile_grid(div_up(a.first.K, int64_t(side)), div_up(a.first.N, int64_t(side)) * a.first.batch);
    const data_type_t src_dt = a.first.src.dt;
    return launch_kernel(at, find(a.first.dst.dt, src_dt),
            {grid, dim3(threads, teams), size_t(shared_bytes(src_dt)), early}, a);
}

} // namespace

const kernel_entry_t quantise_both_axes_kernel = {sizeof(both_axes_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

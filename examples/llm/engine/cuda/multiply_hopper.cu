// SPDX-License-Identifier: Apache-2.0
// multiply_few of many columns on Hopper: bound by reading the weights.
//
// A block runs on each multiprocessor and has some columns of y, eight at a time, whose weights are fetched
// into a ring in shared memory by bulk copies. Sixteen warps multiply, each by some elements of a row: x is
// the tensor cores' first operand, which stays in registers, and eight rows of the weights are the second.
// One more warp fetches, and one adds up what the warps have found, while they go on with other columns.
#include <algorithm>

#include "barrier.cuh"
#include "device.cuh"
#include "multiply_hopper.hpp"

namespace llm::cuda {

namespace {

constexpr int columns = 8, step = 64; // elements of a row that a warp multiplies at once: a line
constexpr int warps = 16, fetching = warps, adding = warps + 1, threads = (warps + 2) * 32;
constexpr int most_steps = 4; // of a warp
constexpr int most_slots = 8; // of the ring
constexpr int ring_bytes = 216 * 1024;
constexpr int64_t many_columns = 16 * 1024;

// A place in the ring, and how often it has been around.
struct place_t {
    int slot = 0;
    uint32_t parity = 0;
    __device__ void next(int slots) {
        if (++slot == slots) slot = 0, parity ^= 1;
    }
};

// `steps` is the most of a warp. A block has `each` times eight columns.
template <int steps>
__global__ void __launch_bounds__(threads, 1) multiply_hopper_kernel(const few_t f, int each, int slots) {
    extern __shared__ __align__(128) uint8_t ring[]; // [slots][columns][in] of bf16
    __shared__ uint64_t full[most_slots], empty[most_slots], found[2], added[2];
    __shared__ float2 parts[2][warps][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int in = int(f.in), row_bytes = in * int(sizeof(bf16_t));
    const int64_t begin = int64_t(blockIdx.x) * each * columns, end = min(begin + each * columns, f.out);
    const int count = int(end - begin + columns - 1) / columns;
    place_t at;

    const auto fetch = [&](int n) {
        const int64_t first = begin + n * columns;
        const int there = int(min(int64_t(columns), end - first));
        if (lane == 0) arrive_with(full[at.slot], there * row_bytes);
        __syncwarp();
        if (lane < there)
            copy(ring + (at.slot * columns + lane) * row_bytes,
                    static_cast<const bf16_t *>(f.w) + (first + lane) * in, row_bytes, full[at.slot]);
        at.next(slots);
    };
    if (warp == fetching) {
        if (lane == 0) {
            for (int i = 0; i < slots; i++) init(full[i], 1), init(empty[i], warps);
            for (int i = 0; i < 2; i++) init(found[i], warps), init(added[i], 1);
            show_barriers();
        }
        __syncwarp();
        for (int n = 0; n < min(count, slots); n++) fetch(n);
    }
    __syncthreads();
    begin_work();

    if (warp == fetching) {
        for (int n = slots; n < count; n++) {
            wait_for(empty[at.slot], at.parity ^ 1);
            fetch(n);
        }
    } else if (warp == adding) {
        // Columns 2t and 2t + 1 of row g.
        for (int n = 0; n < count; n++) {
            const int64_t column = begin + n * columns + 2 * t;
            float *const y = f.y + g * f.y_stride + column;
            float v[2] = {};
            for (int i = 0; i < 2; i++)
                if (g < f.rows && column + i < end) {
                    if (f.bias) v[i] += f.bias[column + i];
                    if (f.adds) v[i] += y[i];
                }
            const int half = n % 2;
            wait_for(found[half], n / 2 & 1);
            float2 sum = make_float2(0, 0);
#pragma unroll
            for (int w = 0; w < warps; w++) {
                const float2 part = parts[half][w][lane];
                sum.x += part.x, sum.y += part.y;
            }
            __syncwarp();
            if (lane == 0) arrive(added[half]);
            if (g < f.rows && column < end) y[0] = v[0] + sum.x;
            if (g < f.rows && column + 1 < end) y[1] = v[1] + sum.y;
        }
    } else {
        uint4 x[steps][2]; // of row g: 16 bytes of either half of each line
#pragma unroll
        for (int i = 0; i < steps; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int k = (warp + i * warps) * step + 8 * (t + 4 * h);
                x[i][h] = g < f.rows && k < in ? *reinterpret_cast<const uint4 *>(
                                  static_cast<const bf16_t *>(f.x) + g * in + k)
                                               : uint4{0, 0, 0, 0};
            }
        // All rows of the weights begin in the same bank, so lanes of odd rows begin with the other half.
        const bool odd = g % 2;
        for (int n = 0; n < count; n++, at.next(slots)) {
            wait_for(full[at.slot], at.parity);
            const uint8_t *const row = ring + (at.slot * columns + g) * row_bytes;
            float c[4] = {};
#pragma unroll
            for (int i = 0; i < steps; i++) {
                const int k = (warp + i * warps) * step;
                if (k >= in) break;
                const uint4 *const w = reinterpret_cast<const uint4 *>(row + k * sizeof(bf16_t)) + t;
                const uint4 one = w[odd ? 4 : 0], two = w[odd ? 0 : 4];
                const uint4 low = odd ? two : one, high = odd ? one : two;
                multiply(c, x[i][0].x, 0, x[i][0].y, 0, low.x, low.y);
                multiply(c, x[i][0].z, 0, x[i][0].w, 0, low.z, low.w);
                multiply(c, x[i][1].x, 0, x[i][1].y, 0, high.x, high.y);
                multiply(c, x[i][1].z, 0, x[i][1].w, 0, high.z, high.w);
            }
            __syncwarp();
            if (lane == 0) arrive(empty[at.slot]);
            const int half = n % 2;
            wait_for(added[half], (n / 2 & 1) ^ 1);
            parts[half][warp][lane] = make_float2(c[0], c[1]);
            __syncwarp();
            if (lane == 0) arrive(found[half]);
        }
    }
}

} // namespace

bool can_multiply_on_hopper(const few_t &f) {
    if (f.norm.x || f.out < many_columns || f.in % step != 0 || f.in > most_steps * warps * step)
        return false;
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "ask for the device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "ask the device");
    return major == 9;
}

void multiply_on_hopper(stream_t s, const few_t &f) {
    int device = 0, multiprocessors = 0;
    check(cudaGetDevice(&device), "ask for the device");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "ask the device");
    const int64_t groups = (f.out + columns - 1) / columns;
    const int64_t each = (groups + multiprocessors - 1) / multiprocessors;
    const int group_bytes = columns * int(f.in) * int(sizeof(bf16_t));
    const int slots = std::min(most_slots, ring_bytes / group_bytes);
    const auto kernel =
            f.in <= 3 * warps * step ? multiply_hopper_kernel<3> : multiply_hopper_kernel<most_steps>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ring_bytes),
            "use shared memory");
    launch(s, kernel, unsigned((groups + each - 1) / each), threads, size_t(slots * group_bytes), f,
            int(each), slots);
}

} // namespace llm::cuda

// SPDX-License-Identifier: Apache-2.0
// Rows of a matmul's results, in f32, as the codes and scales of MX and NVFP4, by the quantisers of
// mx_reorder.
//
// A CTA takes whole rows; a thread has eight neighbours of one, its own and its neighbours' a block.
#include <algorithm>

#include "gpu/cuda/device/kernels/finish_results.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/barrier.cuh"
#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/device/tiles/quantisers.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

constexpr int threads = 256, each = 8;

// Whether an expert computes row m of the destination. All threads call it.
__device__ bool is_listed(const quantise_results_args_t &a, int64_t m) {
    if (a.groups.grouping == mxdnn_row_grouping_row_ids) return a.groups.group(m).expert >= 0;
    bool is = false;
    for (int64_t g = threadIdx.x; g < a.groups.groups; g += threads) {
        const row_group_t group = a.groups.group(g);
        is |= group.expert >= 0 && m >= group.first && m < group.first + group.count;
    }
    return __syncthreads_or(is);
}

template <typename quantiser_t>
__global__ void __launch_bounds__(threads)
        quantise_results(const __grid_constant__ quantise_results_args_t a) {
    using element_t = typename quantiser_t::element;
    using group_t = tiles::code_group_t<element_t>;
    constexpr int width = group_t::width, lanes = (1 << quantiser_t::block_shift) / each; // lanes of a block
    const int lane = threadIdx.x % 32;
    const uint32_t block_lanes = ((1u << lanes) - 1) << (lane / lanes * lanes);
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();
    const quantiser_t q(a.rounding, a.global ? *a.global : 1.f);
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const int64_t m = a.first + r;
        if (a.listed && !is_listed(a, m)) continue;
        const float *values = a.values + r * a.stride;
        uint8_t *codes = a.codes + m * a.row_bytes, *scales = a.scales + m * a.scale_row_step;
        // Blocks have all their lanes.
        for (int64_t k = int64_t(threadIdx.x) * each; k < round_up(a.columns, int64_t(lanes) * each);
                k += threads * each) {
            const int n = int(max(int64_t(0), min(int64_t(each), a.columns - k)));
            uint32_t w[each] = {};
            if (n == each) {
#pragma unroll
                for (int i = 0; i < each; i += 4) {
                    const uint4 v = *reinterpret_cast<const uint4 *>(values + k + i);
                    w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
                }
            } else {
#pragma unroll
                for (int i = 0; i < each; i++)
                    if (i < n) w[i] = bits_of(values[k + i]);
            }
            uint32_t most = tiles::largest<tiles::f32_words_t, each>(w);
#pragma unroll
            for (int d = 1; d < lanes; d *= 2) most = max(most, __shfl_xor_sync(block_lanes, most, d));
            const auto block = q.template block<tiles::f32_words_t>(most);
            const group_t g = q.template encode_row<tiles::f32_words_t>(block, w);
            if (lane % lanes == 0) scales[k / (lanes * each) * a.scale_col_step] = uint8_t(block.scale);
            uint8_t *to = codes + k * width / 8;
            if (n == each && reinterpret_cast<uintptr_t>(to) % width == 0) {
                if constexpr (width == 4)
                    *reinterpret_cast<uint32_t *>(to) = g.w[0];
                else
                    *reinterpret_cast<uint2 *>(to) = make_uint2(g.w[0], g.w[1]);
                continue;
            }
#pragma unroll
            for (int i = 0; i < group_t::words; i++)
                tiles::store_some<width>(to + 4 * i, g.w[i], n - i * group_t::per_word);
        }
    }
}

struct kernels_t {
    using kernel_t = void (*)(quantise_results_args_t);
    template <typename quantiser_t>
    static kernel_t of() {
        return quantise_results<quantiser_t>;
    }
};

bool is_of_nvfp4(const quantise_results_args_t &a) {
    return a.block == 1 << tiles::nvfp4_quantiser_t::block_shift;
}

cudaError_t prepare_rows(const void *args) {
    const auto *a = static_cast<const finish_results_args_t *>(args);
    const cudaError_t e = prepare_finish_results(a);
    if (e != cudaSuccess) return e;
    if (!a) return tiles::load_quantiser_kernels<kernels_t>();
    for (const bool two_levels : {false, true}) {
        if (two_levels && !is_of_nvfp4(a->quick)) continue;
        // Only codes of MX and NVFP4 have such kernels.
        const auto kernel =
                tiles::quantiser_kernel<kernels_t>(a->quick.dt, is_of_nvfp4(a->quick), two_levels);
        if (!a->to_dst && kernel)
            if (const cudaError_t loaded = load_kernel(kernel)) return loaded;
    }
    return cudaSuccess;
}

cudaError_t launch_rows(const launch_t &at, const void *args) {
    const auto &all = *static_cast<const finish_results_args_t *>(args);
    if (all.step != finish_step_t::quantise) return launch_finish_results(at, all);
    const quantise_results_args_t &a = all.quick;
    constexpr int ctas = 2048 / threads; // that a multiprocessor holds
    const unsigned grid = unsigned(std::min<int64_t>(a.rows, int64_t(at.sm_count) * ctas));
    return launch_kernel(at, tiles::quantiser_kernel<kernels_t>(a.dt, is_of_nvfp4(a), a.global),
            {grid, threads, 0, early}, a);
}

} // namespace

const kernel_entry_t quantise_results_kernel = {sizeof(finish_results_args_t), prepare_rows, launch_rows};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

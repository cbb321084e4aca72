// SPDX-License-Identifier: Apache-2.0
// mx_reorder from any quantised form, plain or packed, to high precision.
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/dequantise.cuh"
#include "gpu/cuda/device/tiles/f16_range.cuh"
#include "gpu/cuda/device/tiles/params.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

template <typename element_t>
__global__ void __launch_bounds__(threads) dequantise_tiles(const __grid_constant__ tile_args_t a) {
    constexpr int width = element_t::bits == 4 ? 4 : 8;
    constexpr bool int4 = element_t::bits == 4 && !element_t::is_float;
    __shared__ code_tile_t<width> t;
    tile_place_t at;
    if (!find_place<width>(a, at)) return;
    start_of_early_kernel();
    if constexpr (int4) {
        const int beyond = int(blockIdx.x) - int(a.k_tiles);
        if (beyond >= 0) return note_range<element_t>(a, at, beyond);
    }
    load_tile<element_t::bits>(t, a, a.src, at);
    __syncthreads();
    const float global = a.two_levels ? *global_of(a.src, at.matrix) : 1.f;
    const int blocks = (t.rows >> a.block_shift) < 1 ? 1 : t.rows >> a.block_shift;
    for (int i = threadIdx.x; i < blocks * tile_n; i += threads) {
        uint32_t &scale = t.scale[i / tile_n][i % tile_n];
        uint32_t *zp = a.zp_bytes ? &t.zp[i / tile_n][i % tile_n] : nullptr;
        const block_values_t v = block_values(a, scale, zp ? *zp : 0, global);
        scale = bits_of(v.factor);
        if (int4) t.zp[i / tile_n][i % tile_n] = bits_of(v.offset);
    }
    __syncthreads();
    // bf16 can represent the scales, also E8M0 and E4M3.
    if constexpr (std::is_same<element_t, f4_e2m1_t>::value) {
        if (a.dst.dt == mxdnn_bf16 && !a.two_levels) return dequantise_pairs<f4_pairs_t>(t, a, at);
    } else if constexpr (int4) {
        if (a.dst.dt == a.scale_dt
                && (a.zp == zero_point_kind_t::none
                        || (!element_t::is_signed && a.zp == zero_point_kind_t::u8))) {
            if (a.dst.dt == mxdnn_bf16)
                return dequantise_pairs<int4_pairs_t<element_t::is_signed, bf16_pairs_t>>(t, a, at);
            if (a.dst.dt == mxdnn_f16)
                return dequantise_pairs<int4_pairs_t<element_t::is_signed, f16_pairs_t>>(t, a, at);
        }
    }
    switch (a.dst.dt) {
    case mxdnn_bf16: dequantise_tile<element_t, to_bf16_t>(t, a, at); break;
    case mxdnn_f16: dequantise_tile<element_t, to_f16_t>(t, a, at); break;
    default: dequantise_tile<element_t, to_f32_t>(t, a, at); break;
    }
}

using kernel_t = void (*)(tile_args_t);

kernel_t find(data_type_t dt) {
    kernel_t k = nullptr;
    visit_type(quantized_element_types(), dt, [&](auto e) { k = dequantise_tiles<decltype(e)>; });
    return k;
}

cudaError_t prepare(const void *args) {
    if (args) return load_kernel(find(static_cast<const tile_args_t *>(args)->src.dt));
    cudaError_t e = cudaSuccess;
    for_each_type(quantized_element_types(), [&](auto t) {
        if (e == cudaSuccess) e = load_kernel(find(decltype(t)::id));
    });
    return e;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const tile_args_t *>(args);
    const dim3 grid = tile_grid(a.k_tiles + (a.left ? range_parts : 0), a.n_tiles * a.batch);
    return launch_kernel(at, find(a.src.dt), {grid, threads, 0, early}, a);
}

} // namespace

const kernel_entry_t dequantise_tiles_kernel = {sizeof(tile_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

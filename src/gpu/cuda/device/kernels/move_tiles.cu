// SPDX-License-Identifier: Apache-2.0
// mx_reorder of codes and scales as they are: packing, unpacking, transposing, swizzling.
#include "common/formats/format_list.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/pack_lines.cuh"
#include "gpu/cuda/device/tiles/params.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// Many CTAs keep many loads in flight.
template <int bits>
__global__ void __launch_bounds__(threads, 10) move_tiles(const __grid_constant__ tile_args_t a) {
    constexpr int width = bits == 4 ? 4 : 8;
    __shared__ code_tile_t<width> t;
    tile_place_t at;
    if (!find_place<width>(a, at)) return;
    start_of_early_kernel();
    if (at.whole && packs_lines(a)) {
        if (a.dst.packed)
            pack_lines<bits>(a, at);
        else
            unpack_lines<bits>(a, at);
    } else {
        load_tile<bits>(t, a, a.src, at);
        __syncthreads();
        store_tile<bits>(t, a, a.dst, at);
    }
    if (a.two_levels) store_global(a.dst, at, *global_of(a.src, at.matrix));
}

using kernel_t = void (*)(tile_args_t);

kernel_t find(int bits) { return bits == 4 ? move_tiles<4> : bits == 6 ? move_tiles<6> : move_tiles<8>; }

cudaError_t prepare() {
    for (int bits : {4, 6, 8})
        if (const cudaError_t e = load_kernel(find(bits))) return e;
    return cudaSuccess;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const tile_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    if (a.clear_bytes > 0)
        if (const cudaError_t e = cudaMemsetAsync(a.clear, 0, size_t(a.clear_bytes), s)) return e;
    int bits = 8;
    visit_type(quantized_element_types(), a.src.dt, [&](auto e) { bits = decltype(e)::bits; });
    return launch_kernel(at, find(bits), {tile_grid(a), threads, 0, true}, a);
}

} // namespace

const kernel_entry_t move_tiles_kernel = {kernel_id_t::move_tiles, sizeof(tile_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

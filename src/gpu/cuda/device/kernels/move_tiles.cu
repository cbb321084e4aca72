// SPDX-License-Identifier: Apache-2.0
// mx_reorder of codes and scales as they are: packing, unpacking, transposing, swizzling. Values that stay
// values have a kernel of their own, cast_tiles.cu.
#include "common/formats/format_list.hpp"
#include "gpu/cuda/device/kernels/cast_tiles.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/fetch.cuh"
#include "gpu/cuda/device/tiles/pack_lines.cuh"
#include "gpu/cuda/device/tiles/params.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// The route of whole tiles: without shared memory if possible. This is decided at launch for all of them, or
// in the kernel.
enum class route_t { tile, pack, unpack, any };

// Many CTAs keep many loads in flight, if their registers suffice.
constexpr int ctas_of(route_t route) { return route == route_t::tile ? 8 : 10; }

// About as many CTAs as run at the same time. Their input is prefetched while the previous kernel ends.
constexpr uint32_t first_ctas = 1056;

template <int width>
__device__ __forceinline__ void fetch_lines(const tile_args_t &a, const tile_place_t &at) {
    const uint32_t cta = (blockIdx.z * max_grid_y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (cta >= first_ctas || threadIdx.x >= tile_n) return;
    constexpr int bytes = tile_rows(width) * width / 8;
    ptx::fetch_to_l2(a.src.data + at.matrix * a.src.batch_step + (at.n + threadIdx.x) * a.src.line_step
                             + at.k * width / 8,
            bytes);
}

template <int bits, route_t route>
__global__ void __launch_bounds__(threads, ctas_of(route)) move_tiles(const __grid_constant__ tile_args_t a) {
    constexpr int width = bits == 4 ? 4 : 8;
    extern __shared__ uint4 of_edges[];
    auto &t = *reinterpret_cast<code_tile_t<width> *>(of_edges);
    tile_place_t at;
    if (!find_place<width>(a, at)) return;
    if (route == route_t::pack && at.whole) fetch_lines<width>(a, at);
    start_of_early_kernel();
    const bool lines = at.whole && (route == route_t::any ? packs_lines(a) : route != route_t::tile);
    if (lines && (route == route_t::pack || (route == route_t::any && a.dst.packed))) {
        pack_lines<bits>(a, at);
    } else if (lines) {
        unpack_lines<bits>(a, at);
    } else {
        load_tile<bits>(t, a, a.src, at);
        __syncthreads();
        store_tile<bits>(t, a, a.dst, at);
    }
    if (a.two_levels) store_global(a.dst, at, *global_of(a.src, at.matrix));
}

using kernel_t = void (*)(tile_args_t);

// With six bits, kernels for one route spill registers, and lose more than they gain.
constexpr route_t routes[] = {route_t::tile, route_t::pack, route_t::unpack};
template <int bits>
kernel_t find(route_t route) {
    switch (route) {
    case route_t::pack: return move_tiles<bits, route_t::pack>;
    case route_t::unpack: return move_tiles<bits, route_t::unpack>;
    default: return move_tiles<bits, route_t::tile>;
    }
}
kernel_t find(int bits, route_t route) {
    return bits == 4 ? find<4>(route) : bits == 6 ? move_tiles<6, route_t::any> : find<8>(route);
}

int bits_of(const tile_args_t &a) {
    int bits = 8;
    visit_type(quantized_element_types(), a.src.dt, [&](auto e) { bits = decltype(e)::bits; });
    return bits;
}

cudaError_t prepare(const void *args) {
    const auto *a = static_cast<const tile_args_t *>(args);
    if (a && is_of_values(*a)) return prepare_cast_tiles(a);
    for (int bits : {4, 6, 8})
        for (route_t route : routes)
            if (!a || bits == bits_of(*a))
                if (const cudaError_t e = load_kernel(find(bits, route))) return e;
    return a ? cudaSuccess : prepare_cast_tiles(nullptr);
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const tile_args_t *>(args);
    if (is_of_values(a)) return launch_cast_tiles(at, a);
    const cudaStream_t s = stream_of(at);
    if (a.clear_bytes > 0)
        if (const cudaError_t e = cudaMemsetAsync(a.clear, 0, size_t(a.clear_bytes), s)) return e;
    const int bits = bits_of(a);
    const route_t route = !packs_lines(a) ? route_t::tile : a.dst.packed ? route_t::pack : route_t::unpack;
    // Routes without shared memory leave it to the cache, unless there are edges.
    const bool whole = a.K % tile_rows(bits == 4 ? 4 : 8) == 0 && a.N % tile_n == 0;
    const size_t shared = route != route_t::tile && whole ? 0
                          : bits == 4                     ? sizeof(code_tile_t<4>)
                                                          : sizeof(code_tile_t<8>);
    return launch_kernel(at, find(bits, route), {tile_grid(a), threads, shared, early}, a);
}

} // namespace

const kernel_entry_t move_tiles_kernel = {sizeof(tile_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

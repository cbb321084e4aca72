// SPDX-License-Identifier: Apache-2.0
// The variants of gemv that plans choose from.
#include "gpu/cuda/device/kernels/sm90/gemv.cuh"

#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/tensor_map.cuh"
#include "gpu/cuda/device/mma/decode_int4_bf16.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/packed/variants.cuh"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

// Besides the plan's variants one for one row, where the format has it; and then all of them anew for int4
// with bf16 scales, and for int4 with a source of f16.
constexpr int one_row_variant = sizeof(gemv_tiles) / sizeof(gemv_tiles[0]),
              bf16_variants = one_row_variant + 1, f16_variants = 2 * bf16_variants;

template <typename format>
struct with_bf16_scales_t {
    using type = format;
};
template <int4_kind_t kind>
struct with_bf16_scales_t<int4_t<kind>> {
    using type = std::conditional_t<kind == int4_kind_t::any, int4_t<kind>, int4_bf16_t<kind>>;
};

struct gemv_list_t {
    template <typename format>
    static constexpr bool takes = true;
    static constexpr size_t count = f16_variants + bf16_variants;
    template <typename format_, size_t i>
    static built_t<mapped_args_t> built() {
        using of_bf16_rows =
                std::conditional_t<(i >= bf16_variants), typename with_bf16_scales_t<format_>::type, format_>;
        using format = std::conditional_t<(i >= f16_variants), typename with_f16_source_t<format_>::type,
                of_bf16_rows>;
        constexpr bool one_row = i % bf16_variants == one_row_variant;
        constexpr int tiles = one_row ? 1 : gemv_tiles[i % bf16_variants % one_row_variant];
        using variant_t = gemv_variant_t<format, tiles, one_row && unscaled_t<format>::exists>;
        return {gemv<variant_t>, variant_t::threads, variant_t::bytes};
    }
};

const built_t<mapped_args_t> *variant(format_t f, int v) {
    return variant_of<gemv_list_t, mapped_args_t>(f, v);
}

// The first variant for such rows and weights.
int first_variant(const matmul_args_t &a) {
    const int4_types_t &int4 = a.tiling.int4;
    const bool all_bf16 = int4.scales == value_type_t::bf16
                          && (int4.zeros == value_type_t::bf16 || int4.zeros == value_type_t::none);
    return a.src_type == value_type_t::f16 ? f16_variants : all_bf16 ? bf16_variants : 0;
}

} // namespace

const kernel_entry_t sm90_gemv_kernel = {kernel_id_t::sm90_gemv, sizeof(launch_args_t),
        [](const void *args) {
            const auto *a = static_cast<const launch_args_t *>(args);
            return prepare_built(variant, a, a ? first_variant(a->matmul) : 0, bf16_variants);
        },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            mapped_args_t m{};
            m.matmul = a.matmul;
            // Terms of a row are rows of their own.
            const int terms = m.matmul.src_terms, rows = m.matmul.M * terms;
            const int v = (rows == 1 ? one_row_variant : a.variant) + first_variant(m.matmul);
            if (m.matmul.K > 0) {
                const cudaError_t e = make_row_map(m.source_map, false, m.matmul.src, m.matmul.K, rows,
                        m.matmul.src_stride / terms, 8 * gemv_tiles[a.variant]);
                if (e != cudaSuccess) return e;
            }
            return launch_built(*variant(a.format, v), at, a, m);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

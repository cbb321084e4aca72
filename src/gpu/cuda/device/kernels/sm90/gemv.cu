// SPDX-License-Identifier: Apache-2.0
// The variants of gemv that plans choose from.
#include "gpu/cuda/device/kernels/sm90/gemv.cuh"

#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/tensor_map.cuh"
#include "gpu/cuda/device/mma/decode_int4_bf16.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/packed/variants.cuh"
#include "gpu/cuda/heuristics/packed_variants.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

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
    static constexpr size_t count = gemv_variants::kinds * gemv_variants::shapes;
    template <typename format_, size_t i>
    static built_t<mapped_args_t> built() {
        using namespace gemv_variants;
        constexpr int rows = i / shapes;
        using of_bf16_rows = std::conditional_t<(rows >= rows_t::bf16_of_bf16_scales),
                typename with_bf16_scales_t<format_>::type, format_>;
        using format = std::conditional_t<rows == rows_t::f16, typename with_f16_source_t<format_>::type,
                of_bf16_rows>;
        using variant_t =
                gemv_variant_t<format, tiles(i), i % shapes == one_row && unscaled_t<format>::exists>;
        return {gemv<variant_t>, variant_t::threads, variant_t::bytes};
    }
};

const built_t<mapped_args_t> *variant(format_t f, int v) {
    return variant_of<gemv_list_t, mapped_args_t>(f, v);
}

} // namespace

const kernel_entry_t sm90_gemv_kernel = {sizeof(launch_args_t),
        [](const void *args) { return prepare_built(variant, static_cast<const launch_args_t *>(args)); },
        [](const launch_t &at, const void *args) {
            const launch_args_t &a = *static_cast<const launch_args_t *>(args);
            mapped_args_t m{};
            m.matmul = a.matmul;
            // The terms of a row are separate rows.
            const int terms = m.matmul.src_terms, rows = m.matmul.M * terms;
            if (m.matmul.K > 0) {
                const cudaError_t e = make_row_map(m.source_map, false, m.matmul.src, m.matmul.K, rows,
                        m.matmul.src_stride / terms, 8 * gemv_variants::tiles(a.variant));
                if (e != cudaSuccess) return e;
            }
            return launch_built(*variant(a.format, a.variant), at, a, m);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

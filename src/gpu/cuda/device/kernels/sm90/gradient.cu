// SPDX-License-Identifier: Apache-2.0
// The kernel table's entry of sm90_gradient.
#include "gpu/cuda/device/kernels/sm90/gradient.cuh"

#include "gpu/cuda/device/kernels/sm90/result_map.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using kernel_t = void (*)(const gradient::mapped_args_t);

struct built_t {
    kernel_t of_type[2]; // bf16, f16
    int shared_bytes;
};

template <int variant>
constexpr built_t build() {
    return {{gradient::gradient<false, variant>, gradient::gradient<true, variant>},
            gradient::shape_t<variant>::bytes};
}

template <int... variants>
const built_t &built_of(int variant, std::integer_sequence<int, variants...>) {
    static const built_t list[] = {build<variants>()...};
    return list[variant];
}
const built_t &built(int variant) {
    return built_of(variant, std::make_integer_sequence<int, gradient_variant_count>());
}

} // namespace

const kernel_entry_t sm90_gradient_kernel = {sizeof(sm90_gradient_launch_t),
        [](const void *args) {
            const auto *a = static_cast<const sm90_gradient_launch_t *>(args);
            for (int v = 0; v < gradient_variant_count; v++)
                for (const bool f16 : {false, true}) {
                    if (a && (v != a->variant || f16 != a->f16)) continue;
                    if (const cudaError_t e = load_kernel(built(v).of_type[f16], built(v).shared_bytes))
                        return e;
                }
            return cudaSuccess;
        },
        [](const launch_t &at, const void *args) {
            const auto &a = *static_cast<const sm90_gradient_launch_t *>(args);
            const gradient_variant_t &v = gradient_variants[a.variant];
            gradient::mapped_args_t m{};
            m.g = a.args;
            const int64_t rows = a.args.groups.rows;
            if (rows > 0) {
                // Of what both CTAs of a pair read, each copies a part of the rows.
                if (const cudaError_t e = packed::make_row_map(
                            m.a_map, false, a.a, a.args.M, rows, a.a_stride, gradient::stage_rows / v.pair))
                    return e;
                if (const cudaError_t e = packed::make_row_map(
                            m.b_map, false, a.b, a.args.N, rows, a.b_stride, gradient::stage_rows))
                    return e;
            }
            if (a.args.copies) {
                if (const cudaError_t e = gradient::make_result_map(m.to_map,
                            a.args.to_dt == mxdnn_f32 ? 4 : 2, a.args.to, a.args.N, a.args.M,
                            a.args.groups.groups, a.args.to_row_stride, a.args.to_group_stride))
                    return e;
            }
            const built_t &b = built(a.variant);
            return launch_kernel(at, b.of_type[a.f16],
                    {dim3(unsigned(a.grid)), dim3(gradient::threads), size_t(b.shared_bytes), early, v.pair},
                    m);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

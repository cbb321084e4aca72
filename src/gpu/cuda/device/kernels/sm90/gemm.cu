// SPDX-License-Identifier: Apache-2.0
// The kernel table's entry of gemm.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/kernels/sm90/sum_parts.cuh"
#include "gpu/cuda/device/kernels/sm90/tensor_map.cuh"
#include "gpu/cuda/device/mma/weight_formats.cuh"
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/gemm_f4.hpp"
#include "gpu/cuda/heuristics/packed_variants.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace packed {

template <typename format>
const built_t<gemm_args_t> *gemm_variant(int v);        // gemm_*.cu
const built_t<gemm_args_t> *gemm_of_fp8();              // gemm_fp8.cu
const built_t<gemm_args_t> *gemm_of_f4(int v);          // gemm_f4.cu
const built_t<gemm_args_t> *gemm_of_f4_kept(int v);     // gemm_f4_kept.cu
const built_t<gemm_args_t> *gemm_narrow_variant(int v); // gemm_narrow.cu
// gemm_int4_*.cu
template <gemm_variants::int4_t types>
const built_t<gemm_args_t> *gemm_of_int4(int4_kind_t kind, int v);

} // namespace packed

namespace {

using namespace packed;

const built_t<gemm_args_t> *variant(format_t f, int v) {
    if (f.decoder == decoder_t::int4) {
        if (f.kind == int4_kind_t::any) return nullptr;
        const int shape = v % gemm_common;
        switch (v / gemm_common) {
        case gemm_variants::f16: return gemm_of_int4<gemm_variants::f16>(f.kind, shape);
        case gemm_variants::bf16: return gemm_of_int4<gemm_variants::bf16>(f.kind, shape);
        case gemm_variants::bf16_of_f16_scales:
            return gemm_of_int4<gemm_variants::bf16_of_f16_scales>(f.kind, shape);
        default: return nullptr;
        }
    }
    if (is_narrow(v))
        return f.decoder == decoder_t::mxfp4 ? gemm_narrow_variant(v - gemm_narrow_first) : nullptr;
    if (is_f4(v)) {
        const int i = v - gemm_f4_first;
        if (f.decoder != decoder_t::mxfp4) return nullptr;
        return keeps_sums(v) ? gemm_of_f4_kept(i - f4_count) : gemm_of_f4(i);
    }
    if (v == gemm_fp8) return f.decoder == decoder_t::mxfp4 ? gemm_of_fp8() : nullptr;
    return of_format(f, [v](auto format) -> const built_t<gemm_args_t> * {
        if constexpr (decltype(format)::terms == 1)
            return gemm_variant<decltype(format)>(v);
        else
            return nullptr; // plans give these to other kernels
    });
}

} // namespace

const kernel_entry_t sm90_gemm_kernel = {sizeof(gemm_launch_t),
        [](const void *args) {
            const auto *a = static_cast<const gemm_launch_t *>(args);
            for (const int splits : {2, 4, most_parts})
                if (const cudaError_t e = load_kernel(sum_parts_for(splits))) return e;
            return prepare_built<gemm_args_t>(variant, a);
        },
        [](const launch_t &at, const void *args) {
            const gemm_launch_t &a = *static_cast<const gemm_launch_t *>(args);
            const built_t<gemm_args_t> &b = *variant(a.format, a.variant);
            gemm_args_t m{};
            m.matmul = a.matmul;
            m.parts = a.parts;
            m.parts_stride = parts_stride(a.matmul.N);
            if (m.matmul.K > 0) {
                // The terms of a row are consecutive along K. Rows of FP8 for n64_b4 have another order, in
                // which their last block of 32 ends with zeros.
                const bool int4 = a.format.decoder == decoder_t::int4;
                const int v = int4 ? a.variant % gemm_common : a.variant;
                const int panels = (m.matmul.N + panel_columns - 1) / panel_columns;
                const int box_rows = is_narrow(v) ? narrow_box_rows(narrow_shape(v), m.matmul.M,
                                             narrow_blocks(narrow_shape(v), panels, a.grid))
                                     : is_f4(v)   ? f4_box_rows(v)
                                                  : gemm_box_rows(gemm_width(v));
                const bool ordered = v == gemm_fp8, fp8 = ordered || is_f4(v);
                const int64_t columns = ordered || m.matmul.src_terms > 1 ? m.matmul.src_stride : m.matmul.K;
                const cudaError_t e = make_row_map(
                        m.source_map, fp8, m.matmul.src, columns, m.matmul.M, m.matmul.src_stride, box_rows);
                if (e != cudaSuccess) return e;
            }
            const cudaError_t e = launch_kernel(at, b.kernel,
                    {dim3(unsigned(a.grid)), dim3(unsigned(b.threads)), size_t(b.shared_bytes), a.early,
                            b.pair},
                    m);
            if (e != cudaSuccess || !a.parts) return e;
            const auto scale = [](auto format) { return decltype(format)::sum_scale; }; // 1 for int4
            return launch_sum_parts(at, {m.matmul, m.parts, m.parts_stride, of_format(a.format, scale)});
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn

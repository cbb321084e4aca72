// SPDX-License-Identifier: Apache-2.0
// The list of lists, and selection from it.
#include "cpu/x64/kernels/kernel_list.hpp"

#include "common/formats/named_formats.hpp"
#include "cpu/x64/kernels/avx2/list.hpp"
#include "cpu/x64/kernels/avx512_core/list.hpp"
#include "cpu/x64/kernels/avx512_core_amx/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

template <int N>
constexpr kernel_list_t::part_t part(const kernel_row_t (&rows)[N]) {
    return {rows, N};
}

// Best first. One line for each ISA.
const kernel_list_t::part_t parts[] = {
        part(avx512_core_amx_rows),
        part(avx512_core_bf16_rows),
        part(avx512_core_rows),
        part(avx2_rows),
};
const kernel_list_t list = {parts, int(sizeof(parts) / sizeof(parts[0]))};

} // namespace

const kernel_list_t &kernel_list() { return list; }

const kernel_row_t *find_kernel(kernel_kind_t kind, cpu_isa_t isa, data_type_t wei_dt, const quant_t &quant,
        data_type_t compute_dt, cpu_family_t family) {
    const kernel_row_t *found = nullptr;
    kernel_list().for_each([&](const kernel_row_t &r) {
        if (found || r.kind != kind || !includes(isa, r.isa)) return;
        if (r.family != cpu_family_t::any && r.family != family) return;
        if (compute_dt != mxdnn_data_type_undef && r.compute_dt != compute_dt) return;
        if (r.takes(wei_dt, quant)) found = &r;
    });
    return found;
}

bool requires_most(const kernel_row_t &row, cpu_isa_t isa) {
    bool most = true;
    kernel_list().for_each([&](const kernel_row_t &r) {
        if (includes(isa, r.isa) && includes(r.isa, row.isa) && r.isa != row.isa) most = false;
    });
    return most;
}

status_t create_kernel(const kernel_row_t &row, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    *reason = nullptr;
    const bool panels_ok =
            p.panels > 0
            && (p.panels == row.panels[0] || p.panels == row.panels[1] || p.panels == row.panels[2]);
    if (p.rows < 1 || p.rows > row.max_rows)
        *reason = "rows beyond the kernel's";
    else if (!panels_ok)
        *reason = "a number of panels that the kernel is not made for";
    else if (!multiplies_panels(row.kind) && p.K < 1)
        *reason = "K must be positive";
    else if (!row.takes(p.wei_dt, p.quant))
        *reason = "weights that the kernel does not take";
    if (*reason) return mxdnn_invalid_arguments;
    return row.make(row.name, p, kernel, reason);
}

bool takes_any(data_type_t, const quant_t &) { return true; }

bool takes_mxfp4(data_type_t wei_dt, const quant_t &q) { return decoder_of(wei_dt, q) == decoder_t::mxfp4; }

bool takes_f4(data_type_t wei_dt, const quant_t &q) {
    const decoder_t d = decoder_of(wei_dt, q);
    return d == decoder_t::mxfp4 || d == decoder_t::nvfp4;
}

bool takes_int4(data_type_t wei_dt, const quant_t &q) { return decoder_of(wei_dt, q) == decoder_t::int4; }

bool takes_4bit(data_type_t wei_dt, const quant_t &q) { return takes_f4(wei_dt, q) || takes_int4(wei_dt, q); }

bool takes_int4_no_zeros(data_type_t wei_dt, const quant_t &q) {
    return takes_int4(wei_dt, q) && q.zp == zero_point_kind_t::none;
}

bool takes_int4_bf16(data_type_t wei_dt, const quant_t &q) {
    return takes_int4_no_zeros(wei_dt, q) && wei_dt == mxdnn_s4 && q.scale_dt == mxdnn_bf16;
}

bool takes_f6(data_type_t wei_dt, const quant_t &q) {
    const decoder_t d = decoder_of(wei_dt, q);
    return d == decoder_t::mxfp6_e2m3 || d == decoder_t::mxfp6_e3m2;
}

bool takes_f8(data_type_t wei_dt, const quant_t &q) {
    const decoder_t d = decoder_of(wei_dt, q);
    return d == decoder_t::mxfp8_e4m3 || d == decoder_t::mxfp8_e5m2;
}

bool takes_f8_e4m3(data_type_t wei_dt, const quant_t &q) {
    return decoder_of(wei_dt, q) == decoder_t::mxfp8_e4m3;
}

bool takes_mxint8(data_type_t wei_dt, const quant_t &q) { return decoder_of(wei_dt, q) == decoder_t::mxint8; }

bool takes_int8(data_type_t wei_dt, const quant_t &q) { return decoder_of(wei_dt, q) == decoder_t::int8; }

bool takes_s8(data_type_t wei_dt, const quant_t &q) {
    return takes_mxint8(wei_dt, q) || takes_int8(wei_dt, q);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The typed list of matmul kernels. A row says what a kernel takes and how it is made; selection
// and tests read nothing else. Every ISA keeps its rows beside its kernels (kernels/<isa>/list.hpp)
// and is one line in kernel_list.cpp.
#pragma once

#include <memory>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/jit/jit_kernel.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Generates the code for p. On failure *kernel does not change and *reason says why.
using kernel_make_t = status_t(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

struct kernel_row_t {
    const char *name; // <isa>_<kind>[_<codes>]; unique
    cpu_isa_t isa;    // the features that its code requires
    kernel_kind_t kind;
    data_type_t compute_dt; // type of the source and of decoded panels: f32 or bf16
    bool (*takes)(data_type_t wei_dt, const quant_t &); // gemm kernels: always true
    int max_rows;                                       // 1 for decode
    int panels[3]; // possible numbers of panels per call, ascending, then zeros
    kernel_make_t *make;
    // Kernels that use tiles. A call says how many rows it has: any number, up to the kernel's, that needs as
    // many tiles of 16 rows. These kernels scale weights before they multiply, as decode kernels do,
    // with zeros that are added. If they have more than one tile of rows, they read them in the order of
    // source_blocks_t. Up to 15 more rows may be read, and written to acc.
    bool on_tiles = false;
    // Of these, kernels for formats that take long to decode: several calls for the same panels decode them
    // once, if decoded panels leave room in the second-level cache.
    bool keeps = false;
    // For fewer rows, where their number is known, the kernels of the next ISA are faster.
    int least_rows = 1;
    cpu_family_t family = cpu_family_t::any; // for this family only; such rows precede those for any family
    // Direct kernels: for more rows it is faster to decode once. 0: it depends on the ISA and the family.
    int best_rows = 0;
    // Decoding takes almost no time beside multiplying. So decode and gemm are hardly faster for any number
    // of rows.
    bool hides_decoding = false;
};

// What a row says beside its columns, in words: on_tiles(keeps({...})).
constexpr kernel_row_t on_tiles(kernel_row_t row) {
    row.on_tiles = true;
    return row;
}
constexpr kernel_row_t keeps(kernel_row_t row) {
    row.keeps = true;
    return row;
}
constexpr kernel_row_t from_rows(int rows, kernel_row_t row) {
    row.least_rows = rows;
    return row;
}
constexpr kernel_row_t for_zen(kernel_row_t row) {
    row.family = cpu_family_t::zen;
    return row;
}
constexpr kernel_row_t best_up_to(int rows, kernel_row_t row) {
    row.best_rows = rows;
    return row;
}
constexpr kernel_row_t hides_decoding(kernel_row_t row) {
    row.hides_decoding = true;
    return row;
}

// All rows, best ISA first.
struct kernel_list_t {
    // One array per ISA.
    struct part_t {
        const kernel_row_t *rows;
        int count;
    };
    const part_t *parts;
    int count;

    template <typename F>
    void for_each(F f) const {
        for (int i = 0; i < count; i++)
            for (int j = 0; j < parts[i].count; j++) f(parts[i].rows[j]);
    }
};
const kernel_list_t &kernel_list();

// The first row of that kind whose features isa has and that takes the weights, or null. With a compute type,
// only rows of that type: decode and gemm kernels must agree on it. With a family, also rows for that
// family.
const kernel_row_t *find_kernel(kernel_kind_t kind, cpu_isa_t isa, data_type_t wei_dt, const quant_t &quant,
        data_type_t compute_dt = mxdnn_data_type_undef, cpu_family_t family = cpu_family_t::any);

// Whether no kernel that runs with `isa`, for any format, requires more features than this one.
bool requires_most(const kernel_row_t &row, cpu_isa_t isa);

// Calls row.make after checking p against the row.
status_t create_kernel(const kernel_row_t &row, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

// Predicates for rows: formats by their decoders (common/formats/named_formats.hpp). f4 takes both MXFP4 and
// NVFP4. int4 takes s4 and u4 with every group size, scale type and kind of zero point, int8 s8 with those.
// int4_bf16 takes s4 with scales of bf16 and no zero points.
bool takes_any(data_type_t wei_dt, const quant_t &q);
bool takes_mxfp4(data_type_t wei_dt, const quant_t &q);
bool takes_f4(data_type_t wei_dt, const quant_t &q);
bool takes_int4(data_type_t wei_dt, const quant_t &q);
bool takes_4bit(data_type_t wei_dt, const quant_t &q); // f4 or int4
bool takes_int4_no_zeros(data_type_t wei_dt, const quant_t &q);
bool takes_int4_bf16(data_type_t wei_dt, const quant_t &q);
bool takes_f6(data_type_t wei_dt, const quant_t &q);
bool takes_f8(data_type_t wei_dt, const quant_t &q);
bool takes_f8_e4m3(data_type_t wei_dt, const quant_t &q);
bool takes_mxint8(data_type_t wei_dt, const quant_t &q);
bool takes_int8(data_type_t wei_dt, const quant_t &q);
bool takes_s8(data_type_t wei_dt, const quant_t &q); // mxint8 or int8

} // namespace x64
} // namespace impl
} // namespace mxdnn

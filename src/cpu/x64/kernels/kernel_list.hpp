// SPDX-License-Identifier: Apache-2.0
// The typed list of matmul kernels. A row says what a kernel takes and how it is made; selection
// and tests read nothing else. Every ISA keeps its rows beside its kernels (kernels/<isa>/rows.hpp)
// and is one line in kernel_list.cpp.
#pragma once

#include <memory>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/jit/jit_kernel.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Generates the code for p. On failure *kernel is untouched and *reason says why.
using kernel_make_t = status_t(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

struct kernel_row_t {
    const char *name; // <isa>_<kind>[_<codes>]; unique
    cpu_isa_t isa;    // the features that its code requires
    kernel_kind_t kind;
    data_type_t compute_dt;                             // of the source and of plain panels: f32 or bf16
    bool (*takes)(data_type_t wei_dt, const quant_t &); // dense kernels: always true
    int max_rows;                                       // 1 for decode
    int panels[3]; // numbers of panels that it can be made for, ascending, then zeros
    kernel_make_t *make;
    // Kernels on tiles. A call says how many rows it has: with a kernel for n rows, any number of which
    // as many begun tiles of 16 are needed as for n. They scale weights before they multiply, as
    // decode kernels leave them, zeros of float_zero included. More rows than a tile has are read in the
    // order of source_blocks_t, and up to 15 more may be read, and written to acc.
    bool on_tiles = false;
    // Of these, formats that take long to decode: several calls for the same panels decode them once.
    bool keeps = false;
    cpu_family_t family = cpu_family_t::any; // for these alone, before kernels for any
    // Decoding takes next to no time beside multiplying: as good for any number of rows as decode and dense.
    bool hides_decoding = false;
};

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

// The first row of that kind that requires no more than isa has and takes the weights, or null. With a
// compute type only rows of that type: decode and dense kernels must agree on it. With a family, rows for it
// as well.
const kernel_row_t *find_kernel(kernel_kind_t kind, cpu_isa_t isa, data_type_t wei_dt, const quant_t &quant,
        data_type_t compute_dt = mxdnn_data_type_undef, cpu_family_t family = cpu_family_t::any);

// Whether no kernel for any format that runs with `isa` requires more than this one does.
bool requires_most(const kernel_row_t &row, cpu_isa_t isa);

// row.make after checking p against the row.
status_t create_kernel(const kernel_row_t &row, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

// Predicates for rows: formats by their decoders (common/formats/named_formats.hpp). f4 takes both MXFP4 and
// NVFP4, int4 takes s4 and u4 with every group size, scale type and kind of zero point.
bool takes_any(data_type_t wei_dt, const quant_t &q);
bool takes_mxfp4(data_type_t wei_dt, const quant_t &q);
bool takes_f4(data_type_t wei_dt, const quant_t &q);
bool takes_int4(data_type_t wei_dt, const quant_t &q);
bool takes_4bit(data_type_t wei_dt, const quant_t &q); // f4 or int4
bool takes_4bit_no_zeros(data_type_t wei_dt, const quant_t &q);
bool takes_f6(data_type_t wei_dt, const quant_t &q);
bool takes_f8(data_type_t wei_dt, const quant_t &q);
bool takes_s8(data_type_t wei_dt, const quant_t &q);

} // namespace x64
} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
// The memory descriptor: the shape of a tensor and how its elements lie in memory.
#pragma once

#include <string>
#include <vector>

#include "common/layouts/layout_list.hpp"
#include "common/quant.hpp"

namespace mxdnn {
namespace impl {

// Packed weights. The last two dims are K and N; those before them are the batch.
struct packed_desc_t {
    target_family_t family = target_family_t::none;
    uint32_t layout_id = 0, layout_version = 0;
    quant_t quant;
    int64_t size = 0;   // bytes of the whole tensor
    int64_t stride = 0; // bytes from one batch entry (expert) to the next
    int64_t align = 0;
};

struct grouped_desc_t {
    int variable_dim = 0;
    dim_t group_count = 0;
    data_type_t offsets_dt = mxdnn_data_type_undef;
};

// Notes on a tensor for other programs. They do not count when descriptors are compared.
struct annotation_t {
    data_type_t original_dt = mxdnn_data_type_undef;
    std::string recipe;
    // Optional fields of a blob that this release does not know, unchanged.
    std::vector<uint8_t> unknown_fields;
};

} // namespace impl
} // namespace mxdnn

struct mxdnn_memory_desc {
    int ndims = 0; // 0: there is no tensor
    mxdnn_dims_t dims = {};
    mxdnn_data_type_t dt = mxdnn_data_type_undef;
    mxdnn_format_kind_t kind = mxdnn_format_kind_undef;
    mxdnn_dims_t strides = {};           // blocked: in elements; runtime_dim if it depends on a runtime dim
    mxdnn::impl::packed_desc_t packed;   // opaque
    mxdnn::impl::grouped_desc_t grouped; // grouped
    mxdnn::impl::annotation_t annotation;
};

namespace mxdnn {
namespace impl {

using memory_desc_t = mxdnn_memory_desc;

inline bool is_any(const memory_desc_t &md) { return md.kind == mxdnn_format_kind_any; }
inline bool is_packed(const memory_desc_t &md) { return md.kind == mxdnn_format_kind_opaque; }
inline bool is_strided(const memory_desc_t &md) { return md.kind == mxdnn_blocked; }
inline bool is_zero(const memory_desc_t &md) { return md.ndims == 0; }
inline dim_t dim_from_end(const memory_desc_t &md, int i) { return md.dims[md.ndims - i]; }

// True if a dimension or a stride is not known before execution.
bool has_runtime_dims(const memory_desc_t &md);

// The product of all dims but the last two (1 for a matrix); runtime_dim if one of them is.
dim_t batch_of(const memory_desc_t &md);
// The indices of batch entry number `entry`, one for each batch dim.
void batch_index(const memory_desc_t &md, dim_t entry, dim_t *idx);

// These make all checks of the public constructors. strides == nullptr stands for row-major order.
status_t init_strided(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const dim_t *strides);
status_t init_with_tag(
        memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, mxdnn_format_tag_t tag);
status_t init_grouped(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, int variable_dim,
        dim_t group_count, data_type_t offsets_dt);
// The packed descriptor of `family` for a logical [..., K, N] tensor of `dt` codes. The format is legal
// (formats/named_formats.hpp) and the dims are known.
status_t init_packed(memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, const quant_t &quant,
        target_family_t family);

// The shape and the map of one batch entry of a packed descriptor.
packed_shape_t shape_of(const memory_desc_t &packed_md);
const layout_t *layout_of(const memory_desc_t &packed_md);

// Bytes that the elements occupy: 0 for `any`, runtime_dim if a dim is. Whether 6-bit codes are dense is an
// attribute, not part of the descriptor.
int64_t size_of(const memory_desc_t &md, mxdnn_element_packing_t packing = mxdnn_element_packing_bytes);
// Bytes of a plain tensor in row-major order whose rows start on a byte.
int64_t plain_size(int ndims, const dim_t *dims, data_type_t dt, bool dense);

// For codes of `bits` bits each, below a byte or not: bytes from one index of dim `dim` to the next. Rows
// start on a byte, so a row takes whole bytes, and longer strides count rows. Not for the dim of stride 1 of
// codes below a byte.
int64_t stride_bytes(const memory_desc_t &md, int dim, int bits);
// The dim along which codes below a byte are neighbours.
int inner_dim(const memory_desc_t &md);

// Whether 6-bit codes of `md` can be dense, four in three bytes: this needs a dim of stride 1. What depends
// on runtime values is checked when they are known.
status_t check_stored_dense(const char *name, const memory_desc_t &md);
// Whether `md` can be written: no dim repeats elements (stride 0). What depends on runtime values is checked
// when they are known.
status_t check_written(const char *name, const memory_desc_t &md);

bool equal(const memory_desc_t &a, const memory_desc_t &b);

// The descriptor in the words of mxdnn-bench, for example "bf16:blocked:ab:16x2880" or
// "f4_e2m1:packed:cpu:x64:n16_b4v1:e8m0:32x1:2880x5760".
std::string to_string(const memory_desc_t &md);
const char *target_family_name(target_family_t f);

} // namespace impl
} // namespace mxdnn

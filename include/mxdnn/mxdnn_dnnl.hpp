// SPDX-License-Identifier: Apache-2.0
/// @file
/// mxdnn and oneDNN in one program: converts engines, streams, types, descriptors and memory from and to
/// dnnl::.
///
/// Plain layouts mean the same in both libraries. Memory is converted by its pointer, and nothing is copied:
/// the owner of the bytes keeps them alive longer than the object created here. What the other library cannot
/// express is refused with mxdnn_unimplemented: packed and grouped descriptors, 6-bit types, blocked layouts
/// of oneDNN. Types that the oneDNN in use does not have are left out when the program is compiled. This is a
/// header-only interface. It needs oneDNN 3.2 or later.
#ifndef MXDNN_DNNL_HPP
#define MXDNN_DNNL_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_version.h>

#include "mxdnn/mxdnn.hpp"

/// The version of oneDNN that the program is compiled with: 302 is 3.2.
#define MXDNN_DNNL_VERSION (DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR)

#if MXDNN_DNNL_VERSION < 302
#error "mxdnn_dnnl.hpp needs oneDNN 3.2 or later"
#endif

namespace mxdnn {
/// Objects from and to oneDNN.
namespace dnnl_interop {

// NOLINTNEXTLINE(misc-redundant-expression): equal in every release so far, which is what it asserts
static_assert(MXDNN_RUNTIME_DIM_VAL == DNNL_RUNTIME_DIM_VAL, "runtime dimensions pass unchanged");

// ---- Data types ----

/// The type with the same values. Throws mxdnn_unimplemented if this oneDNN has none.
inline dnnl::memory::data_type to_dnnl(memory::data_type type) {
    using ours = memory::data_type;
    using theirs = dnnl::memory::data_type;
    switch (type) {
    case ours::undef: return theirs::undef;
    case ours::f16: return theirs::f16;
    case ours::bf16: return theirs::bf16;
    case ours::f32: return theirs::f32;
    case ours::s32: return theirs::s32;
    case ours::s8: return theirs::s8;
    case ours::u8: return theirs::u8;
#if MXDNN_DNNL_VERSION >= 304
    case ours::f8_e5m2: return theirs::f8_e5m2;
    case ours::f8_e4m3: return theirs::f8_e4m3;
    case ours::s4: return theirs::s4;
    case ours::u4: return theirs::u4;
#endif
#if MXDNN_DNNL_VERSION >= 306
    case ours::e8m0: return theirs::e8m0;
#endif
#if MXDNN_DNNL_VERSION >= 307
    case ours::f4_e2m1: return theirs::f4_e2m1;
#endif
    default: break;
    }
    error::raise(mxdnn_unimplemented,
            "oneDNN " + std::to_string(DNNL_VERSION_MAJOR) + "." + std::to_string(DNNL_VERSION_MINOR)
                    + " has no equal of mxdnn's data type " + std::to_string(static_cast<int>(type)));
}

/// The type with the same values. Throws mxdnn_unimplemented if mxdnn has none.
inline memory::data_type from_dnnl(dnnl::memory::data_type type) {
    using ours = memory::data_type;
    using theirs = dnnl::memory::data_type;
    switch (type) {
    case theirs::undef: return ours::undef;
    case theirs::f16: return ours::f16;
    case theirs::bf16: return ours::bf16;
    case theirs::f32: return ours::f32;
    case theirs::s32: return ours::s32;
    case theirs::s8: return ours::s8;
    case theirs::u8: return ours::u8;
#if MXDNN_DNNL_VERSION >= 304
    case theirs::f8_e5m2: return ours::f8_e5m2;
    case theirs::f8_e4m3: return ours::f8_e4m3;
    case theirs::s4: return ours::s4;
    case theirs::u4: return ours::u4;
#endif
#if MXDNN_DNNL_VERSION >= 306
    case theirs::e8m0: return ours::e8m0;
#endif
#if MXDNN_DNNL_VERSION >= 307
    case theirs::f4_e2m1: return ours::f4_e2m1;
#endif
    default: break;
    }
    error::raise(mxdnn_unimplemented,
            "mxdnn has no equal of oneDNN's data type " + std::to_string(static_cast<int>(type)));
}

// ---- Memory descriptors ----

namespace detail {

inline int bits_of(memory::data_type type) {
    using dt = memory::data_type;
    switch (type) {
    case dt::s4:
    case dt::u4:
    case dt::f4_e2m1: return 4;
    case dt::f32:
    case dt::s32: return 32;
    case dt::f16:
    case dt::bf16: return 16;
    default: return 8;
    }
}

// Rows of 4-bit types start on a byte in mxdnn. In oneDNN they may share one. Both agree if every stride but
// that of neighbours is even.
inline void check_rows(memory::data_type type, const memory::dims &dims, const memory::dims &strides) {
    if (bits_of(type) != 4) return;
    for (size_t i = 0; i < strides.size(); i++) {
        if (dims[i] <= 1 || strides[i] == 1 || strides[i] == MXDNN_RUNTIME_DIM_VAL || strides[i] % 2 == 0)
            continue;
        error::raise(mxdnn_unimplemented,
                "a 4-bit tensor has stride " + std::to_string(strides[i]) + " along dimension "
                        + std::to_string(i)
                        + "; rows that share a byte cannot pass between oneDNN and mxdnn, make it even");
    }
}

// A oneDNN descriptor as strides, without its offset.
inline memory::desc strided_view(const dnnl::memory::desc &md) {
    const memory::dims dims = md.get_dims(), padded = md.get_padded_dims();
    if (md.get_inner_nblks() != 0)
        error::raise(mxdnn_unimplemented, "a oneDNN descriptor has " + std::to_string(md.get_inner_nblks())
                                                  + " inner blocks; reorder it to a plain layout first");
    for (size_t i = 0; i < dims.size(); i++)
        if (padded[i] != dims[i])
            error::raise(mxdnn_unimplemented, "dimension " + std::to_string(i) + " of a oneDNN descriptor is "
                                                      + std::to_string(dims[i]) + " padded to "
                                                      + std::to_string(padded[i])
                                                      + "; reorder it to a plain layout first");
    const memory::data_type type = from_dnnl(md.get_data_type());
    const memory::dims strides = md.get_strides();
    check_rows(type, dims, strides);
    return memory::desc(dims, type, strides);
}

} // namespace detail

/// A oneDNN descriptor that is strided, or `any`. Inner blocks, padding and an offset are refused.
inline memory::desc from_dnnl(const dnnl::memory::desc &md) {
    if (md.is_zero())
        error::raise(mxdnn_invalid_arguments, "a oneDNN descriptor describes no tensor; nothing equals it");
    switch (md.get_format_kind()) {
    case dnnl::memory::format_kind::any:
        return memory::desc(md.get_dims(), from_dnnl(md.get_data_type()), memory::format_tag::any);
    case dnnl::memory::format_kind::blocked: break;
    default:
        error::raise(mxdnn_unimplemented, "a oneDNN descriptor has format kind "
                                                  + std::to_string(static_cast<int>(md.get_format_kind()))
                                                  + "; only strided ones and `any` pass to mxdnn");
    }
    if (md.get_submemory_offset() != 0)
        error::raise(mxdnn_unimplemented, "a oneDNN descriptor has offset "
                                                  + std::to_string(md.get_submemory_offset())
                                                  + "; pass the memory, whose pointer takes it up");
    return detail::strided_view(md);
}

/// A descriptor that is strided, or `any`. Others are refused.
inline dnnl::memory::desc to_dnnl(const memory::desc &md) {
    const memory::dims dims = md.get_dims();
    const dnnl::memory::data_type type = to_dnnl(md.get_data_type());
    switch (md.get_format_kind()) {
    case memory::format_kind::any: return dnnl::memory::desc(dims, type, dnnl::memory::format_tag::any);
    case memory::format_kind::blocked: {
        const memory::dims strides = md.get_strides();
        detail::check_rows(md.get_data_type(), dims, strides);
        return dnnl::memory::desc(dims, type, strides);
    }
    default:
        error::raise(mxdnn_unimplemented,
                "the descriptor " + md.to_string() + " is not strided; oneDNN cannot describe it");
    }
}

// ---- Engines and streams ----

/// A CPU engine of oneDNN. Its GPU engines use OpenCL or SYCL, and are refused.
inline engine from_dnnl(const dnnl::engine &e) {
    if (e.get_kind() != dnnl::engine::kind::cpu)
        error::raise(mxdnn_unimplemented, "a oneDNN engine has kind "
                                                  + std::to_string(static_cast<int>(e.get_kind()))
                                                  + "; only CPU engines (1) pass to mxdnn");
    return engine(engine::kind::cpu, 0);
}

/// A CPU engine of mxdnn; others are refused.
inline dnnl::engine to_dnnl(const engine &e) {
    if (e.get_kind() != engine::kind::cpu)
        error::raise(mxdnn_unimplemented,
                "the mxdnn engine " + e.get_target() + " is not a CPU's; only those pass to oneDNN");
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
}

/// A stream of mxdnn for a CPU stream of oneDNN. First waits until all work of that stream has ended.
/// Executions of both libraries then run in the order of the calls.
inline stream from_dnnl(const dnnl::stream &s) {
    dnnl::stream(s).wait();
    return stream(from_dnnl(s.get_engine()));
}

/// A stream of oneDNN for a CPU stream of mxdnn, as from_dnnl() does. `e` is the engine of the primitives
/// that will run.
inline dnnl::stream to_dnnl(const stream &s, const dnnl::engine &e) {
    stream(s).wait();
    return dnnl::stream(e);
}

// ---- Memory ----

/// A memory of mxdnn over the same bytes. The offset of a submemory is added to the pointer.
inline memory from_dnnl(const dnnl::memory &m, const engine &e) {
    const dnnl::memory::desc md = m.get_desc();
    const int64_t offset = md.is_zero() || md.get_format_kind() != dnnl::memory::format_kind::blocked
                                   ? 0
                                   : md.get_submemory_offset();
    char *data = static_cast<char *>(m.get_data_handle());
    if (offset == 0) return memory(from_dnnl(md), e, data);
    const memory::desc view = detail::strided_view(md);
    const int64_t offset_bits = offset * detail::bits_of(view.get_data_type());
    if (offset_bits % 8 != 0)
        error::raise(mxdnn_unimplemented,
                "a oneDNN memory starts at element " + std::to_string(offset) + ", inside a byte");
    return memory(view, e, data == nullptr ? nullptr : data + offset_bits / 8);
}

/// A memory of oneDNN over the same bytes.
inline dnnl::memory to_dnnl(const memory &m, const dnnl::engine &e) {
    return dnnl::memory(to_dnnl(m.get_desc()), e, m.get_data_handle());
}

} // namespace dnnl_interop
} // namespace mxdnn

#endif

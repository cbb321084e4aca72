// SPDX-License-Identifier: Apache-2.0
// The custom calls as XLA sees them: each operation with the context of each platform. The library that is
// built from this needs nothing of CUDA: libmxdnn opens its CUDA library when the first device is asked for.
#include <new>

#include "operations.hpp"

namespace mxdnn_jax {

namespace ffi = xla::ffi;

namespace {

ffi::ErrorCode code_of(mxdnn_status_t status) {
    switch (status) {
    case mxdnn_out_of_memory: return ffi::ErrorCode::kResourceExhausted;
    case mxdnn_unimplemented: return ffi::ErrorCode::kUnimplemented;
    case mxdnn_runtime_error: return ffi::ErrorCode::kInternal;
    case mxdnn_device_unavailable: return ffi::ErrorCode::kFailedPrecondition;
    default: return ffi::ErrorCode::kInvalidArgument;
    }
}

// No exception passes into XLA.
template <typename call_t>
ffi::Error guarded(call_t call) {
    try {
        call();
        return ffi::Error::Success();
    } catch (const mxdnn::error &e) {
        return {code_of(e.status), "mxdnn: " + e.message};
    } catch (const std::bad_alloc &) {
        return {ffi::ErrorCode::kResourceExhausted, "mxdnn: out of memory"};
    } catch (const std::exception &e) {
        return {ffi::ErrorCode::kInternal, std::string("mxdnn: ") + e.what()};
    }
}

// An operation on each platform.
template <auto operation>
struct on_t;
template <typename... args_t, void (*operation)(place_t &, args_t...)>
struct on_t<operation> {
    static ffi::Error cpu(ffi::ThreadPool pool, args_t... args) {
        return guarded([&] { on_cpu(pool, [&](place_t &place) { operation(place, args...); }); });
    }
    static ffi::Error cuda(
            CUstream_st *stream, int32_t ordinal, ffi::ScratchAllocator scratch, args_t... args) {
        return guarded([&] {
            on_cuda(stream, ordinal, scratch, [&](place_t &place) { operation(place, args...); });
        });
    }
};

// What each platform passes first.
auto from_cpu() { return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>(); }
auto from_cuda() {
    return ffi::Ffi::Bind()
            .Ctx<ffi::PlatformStream<CUstream_st *>>()
            .Ctx<ffi::DeviceOrdinal>()
            .Ctx<ffi::ScratchAllocator>();
}

// What each operation takes.
template <typename binding_t>
auto linear_of(binding_t &&context) {
    return std::move(context)
            .template Arg<buffer_t>()
            .template Arg<buffer_t>()
            .RemainingArgs()
            .template Ret<buffer_t>()
            .template Attr<blob_t>("blob")
            .template Attr<std::string_view>("activation");
}
template <typename binding_t>
auto grouped_linear_of(binding_t &&context) {
    return std::move(context)
            .template Arg<buffer_t>()
            .template Arg<buffer_t>()
            .template Arg<buffer_t>()
            .template Arg<buffer_t>()
            .RemainingArgs()
            .template Ret<buffer_t>()
            .template Attr<blob_t>("blob")
            .template Attr<std::string_view>("activation");
}
template <typename binding_t>
auto pack_of(binding_t &&context) {
    return std::move(context)
            .template Arg<buffer_t>()
            .template Ret<buffer_t>()
            .template Attr<blob_t>("blob")
            .template Attr<std::string_view>("scale_rounding");
}
template <typename binding_t>
auto unpack_of(binding_t &&context) {
    return std::move(context).template Arg<buffer_t>().template Ret<buffer_t>().template Attr<blob_t>("blob");
}

} // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_linear_cpu, on_t<linear>::cpu, linear_of(from_cpu()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_linear_cuda, on_t<linear>::cuda, linear_of(from_cuda()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
        mxdnn_jax_grouped_linear_cpu, on_t<grouped_linear>::cpu, grouped_linear_of(from_cpu()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
        mxdnn_jax_grouped_linear_cuda, on_t<grouped_linear>::cuda, grouped_linear_of(from_cuda()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_pack_cpu, on_t<pack>::cpu, pack_of(from_cpu()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_pack_cuda, on_t<pack>::cuda, pack_of(from_cuda()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_unpack_cpu, on_t<unpack>::cpu, unpack_of(from_cpu()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(mxdnn_jax_unpack_cuda, on_t<unpack>::cuda, unpack_of(from_cuda()));

} // namespace mxdnn_jax

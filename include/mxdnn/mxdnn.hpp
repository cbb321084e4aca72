// SPDX-License-Identifier: Apache-2.0
// mxdnn C++ API: the C API's objects as values that release themselves, its statuses as exceptions.
//
// Names, argument order and copy semantics are oneDNN's: a copy of a handle refers to the same
// object. Nothing here computes anything; every call is one call of mxdnn.h. C++11 or later.
//
// Compiled with -fno-exceptions, or with MXDNN_ENABLE_EXCEPTIONS defined as 0 (in all files of a program
// alike), a call that fails prints what was wrong on standard error and ends the program with abort().
#ifndef MXDNN_HPP
#define MXDNN_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mxdnn/mxdnn.h"

#ifndef MXDNN_ENABLE_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define MXDNN_ENABLE_EXCEPTIONS 1
#else
#define MXDNN_ENABLE_EXCEPTIONS 0
#endif
#endif

namespace mxdnn {

/// Outcome of a call; most calls throw mxdnn::error instead of returning one.
enum class status {
    success = mxdnn_success,
    out_of_memory = mxdnn_out_of_memory,
    invalid_arguments = mxdnn_invalid_arguments,
    unimplemented = mxdnn_unimplemented,
    last_impl_reached = mxdnn_last_impl_reached,
    runtime_error = mxdnn_runtime_error,
    not_required = mxdnn_not_required,
    invalid_shape = mxdnn_invalid_shape,
    invalid_data_type = mxdnn_invalid_data_type,
    corrupt_blob = mxdnn_corrupt_blob,
    incompatible_version = mxdnn_incompatible_version,
    incompatible_target = mxdnn_incompatible_target,
    device_unavailable = mxdnn_device_unavailable,
};

/// "success", "invalid_arguments", ...
inline const char *status2str(status s) { return mxdnn_status2str(static_cast<mxdnn_status_t>(s)); }

/// This thread's last failure in one sentence, or the reason for the last check_blob(); empty when there was
/// none.
inline std::string get_last_error() { return mxdnn_get_last_error(); }

/// Thrown when a call fails: its status, and the sentence that says what was wrong.
struct error : public std::exception {
    mxdnn_status_t status;
    std::string message;

    error(mxdnn_status_t astatus, std::string amessage) : status(astatus), message(std::move(amessage)) {}

    const char *what() const noexcept override { return message.c_str(); }

    /// Throws for anything but success. `what` names the attempt, for a failure without a sentence.
    static void wrap_c_api(mxdnn_status_t status, const char *what) {
        if (status == mxdnn_success) return;
        std::string text = mxdnn_get_last_error();
        if (text.empty()) text = std::string(what) + ": " + mxdnn_status2str(status);
        raise(status, std::move(text));
    }

    /// Throws; without exceptions prints the message and ends the program.
    [[noreturn]] static void raise(mxdnn_status_t astatus, std::string amessage) {
#if MXDNN_ENABLE_EXCEPTIONS
        throw error(astatus, std::move(amessage));
#else
        std::fprintf(stderr, "mxdnn: %s: %s\n", mxdnn_status2str(astatus), amessage.c_str());
        std::abort();
#endif
    }
};

/// How a C handle is released; one specialisation for each kind of object.
template <typename T>
struct handle_traits {};

template <>
struct handle_traits<mxdnn_engine_t> {
    static void destroy(mxdnn_engine_t p) { mxdnn_engine_destroy(p); }
};
template <>
struct handle_traits<mxdnn_stream_t> {
    static void destroy(mxdnn_stream_t p) { mxdnn_stream_destroy(p); }
};
template <>
struct handle_traits<mxdnn_memory_desc_t> {
    static void destroy(mxdnn_memory_desc_t p) { mxdnn_memory_desc_destroy(p); }
};
template <>
struct handle_traits<mxdnn_checksum_t> {
    static void destroy(mxdnn_checksum_t p) { mxdnn_checksum_destroy(p); }
};
template <>
struct handle_traits<mxdnn_memory_t> {
    static void destroy(mxdnn_memory_t p) { mxdnn_memory_destroy(p); }
};
template <>
struct handle_traits<mxdnn_post_ops_t> {
    static void destroy(mxdnn_post_ops_t p) { mxdnn_post_ops_destroy(p); }
};
template <>
struct handle_traits<mxdnn_primitive_attr_t> {
    static void destroy(mxdnn_primitive_attr_t p) { mxdnn_primitive_attr_destroy(p); }
};
template <>
struct handle_traits<mxdnn_primitive_desc_t> {
    static void destroy(mxdnn_primitive_desc_t p) { mxdnn_primitive_desc_destroy(p); }
};
template <>
struct handle_traits<mxdnn_primitive_t> {
    static void destroy(mxdnn_primitive_t p) { mxdnn_primitive_destroy(p); }
};

/// Shared ownership of one C object. Empty until reset() or a constructor fills it.
template <typename T>
class handle {
public:
    handle() = default;

    /// Takes `t` over, or, when `weak`, only refers to it: its owner must live longer.
    explicit handle(T t, bool weak = false) { reset(t, weak); }

    void reset(T t, bool weak = false) {
        if (weak)
            data_.reset(t, [](T) {});
        else
            data_.reset(t, [](T p) { handle_traits<T>::destroy(p); });
    }

    /// The C handle; throws when empty unless `allow_empty`.
    T get(bool allow_empty = false) const {
        if (!data_ && !allow_empty) error::raise(mxdnn_invalid_arguments, "object is not initialized");
        return data_.get();
    }

    explicit operator bool() const { return static_cast<bool>(data_); }

protected:
    /// The same object, whatever it holds.
    bool is_same(const handle &other) const { return data_ == other.data_; }

private:
    std::shared_ptr<typename std::remove_pointer<T>::type> data_;
};

// ---- Modes and kinds: values equal those of mxdnn_types.h ----

enum class fpmath_mode {
    strict = mxdnn_fpmath_mode_strict,
    bf16 = mxdnn_fpmath_mode_bf16,
    f16 = mxdnn_fpmath_mode_f16,
    any = mxdnn_fpmath_mode_any,
    tf32 = mxdnn_fpmath_mode_tf32,
};

enum class accumulation_mode {
    strict = mxdnn_accumulation_mode_strict,
    relaxed = mxdnn_accumulation_mode_relaxed,
    any = mxdnn_accumulation_mode_any,
    s32 = mxdnn_accumulation_mode_s32,
    f32 = mxdnn_accumulation_mode_f32,
    f16 = mxdnn_accumulation_mode_f16,
};

enum class scratchpad_mode {
    library = mxdnn_scratchpad_mode_library,
    user = mxdnn_scratchpad_mode_user,
};

/// Who computes the scales of an argument.
enum class quantization_mode {
    undef = mxdnn_quantization_mode_undef,
    static_sazp = mxdnn_quantization_mode_static_sazp,
    dynamic_mx = mxdnn_quantization_mode_dynamic_mx,
    dynamic_fp = mxdnn_quantization_mode_dynamic_fp,
    dynamic_affine = mxdnn_quantization_mode_dynamic_affine,
};

/// How an e8m0 scale follows from a block's largest magnitude.
enum class scale_rounding {
    floor = mxdnn_scale_rounding_floor,
    ceil = mxdnn_scale_rounding_ceil,
    even = mxdnn_scale_rounding_even,
    rceil = mxdnn_scale_rounding_rceil,
};

enum class scales_layout {
    linear = mxdnn_scales_linear,
    swizzle_128x4 = mxdnn_scales_swizzle_128x4,
};

/// Plain 6-bit elements: one code per byte, or four codes in three bytes.
enum class element_packing {
    bytes = mxdnn_element_packing_bytes,
    dense = mxdnn_element_packing_dense,
};

/// How grouped_matmul learns which rows belong to which group.
enum class row_grouping {
    ends = mxdnn_row_grouping_ends,
    starts = mxdnn_row_grouping_starts,
    padded = mxdnn_row_grouping_padded,
    row_ids = mxdnn_row_grouping_row_ids,
};

/// Where grouped_matmul applies the top-k weights.
enum class topk_weights_placement {
    on_output = mxdnn_topk_weights_on_output,
    on_input = mxdnn_topk_weights_on_input,
};

/// Where a gated activation finds gate and up.
enum class gated_layout {
    interleaved = mxdnn_gated_interleaved,
    halves = mxdnn_gated_halves,
};

/// What an engine can do with the weights that a blob describes.
enum class blob_verdict {
    native = mxdnn_blob_native,
    slower = mxdnn_blob_slower,
    needs_reorder = mxdnn_blob_needs_reorder,
    incompatible = mxdnn_blob_incompatible,
    corrupt = mxdnn_blob_corrupt,
};

enum class cpu_isa {
    isa_default = mxdnn_cpu_isa_default,
    avx2 = mxdnn_cpu_isa_avx2,
    avx512_core = mxdnn_cpu_isa_avx512_core,
    avx512_core_bf16 = mxdnn_cpu_isa_avx512_core_bf16,
    avx512_core_amx = mxdnn_cpu_isa_avx512_core_amx,
};

enum class algorithm {
    undef = mxdnn_alg_kind_undef,
    eltwise_relu = mxdnn_eltwise_relu,
    eltwise_tanh = mxdnn_eltwise_tanh,
    eltwise_square = mxdnn_eltwise_square,
    eltwise_linear = mxdnn_eltwise_linear,
    eltwise_logistic = mxdnn_eltwise_logistic,
    eltwise_gelu_tanh = mxdnn_eltwise_gelu_tanh,
    eltwise_swish = mxdnn_eltwise_swish,
    eltwise_clip = mxdnn_eltwise_clip,
    eltwise_gelu_erf = mxdnn_eltwise_gelu_erf,
    eltwise_relu2 = mxdnn_eltwise_relu2,
    binary_add = mxdnn_binary_add,
    binary_mul = mxdnn_binary_mul,
    binary_max = mxdnn_binary_max,
    binary_min = mxdnn_binary_min,
    gated_silu = mxdnn_gated_silu,
    gated_swiglu_oai = mxdnn_gated_swiglu_oai,
    gated_gelu_erf = mxdnn_gated_gelu_erf,
    gated_gelu_tanh = mxdnn_gated_gelu_tanh,
    route_softmax_topk = mxdnn_route_softmax_topk,
    route_topk_softmax = mxdnn_route_topk_softmax,
    route_sigmoid = mxdnn_route_sigmoid,
};

enum class query {
    undef = mxdnn_query_undef,
    engine = mxdnn_query_engine,
    primitive_kind = mxdnn_query_primitive_kind,
    num_of_inputs_s32 = mxdnn_query_num_of_inputs_s32,
    num_of_outputs_s32 = mxdnn_query_num_of_outputs_s32,
    memory_consumption_s64 = mxdnn_query_memory_consumption_s64,
    scratchpad_engine = mxdnn_query_scratchpad_engine,
    impl_info_str = mxdnn_query_impl_info_str,
    reorder_src_engine = mxdnn_query_reorder_src_engine,
    reorder_dst_engine = mxdnn_query_reorder_dst_engine,
    strides = mxdnn_query_strides,
    src_md = mxdnn_query_src_md,
    weights_md = mxdnn_query_weights_md,
    dst_md = mxdnn_query_dst_md,
    scratchpad_md = mxdnn_query_scratchpad_md,
    exec_arg_md = mxdnn_query_exec_arg_md,
    ndims_s32 = mxdnn_query_ndims_s32,
    dims = mxdnn_query_dims,
    data_type = mxdnn_query_data_type,
    format_kind = mxdnn_query_format_kind,
    expert_stride_s64 = mxdnn_query_expert_stride_s64,
    scale_data_type = mxdnn_query_scale_data_type,
    block_size_s64 = mxdnn_query_block_size_s64,
    layout_id_s32 = mxdnn_query_layout_id_s32,
    layout_version_s32 = mxdnn_query_layout_version_s32,
    alignment_s64 = mxdnn_query_alignment_s64,
    annotation_data_type = mxdnn_query_annotation_data_type,
    annotation_recipe_str = mxdnn_query_annotation_recipe_str,
    target_str = mxdnn_query_target_str,
};

// ---- Engine ----

/// Where primitives run, or what weights are packed for.
struct engine : public handle<mxdnn_engine_t> {
    enum class kind {
        any = mxdnn_any_engine,
        cpu = mxdnn_cpu,
        cuda = mxdnn_cuda,
    };

    engine() = default;
    explicit engine(mxdnn_engine_t e, bool weak = false) : handle(e, weak) {}

    engine(kind akind, size_t index) {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_engine_create(&e, static_cast<mxdnn_engine_kind_t>(akind), index),
                "could not create an engine");
        reset(e);
    }

    /// An engine for a named target, present here or not: "cpu:x64:avx2", "cuda:sm_90", ...
    static engine for_target(const std::string &target) {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_engine_create_for_target(&e, target.c_str()),
                "could not create an engine for a target");
        return engine(e);
    }

    static size_t get_count(kind akind) {
        return mxdnn_engine_get_count(static_cast<mxdnn_engine_kind_t>(akind));
    }

    kind get_kind() const {
        mxdnn_engine_kind_t k = mxdnn_any_engine;
        error::wrap_c_api(mxdnn_engine_get_kind(get(), &k), "could not get the kind of an engine");
        return static_cast<kind>(k);
    }

    std::string get_target() const {
        const char *target = nullptr;
        error::wrap_c_api(mxdnn_engine_get_target(get(), &target), "could not get the target of an engine");
        return target;
    }

    bool operator==(const engine &other) const { return is_same(other); }
    bool operator!=(const engine &other) const { return !is_same(other); }
};

// ---- Stream ----

struct stream : public handle<mxdnn_stream_t> {
    enum class flags : unsigned {
        in_order = mxdnn_stream_in_order,
        default_flags = mxdnn_stream_default_flags,
    };

    stream() = default;
    explicit stream(mxdnn_stream_t s, bool weak = false) : handle(s, weak) {}

    explicit stream(const engine &aengine, flags aflags = flags::default_flags) {
        mxdnn_stream_t s = nullptr;
        error::wrap_c_api(mxdnn_stream_create(&s, aengine.get(), static_cast<unsigned>(aflags)),
                "could not create a stream");
        reset(s);
    }

    /// The engine; owned by the stream.
    engine get_engine() const {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_stream_get_engine(get(), &e), "could not get the engine of a stream");
        return engine(e, true);
    }

    stream &wait() {
        error::wrap_c_api(mxdnn_stream_wait(get()), "could not wait on a stream");
        return *this;
    }
};

// ---- Memory ----

struct primitive_attr;

struct memory : public handle<mxdnn_memory_t> {
    using dim = mxdnn_dim_t;
    using dims = std::vector<dim>;

    enum class data_type {
        undef = mxdnn_data_type_undef,
        f16 = mxdnn_f16,
        bf16 = mxdnn_bf16,
        f32 = mxdnn_f32,
        s32 = mxdnn_s32,
        s8 = mxdnn_s8,
        u8 = mxdnn_u8,
        f8_e5m2 = mxdnn_f8_e5m2,
        f8_e4m3 = mxdnn_f8_e4m3,
        s4 = mxdnn_s4,
        u4 = mxdnn_u4,
        e8m0 = mxdnn_e8m0,
        f4_e2m1 = mxdnn_f4_e2m1,
        f6_e2m3 = mxdnn_f6_e2m3,
        f6_e3m2 = mxdnn_f6_e3m2,
        u64 = mxdnn_u64,
    };

    enum class format_kind {
        undef = mxdnn_format_kind_undef,
        any = mxdnn_format_kind_any,
        blocked = mxdnn_blocked,
        opaque = mxdnn_format_kind_opaque,
        grouped = mxdnn_format_kind_grouped,
    };

    enum class format_tag {
        undef = mxdnn_format_tag_undef,
        any = mxdnn_format_tag_any,
        a = mxdnn_a,
        ab = mxdnn_ab,
        abc = mxdnn_abc,
        abcd = mxdnn_abcd,
        ba = mxdnn_ba,
        acb = mxdnn_acb,
        abdc = mxdnn_abdc,
    };

    /// Shape, type and arrangement of a tensor. Copies share one description; nothing modifies it
    /// but set_annotation(), which leaves copies made before as they were.
    struct desc : public handle<mxdnn_memory_desc_t> {
        /// No tensor.
        desc() = default;

        /// Takes a C descriptor over.
        explicit desc(mxdnn_memory_desc_t md) : handle(md) {}

        /// By tag; format_tag::any leaves the layout to the primitive descriptor. With
        /// `allow_empty` a refused description gives an empty object instead of an exception.
        desc(const dims &adims, data_type adata_type, format_tag aformat_tag, bool allow_empty = false) {
            mxdnn_dims_t c_dims = {};
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st = mxdnn_memory_desc_create_with_tag(&md, static_cast<int>(adims.size()),
                    to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type),
                    static_cast<mxdnn_format_tag_t>(aformat_tag));
            init(st, md, allow_empty, "could not create a memory descriptor by tag");
        }

        /// By strides in elements; no strides (an empty vector) for row-major order.
        desc(const dims &adims, data_type adata_type, const dims &strides, bool allow_empty = false) {
            if (!strides.empty() && strides.size() != adims.size()) {
                if (allow_empty) return;
                error::raise(mxdnn_invalid_arguments, "a memory descriptor of " + std::to_string(adims.size())
                                                              + " dimensions was given "
                                                              + std::to_string(strides.size())
                                                              + " strides; give one per dimension or none");
            }
            mxdnn_dims_t c_dims = {}, c_strides = {};
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st = mxdnn_memory_desc_create_with_strides(&md, static_cast<int>(adims.size()),
                    to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type),
                    strides.empty() ? nullptr : to_c(strides, c_strides));
            init(st, md, allow_empty, "could not create a memory descriptor by strides");
        }

        /// From serialised bytes; trailing, missing or altered bytes are refused.
        explicit desc(const std::vector<uint8_t> &blob) : desc(blob.data(), blob.size()) {}
        desc(const uint8_t *blob, size_t size) {
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st = mxdnn_memory_desc_create_with_sized_blob(&md, blob, size);
            init(st, md, false, "could not create a memory descriptor from a blob");
        }

        /// Rows of `group_count` groups one after the other: {rows, K} with variable_dim 0.
        static desc grouped(const dims &adims, data_type adata_type, int variable_dim, dim group_count,
                data_type offsets_dt = data_type::s32, bool allow_empty = false) {
            mxdnn_dims_t c_dims = {};
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st =
                    mxdnn_memory_desc_create_with_grouped_encoding(&md, static_cast<int>(adims.size()),
                            to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type), variable_dim,
                            group_count, static_cast<mxdnn_data_type_t>(offsets_dt));
            desc result;
            result.init(st, md, allow_empty, "could not create a grouped memory descriptor");
            return result;
        }

        /// Weights {.., K, N} packed for the engine's target: what a matmul there gives for these dims and
        /// this type with format_tag::any. The attributes of MXDNN_ARG_WEIGHTS count: scales, zero points,
        /// global scale.
        inline static desc packed(const engine &aengine, const dims &adims, data_type adata_type,
                const primitive_attr &attr, bool allow_empty = false);

        desc clone() const {
            mxdnn_memory_desc_t md = nullptr;
            error::wrap_c_api(mxdnn_memory_desc_clone(&md, get()), "could not clone a memory descriptor");
            return desc(md);
        }

        /// Bytes of the tensor; 0 for `any`, for runtime dimensions and for no tensor.
        size_t get_size() const { return *this ? mxdnn_memory_desc_get_size(get()) : 0; }

        std::vector<uint8_t> get_blob() const {
            size_t size = 0;
            error::wrap_c_api(mxdnn_memory_desc_get_blob(nullptr, &size, get()),
                    "could not get the size of a memory descriptor's blob");
            std::vector<uint8_t> blob(size);
            error::wrap_c_api(mxdnn_memory_desc_get_blob(blob.data(), &size, get()),
                    "could not get the blob of a memory descriptor");
            blob.resize(size);
            return blob;
        }

        /// In the words of verbose lines.
        std::string to_string() const {
            size_t size = 0;
            error::wrap_c_api(mxdnn_memory_desc_to_string(nullptr, &size, get()),
                    "could not get the size of a memory descriptor's text");
            std::string text(size, '\0');
            error::wrap_c_api(mxdnn_memory_desc_to_string(&text[0], &size, get()),
                    "could not get the text of a memory descriptor");
            text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
            return text;
        }

        int get_ndims() const { return *this ? ask<int>(mxdnn_query_ndims_s32) : 0; }
        dims get_dims() const { return ask_dims(mxdnn_query_dims); }
        /// In elements; only of a strided descriptor.
        dims get_strides() const { return ask_dims(mxdnn_query_strides); }
        data_type get_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_data_type));
        }
        format_kind get_format_kind() const {
            return static_cast<format_kind>(ask<mxdnn_format_kind_t>(mxdnn_query_format_kind));
        }
        bool is_zero() const { return get_ndims() == 0; }

        // Packed descriptors only.

        /// Bytes from one batch entry (expert) to the next.
        int64_t get_expert_stride() const { return ask<int64_t>(mxdnn_query_expert_stride_s64); }
        data_type get_scale_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_scale_data_type));
        }
        /// Elements along K that share a scale.
        int64_t get_block_size() const { return ask<int64_t>(mxdnn_query_block_size_s64); }
        int get_layout_id() const { return ask<int>(mxdnn_query_layout_id_s32); }
        int get_layout_version() const { return ask<int>(mxdnn_query_layout_version_s32); }
        /// Preferred alignment of the bytes.
        int64_t get_alignment() const { return ask<int64_t>(mxdnn_query_alignment_s64); }
        /// The target family, for example "cpu:x64".
        std::string get_target() const { return ask<const char *>(mxdnn_query_target_str); }

        /// Notes for others: the type before quantisation and the activation recipe.
        desc &set_annotation(data_type original_type, const std::string &recipe = std::string()) {
            desc annotated = clone();
            error::wrap_c_api(mxdnn_memory_desc_set_annotation(annotated.get(),
                                      static_cast<mxdnn_data_type_t>(original_type),
                                      recipe.empty() ? nullptr : recipe.c_str()),
                    "could not annotate a memory descriptor");
            return *this = annotated;
        }
        /// undef when not set.
        data_type get_annotation_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_annotation_data_type));
        }
        /// Empty when not set.
        std::string get_annotation_recipe() const {
            return ask<const char *>(mxdnn_query_annotation_recipe_str);
        }

        /// The same tensor in the same bytes, annotations apart.
        bool operator==(const desc &other) const {
            if (is_same(other)) return true;
            return *this && other && mxdnn_memory_desc_equal(get(), other.get()) != 0;
        }
        bool operator!=(const desc &other) const { return !(*this == other); }

    private:
        void init(mxdnn_status_t st, mxdnn_memory_desc_t md, bool allow_empty, const char *what) {
            if (!allow_empty) error::wrap_c_api(st, what);
            if (st == mxdnn_success) reset(md);
        }

        // Copies as many values as the C array holds; a longer vector is refused by its length.
        static const dim *to_c(const dims &values, mxdnn_dims_t &c_dims) {
            for (size_t i = 0; i < values.size() && i < MXDNN_MAX_NDIMS; i++) c_dims[i] = values[i];
            return c_dims;
        }

        template <typename T>
        T ask(mxdnn_query_t what) const {
            T answer = T();
            error::wrap_c_api(
                    mxdnn_memory_desc_query(get(), what, &answer), "could not query a memory descriptor");
            return answer;
        }

        dims ask_dims(mxdnn_query_t what) const {
            const int ndims = get_ndims();
            if (ndims == 0) return dims();
            const mxdnn_dims_t *c_dims = ask<const mxdnn_dims_t *>(what);
            return dims(*c_dims, *c_dims + ndims);
        }
    };

    memory() = default;
    explicit memory(mxdnn_memory_t m, bool weak = false) : handle(m, weak) {}

    /// Over the caller's buffer, which must outlive this; MXDNN_MEMORY_NONE and
    /// MXDNN_MEMORY_ALLOCATE are accepted too.
    memory(const desc &md, const engine &aengine, void *data) {
        mxdnn_memory_t m = nullptr;
        error::wrap_c_api(
                mxdnn_memory_create(&m, md.get(), aengine.get(), data), "could not create a memory");
        reset(m);
    }

    /// With a buffer that the library allocates and owns.
    memory(const desc &md, const engine &aengine) : memory(md, aengine, MXDNN_MEMORY_ALLOCATE) {}

    desc get_desc() const {
        const_mxdnn_memory_desc_t md = nullptr;
        error::wrap_c_api(
                mxdnn_memory_get_memory_desc(get(), &md), "could not get the descriptor of a memory");
        mxdnn_memory_desc_t copy = nullptr;
        error::wrap_c_api(mxdnn_memory_desc_clone(&copy, md), "could not clone a memory descriptor");
        return desc(copy);
    }

    /// The engine; owned by whoever made the memory.
    engine get_engine() const {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_memory_get_engine(get(), &e), "could not get the engine of a memory");
        return engine(e, true);
    }

    void *get_data_handle() const {
        void *data = nullptr;
        error::wrap_c_api(
                mxdnn_memory_get_data_handle(get(), &data), "could not get the data handle of a memory");
        return data;
    }

    void set_data_handle(void *data) const {
        error::wrap_c_api(
                mxdnn_memory_set_data_handle(get(), data), "could not set the data handle of a memory");
    }

    /// A host pointer to the bytes until unmap_data().
    template <typename T = void>
    T *map_data() const {
        void *mapped = nullptr;
        error::wrap_c_api(mxdnn_memory_map_data(get(), &mapped), "could not map a memory");
        return static_cast<T *>(mapped);
    }

    void unmap_data(void *mapped) const {
        error::wrap_c_api(mxdnn_memory_unmap_data(get(), mapped), "could not unmap a memory");
    }
};

// ---- Primitive ----

struct primitive_desc_base;

/// A compiled implementation of one problem.
struct primitive : public handle<mxdnn_primitive_t> {
    enum class kind {
        undef = mxdnn_undefined_primitive,
        mx_reorder = mxdnn_primitive_kind_mx_reorder,
        mx_matmul = mxdnn_primitive_kind_mx_matmul,
        grouped_matmul = mxdnn_primitive_kind_grouped_matmul,
        moe_route = mxdnn_primitive_kind_moe_route,
        moe_permute = mxdnn_primitive_kind_moe_permute,
        moe_unpermute = mxdnn_primitive_kind_moe_unpermute,
        sum = mxdnn_sum,
        eltwise = mxdnn_eltwise,
        binary = mxdnn_binary,
        gated = mxdnn_gated,
    };

    primitive() = default;
    explicit primitive(mxdnn_primitive_t p, bool weak = false) : handle(p, weak) {}
    inline explicit primitive(const primitive_desc_base &pd);

    /// The C descriptor; owned by the primitive.
    const_mxdnn_primitive_desc_t get_primitive_desc() const {
        const_mxdnn_primitive_desc_t pd = nullptr;
        error::wrap_c_api(mxdnn_primitive_get_primitive_desc(get(), &pd),
                "could not get the descriptor of a primitive");
        return pd;
    }

    kind get_kind() const {
        mxdnn_primitive_kind_t k = mxdnn_undefined_primitive;
        error::wrap_c_api(mxdnn_primitive_desc_query(get_primitive_desc(), mxdnn_query_primitive_kind, 0, &k),
                "could not get the kind of a primitive");
        return static_cast<kind>(k);
    }

    /// Safe from many threads at once; in user scratchpad mode with a scratchpad each.
    void execute(const stream &astream, const std::unordered_map<int, memory> &args) const {
        // The usual few arguments stay on the stack; an execution allocates nothing of its own.
        enum { few = 32 };
        mxdnn_exec_arg_t on_stack[few];
        std::vector<mxdnn_exec_arg_t> on_heap;
        mxdnn_exec_arg_t *c_args = on_stack;
        if (args.size() > few) {
            on_heap.resize(args.size());
            c_args = on_heap.data();
        }
        int n = 0;
        for (const auto &a : args) {
            c_args[n].arg = a.first;
            c_args[n].memory = a.second.get(true);
            n++;
        }
        error::wrap_c_api(
                mxdnn_primitive_execute(get(), astream.get(), n, c_args), "could not execute a primitive");
    }
};

// ---- Post-ops and attributes ----

/// Applied in order to the f32 result, after the bias.
struct post_ops : public handle<mxdnn_post_ops_t> {
    post_ops() {
        mxdnn_post_ops_t p = nullptr;
        error::wrap_c_api(mxdnn_post_ops_create(&p), "could not create post-ops");
        reset(p);
    }
    explicit post_ops(mxdnn_post_ops_t p, bool weak = false) : handle(p, weak) {}

    post_ops clone() const {
        mxdnn_post_ops_t p = nullptr;
        error::wrap_c_api(mxdnn_post_ops_clone(&p, get()), "could not clone post-ops");
        return post_ops(p);
    }

    int len() const { return mxdnn_post_ops_len(get()); }

    primitive::kind kind(int index) const {
        if (index < 0 || index >= len())
            error::raise(mxdnn_invalid_arguments, "post-op " + std::to_string(index)
                                                          + " was asked for; there are "
                                                          + std::to_string(len()));
        return static_cast<primitive::kind>(mxdnn_post_ops_get_kind(get(), index));
    }

    void append_sum(float scale = 1.f, int32_t zero_point = 0,
            memory::data_type data_type = memory::data_type::undef) {
        error::wrap_c_api(mxdnn_post_ops_append_sum(
                                  get(), scale, zero_point, static_cast<mxdnn_data_type_t>(data_type)),
                "could not append a sum");
    }
    void get_params_sum(int index, float &scale, int32_t &zero_point, memory::data_type &data_type) const {
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        error::wrap_c_api(mxdnn_post_ops_get_params_sum(get(), index, &scale, &zero_point, &dt),
                "could not get the parameters of a sum");
        data_type = static_cast<memory::data_type>(dt);
    }

    void append_eltwise(algorithm alg, float alpha, float beta) {
        error::wrap_c_api(
                mxdnn_post_ops_append_eltwise(get(), static_cast<mxdnn_alg_kind_t>(alg), alpha, beta),
                "could not append an eltwise");
    }
    void get_params_eltwise(int index, algorithm &alg, float &alpha, float &beta) const {
        mxdnn_alg_kind_t c_alg = mxdnn_alg_kind_undef;
        error::wrap_c_api(mxdnn_post_ops_get_params_eltwise(get(), index, &c_alg, &alpha, &beta),
                "could not get the parameters of an eltwise");
        alg = static_cast<algorithm>(c_alg);
    }

    void append_binary(algorithm alg, const memory::desc &src1_desc) {
        error::wrap_c_api(
                mxdnn_post_ops_append_binary(get(), static_cast<mxdnn_alg_kind_t>(alg), src1_desc.get()),
                "could not append a binary");
    }
    void get_params_binary(int index, algorithm &alg, memory::desc &src1_desc) const {
        mxdnn_alg_kind_t c_alg = mxdnn_alg_kind_undef;
        const_mxdnn_memory_desc_t md = nullptr;
        error::wrap_c_api(mxdnn_post_ops_get_params_binary(get(), index, &c_alg, &md),
                "could not get the parameters of a binary");
        mxdnn_memory_desc_t copy = nullptr;
        error::wrap_c_api(mxdnn_memory_desc_clone(&copy, md), "could not clone a memory descriptor");
        src1_desc = memory::desc(copy);
        alg = static_cast<algorithm>(c_alg);
    }

    /// Gated activation: N columns become N/2.
    void append_gated(algorithm alg, float alpha, float limit, gated_layout layout) {
        error::wrap_c_api(mxdnn_post_ops_append_gated(get(), static_cast<mxdnn_alg_kind_t>(alg), alpha, limit,
                                  static_cast<mxdnn_gated_layout_t>(layout)),
                "could not append a gated activation");
    }
    void get_params_gated(int index, algorithm &alg, float &alpha, float &limit, gated_layout &layout) const {
        mxdnn_alg_kind_t c_alg = mxdnn_alg_kind_undef;
        mxdnn_gated_layout_t c_layout = mxdnn_gated_interleaved;
        error::wrap_c_api(mxdnn_post_ops_get_params_gated(get(), index, &c_alg, &alpha, &limit, &c_layout),
                "could not get the parameters of a gated activation");
        alg = static_cast<algorithm>(c_alg);
        layout = static_cast<gated_layout>(c_layout);
    }
};

struct primitive_attr : public handle<mxdnn_primitive_attr_t> {
    primitive_attr() {
        mxdnn_primitive_attr_t a = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_create(&a), "could not create primitive attributes");
        reset(a);
    }
    explicit primitive_attr(mxdnn_primitive_attr_t a, bool weak = false) : handle(a, weak) {}

    /// Attributes of its own; a mere copy refers to the same ones.
    primitive_attr clone() const {
        mxdnn_primitive_attr_t a = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_clone(&a, get()), "could not clone primitive attributes");
        return primitive_attr(a);
    }

    void set_fpmath_mode(fpmath_mode mode, bool apply_to_int = false) {
        error::wrap_c_api(mxdnn_primitive_attr_set_fpmath_mode(
                                  get(), static_cast<mxdnn_fpmath_mode_t>(mode), apply_to_int ? 1 : 0),
                "could not set the fpmath mode");
    }
    fpmath_mode get_fpmath_mode() const {
        fpmath_mode mode;
        bool apply_to_int;
        get_fpmath_mode(mode, apply_to_int);
        return mode;
    }
    void get_fpmath_mode(fpmath_mode &mode, bool &apply_to_int) const {
        mxdnn_fpmath_mode_t c_mode = mxdnn_fpmath_mode_strict;
        int c_apply = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_fpmath_mode(get(), &c_mode, &c_apply),
                "could not get the fpmath mode");
        mode = static_cast<fpmath_mode>(c_mode);
        apply_to_int = c_apply != 0;
    }

    void set_accumulation_mode(accumulation_mode mode) {
        error::wrap_c_api(mxdnn_primitive_attr_set_accumulation_mode(
                                  get(), static_cast<mxdnn_accumulation_mode_t>(mode)),
                "could not set the accumulation mode");
    }
    accumulation_mode get_accumulation_mode() const {
        mxdnn_accumulation_mode_t mode = mxdnn_accumulation_mode_strict;
        error::wrap_c_api(mxdnn_primitive_attr_get_accumulation_mode(get(), &mode),
                "could not get the accumulation mode");
        return static_cast<accumulation_mode>(mode);
    }

    /// True: the same bits on every execution and for any number of threads.
    void set_deterministic(bool value) {
        error::wrap_c_api(mxdnn_primitive_attr_set_deterministic(get(), value ? 1 : 0),
                "could not set the deterministic attribute");
    }
    bool get_deterministic() const {
        int value = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_deterministic(get(), &value),
                "could not get the deterministic attribute");
        return value != 0;
    }

    /// The promise that weights are not written from before each execution until its work has ended, which
    /// lets CUDA kernels read them while earlier work of the stream runs; mxdnn.h has it in full. Default:
    /// false.
    void set_constant_weights(bool value) {
        error::wrap_c_api(mxdnn_primitive_attr_set_constant_weights(get(), value ? 1 : 0),
                "could not set the constant weights attribute");
    }
    bool get_constant_weights() const {
        int value = 0;
        error::wrap_c_api(mxdnn_primitive_attr_get_constant_weights(get(), &value),
                "could not get the constant weights attribute");
        return value != 0;
    }

    void set_scratchpad_mode(scratchpad_mode mode) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_scratchpad_mode(get(), static_cast<mxdnn_scratchpad_mode_t>(mode)),
                "could not set the scratchpad mode");
    }
    scratchpad_mode get_scratchpad_mode() const {
        mxdnn_scratchpad_mode_t mode = mxdnn_scratchpad_mode_library;
        error::wrap_c_api(
                mxdnn_primitive_attr_get_scratchpad_mode(get(), &mode), "could not get the scratchpad mode");
        return static_cast<scratchpad_mode>(mode);
    }

    /// Scales of argument `arg`: bit i of `mask` gives one scale, or one per group, along dimension
    /// i; `groups` are the group lengths of the last dimensions (none: no groups).
    void set_scales(int arg, int mask, const memory::dims &groups,
            memory::data_type data_type = memory::data_type::f32, bool is_on_host = false,
            quantization_mode mode = quantization_mode::static_sazp) {
        mxdnn_dims_t c_groups = {};
        error::wrap_c_api(mxdnn_primitive_attr_set_scales(get(), arg, mask, static_cast<int>(groups.size()),
                                  to_c(groups, c_groups), static_cast<mxdnn_data_type_t>(data_type),
                                  is_on_host ? 1 : 0, static_cast<mxdnn_quantization_mode_t>(mode)),
                "could not set scales");
    }

    /// The same as they are kept: `groups` are two lengths, of the last two dimensions. Without scales
    /// data_type is undef and groups are empty.
    void get_scales(int arg, int &mask, memory::dims &groups, memory::data_type &data_type,
            quantization_mode &mode) const {
        int ndims = 0;
        mxdnn_dims_t c_groups = {};
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        mxdnn_quantization_mode_t c_mode = mxdnn_quantization_mode_undef;
        error::wrap_c_api(mxdnn_primitive_attr_get_scales(get(), arg, &mask, &ndims, c_groups, &dt, &c_mode),
                "could not get scales");
        groups.assign(c_groups, c_groups + ndims);
        data_type = static_cast<memory::data_type>(dt);
        mode = static_cast<quantization_mode>(c_mode);
    }

    /// Zero points with the mask and groups of the scales.
    void set_zero_points(int arg, int mask, const memory::dims &groups,
            memory::data_type data_type = memory::data_type::u8) {
        mxdnn_dims_t c_groups = {};
        error::wrap_c_api(
                mxdnn_primitive_attr_set_zero_points(get(), arg, mask, static_cast<int>(groups.size()),
                        to_c(groups, c_groups), static_cast<mxdnn_data_type_t>(data_type)),
                "could not set zero points");
    }

    void get_zero_points(int arg, int &mask, memory::dims &groups, memory::data_type &data_type) const {
        int ndims = 0;
        mxdnn_dims_t c_groups = {};
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        error::wrap_c_api(mxdnn_primitive_attr_get_zero_points(get(), arg, &mask, &ndims, c_groups, &dt),
                "could not get zero points");
        groups.assign(c_groups, c_groups + ndims);
        data_type = static_cast<memory::data_type>(dt);
    }

    void set_scale_rounding(int arg, scale_rounding rounding) {
        error::wrap_c_api(mxdnn_primitive_attr_set_scale_rounding(
                                  get(), arg, static_cast<mxdnn_scale_rounding_t>(rounding)),
                "could not set the rounding of scales");
    }
    scale_rounding get_scale_rounding(int arg) const {
        mxdnn_scale_rounding_t value = mxdnn_scale_rounding_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_scale_rounding(get(), arg, &value),
                "could not get the rounding of scales");
        return static_cast<scale_rounding>(value);
    }
    void set_scales_layout(int arg, scales_layout layout) {
        error::wrap_c_api(mxdnn_primitive_attr_set_scales_layout(
                                  get(), arg, static_cast<mxdnn_scales_layout_t>(layout)),
                "could not set the layout of scales");
    }
    scales_layout get_scales_layout(int arg) const {
        mxdnn_scales_layout_t value = mxdnn_scales_layout_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_scales_layout(get(), arg, &value),
                "could not get the layout of scales");
        return static_cast<scales_layout>(value);
    }
    void set_global_scale(int arg, quantization_mode mode) {
        error::wrap_c_api(mxdnn_primitive_attr_set_global_scale(
                                  get(), arg, static_cast<mxdnn_quantization_mode_t>(mode)),
                "could not set a global scale");
    }
    quantization_mode get_global_scale(int arg) const {
        mxdnn_quantization_mode_t value = mxdnn_quantization_mode_t();
        error::wrap_c_api(
                mxdnn_primitive_attr_get_global_scale(get(), arg, &value), "could not get a global scale");
        return static_cast<quantization_mode>(value);
    }
    void set_element_packing(int arg, element_packing packing) {
        error::wrap_c_api(mxdnn_primitive_attr_set_element_packing(
                                  get(), arg, static_cast<mxdnn_element_packing_t>(packing)),
                "could not set the packing of elements");
    }
    element_packing get_element_packing(int arg) const {
        mxdnn_element_packing_t value = mxdnn_element_packing_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_element_packing(get(), arg, &value),
                "could not get the packing of elements");
        return static_cast<element_packing>(value);
    }
    void set_row_grouping(row_grouping grouping) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_row_grouping(get(), static_cast<mxdnn_row_grouping_t>(grouping)),
                "could not set the row grouping");
    }
    row_grouping get_row_grouping() const {
        mxdnn_row_grouping_t value = mxdnn_row_grouping_t();
        error::wrap_c_api(
                mxdnn_primitive_attr_get_row_grouping(get(), &value), "could not get the row grouping");
        return static_cast<row_grouping>(value);
    }
    void set_topk_weights_placement(topk_weights_placement where) {
        error::wrap_c_api(mxdnn_primitive_attr_set_topk_weights_placement(
                                  get(), static_cast<mxdnn_topk_weights_placement_t>(where)),
                "could not set the placement of top-k weights");
    }
    topk_weights_placement get_topk_weights_placement() const {
        mxdnn_topk_weights_placement_t value = mxdnn_topk_weights_placement_t();
        error::wrap_c_api(mxdnn_primitive_attr_get_topk_weights_placement(get(), &value),
                "could not get the placement of top-k weights");
        return static_cast<topk_weights_placement>(value);
    }
    void set_expert_range(memory::dim first, memory::dim global_experts) {
        error::wrap_c_api(mxdnn_primitive_attr_set_expert_range(get(), first, global_experts),
                "could not set the range of experts");
    }
    void get_expert_range(memory::dim &first, memory::dim &global_experts) const {
        error::wrap_c_api(mxdnn_primitive_attr_get_expert_range(get(), &first, &global_experts),
                "could not get the range of experts");
    }
    void set_max_rows_hint(memory::dim rows) {
        error::wrap_c_api(
                mxdnn_primitive_attr_set_max_rows_hint(get(), rows), "could not set the hint of rows");
    }
    memory::dim get_max_rows_hint() const {
        memory::dim rows = 0;
        error::wrap_c_api(
                mxdnn_primitive_attr_get_max_rows_hint(get(), &rows), "could not get the hint of rows");
        return rows;
    }

    void set_post_ops(const post_ops &ops) {
        error::wrap_c_api(mxdnn_primitive_attr_set_post_ops(get(), ops.get()), "could not set post-ops");
    }
    post_ops get_post_ops() const {
        const_mxdnn_post_ops_t ops = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_get_post_ops(get(), &ops), "could not get post-ops");
        mxdnn_post_ops_t copy = nullptr;
        error::wrap_c_api(mxdnn_post_ops_clone(&copy, ops), "could not clone post-ops");
        return post_ops(copy);
    }

private:
    // No groups are said by a null pointer.
    static const memory::dim *to_c(const memory::dims &groups, mxdnn_dims_t &c_groups) {
        if (groups.empty()) return nullptr;
        for (size_t i = 0; i < groups.size() && i < MXDNN_MAX_NDIMS; i++) c_groups[i] = groups[i];
        return c_groups;
    }
};

inline memory::desc memory::desc::packed(const engine &aengine, const dims &adims, data_type adata_type,
        const primitive_attr &attr, bool allow_empty) {
    mxdnn_dims_t c_dims = {};
    mxdnn_memory_desc_t md = nullptr;
    const mxdnn_status_t st =
            mxdnn_memory_desc_create_packed(&md, aengine.get(), static_cast<int>(adims.size()),
                    to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type), attr.get());
    desc result;
    result.init(st, md, allow_empty, "could not create a packed memory descriptor");
    return result;
}

// ---- Primitive descriptors ----

/// A problem and the implementation chosen for it; the base of every primitive_desc below.
struct primitive_desc_base : public handle<mxdnn_primitive_desc_t> {
    primitive_desc_base() = default;

    engine get_engine() const { return ask_engine(mxdnn_query_engine); }
    primitive::kind get_kind() const {
        return static_cast<primitive::kind>(ask<mxdnn_primitive_kind_t>(mxdnn_query_primitive_kind));
    }

    /// The implementation's name, for example "jit:avx2" or "ref:any".
    std::string impl_info_str() const { return ask<const char *>(mxdnn_query_impl_info_str); }

    /// Moves on to the next implementation that takes the problem; false when there is none.
    bool next_impl() {
        const mxdnn_status_t st = mxdnn_primitive_desc_next_impl(get());
        if (st == mxdnn_last_impl_reached) return false;
        error::wrap_c_api(st, "could not move on to the next implementation");
        return true;
    }

    /// Any of the descriptor queries; an empty descriptor where there is none. For
    /// query::exec_arg_md the index is an execution argument.
    memory::desc query_md(query what, int index = 0) const {
        const_mxdnn_memory_desc_t md =
                mxdnn_primitive_desc_query_md(get(), static_cast<mxdnn_query_t>(what), index);
        if (md == nullptr) return memory::desc();
        mxdnn_memory_desc_t copy = nullptr;
        error::wrap_c_api(mxdnn_memory_desc_clone(&copy, md), "could not clone a memory descriptor");
        return memory::desc(copy);
    }

    memory::desc src_desc(int index = 0) const { return query_md(query::src_md, index); }
    memory::desc weights_desc(int index = 0) const { return query_md(query::weights_md, index); }
    memory::desc bias_desc() const { return query_md(query::weights_md, 1); }
    memory::desc dst_desc(int index = 0) const { return query_md(query::dst_md, index); }
    memory::desc scratchpad_desc() const { return query_md(query::scratchpad_md); }
    engine scratchpad_engine() const { return ask_engine(mxdnn_query_scratchpad_engine); }

    int64_t query_s64(query what) const { return ask<int64_t>(static_cast<mxdnn_query_t>(what)); }
    int num_of_inputs() const { return ask<int>(mxdnn_query_num_of_inputs_s32); }
    int num_of_outputs() const { return ask<int>(mxdnn_query_num_of_outputs_s32); }

    primitive_attr get_primitive_attr() const {
        const_mxdnn_primitive_attr_t attr = nullptr;
        error::wrap_c_api(mxdnn_primitive_desc_get_attr(get(), &attr),
                "could not get the attributes of a primitive descriptor");
        mxdnn_primitive_attr_t copy = nullptr;
        error::wrap_c_api(mxdnn_primitive_attr_clone(&copy, attr), "could not clone primitive attributes");
        return primitive_attr(copy);
    }

protected:
    explicit primitive_desc_base(mxdnn_primitive_desc_t pd) : handle(pd) {}

    void init(mxdnn_status_t st, mxdnn_primitive_desc_t pd, bool allow_empty, const char *what) {
        if (!allow_empty) error::wrap_c_api(st, what);
        if (st == mxdnn_success) reset(pd);
    }

    /// A descriptor of its own: next_impl() of a mere copy moves this one, too.
    template <typename T>
    static T clone_of(const T &pd) {
        mxdnn_primitive_desc_t copy = nullptr;
        error::wrap_c_api(
                mxdnn_primitive_desc_clone(&copy, pd.get()), "could not clone a primitive descriptor");
        T result;
        result.reset(copy);
        return result;
    }

    template <typename T>
    T ask(mxdnn_query_t what) const {
        T answer = T();
        error::wrap_c_api(mxdnn_primitive_desc_query(get(), what, 0, &answer),
                "could not query a primitive descriptor");
        return answer;
    }

    engine ask_engine(mxdnn_query_t what) const { return engine(ask<mxdnn_engine_t>(what), true); }
};

inline primitive::primitive(const primitive_desc_base &pd) {
    mxdnn_primitive_t p = nullptr;
    error::wrap_c_api(mxdnn_primitive_create(&p, pd.get()), "could not create a primitive");
    reset(p);
}

/// Anything to anything among plain high precision, plain quantised and packed.
struct mx_reorder : public primitive {
    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        /// A destination with format_tag::any is packed for its engine, in the format that the attributes of
        /// MXDNN_ARG_DST say (without those, the source's); dst_desc() describes it.
        primitive_desc(const engine &src_engine, const memory::desc &src_md, const engine &dst_engine,
                const memory::desc &dst_md, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_reorder_primitive_desc_create(
                    &pd, src_md.get(), src_engine.get(), dst_md.get(), dst_engine.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_reorder");
        }

        /// To two destinations, MXDNN_ARG_DST and MXDNN_ARG_DST_1, each with attributes of its own.
        primitive_desc(const engine &src_engine, const memory::desc &src_md, const engine &dst_engine,
                const memory::desc &dst_md, const memory::desc &dst_1_md,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_reorder_primitive_desc_create_with_dst_1(&pd, src_md.get(),
                    src_engine.get(), dst_md.get(), dst_1_md.get(), dst_engine.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_reorder");
        }

        primitive_desc(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(
                    src.get_engine(), src.get_desc(), dst.get_engine(), dst.get_desc(), attr, allow_empty) {}

        engine get_src_engine() const { return ask_engine(mxdnn_query_reorder_src_engine); }
        engine get_dst_engine() const { return ask_engine(mxdnn_query_reorder_dst_engine); }
    };

    mx_reorder() = default;
    explicit mx_reorder(const primitive_desc &pd) : primitive(pd) {}
    mx_reorder(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr())
        : primitive(primitive_desc(src, dst, attr)) {}

    using primitive::execute;

    /// For reorders without further arguments.
    void execute(const stream &astream, const memory &src, const memory &dst) const {
        primitive::execute(astream, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst}});
    }
};

/// dst = post_ops(src * weights + bias).
struct mx_matmul : public primitive {
    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &dst_desc, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(aengine, src_desc, weights_desc, memory::desc(), dst_desc, attr, allow_empty) {}

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &bias_desc, const memory::desc &dst_desc,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_matmul_primitive_desc_create(&pd, aengine.get(),
                    src_desc.get(), weights_desc.get(), bias_desc.get(true), dst_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_matmul");
        }
    };

    mx_matmul() = default;
    explicit mx_matmul(const primitive_desc &pd) : primitive(pd) {}
};

/// The expert matmul: the rows of each group times the weights of its expert.
struct grouped_matmul : public primitive {
    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &dst_desc, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(aengine, src_desc, weights_desc, memory::desc(), dst_desc, attr, allow_empty) {}

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &weights_desc,
                const memory::desc &bias_desc, const memory::desc &dst_desc,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_grouped_matmul_primitive_desc_create(&pd, aengine.get(),
                    src_desc.get(), weights_desc.get(), bias_desc.get(true), dst_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of grouped_matmul");
        }
    };

    grouped_matmul() = default;
    explicit grouped_matmul(const primitive_desc &pd) : primitive(pd) {}
};

/// Router logits to the top-k experts of each token.
struct moe_route : public primitive {
    /// May be combined.
    enum flags : unsigned {
        none = mxdnn_route_flags_none,
        renormalize = mxdnn_route_renormalize,
        bias = mxdnn_route_bias,
        group_max = mxdnn_route_group_max,
    };

    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        primitive_desc(const engine &aengine, const memory::desc &logits_desc, memory::dim topk,
                algorithm scoring, unsigned route_flags, memory::dim expert_groups, memory::dim topk_groups,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_route_primitive_desc_create(&pd, aengine.get(),
                    logits_desc.get(), topk, static_cast<mxdnn_alg_kind_t>(scoring), route_flags,
                    expert_groups, topk_groups, attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_route");
        }
    };

    moe_route() = default;
    explicit moe_route(const primitive_desc &pd) : primitive(pd) {}
};

/// Rows from [source rank][local expert] order to padded expert order.
struct moe_permute : public primitive {
    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &dst_desc,
                memory::dim source_ranks, memory::dim local_experts, memory::dim alignment,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_permute_primitive_desc_create(&pd, aengine.get(),
                    src_desc.get(), dst_desc.get(), source_ranks, local_experts, alignment, attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_permute");
        }
    };

    moe_permute() = default;
    explicit moe_permute(const primitive_desc &pd) : primitive(pd) {}
};

/// The way back, padding dropped.
struct moe_unpermute : public primitive {
    struct primitive_desc : public primitive_desc_base {
        primitive_desc() = default;
        primitive_desc clone() const { return clone_of(*this); }

        primitive_desc(const engine &aengine, const memory::desc &src_desc, const memory::desc &dst_desc,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_moe_unpermute_primitive_desc_create(
                    &pd, aengine.get(), src_desc.get(), dst_desc.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of moe_unpermute");
        }
    };

    moe_unpermute() = default;
    explicit moe_unpermute(const primitive_desc &pd) : primitive(pd) {}
};

// ---- Blobs ----

/// What `aengine` can do with weights that a blob describes; bad bytes are a verdict. get_last_error() has
/// the reason, empty for blob_verdict::native.
inline blob_verdict check_blob(const engine &aengine, const uint8_t *blob, size_t size) {
    mxdnn_blob_verdict_t verdict = mxdnn_blob_corrupt;
    error::wrap_c_api(
            mxdnn_memory_desc_check_blob(aengine.get(), blob, size, &verdict), "could not check a blob");
    return static_cast<blob_verdict>(verdict);
}
inline blob_verdict check_blob(const engine &aengine, const std::vector<uint8_t> &blob) {
    return check_blob(aengine, blob.data(), blob.size());
}

/// Checksum of packed bytes together with their descriptor.
inline uint64_t packed_checksum(const memory::desc &md, const void *packed) {
    uint64_t checksum = 0;
    error::wrap_c_api(mxdnn_packed_checksum(md.get(), packed, &checksum), "could not compute a checksum");
    return checksum;
}

/// The same of bytes that come in parts: value() once all of them have been added.
struct checksum : public handle<mxdnn_checksum_t> {
    explicit checksum(mxdnn_checksum_t c) : handle(c) {}
    explicit checksum(const memory::desc &md) {
        mxdnn_checksum_t c = nullptr;
        error::wrap_c_api(mxdnn_checksum_create(&c, md.get()), "could not create a checksum");
        reset(c);
    }
    void add(const void *bytes, size_t size) {
        error::wrap_c_api(mxdnn_checksum_add(get(), bytes, size), "could not add to a checksum");
    }
    uint64_t value() const {
        uint64_t v = 0;
        error::wrap_c_api(mxdnn_checksum_get(get(), &v), "could not get a checksum");
        return v;
    }
};

// ---- Service; setters return their status as oneDNN's do ----

using version_t = mxdnn_version_t;
inline const version_t *version() { return mxdnn_version(); }

/// Words of MXDNN_VERBOSE, for example "dispatch,profile_exec".
inline status set_verbose(const std::string &words) {
    return static_cast<status>(mxdnn_set_verbose(words.c_str()));
}
inline status set_jit_dump(bool enable) { return static_cast<status>(mxdnn_set_jit_dump(enable ? 1 : 0)); }

inline status set_max_cpu_isa(cpu_isa isa) {
    return static_cast<status>(mxdnn_set_max_cpu_isa(static_cast<mxdnn_cpu_isa_t>(isa)));
}
inline cpu_isa get_effective_cpu_isa() { return static_cast<cpu_isa>(mxdnn_get_effective_cpu_isa()); }

/// Threads that an execution may use, at most the smaller of the values when its descriptor was created and
/// when it begins; 0 for the machine's.
inline status set_max_concurrency(int threads) {
    return static_cast<status>(mxdnn_set_max_concurrency(threads));
}
inline int get_max_concurrency() { return mxdnn_get_max_concurrency(); }

inline int get_primitive_cache_capacity() {
    int capacity = 0;
    error::wrap_c_api(mxdnn_get_primitive_cache_capacity(&capacity),
            "could not get the capacity of the primitive cache");
    return capacity;
}
inline void set_primitive_cache_capacity(int capacity) {
    error::wrap_c_api(mxdnn_set_primitive_cache_capacity(capacity),
            "could not set the capacity of the primitive cache");
}

} // namespace mxdnn

#endif

// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory descriptors and memory.
#ifndef MXDNN_HPP_MEMORY_HPP
#define MXDNN_HPP_MEMORY_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "mxdnn/hpp/engine.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_memory_desc_t> {
    static void destroy(mxdnn_memory_desc_t p) { mxdnn_memory_desc_destroy(p); }
};

template <>
struct handle_traits<mxdnn_memory_t> {
    static void destroy(mxdnn_memory_t p) { mxdnn_memory_destroy(p); }
};

struct primitive_attr;

/// A tensor: a descriptor and a buffer, of the caller or of the library.
struct memory : public handle<mxdnn_memory_t> {
    /// A dimension, a stride or a number of rows, in elements.
    using dim = mxdnn_dim_t;
    /// Dimensions or strides, outermost first.
    using dims = std::vector<dim>;

    /// Element and scale types.
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

    /// How a descriptor arranges its elements.
    enum class format_kind {
        undef = mxdnn_format_kind_undef,
        any = mxdnn_format_kind_any,
        blocked = mxdnn_blocked,
        opaque = mxdnn_format_kind_opaque,
        grouped = mxdnn_format_kind_grouped,
    };

    /// Orders of dimensions.
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

    /// Shape, type and arrangement of a tensor. Copies share one description, which nothing modifies.
    /// set_annotation() gives this object a new description and leaves the copies as they are.
    struct desc : public handle<mxdnn_memory_desc_t> {
        /// No tensor.
        desc() = default;

        /// Owns a C descriptor from now on.
        explicit desc(mxdnn_memory_desc_t md) : handle(md) {}

        /// By tag. format_tag::any leaves the layout to the primitive descriptor. If the description is
        /// refused, the constructor throws, or with `allow_empty` leaves the object empty.
        desc(const dims &adims, data_type adata_type, format_tag aformat_tag, bool allow_empty = false) {
            mxdnn_dims_t c_dims = {};
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st = mxdnn_memory_desc_create_with_tag(&md, static_cast<int>(adims.size()),
                    to_c(adims, c_dims), static_cast<mxdnn_data_type_t>(adata_type),
                    static_cast<mxdnn_format_tag_t>(aformat_tag));
            init(st, md, allow_empty, "could not create a memory descriptor by tag");
        }

        /// By strides in elements. An empty vector stands for row-major order.
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

        /// From a blob. Missing, further and changed bytes are refused.
        explicit desc(const std::vector<uint8_t> &blob) : desc(blob.data(), blob.size()) {}
        /// From a blob. Missing, further and changed bytes are refused.
        desc(const uint8_t *blob, size_t size) {
            mxdnn_memory_desc_t md = nullptr;
            mxdnn_status_t st = mxdnn_memory_desc_create_with_sized_blob(&md, blob, size);
            init(st, md, false, "could not create a memory descriptor from a blob");
        }

        /// Rows of `group_count` groups, one group after the other: dims {rows, K}, variable_dim 0.
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

        /// Weights {.., K, N} in the packed layout of the engine's target. A matmul on that engine chooses
        /// the same descriptor for these dims and this type with format_tag::any. Only the attributes of
        /// MXDNN_ARG_WEIGHTS count: scales, zero points, global scale.
        static desc packed(const engine &aengine, const dims &adims, data_type adata_type,
                const primitive_attr &attr, bool allow_empty = false);

        /// A copy that does not depend on this object.
        desc clone() const {
            mxdnn_memory_desc_t md = nullptr;
            error::wrap_c_api(mxdnn_memory_desc_clone(&md, get()), "could not clone a memory descriptor");
            return desc(md);
        }

        /// Bytes that the tensor occupies. 0 for `any`, for runtime dimensions and for no tensor.
        size_t get_size() const { return *this ? mxdnn_memory_desc_get_size(get()) : 0; }

        /// The descriptor as a blob, for a file.
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

        /// Number of dimensions; 0 for no tensor.
        int get_ndims() const { return *this ? ask<int>(mxdnn_query_ndims_s32) : 0; }
        /// Dimensions. MXDNN_RUNTIME_DIM_VAL stands for those that are not known before execution.
        dims get_dims() const { return ask_dims(mxdnn_query_dims); }
        /// Strides in elements. Only for a strided descriptor; others throw.
        dims get_strides() const { return ask_dims(mxdnn_query_strides); }
        /// The type of the elements.
        data_type get_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_data_type));
        }
        /// How the elements are arranged.
        format_kind get_format_kind() const {
            return static_cast<format_kind>(ask<mxdnn_format_kind_t>(mxdnn_query_format_kind));
        }
        /// No tensor.
        bool is_zero() const { return get_ndims() == 0; }

        /// Packed weights: bytes from one batch entry (expert) to the next.
        int64_t get_expert_stride() const { return ask<int64_t>(mxdnn_query_expert_stride_s64); }
        /// Packed weights: the type of the scales.
        data_type get_scale_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_scale_data_type));
        }
        /// Packed weights: elements along K that share a scale.
        int64_t get_block_size() const { return ask<int64_t>(mxdnn_query_block_size_s64); }
        /// Packed weights: the layout.
        int get_layout_id() const { return ask<int>(mxdnn_query_layout_id_s32); }
        /// Packed weights: the version of the layout.
        int get_layout_version() const { return ask<int>(mxdnn_query_layout_version_s32); }
        /// Packed weights: preferred alignment of the bytes.
        int64_t get_alignment() const { return ask<int64_t>(mxdnn_query_alignment_s64); }
        /// Packed weights: the target family, for example "cpu:x64".
        std::string get_target() const { return ask<const char *>(mxdnn_query_target_str); }

        /// Sets notes for other programs: the type before quantisation, and the activation recipe.
        desc &set_annotation(data_type original_type, const std::string &recipe = std::string()) {
            desc annotated = clone();
            error::wrap_c_api(mxdnn_memory_desc_set_annotation(annotated.get(),
                                      static_cast<mxdnn_data_type_t>(original_type),
                                      recipe.empty() ? nullptr : recipe.c_str()),
                    "could not annotate a memory descriptor");
            return *this = annotated;
        }
        /// The type before quantisation; undef if not set.
        data_type get_annotation_data_type() const {
            return static_cast<data_type>(ask<mxdnn_data_type_t>(mxdnn_query_annotation_data_type));
        }
        /// The activation recipe; empty if not set.
        std::string get_annotation_recipe() const {
            return ask<const char *>(mxdnn_query_annotation_recipe_str);
        }

        /// Whether both describe the same tensor in the same bytes. Annotations are not compared.
        bool operator==(const desc &other) const {
            if (is_same(other)) return true;
            return *this && other && mxdnn_memory_desc_equal(get(), other.get()) != 0;
        }
        /// Whether tensor or bytes differ.
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

    /// Empty.
    memory() = default;
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit memory(mxdnn_memory_t m, bool weak = false) : handle(m, weak) {}

    /// Over a buffer of the caller, of at least md.get_size() bytes, which has to outlive this object.
    /// MXDNN_MEMORY_NONE and MXDNN_MEMORY_ALLOCATE are accepted, too.
    memory(const desc &md, const engine &aengine, void *data) {
        mxdnn_memory_t m = nullptr;
        error::wrap_c_api(
                mxdnn_memory_create(&m, md.get(), aengine.get(), data), "could not create a memory");
        reset(m);
    }

    /// With a buffer that the library allocates and owns. It begins at a multiple of 64 bytes.
    memory(const desc &md, const engine &aengine) : memory(md, aengine, MXDNN_MEMORY_ALLOCATE) {}

    /// A copy of the descriptor.
    desc get_desc() const {
        const_mxdnn_memory_desc_t md = nullptr;
        error::wrap_c_api(
                mxdnn_memory_get_memory_desc(get(), &md), "could not get the descriptor of a memory");
        mxdnn_memory_desc_t copy = nullptr;
        error::wrap_c_api(mxdnn_memory_desc_clone(&copy, md), "could not clone a memory descriptor");
        return desc(copy);
    }

    /// The engine. Engines are never freed.
    engine get_engine() const {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_memory_get_engine(get(), &e), "could not get the engine of a memory");
        return engine(e, true);
    }

    /// The buffer; null for MXDNN_MEMORY_NONE.
    void *get_data_handle() const {
        void *data = nullptr;
        error::wrap_c_api(
                mxdnn_memory_get_data_handle(get(), &data), "could not get the data handle of a memory");
        return data;
    }

    /// Replaces the buffer by one of the caller, of at least as many bytes, or by MXDNN_MEMORY_NONE.
    void set_data_handle(void *data) const {
        error::wrap_c_api(
                mxdnn_memory_set_data_handle(get(), data), "could not set the data handle of a memory");
    }

    /// A pointer through which the host reads and writes the bytes, until unmap_data(). On a device it points
    /// to a copy.
    template <typename T = void>
    T *map_data() const {
        void *mapped = nullptr;
        error::wrap_c_api(mxdnn_memory_map_data(get(), &mapped), "could not map a memory");
        return static_cast<T *>(mapped);
    }

    /// Ends a mapping. `mapped` is the pointer of map_data(). A device's memory receives what was written.
    void unmap_data(void *mapped) const {
        error::wrap_c_api(mxdnn_memory_unmap_data(get(), mapped), "could not unmap a memory");
    }
};

} // namespace mxdnn

#endif

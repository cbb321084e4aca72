// SPDX-License-Identifier: Apache-2.0
/// @file
/// Post-ops: functions that are applied to the result of a matmul.
#ifndef MXDNN_HPP_POST_OPS_HPP
#define MXDNN_HPP_POST_OPS_HPP

#include <cstdint>
#include <string>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/primitive.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_post_ops_t> {
    static void destroy(mxdnn_post_ops_t p) { mxdnn_post_ops_destroy(p); }
};

/// Post-ops: applied in order to the f32 result, after the bias.
struct post_ops : public handle<mxdnn_post_ops_t> {
    /// An empty list.
    post_ops() {
        mxdnn_post_ops_t p = nullptr;
        error::wrap_c_api(mxdnn_post_ops_create(&p), "could not create post-ops");
        reset(p);
    }
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit post_ops(mxdnn_post_ops_t p, bool weak = false) : handle(p, weak) {}

    /// A copy that does not depend on this object. A plain C++ copy refers to the same post-ops.
    post_ops clone() const {
        mxdnn_post_ops_t p = nullptr;
        error::wrap_c_api(mxdnn_post_ops_clone(&p, get()), "could not clone post-ops");
        return post_ops(p);
    }

    /// Number of post-ops.
    int len() const { return mxdnn_post_ops_len(get()); }

    /// Kind of the post-op at `index`: sum, eltwise, binary or gated.
    primitive::kind kind(int index) const {
        if (index < 0 || index >= len())
            error::raise(mxdnn_invalid_arguments, "post-op " + std::to_string(index)
                                                          + " was asked for; there are "
                                                          + std::to_string(len()));
        return static_cast<primitive::kind>(mxdnn_post_ops_get_kind(get(), index));
    }

    /// Appends x += scale * (dst - zero_point), with dst as it was before the execution. dst is read as
    /// `data_type`; undef stands for its own type.
    void append_sum(float scale = 1.f, int32_t zero_point = 0,
            memory::data_type data_type = memory::data_type::undef) {
        error::wrap_c_api(mxdnn_post_ops_append_sum(
                                  get(), scale, zero_point, static_cast<mxdnn_data_type_t>(data_type)),
                "could not append a sum");
    }
    /// Reads the parameters of the sum at `index`.
    void get_params_sum(int index, float &scale, int32_t &zero_point, memory::data_type &data_type) const {
        mxdnn_data_type_t dt = mxdnn_data_type_undef;
        error::wrap_c_api(mxdnn_post_ops_get_params_sum(get(), index, &scale, &zero_point, &dt),
                "could not get the parameters of a sum");
        data_type = static_cast<memory::data_type>(dt);
    }

    /// Appends x = alg(x). mxdnn_alg_kind_t says what alpha and beta mean; they are 0 where an algorithm has
    /// none.
    void append_eltwise(algorithm alg, float alpha, float beta) {
        error::wrap_c_api(
                mxdnn_post_ops_append_eltwise(get(), static_cast<mxdnn_alg_kind_t>(alg), alpha, beta),
                "could not append an eltwise");
    }
    /// Reads the parameters of the eltwise at `index`.
    void get_params_eltwise(int index, algorithm &alg, float &alpha, float &beta) const {
        mxdnn_alg_kind_t c_alg = mxdnn_alg_kind_undef;
        error::wrap_c_api(mxdnn_post_ops_get_params_eltwise(get(), index, &c_alg, &alpha, &beta),
                "could not get the parameters of an eltwise");
        alg = static_cast<algorithm>(c_alg);
    }

    /// Appends x = alg(x, src1). src1 is plain f32, bf16 or f16, and is repeated along its dimensions of 1.
    void append_binary(algorithm alg, const memory::desc &src1_desc) {
        error::wrap_c_api(
                mxdnn_post_ops_append_binary(get(), static_cast<mxdnn_alg_kind_t>(alg), src1_desc.get()),
                "could not append a binary");
    }
    /// Reads the parameters of the binary at `index`.
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

    /// Appends a gated activation, which turns N columns into N/2. A `limit` that is positive and finite
    /// clamps gate and up. `alpha` is used by gated_swiglu_oai.
    void append_gated(algorithm alg, float alpha, float limit, gated_layout layout) {
        error::wrap_c_api(mxdnn_post_ops_append_gated(get(), static_cast<mxdnn_alg_kind_t>(alg), alpha, limit,
                                  static_cast<mxdnn_gated_layout_t>(layout)),
                "could not append a gated activation");
    }
    /// Reads the parameters of the gated activation at `index`.
    void get_params_gated(int index, algorithm &alg, float &alpha, float &limit, gated_layout &layout) const {
        mxdnn_alg_kind_t c_alg = mxdnn_alg_kind_undef;
        mxdnn_gated_layout_t c_layout = mxdnn_gated_interleaved;
        error::wrap_c_api(mxdnn_post_ops_get_params_gated(get(), index, &c_alg, &alpha, &limit, &c_layout),
                "could not get the parameters of a gated activation");
        alg = static_cast<algorithm>(c_alg);
        layout = static_cast<gated_layout>(c_layout);
    }
};

} // namespace mxdnn

#endif

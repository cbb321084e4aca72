// SPDX-License-Identifier: Apache-2.0
/// @file
/// mx_reorder: packs, unpacks, quantises and converts (doc/reference/mx_reorder.md).
#ifndef MXDNN_HPP_MX_REORDER_HPP
#define MXDNN_HPP_MX_REORDER_HPP

#include "mxdnn/hpp/primitive_desc.hpp"

namespace mxdnn {

/// Moves a tensor from one form to another: plain high precision, plain quantised, or packed.
struct mx_reorder : public primitive {
    /// A problem, and the implementation chosen for it.
    struct primitive_desc : public primitive_desc_base {
        /// Empty.
        primitive_desc() = default;
        /// A copy that does not depend on this object. After a plain C++ copy, next_impl() changes both.
        primitive_desc clone() const { return clone_of(*this); }

        /// Source and destination have equal dims. A destination with format_tag::any gets the packed layout
        /// of its engine; dst_desc() returns it. The attributes of MXDNN_ARG_DST say the format; without them
        /// it is the source's. With `allow_empty` a refused problem gives an empty object instead of an
        /// exception.
        primitive_desc(const engine &src_engine, const memory::desc &src_md, const engine &dst_engine,
                const memory::desc &dst_md, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_reorder_primitive_desc_create(
                    &pd, src_md.get(), src_engine.get(), dst_md.get(), dst_engine.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_reorder");
        }

        /// With two destinations, MXDNN_ARG_DST and MXDNN_ARG_DST_1. Each has its own attributes.
        primitive_desc(const engine &src_engine, const memory::desc &src_md, const engine &dst_engine,
                const memory::desc &dst_md, const memory::desc &dst_1_md,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false) {
            mxdnn_primitive_desc_t pd = nullptr;
            const mxdnn_status_t st = mxdnn_mx_reorder_primitive_desc_create_with_dst_1(&pd, src_md.get(),
                    src_engine.get(), dst_md.get(), dst_1_md.get(), dst_engine.get(), attr.get());
            init(st, pd, allow_empty, "could not create a descriptor of mx_reorder");
        }

        /// Between the descriptors and engines of two memories.
        primitive_desc(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(
                    src.get_engine(), src.get_desc(), dst.get_engine(), dst.get_desc(), attr, allow_empty) {}

        /// The engine of the source.
        engine get_src_engine() const { return ask_engine(mxdnn_query_reorder_src_engine); }
        /// The engine of the destination.
        engine get_dst_engine() const { return ask_engine(mxdnn_query_reorder_dst_engine); }
    };

    /// Empty.
    mx_reorder() = default;
    /// Generates the code, or takes it from the cache.
    explicit mx_reorder(const primitive_desc &pd) : primitive(pd) {}
    /// Between two memories.
    mx_reorder(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr())
        : primitive(primitive_desc(src, dst, attr)) {}

    using primitive::execute;

    /// Executes a reorder that has no further arguments (no scales of plain tensors). The stream belongs to
    /// the engine of the destination.
    void execute(const stream &astream, const memory &src, const memory &dst) const {
        primitive::execute(astream, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst}});
    }
};

} // namespace mxdnn

#endif

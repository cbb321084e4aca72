// SPDX-License-Identifier: Apache-2.0
#include "common/primitive.hpp"
#include "common/api/api.hpp"

using namespace mxdnn::impl;

mxdnn_status_t mxdnn_primitive_create(mxdnn_primitive_t *primitive, const_mxdnn_primitive_desc_t pd) {
    MXDNN_CHECK_ARG(primitive);
    MXDNN_CHECK_ARG(pd);
    return guarded(__func__, [&] {
        std::unique_ptr<primitive_t> p;
        MXDNN_CHECK(create_primitive(p, *pd));
        *primitive = p.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_primitive_execute(
        const_mxdnn_primitive_t primitive, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args) {
    MXDNN_CHECK_ARG(primitive);
    MXDNN_CHECK_ARG(stream);
    if (nargs < 0 || (nargs > 0 && !args))
        return fail(mxdnn_invalid_arguments, "%s: %d arguments%s", __func__, nargs,
                args ? "" : " at a null pointer");
    return guarded(__func__, [&] { return execute(*primitive, *stream, nargs, args); });
}

mxdnn_status_t mxdnn_primitive_get_primitive_desc(
        const_mxdnn_primitive_t primitive, const_mxdnn_primitive_desc_t *pd) {
    MXDNN_CHECK_ARG(primitive);
    MXDNN_CHECK_ARG(pd);
    *pd = &primitive->desc;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_destroy(mxdnn_primitive_t primitive) {
    delete primitive;
    return mxdnn_success;
}

// SPDX-License-Identifier: Apache-2.0
// The C functions that the Python package calls through ctypes: questions to blobs, formats and activations.
// Each one returns 0, or -1 where mxdnn_jax_error() has the sentence.
#include <algorithm>
#include <cstring>
#include <exception>

#include "activation.hpp"
#include "failure.hpp"
#include "weights.hpp"

namespace {

thread_local std::string last_error;

template <typename call_t>
int guarded(call_t call) {
    try {
        call();
        return 0;
    } catch (const std::exception &e) {
        last_error = e.what();
        return -1;
    }
}

} // namespace

extern "C" {

// What Python has to know of packed weights; mxdnn_jax/_native.py has the same fields.
struct mxdnn_jax_description_t {
    int64_t size; // bytes
    int64_t dims[MXDNN_MAX_NDIMS];
    int32_t ndims;
    int32_t original_type; // mxdnn_data_type_t, undef where it is not known
    char text[256];
};

// This thread's last failure.
const char *mxdnn_jax_error() { return last_error.c_str(); }

int mxdnn_jax_describe(const uint8_t *blob, size_t size, mxdnn_jax_description_t *description) {
    return guarded([&] {
        const mxdnn::memory::desc md = mxdnn_jax::weights_of_blob(blob, size);
        const mxdnn::memory::dims dims = md.get_dims();
        *description = {};
        description->size = int64_t(md.get_size());
        description->ndims = int32_t(dims.size());
        std::copy(dims.begin(), dims.end(), description->dims);
        description->original_type = int32_t(md.get_annotation_data_type());
        const std::string text = md.to_string();
        text.copy(description->text, sizeof(description->text) - 1);
    });
}

// The blob of weights of a named format. `target` null: this machine's CPU. `blob` has room for *size bytes,
// which become those written.
int mxdnn_jax_make_blob(const char *format, int global_scale, int64_t block, const char *target, int ndims,
        const int64_t *dims, int original_type, uint8_t *blob, size_t *size) {
    return guarded([&] {
        const mxdnn::engine eng =
                target ? mxdnn::engine::for_target(target) : mxdnn::engine(mxdnn::engine::kind::cpu, 0);
        mxdnn::memory::desc md = mxdnn_jax::packed_weights(
                eng, format, global_scale != 0, block, mxdnn::memory::dims(dims, dims + ndims));
        md.set_annotation(mxdnn::memory::data_type(original_type));
        const std::vector<uint8_t> bytes = md.get_blob();
        if (bytes.size() > *size)
            mxdnn_jax::fail("a blob of " + std::to_string(bytes.size()) + " bytes has no room");
        std::copy(bytes.begin(), bytes.end(), blob);
        *size = bytes.size();
    });
}

// The name of the target of this machine's device `index`.
int mxdnn_jax_target_of_device(int kind, size_t index, char *target, size_t size) {
    return guarded([&] {
        const std::string name = mxdnn::engine(mxdnn::engine::kind(kind), index).get_target();
        target[name.copy(target, size - 1)] = 0;
    });
}

// How many columns are left of N behind an activation.
int mxdnn_jax_columns(const char *activation, int64_t N, int64_t *columns) {
    return guarded([&] {
        const mxdnn_jax::chosen_activation_t chosen = mxdnn_jax::find_activation(activation);
        if (chosen.row && chosen.row->is_gated && N % 2)
            mxdnn_jax::fail("activation '" + std::string(activation)
                            + "' halves the columns, of which there are " + std::to_string(N));
        *columns = chosen.columns(N);
    });
}

} // extern "C"

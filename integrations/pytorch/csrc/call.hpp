// SPDX-License-Identifier: Apache-2.0
// A problem that is ready to run. Operators make one for each problem and keep it for the next call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "device.hpp"
#include "tensor.hpp"

namespace mxdnn_torch {

// A primitive with memories whose pointers are given for each execution. Belongs to one thread.
class call_t {
public:
    struct argument_t {
        int arg;                // MXDNN_ARG_*
        mxdnn::memory::desc md; // as large as the tensor really is
    };
    call_t(const mxdnn::primitive_desc_base &pd, const std::vector<argument_t> &arguments,
            const mxdnn::engine &engine);

    // Pointers in the order of the arguments. Scratchpads on CUDA are torch's memory.
    void run(const mxdnn::stream &stream, const place_t &place, void *const *pointers, size_t count);

private:
    mxdnn::primitive primitive_;
    std::vector<mxdnn::memory> memories_;
    std::vector<mxdnn_exec_arg_t> arguments_;
    size_t scratchpad_bytes_ = 0;
};

// Attributes for a place: on CUDA the scratchpad is the caller's.
mxdnn::primitive_attr attributes_for(const place_t &place);

// The rows of a problem: on the CPU any number, so that one primitive serves every batch. On CUDA those of
// the call, which size its scratchpad.
int64_t rows_of_problem(int64_t rows, const place_t &place);

// What tells one problem from another, as bytes.
class key_t {
public:
    explicit key_t(const char *operation) { add_text(operation); }
    key_t &add(const view_t &view); // type, shape, strides and place
    key_t &add(int64_t value);
    key_t &add_text(std::string_view text);
    std::string_view bytes() const { return longer_.empty() ? std::string_view(bytes_, n_) : longer_; }

private:
    void append(const void *data, size_t size);

    char bytes_[512]; // most keys need no memory of their own
    size_t n_ = 0;
    std::string longer_; // the whole of a longer one
};

// The calling thread's call for a key; `make` makes it where there is none yet. A thread keeps the calls that
// it used last.
template <typename F>
call_t &find_call(const key_t &key, F &&make);

call_t *find_kept_call(const key_t &key);
call_t &keep_call(const key_t &key, call_t &&call);

template <typename F>
call_t &find_call(const key_t &key, F &&make) {
    call_t *const found = find_kept_call(key);
    return found ? *found : keep_call(key, make());
}

// Pointers for an execution, in the order of its arguments.
struct pointers_t {
    void *values[16];
    size_t n = 0;
    void push_back(void *p) { values[n++] = p; }
};

} // namespace mxdnn_torch

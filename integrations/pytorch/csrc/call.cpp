// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <cstring>
#include <list>
#include <unordered_map>

namespace mxdnn_torch {

namespace {

constexpr size_t calls_of_a_thread = 1024;

struct kept_calls_t {
    using entry_t = std::pair<std::string, call_t>;
    std::list<entry_t> order;                                                  // the last used one first
    std::unordered_map<std::string_view, std::list<entry_t>::iterator> by_key; // views of the entries' keys
};
thread_local kept_calls_t kept;

} // namespace

call_t::call_t(const mxdnn::primitive_desc_base &pd, const std::vector<argument_t> &arguments,
        const mxdnn::engine &engine)
    : primitive_(pd) {
    for (const argument_t &a : arguments) {
        memories_.emplace_back(a.md, engine, nullptr);
        arguments_.push_back({a.arg, memories_.back().get()});
    }
    const mxdnn::memory::desc scratchpad = pd.scratchpad_desc();
    scratchpad_bytes_ = scratchpad ? scratchpad.get_size() : 0;
    if (scratchpad_bytes_ == 0) return;
    memories_.emplace_back(scratchpad, engine, nullptr);
    arguments_.push_back({MXDNN_ARG_SCRATCHPAD, memories_.back().get()});
}

void call_t::run(const mxdnn::stream &stream, const place_t &place, void *const *pointers, size_t count) {
    for (size_t i = 0; i < count; i++) memories_[i].set_data_handle(pointers[i]);
    std::optional<Tensor> scratchpad;
    if (scratchpad_bytes_ > 0) {
        scratchpad = make_tensor({static_cast<int64_t>(scratchpad_bytes_)}, ScalarType::Byte, place);
        memories_.back().set_data_handle(scratchpad->data_ptr());
    }
    mxdnn::error::wrap_c_api(mxdnn_primitive_execute(primitive_.get(), stream.get(),
                                     static_cast<int>(arguments_.size()), arguments_.data()),
            "could not execute a primitive");
}

mxdnn::primitive_attr attributes_for(const place_t &place) {
    mxdnn::primitive_attr attr;
    if (place.is_cuda) attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    return attr;
}

int64_t rows_of_problem(int64_t rows, const place_t &place) {
    return place.is_cuda ? rows : MXDNN_RUNTIME_DIM_VAL;
}

void key_t::append(const void *data, size_t size) {
    const char *const bytes = static_cast<const char *>(data);
    if (longer_.empty() && n_ + size <= sizeof(bytes_)) {
        std::memcpy(bytes_ + n_, bytes, size);
        n_ += size;
        return;
    }
    if (longer_.empty()) longer_.assign(bytes_, n_);
    longer_.append(bytes, size);
}

key_t &key_t::add(int64_t value) {
    append(&value, sizeof(value));
    return *this;
}

key_t &key_t::add_text(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    append(text.data(), text.size());
    return *this;
}

key_t &key_t::add(const view_t &view) {
    add(static_cast<int64_t>(view.type)).add(view.place.is_cuda ? view.place.index : -1);
    add(static_cast<int64_t>(view.dims.size()));
    append(view.dims.begin(), view.dims.size() * sizeof(int64_t));
    append(view.strides.begin(), view.strides.size() * sizeof(int64_t));
    return *this;
}

call_t *find_kept_call(const key_t &key) {
    const auto found = kept.by_key.find(key.bytes());
    if (found == kept.by_key.end()) return nullptr;
    kept.order.splice(kept.order.begin(), kept.order, found->second);
    return &found->second->second;
}

call_t &keep_call(const key_t &key, call_t &&call) {
    kept.order.emplace_front(std::string(key.bytes()), std::move(call));
    kept.by_key.emplace(kept.order.front().first, kept.order.begin());
    if (kept.order.size() > calls_of_a_thread) {
        kept.by_key.erase(kept.order.back().first);
        kept.order.pop_back();
    }
    return kept.order.front().second;
}

} // namespace mxdnn_torch

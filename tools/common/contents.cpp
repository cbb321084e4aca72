// SPDX-License-Identifier: Apache-2.0
#include "contents.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace safetensors {

out_tensor_t made_later(std::string name, std::string dtype, std::vector<int64_t> shape,
        const std::string &doing, const make_t &make) {
    return {std::move(name), std::move(dtype), std::move(shape), make.parts,
            [=](size_t part, const sink_t &sink) -> status_t {
                try {
                    make.part(part, [&](const void *bytes, uint64_t size) {
                        if (status_t s = sink(bytes, size); !s.ok()) throw status_t(std::move(s));
                    });
                    return {};
                } catch (const status_t &s) {
                    return s;
                } catch (const std::exception &e) {
                    return {kind_t::io, doing + ": " + e.what()};
                }
            }};
}

make_t in_pieces(uint64_t size, std::function<void(uint64_t offset, uint64_t size, void *buffer)> read) {
    static constexpr uint64_t piece = uint64_t(4) << 20;
    return {size_t((size + piece - 1) / piece),
            [size, read = std::move(read)](size_t part, const take_t &take) {
                const uint64_t at = part * piece, n = std::min(size - at, uint64_t(piece));
                thread_local std::vector<uint8_t> buffer;
                if (buffer.size() < n) buffer.resize(size_t(n));
                read(at, n, buffer.data());
                take(buffer.data(), n);
            }};
}

// The checksum is known when the bytes are; the header, written last, finds it in its place.
std::string *contents_t::checksum_of(const std::string &name) {
    return &(metadata[name + checksum_suffix] = hexadecimal(0));
}

// The same tensor of `size` bytes, which are added to a sum on their way; its value becomes the checksum of
// `name`. The bytes are taken in order, so one sum serves all threads.
make_t contents_t::summed(const make_t &make, uint64_t size, const std::function<mxdnn::checksum()> &begin,
        const std::string &name) {
    std::string *const to = checksum_of(name);
    if (size == 0) {
        *to = hexadecimal(begin().value());
        return make;
    }
    struct state_t {
        std::optional<mxdnn::checksum> sum;
        uint64_t left;
    };
    const auto state = std::make_shared<state_t>(state_t{std::nullopt, size});
    return {make.parts, [=](size_t part, const take_t &take) {
                make.part(part, [&](const void *bytes, uint64_t count) {
                    take(bytes, count); // which waits for the turn of this part, and refuses too many bytes
                    if (!state->sum) state->sum = begin();
                    state->sum->add(bytes, count);
                    state->left -= count;
                    if (state->left == 0) *to = hexadecimal(state->sum->value());
                });
            }};
}

void contents_t::add_packed(const std::string &name, const mxdnn::memory::desc &desc, const void *bytes) {
    add_packed(name, desc, {1, [=](size_t, const take_t &take) { take(bytes, desc.get_size()); }});
}

void contents_t::add_packed(const std::string &name, const mxdnn::memory::desc &desc, const make_t &make) {
    tensors.push_back(
            made_later(name + packed_suffix, "U8", {int64_t(desc.get_size())}, "packing " + shown(name),
                    summed(
                            make, desc.get_size(), [=] { return mxdnn::checksum(desc); }, name)));
    const auto blob = std::make_shared<const std::vector<uint8_t>>(desc.get_blob());
    tensors.push_back({name + desc_suffix, "U8", {int64_t(blob->size())}, 1,
            [blob](size_t, const sink_t &sink) { return sink(blob->data(), blob->size()); }});
}

void contents_t::add_copy(const mxdnn::container &file, size_t index) { add_copy(file, index, true); }
void contents_t::add_plain_copy(const mxdnn::container &file, size_t index) { add_copy(file, index, false); }

void contents_t::add_copy(const mxdnn::container &file, size_t index, bool with_checksum) {
    const mxdnn::container::entry e = file.get_entry(index);
    make_t make = in_pieces(e.size, [=](uint64_t offset, uint64_t count, void *buffer) {
        file.read(index, offset, size_t(count), buffer);
    });
    if (e.is_packed) return add_packed(e.name, file.get_desc(index), make);
    add_plain(e.name, e.dtype, e.dims, e.size, std::move(make), with_checksum);
}

void contents_t::add_plain(const std::string &name, const std::string &dtype,
        const std::vector<int64_t> &dims, uint64_t size, make_t make, bool with_checksum) {
    if (with_checksum)
        make = summed(
                make, size, [=] { return mxdnn::checksum_for_tensor(dtype, dims); }, name);
    else
        metadata.erase(name + checksum_suffix);
    tensors.push_back(made_later(name, dtype, dims, "copying " + shown(name), make));
}

mxdnn::blob_verdict check_usable(
        const std::string &what, const mxdnn::memory::desc &desc, const mxdnn::engine &engine) {
    const mxdnn::blob_verdict verdict = mxdnn::check_blob(engine, desc.get_blob());
    if (verdict == mxdnn::blob_verdict::native || verdict == mxdnn::blob_verdict::slower) return verdict;
    throw std::runtime_error(what + " is packed for " + desc.get_target() + ", not for " + engine.get_target()
                             + "; use a target that it is packed for, or pack the weights again");
}

} // namespace safetensors

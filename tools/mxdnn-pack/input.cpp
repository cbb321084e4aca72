// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "common/interrupt.hpp"

namespace mxdnn_pack {

input_t::input_t(const std::string &apath) : path(safetensors::shown_path(apath)), file(apath) {
    const size_t count = file.size();
    entries.reserve(count);
    for (size_t i = 0; i < count; i++) {
        entries.push_back(file.get_entry(i));
        by_name_[entries.back().name] = i;
    }
}

std::optional<size_t> input_t::find(const std::string &name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? std::nullopt : std::optional<size_t>(it->second);
}

weight_formats::read_t input_t::reader(size_t index) const {
    return [this, index](uint64_t offset, uint64_t size, void *buffer) {
        interrupt::check();
        file.read(index, offset, size_t(size), buffer);
    };
}

void input_t::verify() const {
    for (size_t i = 0; i < entries.size(); i++) {
        if (!entries[i].is_packed && !entries[i].has_checksum) continue;
        interrupt::check();
        progress("checking " + safetensors::shown(entries[i].name));
        file.verify(i);
    }
}

} // namespace mxdnn_pack

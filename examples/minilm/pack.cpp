// SPDX-License-Identifier: Apache-2.0
// From f32 weights to containers of packed ones.
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>

#include "commands.hpp"
#include "common/contents.hpp"
#include "common/weight_formats.hpp"

namespace minilm {

using namespace weight_formats;

std::string packed_path(const options_t &options, const std::string &format) {
    return options.packed + "/minilm-" + format + ".safetensors";
}

void pack_model(const model_t &model, const std::string &format_name, const std::string &path) {
    const format_t &format = find_format(format_name);
    const mxdnn::engine engine(mxdnn::engine::kind::cpu, 0);
    std::vector<mxdnn::memory> packed; // keeps the bytes until they are written
    safetensors::contents_t contents;
    for (const auto *l : model.linears()) {
        if (!l->weight)
            throw std::runtime_error(model.path + " is packed already; pack from the original file");
        progress("packing " + l->name + " to " + format_name);
        packed.push_back(pack(
                format, engine, shape_t::matrix(l->out, l->in), mxdnn::memory::data_type::f32, l->weight));
        contents.add_packed(l->name, packed.back().get_desc(), packed.back().get_data_handle());
    }
    // Everything else goes along as it is, so that the file is a model of its own.
    for (size_t i = 0; i < model.file.size(); i++)
        if (!contents.metadata.count(model.file.get_entry(i).name + safetensors::checksum_suffix))
            contents.add_copy(model.file, i);
    contents.metadata["mxdnn_format"] = format_name;
    const auto status = safetensors::write(
            path, contents.tensors, contents.metadata, [&](uint64_t, uint64_t) -> safetensors::status_t {
                progress("writing " + path);
                return {};
            });
    if (!status.ok()) throw std::runtime_error(status.message);
}

void pack_formats(const options_t &options, const std::vector<std::string> &names) {
    if (mkdir(options.packed.c_str(), 0777) != 0 && errno != EEXIST)
        throw std::runtime_error("cannot make the folder " + options.packed + ": " + strerror(errno));
    const model_t model(options.model);
    for (const auto &n : names) pack_model(model, n, packed_path(options, n));
}

} // namespace minilm

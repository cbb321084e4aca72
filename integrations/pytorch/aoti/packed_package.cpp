// SPDX-License-Identifier: Apache-2.0
#include "packed_package.hpp"

#include <algorithm>
#include <stdexcept>

#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace mxdnn_aoti {

namespace {

// Metadata of a package: PREFIX NAME -> blob in base64, a space, 16 hexadecimal digits of the checksum.
const std::string prefix = "mxdnn.packed.";
const std::string target_key = "mxdnn.target";

std::vector<uint8_t> from_base64(const std::string &text) {
    static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<uint8_t> bytes;
    uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
        if (c == '=') break;
        const size_t digit = digits.find(c);
        if (digit == std::string::npos) return {}; // no blob; check_blob says so
        bits = bits << 6 | static_cast<uint32_t>(digit);
        if ((count += 6) < 8) continue;
        count -= 8;
        bytes.push_back(static_cast<uint8_t>(bits >> count));
    }
    return bytes;
}

const char *name_of(mxdnn::blob_verdict verdict) {
    switch (verdict) {
    case mxdnn::blob_verdict::native: return "native";
    case mxdnn::blob_verdict::slower: return "slower";
    case mxdnn::blob_verdict::needs_reorder: return "needs_reorder";
    case mxdnn::blob_verdict::incompatible: return "incompatible";
    default: return "corrupt";
    }
}

packed_constant_t parse(const std::string &name, const std::string &value, const mxdnn::engine &eng) {
    packed_constant_t c;
    c.name = name;
    const size_t space = value.find(' ');
    const std::string sum = space == std::string::npos ? "" : value.substr(space + 1);
    if (sum.size() != 16 || sum.find_first_not_of("0123456789abcdef") != std::string::npos)
        throw std::runtime_error("the metadata of " + name + " has no checksum of 16 hexadecimal digits");
    c.checksum = std::stoull(sum, nullptr, 16);
    c.blob = from_base64(value.substr(0, space));
    c.verdict = mxdnn::check_blob(eng, c.blob);
    if (c.verdict != mxdnn::blob_verdict::native) c.reason = mxdnn::get_last_error();
    return c;
}

} // namespace

void require_target(const std::string &package) {
    const auto metadata =
            torch::inductor::AOTIModelPackageLoader::load_metadata_from_package(package, "model");
    const auto target = metadata.find(target_key);
    if (target == metadata.end())
        throw std::runtime_error("the metadata of the package does not say what its code was compiled for");
    if (target->second.compare(0, 5, "cuda:") == 0) return; // the engine's check of the weights says it
    try {
        // An engine of a target that this machine does not have creates no matmul.
        using memory = mxdnn::memory;
        mxdnn::primitive_attr attr;
        attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, memory::data_type::e8m0);
        const mxdnn::mx_matmul::primitive_desc small(mxdnn::engine::for_target(target->second),
                {{1, 32}, memory::data_type::f32, memory::format_tag::ab},
                {{32, 1}, memory::data_type::f8_e4m3, memory::format_tag::any},
                {{1, 1}, memory::data_type::f32, memory::format_tag::ab}, attr);
        mxdnn::mx_matmul{small};
    } catch (const mxdnn::error &e) {
        throw std::runtime_error("the code of the package is for " + target->second + ": " + e.what());
    }
}

std::vector<packed_constant_t> read_packed_constants(const std::string &package, const mxdnn::engine &eng) {
    std::vector<packed_constant_t> constants;
    for (const auto &[key, value] :
            torch::inductor::AOTIModelPackageLoader::load_metadata_from_package(package, "model"))
        if (key.compare(0, prefix.size(), prefix) == 0)
            constants.push_back(parse(key.substr(prefix.size()), value, eng));
    std::sort(
            constants.begin(), constants.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
    return constants;
}

mxdnn::blob_verdict require_usable(const std::vector<packed_constant_t> &constants) {
    if (constants.empty()) throw std::runtime_error("the package lists no packed weights in its metadata");
    auto worst = mxdnn::blob_verdict::native;
    for (const packed_constant_t &c : constants) {
        if (c.verdict != mxdnn::blob_verdict::native && c.verdict != mxdnn::blob_verdict::slower)
            throw std::runtime_error(c.name + " is " + name_of(c.verdict) + " here: " + c.reason);
        if (c.verdict != mxdnn::blob_verdict::native) worst = c.verdict;
    }
    return worst;
}

void verify_bytes(
        torch::inductor::AOTIModelPackageLoader &loader, const std::vector<packed_constant_t> &constants) {
    const std::unordered_map<std::string, at::Tensor> loaded =
            loader.get_runner()->extract_constants_map(false);
    for (const packed_constant_t &c : constants) {
        const auto found = loaded.find(c.name);
        if (found == loaded.end()) throw std::runtime_error("the model has no constant " + c.name);
        const mxdnn::memory::desc md(c.blob);
        const at::Tensor bytes = found->second.cpu().contiguous();
        if (static_cast<size_t>(bytes.nbytes()) != md.get_size())
            throw std::runtime_error("the constant " + c.name + " has " + std::to_string(bytes.nbytes())
                                     + " bytes; its descriptor has " + std::to_string(md.get_size()));
        if (mxdnn::packed_checksum(md, bytes.const_data_ptr()) != c.checksum)
            throw std::runtime_error(
                    "the bytes of the constant " + c.name + " are not those that were packed");
    }
}

} // namespace mxdnn_aoti

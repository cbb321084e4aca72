// SPDX-License-Identifier: Apache-2.0
#include "importers.hpp"

#include <nlohmann/json.hpp>

namespace mxdnn_pack {

const std::vector<importer_t> &importers() {
    static const std::vector<importer_t> all = {
            {"", find_gguf},                      // blocks of GGUF files
            {"_blocks", find_mx_pair},            // gpt-oss as converted
            {".blocks", find_mx_pair},            // gpt-oss as released
            {".qdata", find_mx_pair},             // pairs of torchao's MXTensor by attribute
            {"_packed", find_compressed_tensors}, // compressed-tensors
            {".qweight", find_awq},               // AutoAWQ
            {".qweight", find_gptq},              // AutoGPTQ, GPTQModel
            {"_qdata", find_torchao},             // torchao's safetensors form
            {".W_q", find_hqq},                   // HQQ
            {"", find_scaled},                    // ModelOpt, compressed-tensors, transformers
    };
    return all;
}

import_context_t make_context(const checkpoint_t &input, const options_t &options) {
    using nlohmann::json;
    const auto object = [](const json &j) { return j.is_object() ? j : json::object(); };
    json gptq = object(object(input.beside("config.json")).value("quantization_config", json::object()));
    if (!gptq.contains("checkpoint_format")) gptq.update(object(input.beside("quantize_config.json")));
    const auto format = gptq.find("checkpoint_format");
    return {input, options, format != gptq.end() && *format == "gptq_v2"};
}

} // namespace mxdnn_pack

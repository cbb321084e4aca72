// SPDX-License-Identifier: Apache-2.0
// What a container holds, and whether it is whole and usable on a target.
#include "commands.hpp"

#include <cstdio>
#include <stdexcept>

namespace mxdnn_pack {

bool list(const options_t &o) {
    safetensors::file_t file;
    const auto status = safetensors::file_t::open(o.in, file);
    if (!status.ok()) throw std::runtime_error(status.message);
    const mxdnn::engine engine = make_engine(o);
    const auto names = container::packed_names(file);
    bool good = true;
    for (const std::string &name : names) {
        progress("checking " + name);
        try {
            const auto p = container::get_packed(file, name, engine);
            printf("%s  %s  %llu bytes  %s on %s\n", safetensors::shown(name).c_str(),
                    p.desc.to_string().c_str(), (unsigned long long)p.size,
                    p.verdict == mxdnn::blob_verdict::native ? "native" : "slower",
                    engine.get_target().c_str());
        } catch (const std::runtime_error &e) {
            printf("%s  REFUSED: %s\n", safetensors::shown(name).c_str(), e.what());
            good = false;
        }
    }
    printf("%zu packed of %zu tensors\n", names.size(), file.index().tensors.size());
    return good;
}

} // namespace mxdnn_pack

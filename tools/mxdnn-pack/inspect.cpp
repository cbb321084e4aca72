// SPDX-License-Identifier: Apache-2.0
// What a container holds, and whether it is whole and usable on a target.
#include "commands.hpp"

#include <cstdio>

#include "common/interrupt.hpp"

namespace mxdnn_pack {

bool list(const options_t &o) {
    const mxdnn::engine engine = make_engine(o);
    const input_t input(o.in);
    size_t packed = 0, checked = 0;
    bool good = true;
    for (size_t i = 0; i < input.entries.size(); i++) {
        const auto &e = input.entries[i];
        packed += e.is_packed;
        if (!e.is_packed && !e.has_checksum) continue;
        interrupt::check();
        const std::string name = safetensors::shown(e.name);
        progress("checking " + name);
        try {
            input.file.verify(i);
            checked++;
            if (!e.is_packed) continue;
            const mxdnn::memory::desc desc = input.file.get_desc(i);
            const auto verdict =
                    safetensors::check_usable(input.path + ": packed tensor " + name, desc, engine);
            printf("%s  %s  %zu bytes  %s on %s\n", name.c_str(), desc.to_string().c_str(), desc.get_size(),
                    verdict == mxdnn::blob_verdict::native ? "native" : "slower",
                    engine.get_target().c_str());
        } catch (const std::exception &wrong) {
            printf("%s  REFUSED: %s\n", name.c_str(), wrong.what());
            good = false;
        }
    }
    printf("%zu packed of %zu tensors, %zu checked by their checksum\n", packed, input.entries.size(),
            checked);
    return good;
}

} // namespace mxdnn_pack

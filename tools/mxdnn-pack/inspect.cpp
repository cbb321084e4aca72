// SPDX-License-Identifier: Apache-2.0
// What a container holds, whether it is whole, and whether it is usable on a target.
#include "commands.hpp"

#include <cstdio>
#include <stdexcept>

#include "checkpoint.hpp"
#include "common/contents.hpp"
#include "common/in_order.hpp"
#include "common/interrupt.hpp"
#include "progress.hpp"

namespace mxdnn_pack {

using safetensors::shown;

namespace {

struct count_t {
    size_t packed = 0, checked = 0;
    bool good = true;
};

// Verifies everything that has a checksum, and calls look(entry) for what is whole, in order; that may refuse
// it with an exception, too. Prints what is refused.
template <typename F>
count_t verify_all(const checkpoint_t &input, unsigned threads, F &&look) {
    std::vector<size_t> checked;
    uint64_t total = 0, done = 0;
    count_t count;
    for (size_t i = 0; i < input.entries.size(); i++) {
        const entry_t &e = input.entries[i];
        count.packed += e.is_packed;
        if (!e.is_packed && !e.has_checksum) continue;
        checked.push_back(i);
        total += e.size;
    }
    progress_t progress("checking " + input.path, total);
    in_order::run(checked.size(), threads, [&](size_t job, const in_order::turn_t &wait_for_turn) {
        interrupt::check();
        const entry_t &e = input.entries[checked[job]];
        std::string wrong;
        try {
            input.file_of(e).verify(e.index);
        } catch (const std::exception &refused) {
            wrong = refused.what();
        }
        wait_for_turn();
        try {
            if (!wrong.empty()) throw std::runtime_error(wrong);
            count.checked++;
            look(e);
        } catch (const std::exception &refused) {
            printf("%s  REFUSED: %s\n", shown(e.name).c_str(), refused.what());
            count.good = false;
        }
        progress.update(done += e.size);
    });
    printf("%zu packed of %zu tensors, %zu checked by their checksum\n", count.packed, input.entries.size(),
            count.checked);
    return count;
}

} // namespace

bool list(const options_t &o) {
    const mxdnn::engine engine = make_engine(o);
    const checkpoint_t input(o.in);
    const auto look = [&](const entry_t &e) {
        if (!e.is_packed) return;
        const mxdnn::memory::desc desc = input.desc_of(e);
        const auto verdict =
                safetensors::check_usable(input.path + ": packed tensor " + shown(e.name), desc, engine);
        printf("%s  %s  %zu bytes  %s on %s\n", shown(e.name).c_str(), desc.to_string().c_str(),
                desc.get_size(), verdict == mxdnn::blob_verdict::native ? "native" : "slower",
                engine.get_target().c_str());
    };
    return verify_all(input, use_threads(o), look).good;
}

bool verify(const options_t &o) {
    const checkpoint_t input(o.in);
    // What has a descriptor has one that the library reads, whatever its target is.
    const count_t count = verify_all(input, use_threads(o), [&](const entry_t &e) {
        if (e.is_packed) (void)input.desc_of(e);
    });
    if (count.good && count.checked == 0)
        throw std::runtime_error(
                input.path + " has no checksums, so nothing can be verified; mxdnn-pack pack adds them");
    return count.good;
}

} // namespace mxdnn_pack

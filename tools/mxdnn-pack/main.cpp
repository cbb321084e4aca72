// SPDX-License-Identifier: Apache-2.0
// mxdnn-pack: packs the weights of a safetensors file, for this machine or another;
// doc/reference/mxdnn-pack.md.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "common/interrupt.hpp"
#include "common/weight_rule.hpp"

namespace mxdnn_pack {

mxdnn::engine make_engine(const options_t &o) {
    return o.target.empty() ? mxdnn::engine(mxdnn::engine::kind::cpu, 0)
                            : mxdnn::engine::for_target(o.target);
}

void progress(const std::string &what) {
    using clock = std::chrono::steady_clock;
    static const auto start = clock::now();
    static auto last = start;
    const auto now = clock::now();
    if (now - last < std::chrono::seconds(2)) return;
    last = now;
    fprintf(stderr, "[%4.0f s] %s\n", std::chrono::duration<double>(now - start).count(), what.c_str());
}

namespace {

int run(int argc, char **argv) {
    options_t o;
    CLI::App app{"Packs the weights of a safetensors file into mxdnn's layouts"};
    app.require_subcommand(1);
    const auto command = [&](const char *name, const char *what) {
        CLI::App *c = app.add_subcommand(name, what);
        c->add_option("input", o.in, "safetensors file")->required();
        c->add_option(
                "--target", o.target, "pack for, or check against, this target (default: this machine)");
        return c;
    };
    const auto with_parts = [&](CLI::App *c) {
        c->add_option("--part-mib", o.part_mib, "MiB of a tensor that are worked on at a time")
                ->check(CLI::Range(0u, 1u << 20))
                ->capture_default_str();
    };
    std::string formats;
    for (const auto &f : weight_formats::format_names()) formats += " " + f;
    CLI::App *pack_c =
            command("pack", "quantise and pack the weights of linear layers and experts, [out, in] and "
                            "[experts, out, in]; repack codes and scales");
    pack_c->footer(weight_rule::text());
    pack_c->add_option("output", o.out, "file to write, not the input")->required();
    pack_c->add_option("--format", o.format,
                  "of high-precision weights:" + formats
                          + " (nvfp4: with a global scale; int4: s4, bf16 scales; int4_zp: u4, f16 scales, u8 zero "
                            "points; both in groups of 32)")
            ->capture_default_str();
    pack_c->add_option(
            "--rounding", o.rounding, "of e8m0 scales: floor rceil ceil even; the default is rceil");
    pack_c->add_option("--include", o.include,
            "pack tensors whose name matches this regular expression, whatever the rule below says");
    pack_c->add_option("--exclude", o.exclude, "leave out tensors whose name matches");
    pack_c->add_option("--recipe", o.recipe, "activation recipe to note in the descriptors");
    pack_c->add_flag("--codes-only", o.codes_only, "pack what is quantised already and copy the rest");
    with_parts(pack_c);
    CLI::App *unpack_c = command("unpack", "write packed weights as plain ones");
    unpack_c->add_option("output", o.out, "file to write")->required();
    unpack_c->add_option("--type", o.type, "f32 bf16 f16")->capture_default_str();
    with_parts(unpack_c);
    CLI::App *list_c = command("list", "say what is packed, and check every descriptor and checksum");
    try {
        bool known = argc < 2 || *argv[1] == '-';
        std::string commands;
        for (const CLI::App *c : {pack_c, unpack_c, list_c}) {
            known = known || c->check_name(argv[1]);
            commands += " " + c->get_name();
        }
        if (!known)
            throw CLI::ValidationError(
                    "there is no command '" + std::string(argv[1]) + "'; possible are" + commands);
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    if (*pack_c) pack(o);
    if (*unpack_c) unpack(o);
    return *list_c && !list(o) ? 1 : 0;
}

} // namespace
} // namespace mxdnn_pack

int main(int argc, char **argv) {
    interrupt::install();
    int status = 1;
    try {
        status = mxdnn_pack::run(argc, argv);
    } catch (const std::bad_alloc &) {
        fprintf(stderr, "mxdnn-pack: memory has run out\n");
    } catch (const std::exception &e) {
        fprintf(stderr, "mxdnn-pack: %s\n", e.what());
    }
    if (interrupt::received()) interrupt::finish(interrupt::received());
    // What was not written was not said; to a reader that has gone there is nothing to say.
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "mxdnn-pack: cannot write to standard output: %s\n", strerror(errno));
        return 1;
    }
    return status;
}

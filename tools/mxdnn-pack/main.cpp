// SPDX-License-Identifier: Apache-2.0
// mxdnn-pack: packs the weights of a safetensors or GGUF file, for this machine or another;
// doc/reference/mxdnn-pack.md.
#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "common/command_line.hpp"
#include "common/interrupt.hpp"
#include "common/standard_output.hpp"
#include "common/weight_formats.hpp"
#include "common/weight_rule.hpp"

namespace mxdnn_pack {

namespace {

int run(int argc, char **argv) {
    options_t o;
    CLI::App app{"Packs the weights of a safetensors or GGUF file into mxdnn's layouts"};
    app.require_subcommand(1);
    std::string targets;
    for (const std::string &t : mxdnn::engine::get_target_names()) targets += " " + t;
    const auto command = [&](const char *name, const char *what) {
        CLI::App *c = app.add_subcommand(name, what);
        c->add_option(
                 "input", o.in, "safetensors file, index (*.index.json), folder with either, or GGUF file")
                ->required();
        c->add_option("--threads", o.threads, "how many work; 0: as many as the machine has")
                ->check(CLI::Range(0u, 1024u))
                ->capture_default_str();
        c->add_option("--target", o.target,
                "pack for, or check against, this target:" + targets + " (default: this machine)");
        return c;
    };
    const auto with_parts = [&](CLI::App *c) {
        c->add_option("--part-mib", o.part_mib, "MiB of a tensor that a thread works on at a time")
                ->check(CLI::Range(0u, 1u << 20))
                ->capture_default_str();
    };
    std::string formats;
    for (const auto &f : weight_formats::format_names()) formats += " " + f;
    CLI::App *pack_c =
            command("pack", "quantise and pack the weights of linear layers and experts, [out, in] and "
                            "[experts, out, in]; repack codes and scales");
    pack_c->footer(weight_rule::text());
    pack_c->add_option("output", o.out,
            "file to write, not the input; a folder where there are several shards and the name does not end with "
            ".safetensors");
    pack_c->add_option("--format", o.format,
            "of high-precision weights:" + formats
                    + " (nvfp4: with a global scale; int4: s4, bf16 scales; int4_zp: u4, f16 scales, u8 zero "
                      "points; int4_min: u4, f16 scales and minima; int8: s8, f16 scales; all in groups of "
                      "32). The default is mxfp4");
    pack_c->add_option(
            "--rounding", o.rounding, "of e8m0 scales: floor rceil ceil even; the default is rceil");
    pack_c->add_option("--include", o.include,
            "pack tensors whose name matches this regular expression, whatever the rule below says");
    const auto with_exclude = [&](CLI::App *c) {
        c->add_option("--exclude", o.exclude, "leave out tensors whose name matches");
    };
    with_exclude(pack_c);
    pack_c->add_option("--rule", o.rules,
                  "REGEX=FORMAT: the format of weights whose name matches; the first rule that matches counts; the "
                  "format 'keep' leaves them as they are")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    const auto with_transposed = [&](CLI::App *c) {
        c->add_option("--transposed", o.transposed,
                "tensors whose name matches are stored [in, out] or [experts, in, out]");
    };
    with_transposed(pack_c);
    pack_c->add_flag("--requantise,--requantize", o.requantise,
            "weights whose codes no format holds (FP8 with floating-point scales, HQQ, some of GGUF): quantise what they are worth");
    const auto with_gptq = [&](CLI::App *c) {
        c->add_option("--gptq-zeros", o.gptq_zeros,
                 "how zero points of GPTQ are stored: less-one (gptq) or plain (gptq_v2); the default is what "
                 "config.json says")
                ->check(CLI::IsMember({"less-one", "plain"}));
    };
    with_gptq(pack_c);
    pack_c->add_flag("--dry-run", o.dry_run, "say what becomes what, and write nothing");
    pack_c->add_option("--recipe", o.recipe, "activation recipe to note in the descriptors");
    pack_c->add_flag("--codes-only", o.codes_only, "pack what is quantised already and copy the rest");
    with_parts(pack_c);
    CLI::App *unpack_c = command("unpack", "write packed weights as plain ones");
    unpack_c->add_option("output", o.out, "file to write")->required();
    unpack_c->add_option("--type", o.type, "f32 bf16 f16")->capture_default_str();
    with_parts(unpack_c);
    CLI::App *list_c = command("list", "say what is packed, and check every descriptor and checksum");
    CLI::App *verify_c = command("verify", "check every descriptor and checksum, whatever the target is");
    CLI::App *diff_c =
            command("diff", "compare packed weights with what they were made of; the worst come first");
    diff_c->add_option("original", o.original, "safetensors file, index, folder or GGUF file")->required();
    with_exclude(diff_c);
    with_transposed(diff_c);
    with_gptq(diff_c);
    with_parts(diff_c);
    pack_c->final_callback([&] {
        if (o.out.empty() && !o.dry_run) throw CLI::RequiredError("output");
    });
    if (const auto status = command_line::parse(app, "mxdnn-pack", argc, argv)) return *status;
    if (*pack_c) pack(o);
    if (*unpack_c) unpack(o);
    if (*diff_c) diff(o);
    if (*verify_c) return verify(o) ? 0 : 1;
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
    return end_of_output("mxdnn-pack", status);
}

// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to packed weights, part of a tensor in memory at a time.
#include "commands.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>

#include "checkpoint.hpp"
#include "compare.hpp"
#include "json_text.hpp"
#include "output.hpp"
#include "rules.hpp"
#include "sources.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using mxdnn::memory;
using dt = memory::data_type;
using safetensors::shown;

namespace {

mxdnn::scale_rounding find_rounding(const std::string &name) {
    using r = mxdnn::scale_rounding;
    if (name.empty()) return default_rounding;
    const std::pair<const char *, r> all[] = {
            {"floor", r::floor}, {"rceil", r::rceil}, {"ceil", r::ceil}, {"even", r::even}};
    for (const auto &x : all)
        if (name == x.first) return x.second;
    throw std::runtime_error(
            "there is no rounding " + safetensors::shown(name) + "; known are floor, rceil, ceil and even");
}

std::string summary(const sources_t &sources) {
    std::string s;
    for (const auto &l : sources.left)
        s += "  " + l.first + ": " + std::to_string(l.second.count) + ", such as " + shown(l.second.first)
             + "\n";
    return s;
}

// A source and what becomes of it.
struct planned_t {
    const source_t *source;
    format_t format;
    memory::desc desc;
    uint64_t before;
};

struct plan_t {
    std::vector<planned_t> tensors;
    uint64_t before = 0, after = 0;
};

plan_t make_plan(const checkpoint_t &input, sources_t &sources, const format_rules_t &rules,
        const mxdnn::engine &engine, const std::string &recipe) {
    plan_t plan;
    for (const source_t &s : sources.packed) {
        const format_t *format =
                s.format ? &*s.format : rules.find(s.name, s.nearest ? &*s.nearest : nullptr);
        if (!format) {
            sources_t::left_t &l = sources.left["kept by --rule"];
            if (l.count++ == 0) l.first = s.name;
            continue;
        }
        planned_t p{&s, *format, packed_desc(*format, engine, s.shape), 0};
        p.desc.set_annotation(s.format ? dt::undef : s.type, recipe);
        for (const size_t i : s.entries) p.before += input.entries[i].stored_size;
        plan.before += p.before;
        plan.after += p.desc.get_size();
        plan.tensors.push_back(std::move(p));
    }
    return plan;
}

void print(const plan_t &plan) {
    for (const planned_t &p : plan.tensors) {
        const std::string how = p.source->format          ? ", unchanged"
                                : !p.source->loss.empty() ? ", quantised again"
                                                          : "";
        printf("%s  %s -> %s%s  %" PRIu64 " -> %zu bytes\n", shown(p.source->name).c_str(),
                p.source->layout.c_str(), p.format.name.c_str(), how.c_str(), p.before, p.desc.get_size());
    }
}

// How far weights that were quantised again are from what they were.
void print_losses(const plan_t &plan, const output_t &output, const mxdnn::engine &engine, const options_t &o,
        unsigned threads) {
    const auto is_lossy = [](const planned_t &p) { return !p.source->loss.empty(); };
    if (std::none_of(plan.tensors.begin(), plan.tensors.end(), is_lossy)) return;
    const checkpoint_t packed(output.to_read());
    for (const planned_t &p : plan.tensors) {
        if (!is_lossy(p)) continue;
        const difference_t d = compare(packed, *packed.find(p.source->name), *p.source, engine, o, threads);
        printf("%s  %s -> %s, quantised again: %s\n", shown(p.source->name).c_str(), p.source->layout.c_str(),
                p.format.name.c_str(), d.text().c_str());
    }
}

// What torchao says of tensors that are packed now is true no more.
void forget_torchao(std::map<std::string, std::string> &metadata, const std::set<std::string> &packed) {
    const auto names = metadata.find("tensor_names");
    if (names == metadata.end()) return;
    bool any = false;
    for (const std::string &name : packed) any = metadata.erase(name) > 0 || any;
    if (!any) return;
    const nlohmann::json before = parse_json(names->second, "the metadata 'tensor_names'");
    nlohmann::json after = nlohmann::json::array();
    for (const auto &n : before)
        if (!n.is_string() || !packed.count(n.get<std::string>())) after.push_back(n);
    names->second = after.dump();
}

} // namespace

void pack(const options_t &o) {
    const format_rules_t rules(o);
    const auto rounding = find_rounding(o.rounding);
    if (!o.rounding.empty() && !rules.has_e8m0())
        throw std::runtime_error("--rounding is of e8m0 scales; " + *o.format + " has others");
    const mxdnn::engine engine = make_engine(o);
    const checkpoint_t input(o.in);
    std::unique_ptr<output_t> output;
    if (!o.dry_run) output = std::make_unique<output_t>(o.out, input);
    sources_t sources = find_sources(input, o);
    const plan_t plan = make_plan(input, sources, rules, engine, o.recipe);
    if (plan.tensors.empty())
        throw std::runtime_error(input.path + " has no weights to pack; its tensors are\n" + summary(sources)
                                 + "(mxdnn-pack pack --help has the rule; --include packs what matches)");
    const unsigned threads = use_threads(o);
    if (!o.dry_run) {
        input.verify(threads);
        std::set<size_t> taken;
        std::set<std::string> names;
        for (const planned_t &p : plan.tensors) {
            const source_t &s = *p.source;
            for (const size_t i : s.entries) {
                taken.insert(i);
                output->contents(input.entries[i])
                        .metadata.erase(input.entries[i].name + safetensors::checksum_suffix);
            }
            names.insert(s.name);
            const auto packing = std::make_shared<const packing_t>(
                    packing_of(s, uint64_t(o.part_mib) << 20, p.format, engine, rounding));
            output->contents(input.entries[s.entries[0]])
                    .add_packed(s.name, p.desc,
                            {packing->parts(), [packing](size_t part, const safetensors::take_t &take) {
                                 packing->make(part, take);
                             }});
        }
        for (size_t i = 0; i < input.entries.size(); i++)
            if (!taken.count(i)) input.copy(i, output->contents(input.entries[i]));
        for (size_t i = 0; i < input.shards.size(); i++) forget_torchao(output->contents(i).metadata, names);
        output->write(threads);
        print_losses(plan, *output, engine, o, threads);
    } else {
        print(plan);
    }
    printf("%s: %zu tensors %s for %s, %" PRIu64 " bytes to %" PRIu64 "\n",
            output ? output->shown().c_str() : input.path.c_str(), plan.tensors.size(),
            output ? "packed" : "would be packed", engine.get_target().c_str(), plan.before, plan.after);
    if (!sources.left.empty())
        printf("left as they are (weights of linear layers and experts are packed: mxdnn-pack pack --help):\n%s",
                summary(sources).c_str());
}

} // namespace mxdnn_pack

// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <cstdio>
#include <set>
#include <stdexcept>

#include <sys/resource.h>
#include <sys/stat.h>

#include "common/in_order.hpp"
#include "common/input_file.hpp"
#include "common/interrupt.hpp"
#include "common/safetensors.hpp"
#include "gguf_entries.hpp"
#include "json_text.hpp"
#include "progress.hpp"

namespace mxdnn_pack {

using nlohmann::json;
using safetensors::ends_with;
using safetensors::shown;
using safetensors::shown_path;

namespace {

constexpr size_t max_json_size = size_t(32) << 20;
constexpr size_t max_shards = 10'000;
constexpr const char *index_name = "model.safetensors.index.json", *file_name = "model.safetensors";

bool is_folder(const std::string &path) {
    struct stat st;
    return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}
bool exists(const std::string &path) {
    struct stat st;
    return stat(path.c_str(), &st) == 0;
}

std::string folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
std::string last_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string read_text(const std::string &path) {
    const input_file_t file(path);
    if (file.size() > max_json_size)
        throw std::runtime_error("cannot read " + file.name() + ": it has " + std::to_string(file.size())
                                 + " bytes; at most " + std::to_string(max_json_size) + " are read");
    std::string text(size_t(file.size()), '\0');
    file.read(0, text.size(), text.data());
    return text;
}

// Of the parts that a GGUF file may be cut into, from 0 on.
struct part_t {
    uint64_t number, count;

    std::string ending() const {
        char text[64];
        snprintf(text, sizeof(text), "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(number) + 1,
                static_cast<unsigned long long>(count));
        return text;
    }
};
part_t part_of(const gguf::file_t &file) {
    const gguf::value_t *number = file.find("split.no"), *count = file.find("split.count");
    return {number ? number->unsigned_integer() : 0, count ? count->unsigned_integer() : 1};
}

// Many shards are many open files.
void allow_many_files() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

checkpoint_t::checkpoint_t(const std::string &given) : path(shown_path(given)) {
    std::string at = given;
    if (is_folder(given)) {
        at = given + "/" + index_name;
        if (!exists(at)) at = given + "/" + file_name;
        if (!exists(at))
            throw std::runtime_error("the folder " + path + " has neither " + index_name + " nor " + file_name
                                     + "; name a safetensors file or an index");
    }
    folder_ = folder_of(at);
    if (ends_with(at, ".index.json"))
        read_index(at);
    else if (gguf::is_gguf(at))
        read_gguf(at);
    else
        add_file(last_name(at), at);
}

void checkpoint_t::add_file(const std::string &name, const std::string &file_path) {
    mxdnn::container file(file_path);
    shards.push_back({name, file_path, file, nullptr, file.get_metadata()});
    const size_t count = file.size();
    entries.reserve(entries.size() + count);
    for (size_t i = 0; i < count; i++) {
        const mxdnn::container::entry e = file.get_entry(i);
        add_entry({e, shards.size() - 1, i, e.dtype, e.size});
    }
}

void checkpoint_t::read_gguf(const std::string &file_path) {
    const auto file = std::make_shared<const gguf::file_t>(file_path);
    const part_t part = part_of(*file);
    if (part.count < 2) return add_gguf(file_path, file);
    const std::string ending = part.ending();
    if (part.count > max_shards || !ends_with(file_path, ending))
        throw std::runtime_error(file->name() + " says that it is part " + std::to_string(part.number + 1)
                                 + " of " + std::to_string(part.count) + "; its name must end with " + ending
                                 + ", and there are up to " + std::to_string(max_shards) + " parts");
    allow_many_files();
    for (part_t p{0, part.count}; p.number < part.count; p.number++) {
        const std::string path_of_part = safetensors::without(file_path, ending) + p.ending();
        auto other = std::make_shared<const gguf::file_t>(path_of_part);
        if (const part_t is = part_of(*other); is.number != p.number || is.count != p.count)
            throw std::runtime_error(other->name() + " says that it is part " + std::to_string(is.number + 1)
                                     + " of " + std::to_string(is.count));
        add_gguf(path_of_part, other);
    }
    if (const gguf::value_t *due = shards[0].gguf->find("split.tensors.count");
            due && due->unsigned_integer() != entries.size())
        throw std::runtime_error(shards[0].gguf->name() + " says that all parts have "
                                 + std::to_string(due->unsigned_integer()) + " tensors; they have "
                                 + std::to_string(entries.size()));
}

void checkpoint_t::add_gguf(const std::string &file_path, const std::shared_ptr<const gguf::file_t> &file) {
    const std::string name = last_name(file_path),
                      stem = ends_with(name, ".gguf") ? safetensors::without(name, ".gguf") : name;
    shards.push_back({stem + ".safetensors", file_path, {}, file, metadata_of(*file)});
    const std::vector<gguf::tensor_t> &tensors = file->tensors();
    for (size_t i = 0; i < tensors.size(); i++)
        add_entry({entry_of(*file, tensors[i]), shards.size() - 1, i, tensors[i].element->name,
                tensors[i].size});
}

void checkpoint_t::add_entry(entry_t e) {
    if (const auto other = by_name_.find(e.name); other != by_name_.end())
        throw std::runtime_error("tensor " + shown(e.name) + " is in "
                                 + shown_path(shards[entries[other->second].shard].path) + " and in "
                                 + shown_path(shards[e.shard].path));
    by_name_[e.name] = entries.size();
    entries.push_back(std::move(e));
}

void checkpoint_t::read_index(const std::string &index_path) {
    index = index_path;
    const json j = parse_json(read_text(index_path), shown_path(index_path));
    const auto refuse = [&](const std::string &why) {
        throw std::runtime_error(shown_path(index_path) + ": " + why);
    };
    if (!j.is_object() || !j.contains("weight_map") || !j["weight_map"].is_object())
        refuse("it has no object \"weight_map\", which says which file has which tensor");
    std::map<std::string, std::string> files; // of tensors
    std::set<std::string> names;
    for (const auto &[tensor, value] : j["weight_map"].items()) {
        if (!value.is_string()) refuse("the file of tensor " + shown(tensor) + " is not a string");
        const std::string name = value.get<std::string>();
        if (name.empty() || name.find_first_of(std::string("/\\\0", 3)) != name.npos || name == "."
                || name == "..")
            refuse("tensor " + shown(tensor) + " is in " + shown(name)
                    + ", which does not name a file in the same folder");
        files[tensor] = name;
        names.insert(name);
        if (names.size() > max_shards) refuse("it names more than " + std::to_string(max_shards) + " files");
    }
    if (names.empty()) refuse("it names no tensors");
    allow_many_files();
    for (const std::string &name : names) add_file(name, folder_ + "/" + name);
    check_index(files);
}

// Both have to say the same: a file that has more or less belongs to another checkpoint.
void checkpoint_t::check_index(const std::map<std::string, std::string> &files) const {
    size_t stored = 0;
    for (const entry_t &e : entries) {
        const auto check = [&](const std::string &name) {
            const auto it = files.find(name);
            if (it == files.end() || it->second != shards[e.shard].name)
                throw std::runtime_error(
                        "tensor " + shown(name) + " is in " + shown_path(shards[e.shard].path)
                        + ", and the index " + shown_path(*index)
                        + (it == files.end() ? " does not have it" : " has it in " + shown(it->second)));
            stored++;
        };
        if (e.is_packed) {
            check(e.name + safetensors::packed_suffix);
            check(e.name + safetensors::desc_suffix);
        } else {
            check(e.name);
        }
    }
    if (stored == files.size()) return;
    for (const auto &[name, file] : files) {
        std::string entry = name;
        for (const char *suffix : {safetensors::packed_suffix, safetensors::desc_suffix})
            if (!find(entry) && ends_with(name, suffix)) entry = safetensors::without(name, suffix);
        if (!find(entry))
            throw std::runtime_error("the index " + shown_path(*index) + " has tensor " + shown(name) + " in "
                                     + shown(file) + ", which does not have it");
    }
}

std::optional<size_t> checkpoint_t::find(const std::string &name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? std::nullopt : std::optional<size_t>(it->second);
}

const gguf::tensor_t *checkpoint_t::gguf_of(const entry_t &e) const {
    const auto &file = shards[e.shard].gguf;
    return file ? &file->tensors()[e.index] : nullptr;
}

void checkpoint_t::read(size_t entry, uint64_t offset, uint64_t size, void *buffer) const {
    interrupt::check();
    const entry_t &e = entries[entry];
    if (const gguf::tensor_t *t = gguf_of(e))
        read_entry(*shards[e.shard].gguf, *t, offset, size, buffer);
    else
        file_of(e).read(e.index, offset, size_t(size), buffer);
}

void checkpoint_t::copy(size_t entry, safetensors::contents_t &to) const {
    const entry_t &e = entries[entry];
    if (gguf_of(e))
        to.add_plain(e.name, e.dtype, e.dims, e.size, safetensors::in_pieces(e.size, reader(entry)));
    else
        to.add_copy(file_of(e), e.index);
}

weight_formats::read_t checkpoint_t::reader(size_t entry) const {
    return [this, entry](uint64_t offset, uint64_t size, void *buffer) { read(entry, offset, size, buffer); };
}

void checkpoint_t::verify(unsigned threads) const {
    uint64_t total = 0;
    std::vector<size_t> checked;
    for (size_t i = 0; i < entries.size(); i++)
        if (entries[i].is_packed || entries[i].has_checksum) {
            checked.push_back(i);
            total += entries[i].size;
        }
    progress_t progress("checking " + path, total);
    uint64_t done = 0;
    in_order::run(checked.size(), threads, [&](size_t job, const in_order::turn_t &wait_for_turn) {
        interrupt::check();
        const entry_t &e = entries[checked[job]];
        file_of(e).verify(e.index);
        wait_for_turn();
        progress.update(done += e.size);
    });
}

json checkpoint_t::beside(const char *name) const {
    const std::string at = folder_ + "/" + name;
    return exists(at) ? parse_json(read_text(at), shown_path(at)) : json::object();
}

} // namespace mxdnn_pack

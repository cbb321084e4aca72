// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/interrupt.hpp"
#include "common/replaced_file.hpp"
#include "progress.hpp"

namespace mxdnn_pack {

using safetensors::ends_with;
using safetensors::shown_path;
using safetensors::status_t;

namespace {

void check(const status_t &s) {
    if (!s.ok()) throw std::runtime_error(s.message);
}

std::string last_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

// The result has less precision than what it is made of, which is not to be lost by a slip.
void refuse_same_file(const std::string &in, const std::string &out) {
    struct stat a, b;
    if (stat(in.c_str(), &a) == 0 && stat(out.c_str(), &b) == 0 && a.st_dev == b.st_dev
            && a.st_ino == b.st_ino)
        throw std::runtime_error(shown_path(out) + " is the input itself; name another file to write");
}

// Files that got their names, and the folder where it is new, until all is done.
class undo_t {
public:
    ~undo_t() {
        for (const std::string &f : files) unlink(f.c_str());
        if (!folder.empty()) rmdir(folder.c_str());
    }
    std::vector<std::string> files;
    std::string folder;
    void keep() {
        files.clear();
        folder.clear();
    }
};

} // namespace

output_t::output_t(const std::string &path, const checkpoint_t &input)
    : input_(input), path_(path), shown_(shown_path(path)) {
    struct stat st;
    const bool is_there = stat(path.c_str(), &st) == 0;
    is_folder_ =
            (is_there && S_ISDIR(st.st_mode)) || ends_with(path, "/")
            || (!is_there && (input.index || input.shards.size() > 1) && !ends_with(path, ".safetensors"));
    if (input.index)
        index_ = last_name(*input.index);
    else if (input.shards.size() > 1)
        index_ = "model.safetensors.index.json";
    for (const auto &s : input.shards) refuse_same_file(s.path, path);
    if (input.index) refuse_same_file(*input.index, path);
    shards_.resize(is_folder_ ? input.shards.size() : 1);
    for (size_t i = 0; i < input.shards.size(); i++)
        contents(i).metadata.insert(input.shards[i].metadata.begin(), input.shards[i].metadata.end());
}

void output_t::write(unsigned threads) { is_folder_ ? write_folder(threads) : write_file(path_, threads); }

std::string output_t::to_read() const {
    if (!is_folder_) return path_;
    return place(index_.empty() ? input_.shards[0].name : index_);
}

void output_t::write_file(const std::string &path, unsigned threads) {
    safetensors::contents_t &c = shards_[0];
    safetensors::writer_t file(path, c.tensors);
    check(file.begin(c.metadata));
    progress_t progress(shown_, file.total_bytes());
    check(file.fill(c.metadata, threads, [&](uint64_t done, uint64_t) -> status_t {
        progress.update(done);
        if (interrupt::received()) return {safetensors::kind_t::io, "ended by a signal"};
        return {};
    }));
    check(file.commit());
}

void output_t::write_folder(unsigned threads) {
    undo_t undo;
    if (mkdir(path_.c_str(), 0777) == 0)
        undo.folder = path_;
    else if (errno != EEXIST)
        throw std::runtime_error("cannot make the folder " + shown_ + ": " + strerror(errno));
    const auto refuse_existing = [&](const std::string &name) {
        struct stat st;
        if (lstat(place(name).c_str(), &st) == 0)
            throw std::runtime_error(
                    shown_path(place(name)) + " is there already; name another folder, or remove it first");
    };
    if (!index_.empty()) refuse_existing(index_);
    for (const auto &s : input_.shards) refuse_existing(s.name);
    // The room of all is reserved before any is written.
    std::vector<std::unique_ptr<safetensors::writer_t>> files;
    uint64_t total = 0, before = 0;
    for (size_t i = 0; i < shards_.size(); i++) {
        files.push_back(
                std::make_unique<safetensors::writer_t>(place(input_.shards[i].name), shards_[i].tensors));
        check(files.back()->begin(shards_[i].metadata));
        total += files.back()->total_bytes();
    }
    {
        progress_t progress(shown_, total);
        for (size_t i = 0; i < files.size(); i++) {
            check(files[i]->fill(shards_[i].metadata, threads, [&](uint64_t done, uint64_t) -> status_t {
                progress.update(before + done);
                if (interrupt::received()) return {safetensors::kind_t::io, "ended by a signal"};
                return {};
            }));
            before += files[i]->total_bytes();
        }
    }
    for (size_t i = 0; i < files.size(); i++) {
        interrupt::check();
        check(files[i]->commit(true));
        undo.files.push_back(place(input_.shards[i].name));
    }
    if (!index_.empty()) {
        const std::string text = index_text(total);
        safetensors::replaced_file_t file(place(index_));
        check(file.open());
        check(file.write_at(0, text.data(), text.size()));
        check(file.commit(true));
    }
    undo.keep();
}

std::string output_t::index_text(uint64_t total_bytes) const {
    nlohmann::json map = nlohmann::json::object();
    for (size_t i = 0; i < shards_.size(); i++)
        for (const auto &t : shards_[i].tensors) map[t.name] = input_.shards[i].name;
    return nlohmann::json{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(map)}}.dump(2)
           + "\n";
}

} // namespace mxdnn_pack

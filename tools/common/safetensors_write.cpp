// SPDX-License-Identifier: Apache-2.0
// Writing safetensors: into a temporary file beside the target, which takes the target's place only when
// every byte has reached the disk.
#include "safetensors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "utf8.hpp"

namespace safetensors {

namespace {

bool ends_with(const std::string &s, const std::string &end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

bool is_packed(const out_tensor_t &t) { return ends_with(t.name, packed_suffix); }

uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

// A file that exists under its name only after commit().
class temporary_t {
public:
    explicit temporary_t(const std::string &path) : path_(path) {
        const size_t slash = path.rfind('/');
        dir_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
        fd_ = ::open(dir_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd_ >= 0) return;
        // A file system without files that have no name.
        name_ = path + ".tmp-XXXXXX";
        fd_ = mkostemp(&name_[0], O_CLOEXEC);
    }
    ~temporary_t() {
        if (fd_ < 0) return;
        ::close(fd_);
        if (!committed_ && !name_.empty()) unlink(name_.c_str());
    }
    status_t opened() const { return fd_ < 0 ? error("create a file beside") : status_t{}; }

    status_t write_at(uint64_t offset, const void *bytes, uint64_t size) {
        const char *p = static_cast<const char *>(bytes);
        while (size) {
            const ssize_t n = pwrite(fd_, p, size_t(std::min<uint64_t>(size, 1u << 30)), off_t(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n == 0) errno = ENOSPC;
            if (n <= 0) return error("write");
            p += n;
            offset += uint64_t(n);
            size -= uint64_t(n);
        }
        return {};
    }

    status_t commit() {
        // The file is the owner's alone so far; it takes the mode that the target has or that open() would
        // give.
        struct stat st;
        mode_t mode;
        if (stat(path_.c_str(), &st) == 0) {
            mode = st.st_mode & 0777;
        } else {
            const mode_t mask = umask(0);
            umask(mask);
            mode = 0666 & ~mask;
        }
        if (fchmod(fd_, mode) != 0 || fsync(fd_) != 0) return error("write");
        if (name_.empty() && !give_name()) return error("replace");
        if (rename(name_.c_str(), path_.c_str()) != 0) return error("replace");
        committed_ = true;
        // The new name is durable once the directory is; a file system that cannot sync one is no failure.
        const int d = ::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (d >= 0) {
            (void)fsync(d);
            ::close(d);
        }
        return {};
    }

private:
    std::string path_, dir_, name_; // name_ is empty while the file has none
    int fd_ = -1;
    bool committed_ = false;

    // A name beside the target that nobody has: only rename() replaces what is there.
    bool give_name() {
        const std::string self = "/proc/self/fd/" + std::to_string(fd_);
        for (int i = 0; i < 1000; i++) {
            const std::string name = path_ + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(i);
            if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
                name_ = name;
                return true;
            }
            if (errno != EEXIST) return false;
        }
        return false;
    }

    status_t error(const char *doing) const {
        return {kind_t::io, std::string("cannot ") + doing + " " + path_ + ": " + strerror(errno)};
    }
};

struct planned_t {
    const out_tensor_t *tensor;
    std::vector<int64_t> shape; // as stored: packed tensors are padded
    uint64_t bytes;             // that fill() gives
    uint64_t begin, end;
};

status_t plan(const std::vector<out_tensor_t> &tensors, std::vector<planned_t> &planned) {
    std::vector<const out_tensor_t *> order;
    std::set<std::string> names;
    for (const auto &t : tensors) {
        if (utf8::first_invalid(t.name.data(), t.name.size()) != t.name.size())
            return {kind_t::bad_utf8, "the tensor name " + shown(t.name) + " is not UTF-8"};
        if (t.name == "__metadata__" || !names.insert(t.name).second)
            return {kind_t::duplicate_name, "the tensor name " + shown(t.name) + " is taken already"};
        if (t.shape.size() > max_ndims)
            return {kind_t::bad_shape, "tensor " + shown(t.name) + " has more than "
                                               + std::to_string(max_ndims) + " dimensions"};
        if (is_packed(t) && (t.dtype != dtype_t::u8 || t.shape.size() != 1))
            return {kind_t::bad_shape,
                    "tensor " + shown(t.name) + " is packed, so it must be U8 of one dimension"};
        order.push_back(&t);
    }
    // Widest first keeps every tensor aligned for its type, since there are no gaps to align with.
    std::sort(order.begin(), order.end(), [](const out_tensor_t *a, const out_tensor_t *b) {
        if (is_packed(*a) != is_packed(*b)) return is_packed(*a);
        if (bits_of(a->dtype) != bits_of(b->dtype)) return bits_of(a->dtype) > bits_of(b->dtype);
        return a->name < b->name;
    });
    uint64_t offset = 0;
    for (const auto *t : order) {
        uint64_t bits = uint64_t(bits_of(t->dtype));
        for (int64_t d : t->shape)
            if (d < 0 || __builtin_mul_overflow(bits, uint64_t(d), &bits))
                return {kind_t::bad_shape,
                        "tensor " + shown(t->name) + " has a negative or too large dimension"};
        if (bits % 8)
            return {kind_t::bad_shape, "tensor " + shown(t->name) + " is not a whole number of bytes"};
        planned_t p{t, t->shape, bits / 8, offset, 0};
        p.end = offset + p.bytes;
        if (is_packed(*t)) {
            p.end = offset + round_up(p.bytes, packed_alignment);
            p.shape = {int64_t(p.end - p.begin)};
        }
        offset = p.end;
        planned.push_back(std::move(p));
    }
    return {};
}

status_t header_text(const std::vector<planned_t> &planned,
        const std::map<std::string, std::string> &metadata, std::string &text) {
    for (const auto &m : metadata)
        for (const auto *s : {&m.first, &m.second})
            if (utf8::first_invalid(s->data(), s->size()) != s->size())
                return {kind_t::bad_utf8, "the metadata of " + shown(m.first) + " is not UTF-8"};
    nlohmann::ordered_json h = nlohmann::ordered_json::object();
    if (!metadata.empty()) h["__metadata__"] = metadata;
    for (const auto &p : planned)
        h[p.tensor->name] = {
                {"dtype", name_of(p.tensor->dtype)}, {"shape", p.shape}, {"data_offsets", {p.begin, p.end}}};
    text = h.dump();
    text.resize(round_up(8 + text.size(), packed_alignment) - 8, ' ');
    if (text.size() > max_header_size)
        return {kind_t::header_too_long, "the header would have " + std::to_string(text.size()) + " bytes"};
    return {};
}

} // namespace

out_tensor_t from_memory(std::string name, dtype_t dtype, std::vector<int64_t> shape, const void *bytes) {
    uint64_t bits = uint64_t(bits_of(dtype));
    for (int64_t d : shape) bits *= uint64_t(d);
    return {std::move(name), dtype, std::move(shape),
            [=](const sink_t &sink) { return sink(bytes, bits / 8); }};
}

out_tensor_t from_file(const file_t &file, const tensor_t &t) {
    return {t.name, t.dtype, t.shape, [&file, &t](const sink_t &sink) {
                status_t s;
                for_pieces(t.data, t.size(), [&](const void *piece, uint64_t size) {
                    if (s.ok()) s = sink(piece, size);
                    file.forget(piece, size);
                });
                return s;
            }};
}

status_t write(const std::string &path, const std::vector<out_tensor_t> &tensors,
        const std::map<std::string, std::string> &metadata,
        const std::function<void(uint64_t, uint64_t)> &progress) {
    std::vector<planned_t> planned;
    if (const status_t s = plan(tensors, planned); !s.ok()) return s;
    std::string header;
    if (const status_t s = header_text(planned, metadata, header); !s.ok()) return s;
    const uint64_t data = 8 + header.size(), total = planned.empty() ? 0 : planned.back().end;

    // The last step is a rename, which would put a file in the place of a device, too.
    struct stat there;
    if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
        return {kind_t::io, "cannot replace " + path + ": it is no regular file"};
    temporary_t file(path);
    if (const status_t s = file.opened(); !s.ok()) return s;
    for (const auto &p : planned) {
        const std::string what = "tensor " + shown(p.tensor->name);
        uint64_t got = 0;
        const status_t s = p.tensor->fill([&](const void *bytes, uint64_t size) -> status_t {
            if (size > p.bytes - got)
                return {kind_t::wrong_size,
                        what + " gives more than its " + std::to_string(p.bytes) + " bytes"};
            const status_t w = file.write_at(data + p.begin + got, bytes, size);
            got += size;
            if (progress) progress(p.begin + got, total);
            return w;
        });
        if (!s.ok()) return s;
        if (got != p.bytes)
            return {kind_t::wrong_size,
                    what + " gives " + std::to_string(got) + " of its " + std::to_string(p.bytes) + " bytes"};
        static constexpr uint8_t zeros[packed_alignment] = {};
        if (const status_t z = file.write_at(data + p.begin + got, zeros, p.end - p.begin - got); !z.ok())
            return z;
    }
    const size_t planned_header = header.size();
    if (const status_t s = header_text(planned, metadata, header); !s.ok()) return s;
    if (header.size() != planned_header)
        return {kind_t::wrong_size, "the metadata changed its length while " + path + " was written"};
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = uint8_t(uint64_t(header.size()) >> 8 * i);
    if (const status_t s = file.write_at(0, length, 8); !s.ok()) return s;
    if (const status_t s = file.write_at(8, header.data(), header.size()); !s.ok()) return s;
    return file.commit();
}

} // namespace safetensors

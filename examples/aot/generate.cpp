// SPDX-License-Identifier: Apache-2.0
// The compiler's part: quantises and packs the weights for every target that the library knows, present or
// not, and writes one artefact.
//
//     aot_generate FILE
//
// Targets that share their packed bytes share a record. Prints what aot_run has to print of the result.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "artefact.hpp"
#include "network.hpp"

using namespace mxdnn;
using dt = memory::data_type;
using dim = memory::dim;

namespace {

struct tensor_t {
    std::string name;
    dim K, N;
    std::vector<float> values; // [K][N]
};

// A tensor packed in one way.
struct packed_t {
    std::string name;
    std::vector<uint8_t> blob, bytes;
    uint64_t checksum;
};

// Values that MXFP4 has, with a 6 in each block, so that nothing is rounded.
tensor_t make(const char *name, dim K, dim N, dim step) {
    static const float exact[8] = {0.5f, -1.f, 1.5f, 0.f, -3.f, 2.f, -0.5f, -2.f};
    tensor_t t{name, K, N, std::vector<float>(static_cast<size_t>(K * N))};
    for (dim k = 0; k < K; k++)
        for (dim n = 0; n < N; n++)
            t.values[k * N + n] = (k + n) % 32 == 0 ? 6.f : exact[(k * step + n * 3 + k / 8) % 8];
    return t;
}

// relu(x * up) * down, by its definition.
double sum_of_result(const tensor_t &up, const tensor_t &down) {
    double sum = 0;
    for (dim m = 0; m < aot::rows; m++) {
        std::vector<double> h(static_cast<size_t>(up.N));
        for (dim n = 0; n < up.N; n++) {
            for (dim k = 0; k < up.K; k++) h[n] += aot::input(m * up.K + k) * up.values[k * up.N + n];
            if (h[n] < 0) h[n] = 0;
        }
        for (dim n = 0; n < down.N; n++)
            for (dim k = 0; k < down.K; k++) sum += (m + 1) * h[k] * down.values[k * down.N + n];
    }
    return sum;
}

packed_t pack(const tensor_t &t, const memory::desc &md, const engine &target) {
    packed_t p{t.name, md.get_blob(), std::vector<uint8_t>(md.get_size()), 0};
    const engine host(engine::kind::cpu, 0);
    const memory plain(
            {{t.K, t.N}, dt::f32, memory::format_tag::ab}, host, const_cast<float *>(t.values.data()));
    const memory packed(md, target);
    stream s(target);
    mx_reorder(plain, packed).execute(s, plain, packed);
    s.wait();
    void *bytes = packed.map_data();
    std::memcpy(p.bytes.data(), bytes, p.bytes.size());
    p.checksum = packed_checksum(md, p.bytes.data());
    packed.unmap_data(bytes);
    return p;
}

std::vector<uint8_t> artefact(const std::vector<packed_t> &all) {
    using namespace aot;
    header_t h = {};
    std::memcpy(h.magic, magic, sizeof magic);
    h.count = all.size();
    h.data_begin = sizeof h + all.size() * sizeof(record_t);
    std::vector<record_t> records(all.size());
    for (size_t i = 0; i < all.size(); i++) { // blobs, one after the other
        all[i].name.copy(records[i].name, sizeof records[i].name - 1);
        records[i].blob_offset = h.data_begin;
        records[i].blob_size = all[i].blob.size();
        h.data_begin += all[i].blob.size();
    }
    h.file_size = h.data_begin;
    for (size_t i = 0; i < all.size(); i++) { // packed bytes, aligned
        records[i].data_offset = (h.file_size + alignment - 1) / alignment * alignment;
        records[i].data_size = all[i].bytes.size();
        records[i].checksum = all[i].checksum;
        h.file_size = records[i].data_offset + records[i].data_size;
    }
    std::vector<uint8_t> file(h.file_size);
    std::memcpy(&file[sizeof h], records.data(), records.size() * sizeof(record_t));
    for (size_t i = 0; i < all.size(); i++) {
        std::memcpy(&file[records[i].blob_offset], all[i].blob.data(), all[i].blob.size());
        std::memcpy(&file[records[i].data_offset], all[i].bytes.data(), all[i].bytes.size());
    }
    h.checksum = front_checksum(&file[sizeof h], h.data_begin - sizeof h);
    std::memcpy(file.data(), &h, sizeof h);
    return file;
}

void generate(const std::string &path) {
    const tensor_t tensors[] = {
            make(aot::up, aot::in, aot::hidden, 5), make(aot::down, aot::hidden, aot::out, 3)};
    primitive_attr mxfp4;
    mxfp4.set_scales(MXDNN_ARG_WEIGHTS, 1 << 0 | 1 << 1, {32, 1}, dt::e8m0);

    std::vector<packed_t> all;
    for (const std::string &name : engine::get_target_names()) {
        const engine target = engine::for_target(name);
        for (const tensor_t &t : tensors) {
            const memory::desc md = memory::desc::packed(target, {t.K, t.N}, dt::f4_e2m1, mxfp4);
            const std::vector<uint8_t> blob = md.get_blob();
            bool there = false;
            for (const packed_t &p : all) there = there || (p.name == t.name && p.blob == blob);
            if (!there) all.push_back(pack(t, md, target));
            std::printf("%-28s %-5s %s%s\n", name.c_str(), t.name.c_str(), md.to_string().c_str(),
                    there ? ", which is there" : "");
        }
    }
    const std::vector<uint8_t> file = artefact(all);
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char *>(file.data()), static_cast<std::streamsize>(file.size()));
    stream.close();
    if (!stream) throw std::runtime_error("cannot write " + path);
    std::printf("%zu records, %zu bytes\nresult: %.17g\n", all.size(), file.size(),
            sum_of_result(tensors[0], tensors[1]));
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc != 2 || *argv[1] == '-') throw std::runtime_error("usage: aot_generate FILE");
        generate(argv[1]);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "aot_generate: %s\n", e.what());
        return 1;
    }
}

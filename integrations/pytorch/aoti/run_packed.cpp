// SPDX-License-Identifier: Apache-2.0
// Runs an AOTInductor package with packed weights, without Python:
//   run_packed PACKAGE.pt2 OPERATORS.so INPUTS.pt OUTPUTS.pt [--device cuda] [--native]
// OPERATORS.so is the library of mxdnn_torch. INPUTS.pt is a list of tensors that torch.save wrote;
// OUTPUTS.pt gets a tuple that torch.load reads. --native refuses a machine where the weights would run by
// slower kernels than planned.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/csrc/jit/serialization/pickle.h>

#include "packed_package.hpp"

namespace {

struct options_t {
    std::string package, operators, inputs, outputs;
    mxdnn::engine::kind device = mxdnn::engine::kind::cpu;
    bool native = false;
};

options_t parse(int argc, char **argv) {
    options_t o;
    std::string *const positions[] = {&o.package, &o.operators, &o.inputs, &o.outputs};
    size_t position = 0;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--native") == 0)
            o.native = true;
        else if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            o.device = std::strcmp(argv[++i], "cuda") == 0 ? mxdnn::engine::kind::cuda
                                                           : mxdnn::engine::kind::cpu;
        else if (position < 4)
            *positions[position++] = argv[i];
        else
            position = 5;
    }
    if (position != 4)
        throw std::runtime_error(
                "usage: run_packed PACKAGE.pt2 OPERATORS.so INPUTS.pt OUTPUTS.pt [--device cuda] [--native]");
    return o;
}

std::vector<char> read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("could not read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void run(const options_t &o) {
    if (dlopen(o.operators.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
        throw std::runtime_error(std::string("could not load the operators: ") + dlerror());
    const mxdnn::engine eng(o.device, 0);
    mxdnn_aoti::require_target(o.package);
    const auto constants = mxdnn_aoti::read_packed_constants(o.package, eng);
    const auto verdict = mxdnn_aoti::require_usable(constants);
    std::printf("%zu packed weights, %s on %s\n", constants.size(),
            verdict == mxdnn::blob_verdict::native ? "native" : "slower", eng.get_target().c_str());
    if (o.native && verdict != mxdnn::blob_verdict::native)
        for (const auto &c : constants)
            if (!c.reason.empty()) throw std::runtime_error(c.name + " is not native here: " + c.reason);

    torch::inductor::AOTIModelPackageLoader loader(o.package);
    mxdnn_aoti::verify_bytes(loader, constants);
    const c10::IValue list = torch::jit::pickle_load(read_file(o.inputs));
    std::vector<at::Tensor> inputs;
    for (const c10::IValue &value : list.toListRef()) {
        const at::Tensor &t = value.toTensor();
        inputs.push_back(o.device == mxdnn::engine::kind::cuda ? t.cuda() : t);
    }
    std::vector<c10::IValue> outputs;
    for (const at::Tensor &t : loader.run(inputs)) outputs.push_back(t.cpu());

    const std::vector<char> bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(outputs));
    std::ofstream file(o.outputs, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("could not write " + o.outputs);
    std::printf("%zu outputs in %s\n", outputs.size(), o.outputs.c_str());
}

} // namespace

int main(int argc, char **argv) {
    try {
        run(parse(argc, argv));
        return 0;
    } catch (const std::exception &e) {
        const std::string what = e.what(); // torch appends a stack
        std::fprintf(
                stderr, "run_packed: %s\n", what.substr(0, what.find("\nException raised from")).c_str());
        return 1;
    }
}

// SPDX-License-Identifier: Apache-2.0
// In builds without CUDA no engine is a device, so that nothing here is reached.
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/knobs.hpp"

namespace bench {

namespace {
[[noreturn]] void refuse() {
    throw usage_error_t("this mxdnn-bench was built without CUDA, so it cannot time a device");
}
} // namespace

void time_graphs(const mxdnn::stream &, const nodes_t &, const nodes_t &, double, times_t &, times_t &) {
    refuse();
}
const ceilings_t &device_ceilings() { refuse(); }
double empty_kernel_us() { refuse(); }
device_peer_t make_cublaslt_matmul(const mxdnn::stream &, const dense_matmul_t &, int, int) { refuse(); }

} // namespace bench

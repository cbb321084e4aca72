// SPDX-License-Identifier: Apache-2.0
// A handle can be asked whether it is empty, but is no number that slips into another argument.
#include <mxdnn/mxdnn.hpp>

bool filled(const mxdnn::engine &engine) {
#ifdef MXDNN_WRONG
    const bool answer = engine;
    return answer;
#else
    return static_cast<bool>(engine);
#endif
}

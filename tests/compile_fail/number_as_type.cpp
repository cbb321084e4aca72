// SPDX-License-Identifier: Apache-2.0
// Element types and orders are types of their own: numbers, or the two swapped, do not compile.
#include <mxdnn/mxdnn.hpp>

mxdnn::memory::desc describe() {
    using namespace mxdnn;
#ifdef MXDNN_WRONG
    return memory::desc({4, 8}, memory::format_tag::ab, memory::data_type::f32);
#else
    return memory::desc({4, 8}, memory::data_type::f32, memory::format_tag::ab);
#endif
}

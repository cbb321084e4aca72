// SPDX-License-Identifier: Apache-2.0
// Types of counts, offsets and pointer tables: they have a size and a name, and no arithmetic here.
#pragma once

#include "common/formats/roles.hpp"
#include "common/types.hpp"

namespace mxdnn {
namespace impl {

struct s32_t {
    static constexpr data_type_t id = mxdnn_s32;
    static constexpr const char *name = "s32";
    static constexpr unsigned roles = role_index;
    static constexpr int bits = 32;
    static constexpr bool is_signed = true;
};

struct u64_t {
    static constexpr data_type_t id = mxdnn_u64;
    static constexpr const char *name = "u64";
    static constexpr unsigned roles = role_index;
    static constexpr int bits = 64;
    static constexpr bool is_signed = false;
};

} // namespace impl
} // namespace mxdnn

// SPDX-License-Identifier: Apache-2.0
#define MXDNN_MOE_KERNELS moe_kernels_avx512
#include "cpu/x64/moe/moe_kernels_body.hpp"

// SPDX-License-Identifier: Apache-2.0
#define MXDNN_REORDER_KERNELS reorder_kernels_avx512
#include "cpu/x64/reorder/reorder_kernels_body.hpp"

// SPDX-License-Identifier: Apache-2.0
#define MXDNN_ROW_KERNELS row_kernels_avx2
#include "cpu/x64/rows/row_kernels_body.hpp"

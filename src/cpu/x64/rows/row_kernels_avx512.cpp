// SPDX-License-Identifier: Apache-2.0
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 sees an uninitialised variable in its own _mm512_undefined_ps().
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define MXDNN_ROW_KERNELS row_kernels_avx512
#include "cpu/x64/rows/row_kernels_body.hpp"

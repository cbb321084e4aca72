// SPDX-License-Identifier: Apache-2.0
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 sees an uninitialised variable in its own _mm512_undefined_epi32().
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define MXDNN_REORDER_KERNELS reorder_kernels_avx512
#include "cpu/x64/reorder/reorder_kernels_body.hpp"

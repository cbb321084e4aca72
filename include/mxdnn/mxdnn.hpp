// SPDX-License-Identifier: Apache-2.0
/// @file
/// C++ API: the objects of the C API as values that release themselves, and failures as exceptions.
///
/// Names, the order of arguments and the meaning of copies are oneDNN's: a copy refers to the same object.
/// Every call is one call of mxdnn.h, where statuses and ownership are documented; nothing is computed here.
/// C++11 or later.
///
/// A call that fails throws mxdnn::error. Compiled with -fno-exceptions, or with MXDNN_ENABLE_EXCEPTIONS
/// defined as 0, it prints the error and ends the program with abort(). All files of a program must use the
/// same setting.
///
/// Include this header. Those in hpp/ are its parts, one for each object.
#ifndef MXDNN_HPP
#define MXDNN_HPP

#include "mxdnn/hpp/blob.hpp"
#include "mxdnn/hpp/engine.hpp"
#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/error.hpp"
#include "mxdnn/hpp/grouped_matmul.hpp"
#include "mxdnn/hpp/grouped_matmul_backward_weights.hpp"
#include "mxdnn/hpp/handle.hpp"
#include "mxdnn/hpp/memory.hpp"
#include "mxdnn/hpp/moe.hpp"
#include "mxdnn/hpp/mx_matmul.hpp"
#include "mxdnn/hpp/mx_reorder.hpp"
#include "mxdnn/hpp/post_ops.hpp"
#include "mxdnn/hpp/primitive.hpp"
#include "mxdnn/hpp/primitive_attr.hpp"
#include "mxdnn/hpp/primitive_desc.hpp"
#include "mxdnn/hpp/service.hpp"
#include "mxdnn/hpp/stream.hpp"

/// The C++ API.
namespace mxdnn {}

#endif

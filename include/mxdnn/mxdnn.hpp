// SPDX-License-Identifier: Apache-2.0
/// @file
/// C++ API: the objects of the C API as values that release themselves, its statuses as exceptions.
///
/// Names, argument order and copy semantics are oneDNN's: a copy of a handle refers to the same
/// object. Nothing here computes anything; every call is one call of mxdnn.h. C++11 or later.
///
/// Compiled with -fno-exceptions, or with MXDNN_ENABLE_EXCEPTIONS defined as 0 (in all files of a program
/// alike), a call that fails prints what was wrong on standard error and ends the program with abort().
///
/// Include this header; those in hpp/ are its parts, one for each object.
#ifndef MXDNN_HPP
#define MXDNN_HPP

#include "mxdnn/hpp/blob.hpp"
#include "mxdnn/hpp/engine.hpp"
#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/error.hpp"
#include "mxdnn/hpp/grouped_matmul.hpp"
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

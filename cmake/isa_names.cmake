# SPDX-License-Identifier: Apache-2.0
# Sets of CPU features that have a name; tests run under each.
#   MXDNN_ISA_NAMES          all, from their list in isa.hpp
#   MXDNN_REORDER_ISA_NAMES  those that mx_reorder has an implementation for: under any other it runs one of theirs
function(_mxdnn_isa_names result file head)
    set(path "${CMAKE_CURRENT_SOURCE_DIR}/src/cpu/${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(STRINGS "${path}" rows REGEX "${head}[a-z0-9_]+")
    string(REGEX MATCHALL "${head}[a-z0-9_]+" names "${rows}")
    list(TRANSFORM names REPLACE "${head}" "")
    if(NOT names)
        message(FATAL_ERROR "${path} has no rows with ${head} and a name")
    endif()
    set(${result} ${names} PARENT_SCOPE)
endfunction()
_mxdnn_isa_names(MXDNN_ISA_NAMES x64/isa.hpp "\"cpu:x64:")
_mxdnn_isa_names(MXDNN_REORDER_ISA_NAMES cpu_impl_lists.cpp "simd_mx_reorder_t<x64::cpu_isa_t::")

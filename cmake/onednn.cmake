# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN for interop and for measuring beside it. Nothing in the core library needs it.
#
# Sets MXDNN_HAVE_ONEDNN (ON or OFF) and MXDNN_ONEDNN_VERSION; with ON there is the target DNNL::dnnl. A oneDNN that
# CMake finds is preferred (dnnl_DIR or CMAKE_PREFIX_PATH point to it); otherwise the one that scripts/setup put into
# .deps/onednn is taken, and MXDNN_ONEDNN_PROJECT_DIR names it (empty in the other cases). The library's folder is part
# of the build tree's RPATH because the target is imported with its full path.

set(MXDNN_MIN_ONEDNN 3.2)
set(MXDNN_ONEDNN AUTO CACHE STRING "oneDNN for interop and side-by-side measurement: AUTO, ON (required) or OFF")
set_property(CACHE MXDNN_ONEDNN PROPERTY STRINGS AUTO ON OFF)

set(MXDNN_HAVE_ONEDNN OFF)
set(MXDNN_ONEDNN_VERSION "")
set(MXDNN_ONEDNN_PROJECT_DIR "")

if(MXDNN_ONEDNN)
    # A oneDNN without a CPU engine, or one whose headers drag in SYCL, is of no use here.
    macro(_mxdnn_try_onednn)
        find_package(dnnl ${MXDNN_MIN_ONEDNN} CONFIG QUIET ${ARGN})
        if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
            set(dnnl_FOUND FALSE)
        endif()
        if(dnnl_FOUND AND "${DNNL_CPU_RUNTIME}" MATCHES "^(NONE|SYCL|DPCPP)$")
            message(STATUS "oneDNN in ${dnnl_DIR} is passed over: its CPU runtime is ${DNNL_CPU_RUNTIME}")
            set(dnnl_FOUND FALSE)
        endif()
    endmacro()

    _mxdnn_try_onednn()
    if(NOT dnnl_FOUND AND NOT TARGET DNNL::dnnl AND EXISTS "${PROJECT_SOURCE_DIR}/.deps/onednn/lib/cmake/dnnl")
        unset(dnnl_DIR CACHE)
        set(MXDNN_ONEDNN_PROJECT_DIR "${PROJECT_SOURCE_DIR}/.deps/onednn")
        _mxdnn_try_onednn(PATHS "${MXDNN_ONEDNN_PROJECT_DIR}" NO_DEFAULT_PATH)
        set(_mxdnn_onednn_dir "${dnnl_DIR}")
        # Left in the cache it would hide a newer oneDNN installed later.
        unset(dnnl_DIR CACHE)
    else()
        set(_mxdnn_onednn_dir "${dnnl_DIR}")
    endif()

    if(dnnl_FOUND)
        set(MXDNN_HAVE_ONEDNN ON)
        set(MXDNN_ONEDNN_VERSION "${dnnl_VERSION}")
        message(STATUS "oneDNN ${dnnl_VERSION} (${DNNL_CPU_THREADING_RUNTIME} threads): ${_mxdnn_onednn_dir}")
    elseif(MXDNN_ONEDNN STREQUAL "AUTO")
        message(STATUS "oneDNN ${MXDNN_MIN_ONEDNN} or newer not found: building without interop and --against=onednn "
                "(scripts/setup fetches it, or set dnnl_DIR)")
    else()
        message(FATAL_ERROR "MXDNN_ONEDNN=${MXDNN_ONEDNN}, but oneDNN ${MXDNN_MIN_ONEDNN} or newer was not found. "
                "scripts/setup puts one into .deps/onednn; another one is taken with -Ddnnl_DIR=...")
    endif()
endif()

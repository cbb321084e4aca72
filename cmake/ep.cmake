# SPDX-License-Identifier: Apache-2.0
# libmxdnn_ep, the component `ep`: expert parallelism over MPI (CPU) and NCCL (CUDA). Sets MXDNN_HAVE_EP, and
# MXDNN_EP_HAVE_MPI, MXDNN_EP_HAVE_NCCL and MXDNN_EP_HAVE_NCCL_DEVICE. MXDNN_EP is AUTO (built where one of both is found), ON (one is required) or
# OFF. NCCL needs a build with CUDA and the header nccl.h alone: its library is the one that the program loads. Left out of
# static builds and of wheels: it is a shared library beside libmxdnn, and belongs to the MPI of the machine.

set(MXDNN_EP AUTO CACHE STRING
    "Build libmxdnn_ep, expert parallelism over MPI and NCCL: AUTO (when one of both is found), ON or OFF")
set_property(CACHE MXDNN_EP PROPERTY STRINGS AUTO ON OFF)
set(MXDNN_HAVE_EP FALSE)
set(MXDNN_EP_HAVE_MPI FALSE)
set(MXDNN_EP_HAVE_NCCL FALSE)
set(MXDNN_EP_HAVE_NCCL_DEVICE FALSE)
if(NOT MXDNN_EP MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MXDNN_EP is '${MXDNN_EP}'; possible are AUTO, ON and OFF")
endif()
if(MXDNN_EP STREQUAL "AUTO" AND (MXDNN_WHEEL OR (DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)))
    message(STATUS "mxdnn ep: left out of wheels and of static builds")
elseif(NOT MXDNN_EP STREQUAL "OFF")
    find_package(MPI 3.1 QUIET COMPONENTS C)
    if(MPI_C_FOUND)
        set(MXDNN_EP_HAVE_MPI TRUE)
        message(STATUS "mxdnn ep: MPI ${MPI_C_VERSION}, ${MPI_C_LIBRARIES}")
    endif()
    if(MXDNN_HAVE_CUDA)
        find_package(CUDAToolkit REQUIRED)
        find_path(MXDNN_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} DOC "Folder that holds nccl.h")
        mark_as_advanced(MXDNN_NCCL_INCLUDE_DIR)
    endif()
    if(MXDNN_HAVE_CUDA AND MXDNN_NCCL_INCLUDE_DIR)
        set(MXDNN_EP_HAVE_NCCL TRUE)
        if(EXISTS ${MXDNN_NCCL_INCLUDE_DIR}/nccl_device.h) # from 2.28 on
            set(MXDNN_EP_HAVE_NCCL_DEVICE TRUE)
        endif()
        message(STATUS "mxdnn ep: NCCL, ${MXDNN_NCCL_INCLUDE_DIR}/nccl.h, device API: ${MXDNN_EP_HAVE_NCCL_DEVICE}")
    endif()
    if(MXDNN_EP_HAVE_MPI OR MXDNN_EP_HAVE_NCCL)
        set(MXDNN_HAVE_EP TRUE)
    elseif(MXDNN_EP STREQUAL "ON")
        message(FATAL_ERROR "MXDNN_EP is ON, but neither an MPI of version 3.1 or newer was found (Debian/Ubuntu package "
                "libopenmpi-dev) nor, for a build with CUDA, nccl.h (package libnccl-dev); name the MPI's compiler with "
                "-DMPI_C_COMPILER=.../mpicc or the header's folder with -DMXDNN_NCCL_INCLUDE_DIR=, or leave MXDNN_EP at "
                "AUTO or OFF")
    else()
        message(STATUS "mxdnn ep: no MPI of version 3.1 or newer (Debian/Ubuntu package libopenmpi-dev), and no nccl.h "
                "for a build with CUDA (package libnccl-dev); libmxdnn_ep is left out")
    endif()
endif()

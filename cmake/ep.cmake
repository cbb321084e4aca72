# SPDX-License-Identifier: Apache-2.0
# libmxdnn_ep, the component `ep`: expert parallelism over MPI. Sets MXDNN_HAVE_EP. MXDNN_EP is AUTO (built where an MPI
# is found), ON (an MPI is required) or OFF. Left out of static builds and of wheels: it is a shared library beside
# libmxdnn, and belongs to the MPI of the machine.

set(MXDNN_EP AUTO CACHE STRING "Build libmxdnn_ep, expert parallelism over MPI: AUTO (when an MPI is found), ON or OFF")
set_property(CACHE MXDNN_EP PROPERTY STRINGS AUTO ON OFF)
set(MXDNN_HAVE_EP FALSE)
if(NOT MXDNN_EP MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MXDNN_EP is '${MXDNN_EP}'; possible are AUTO, ON and OFF")
endif()
if(MXDNN_EP STREQUAL "AUTO" AND (MXDNN_WHEEL OR (DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)))
    message(STATUS "mxdnn ep: left out of wheels and of static builds")
elseif(NOT MXDNN_EP STREQUAL "OFF")
    find_package(MPI 3.1 QUIET COMPONENTS C)
    if(MPI_C_FOUND)
        set(MXDNN_HAVE_EP TRUE)
        message(STATUS "mxdnn ep: MPI ${MPI_C_VERSION}, ${MPI_C_LIBRARIES}")
    elseif(MXDNN_EP STREQUAL "ON")
        message(FATAL_ERROR "MXDNN_EP is ON, but no MPI of version 3.1 or newer was found (Debian/Ubuntu package "
                "libopenmpi-dev); name its compiler with -DMPI_C_COMPILER=.../mpicc, or leave MXDNN_EP at AUTO or OFF")
    else()
        message(STATUS "mxdnn ep: no MPI of version 3.1 or newer (Debian/Ubuntu package libopenmpi-dev); "
                "libmxdnn_ep is left out")
    endif()
endif()

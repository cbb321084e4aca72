# SPDX-License-Identifier: Apache-2.0
# libmxdnn_cuda: modules and launches, which libmxdnn opens when a CUDA engine is asked for. Sets MXDNN_HAVE_CUDA.
# MXDNN_CUDA is AUTO (built where a toolkit is found), ON (a toolkit is required) or OFF. MXDNN_CUDA_ARCHITECTURES says
# for which devices: doc/reference/cuda.md, "Building".

set(MXDNN_MIN_CUDA 12.4)
set(MXDNN_HAVE_CUDA FALSE)
if(NOT MXDNN_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MXDNN_CUDA is '${MXDNN_CUDA}'; possible are AUTO, ON and OFF")
endif()
if(NOT MXDNN_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    # Each target says what it is built for.
    set(CMAKE_CUDA_ARCHITECTURES OFF)
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
        set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_STANDARD 17)
        set(CMAKE_CUDA_STANDARD_REQUIRED ON)
        set(CMAKE_CUDA_EXTENSIONS OFF)
        set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
        enable_language(CUDA)
        if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL MXDNN_MIN_CUDA)
            set(MXDNN_HAVE_CUDA TRUE)
        endif()
    endif()
    if(MXDNN_HAVE_CUDA)
        message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}: ${CMAKE_CUDA_COMPILER}")
    elseif(MXDNN_CUDA STREQUAL "ON")
        message(FATAL_ERROR "MXDNN_CUDA is ON, but no working CUDA toolkit of version ${MXDNN_MIN_CUDA} or newer was "
                "found; name its compiler with -DCMAKE_CUDA_COMPILER=.../nvcc, or leave MXDNN_CUDA at AUTO or OFF")
    else()
        message(STATUS "CUDA: no toolkit of version ${MXDNN_MIN_CUDA} or newer; libmxdnn_cuda is left out")
    endif()
endif()

set(MXDNN_CUDA_ARCHITECTURES "80;90a" CACHE STRING "Architectures of CUDA devices that libmxdnn_cuda has code for")
# The fewer, the less time a build takes: the driver translates portable kernels for other devices when it loads them.
set(MXDNN_CUDA_PORTABLE_CODE ALL CACHE STRING
    "Machine code of portable CUDA kernels: for ALL architectures, for the LEAST, or for NONE")
if(MXDNN_HAVE_CUDA)
    include(cmake/cuda_architectures.cmake) # MXDNN_CUDA_PORTABLE, _SM90 and _LEAST
endif()

# Files of device code for the architectures that they are written for, and the host code beside them. (Host code is in
# C++ files, because nvcc takes four times as long.) Code is compressed, and decompressed when it is loaded; the modes
# have names from CUDA 13 on. The best one takes a tenth of a build's time, and is for builds that are handed on.
set(MXDNN_CUDA_COMPRESSION -Xfatbin=-compress-all)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0 AND MXDNN_CUDA_PORTABLE_CODE STREQUAL "ALL")
    list(APPEND MXDNN_CUDA_COMPRESSION -Xfatbin=--compress-mode=size)
endif()
function(mxdnn_cuda_objects name architectures)
    add_library(${name} OBJECT ${ARGN})
    set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${name} PRIVATE MXDNN_RELEASE="${PROJECT_VERSION}")
    target_include_directories(${name} SYSTEM PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}>")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ffp-contract=off>
        "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;${MXDNN_CUDA_COMPRESSION};-Xcompiler=-Wall,-Wextra,-ffp-contract=off>")
    if(MXDNN_WERROR)
        target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
            "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
    endif()
endfunction()

# Puts one file in the place of those in a list that match, because headers in front of a file take nvcc 1.5 s, and 3 s for
# two architectures. Names in their anonymous namespaces differ from file to file.
function(mxdnn_cuda_together list name pattern)
    set(files ${${list}})
    set(parts ${files})
    list(FILTER files EXCLUDE REGEX "${pattern}")
    list(FILTER parts INCLUDE REGEX "${pattern}")
    if(parts)
        list(TRANSFORM parts REPLACE "(.+)" "#include \"\\1\"\n")
        list(JOIN parts "" text)
        set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu)
        file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
        list(APPEND files ${file})
    endif()
    set(${list} ${files} PARENT_SCOPE)
endfunction()

# SPDX-License-Identifier: Apache-2.0
# Sets, of MXDNN_CUDA_ARCHITECTURES, a list such as "80;90a": MXDNN_CUDA_PORTABLE, what portable kernels are built for
# (machine code of every entry, or of the least one where MXDNN_CUDA_PORTABLE_CODE is LEAST, or of NONE; and the least
# one's PTX); MXDNN_CUDA_EARLY, the same and Hopper;
# MXDNN_CUDA_SM90, whether the kernels of sm_90 alone are built; MXDNN_CUDA_LEAST, the least compute capability of a
# device that there is code for. Asks CMAKE_CUDA_COMPILER what it compiles for.
function(mxdnn_cuda_architectures)
    set(possible "possible are 80, 86, 89, 90a (or 90), 100, 103, 120, 121, separated by semicolons, e.g. 80;90a")
    if(NOT MXDNN_CUDA_ARCHITECTURES)
        message(FATAL_ERROR "MXDNN_CUDA_ARCHITECTURES is empty; ${possible}")
    endif()
    set(list "")
    foreach(arch ${MXDNN_CUDA_ARCHITECTURES})
        if(NOT arch MATCHES "^(80|86|89|90a?|100|103|120|121)$")
            message(FATAL_ERROR "MXDNN_CUDA_ARCHITECTURES has '${arch}'; ${possible}")
        endif()
        string(REGEX REPLACE "a$" "" arch "${arch}")
        list(APPEND list "${arch}")
    endforeach()
    list(REMOVE_DUPLICATES list)
    list(SORT list COMPARE NATURAL)
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code
        OUTPUT_VARIABLE known ERROR_QUIET RESULT_VARIABLE failed)
    foreach(arch ${list})
        if(NOT failed AND NOT known MATCHES "sm_${arch}[\r\n]")
            message(FATAL_ERROR "MXDNN_CUDA_ARCHITECTURES has '${arch}', which CUDA ${CMAKE_CUDA_COMPILER_VERSION} does "
                    "not compile for; take a newer toolkit, or leave it out: devices of later architectures translate "
                    "the code of the least one when they load it")
        endif()
    endforeach()
    list(FIND list 90 sm90)
    # The least one's as PTX too, for devices that there is no machine code for.
    list(POP_FRONT list least)
    set(portable "${least}")
    if(MXDNN_CUDA_PORTABLE_CODE STREQUAL "ALL")
        foreach(arch ${list})
            list(APPEND portable "${arch}-real")
        endforeach()
    elseif(MXDNN_CUDA_PORTABLE_CODE STREQUAL "NONE")
        set(portable "${least}-virtual")
    elseif(NOT MXDNN_CUDA_PORTABLE_CODE STREQUAL "LEAST")
        message(FATAL_ERROR "MXDNN_CUDA_PORTABLE_CODE is '${MXDNN_CUDA_PORTABLE_CODE}'; possible are ALL, LEAST and NONE")
    endif()
    set(MXDNN_CUDA_PORTABLE "${portable}" PARENT_SCOPE)
    # Kernels that start while the one before them ends need code of an architecture that can do that.
    if(NOT sm90 EQUAL -1 AND NOT portable MATCHES "(^|;)90")
        list(APPEND portable 90-real)
    endif()
    set(MXDNN_CUDA_EARLY "${portable}" PARENT_SCOPE)
    set(MXDNN_CUDA_LEAST "${least}" PARENT_SCOPE)
    if(sm90 EQUAL -1)
        set(MXDNN_CUDA_SM90 OFF PARENT_SCOPE)
    else()
        set(MXDNN_CUDA_SM90 ON PARENT_SCOPE)
    endif()
endfunction()

mxdnn_cuda_architectures()

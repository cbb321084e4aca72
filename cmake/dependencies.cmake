# SPDX-License-Identifier: Apache-2.0
# Finds the libraries that the enabled parts of the build need and, when some are missing or too old, says in one
# message which ones and which Debian/Ubuntu packages hold them. Makes the targets TBB::tbb, Xbyak::xbyak,
# GTest::gtest, nlohmann_json::nlohmann_json and CLI11::CLI11. The floors are the versions of Debian 12.

set(MXDNN_MIN_TBB 2021.8)
set(MXDNN_MIN_XBYAK 6.68)
set(MXDNN_MIN_GTEST 1.12)
set(MXDNN_MIN_JSON 3.11)
set(MXDNN_MIN_CLI11 2.1)
set(MXDNN_MIN_GNU 12)
set(MXDNN_MIN_Clang 14)

# An old compiler fails hours later in a template; say it here instead.
function(mxdnn_check_compiler)
    set(_id ${CMAKE_CXX_COMPILER_ID})
    if(DEFINED MXDNN_MIN_${_id} AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS MXDNN_MIN_${_id})
        message(FATAL_ERROR "mxdnn needs ${_id} ${MXDNN_MIN_${_id}} or newer; ${CMAKE_CXX_COMPILER} is "
                "${CMAKE_CXX_COMPILER_VERSION}. Choose another with -DCMAKE_CXX_COMPILER=...")
    endif()
endfunction()

# Records one missing dependency: what, the version found ("" if none), the floor, the package.
function(_mxdnn_missing what found floor package)
    if(found STREQUAL "")
        set(_line "  ${what} ${floor} or newer was not found (Debian/Ubuntu package ${package})")
    else()
        set(_line "  ${what} ${floor} or newer is needed, ${found} was found (Debian/Ubuntu package ${package})")
    endif()
    set_property(GLOBAL APPEND PROPERTY mxdnn_missing_lines "${_line}")
    set_property(GLOBAL APPEND PROPERTY mxdnn_missing_packages "${package}")
endfunction()

# find_package in config mode, with the version compared here: some of these packages' own version files refuse a
# newer major version that works.
macro(_mxdnn_find_config name target what floor package)
    find_package(${name} CONFIG QUIET)
    if(NOT ${name}_FOUND OR NOT TARGET ${target})
        _mxdnn_missing("${what}" "" ${floor} ${package})
    elseif(DEFINED ${name}_VERSION AND ${name}_VERSION VERSION_LESS ${floor})
        _mxdnn_missing("${what}" "${${name}_VERSION}" ${floor} ${package})
    endif()
endmacro()

# Xbyak is headers only and not every package of it has CMake files, so it is found by its header and its version is
# read from it: the constant VERSION is 0x6680 or 0x7033 (three or four digits, the last one a letter's place).
function(_mxdnn_find_xbyak)
    find_path(MXDNN_XBYAK_INCLUDE_DIR xbyak/xbyak.h DOC "Folder that holds xbyak/xbyak.h")
    mark_as_advanced(MXDNN_XBYAK_INCLUDE_DIR)
    if(NOT MXDNN_XBYAK_INCLUDE_DIR)
        _mxdnn_missing("Xbyak" "" ${MXDNN_MIN_XBYAK} libxbyak-dev)
        return()
    endif()
    set(_version "")
    foreach(_header xbyak.h xbyak_mnemonic.h)
        if(_version STREQUAL "" AND EXISTS "${MXDNN_XBYAK_INCLUDE_DIR}/xbyak/${_header}")
            file(STRINGS "${MXDNN_XBYAK_INCLUDE_DIR}/xbyak/${_header}" _line
                 REGEX "VERSION *= *0x[0-9A-Fa-f]+" LIMIT_COUNT 1)
            if(_line MATCHES "VERSION *= *0x([0-9A-Fa-f])([0-9A-Fa-f][0-9A-Fa-f])")
                set(_version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
            endif()
        endif()
    endforeach()
    if(_version STREQUAL "")
        _mxdnn_missing("Xbyak" "unreadable version in ${MXDNN_XBYAK_INCLUDE_DIR}/xbyak" ${MXDNN_MIN_XBYAK}
                       libxbyak-dev)
        return()
    elseif(_version VERSION_LESS MXDNN_MIN_XBYAK)
        _mxdnn_missing("Xbyak" "${_version}" ${MXDNN_MIN_XBYAK} libxbyak-dev)
        return()
    endif()
    if(NOT TARGET Xbyak::xbyak)
        add_library(Xbyak::xbyak INTERFACE IMPORTED)
        # A compiler's own search folder must not be repeated as -isystem: it breaks #include_next.
        if(NOT MXDNN_XBYAK_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
            target_include_directories(Xbyak::xbyak SYSTEM INTERFACE "${MXDNN_XBYAK_INCLUDE_DIR}")
        endif()
    endif()
    message(STATUS "Xbyak ${_version}: ${MXDNN_XBYAK_INCLUDE_DIR}")
endfunction()

macro(mxdnn_find_dependencies)
    mxdnn_check_compiler()
    set_property(GLOBAL PROPERTY mxdnn_missing_lines "")
    set_property(GLOBAL PROPERTY mxdnn_missing_packages "")
    foreach(_mxdnn_dep ${ARGN})
        if(_mxdnn_dep STREQUAL "TBB")
            _mxdnn_find_config(TBB TBB::tbb "oneTBB" ${MXDNN_MIN_TBB} libtbb-dev)
        elseif(_mxdnn_dep STREQUAL "XBYAK")
            _mxdnn_find_xbyak()
        elseif(_mxdnn_dep STREQUAL "GTEST")
            _mxdnn_find_config(GTest GTest::gtest "GoogleTest" ${MXDNN_MIN_GTEST} libgtest-dev)
        elseif(_mxdnn_dep STREQUAL "JSON")
            _mxdnn_find_config(nlohmann_json nlohmann_json::nlohmann_json "nlohmann-json" ${MXDNN_MIN_JSON}
                               nlohmann-json3-dev)
        elseif(_mxdnn_dep STREQUAL "CLI11")
            _mxdnn_find_config(CLI11 CLI11::CLI11 "CLI11" ${MXDNN_MIN_CLI11} libcli11-dev)
        else()
            message(FATAL_ERROR "mxdnn_find_dependencies: unknown name '${_mxdnn_dep}'")
        endif()
    endforeach()
    get_property(_mxdnn_lines GLOBAL PROPERTY mxdnn_missing_lines)
    if(_mxdnn_lines)
        get_property(_mxdnn_packages GLOBAL PROPERTY mxdnn_missing_packages)
        string(REPLACE ";" "\n" _mxdnn_lines "${_mxdnn_lines}")
        string(REPLACE ";" " " _mxdnn_packages "${_mxdnn_packages}")
        message(FATAL_ERROR "mxdnn cannot be built yet:\n${_mxdnn_lines}\n"
                "On Debian or Ubuntu: apt-get install ${_mxdnn_packages}\n"
                "or let scripts/setup install whatever is missing. "
                "A part that is not wanted can be left out: -DMXDNN_BUILD_TESTS=OFF, -DMXDNN_BUILD_EXAMPLES=OFF, "
                "-DMXDNN_BUILD_BENCH=OFF, -DMXDNN_BUILD_TOOLS=OFF.")
    endif()
endmacro()

set(_mxdnn_wanted XBYAK)
set(MXDNN_CPU_RUNTIME TBB CACHE STRING
    "Threads of CPU executions: TBB (oneTBB's, or the caller's pool), THREADPOOL (the caller's pool) or SEQ (none)")
set_property(CACHE MXDNN_CPU_RUNTIME PROPERTY STRINGS TBB THREADPOOL SEQ)
if(NOT MXDNN_CPU_RUNTIME MATCHES "^(TBB|THREADPOOL|SEQ)$")
    message(FATAL_ERROR "MXDNN_CPU_RUNTIME is '${MXDNN_CPU_RUNTIME}'; possible are TBB, THREADPOOL and SEQ")
endif()

find_package(Threads REQUIRED)
set(MXDNN_CPU_RUNTIME_LIBRARIES "")
if(MXDNN_CPU_RUNTIME STREQUAL "TBB")
    set(MXDNN_CPU_RUNTIME_LIBRARIES TBB::tbb)
endif()
if(MXDNN_CPU_RUNTIME STREQUAL "TBB" OR MXDNN_BUILD_EXAMPLES)
    list(PREPEND _mxdnn_wanted TBB)
endif()
if(MXDNN_BUILD_TESTS)
    list(APPEND _mxdnn_wanted GTEST)
endif()
if(MXDNN_BUILD_TESTS OR MXDNN_BUILD_EXAMPLES OR MXDNN_BUILD_TOOLS)
    list(APPEND _mxdnn_wanted JSON)
endif()
if(MXDNN_BUILD_EXAMPLES OR MXDNN_BUILD_TOOLS)
    list(APPEND _mxdnn_wanted CLI11)
endif()
mxdnn_find_dependencies(${_mxdnn_wanted})

# SPDX-License-Identifier: Apache-2.0
# How test programs are compiled. What they test was compiled as a user has it.
add_library(mxdnn_test_options INTERFACE)
target_link_libraries(mxdnn_test_options INTERFACE mxdnn_options GTest::gtest)
target_include_directories(mxdnn_test_options INTERFACE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(mxdnn_test_options INTERFACE MXDNN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/gtests")
# Sources that are compiled together look like headers to GCC, which warns of classes without a name for others.
target_compile_options(mxdnn_test_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)

# What computes much is compiled at -O1, which takes half the time of -O3; what calls and compares at -O0, which takes
# two thirds of that.
foreach(level O0 O1)
    add_library(mxdnn_test_options_${level} INTERFACE)
    target_link_libraries(mxdnn_test_options_${level} INTERFACE mxdnn_test_options)
    target_compile_options(mxdnn_test_options_${level} INTERFACE
        $<$<AND:$<CONFIG:Release,RelWithDebInfo>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-${level}>)

    # Owns the precompiled header of the test programs; a program, because it has to be compiled with the flags of programs.
    # Headers from outside the project alone, so that a change of the library compiles only what includes what changed.
    # No source relies on it: each includes what it uses (scripts/check-tidy compiles without).
    set(owner mxdnn_test_precompiled_${level})
    add_executable(${owner} ${PROJECT_SOURCE_DIR}/tests/gtests/precompiled.cpp)
    set_target_properties(${owner} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(${owner} PRIVATE mxdnn_test_options_${level})
    target_precompile_headers(${owner} PRIVATE
        <algorithm> <array> <atomic> <cmath> <cstdint> <cstdio> <cstdlib> <cstring> <fstream> <functional>
        <initializer_list> <iterator> <limits> <map> <memory> <mutex> <numeric> <random> <set> <sstream> <string> <thread>
        <tuple> <type_traits> <unordered_map> <utility> <vector> <gtest/gtest.h>)
endforeach()
function(mxdnn_compile_test target level)
    target_link_libraries(${target} PRIVATE mxdnn_test_options_${level})
    get_target_property(type ${target} TYPE)
    get_target_property(files ${target} SOURCES)
    if(type STREQUAL "EXECUTABLE" AND files MATCHES "\\.cpp")
        target_precompile_headers(${target} REUSE_FROM mxdnn_test_precompiled_${level})
    endif()
endfunction()

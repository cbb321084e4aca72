# SPDX-License-Identifier: Apache-2.0
# Flags that every target of the project is compiled with.
add_library(mxdnn_options INTERFACE)
# Bit-exact rules are written as separate roundings: the compiler must not fuse or reorder them.
target_compile_options(mxdnn_options INTERFACE -ffp-contract=off -fno-math-errno -Wall -Wextra)
# With a large heap GCC collects garbage less often, which takes 5 % of its time, of the largest sources a tenth.
target_compile_options(mxdnn_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
if(MXDNN_WERROR)
    target_compile_options(mxdnn_options INTERFACE -Werror)
endif()
if(MXDNN_SANITIZE)
    foreach(s ${MXDNN_SANITIZE})
        target_compile_options(mxdnn_options INTERFACE -fsanitize=${s})
        target_link_options(mxdnn_options INTERFACE -fsanitize=${s})
    endforeach()
    # C callers may pass any int for an enumeration; the API range-checks what it is given.
    target_compile_options(mxdnn_options INTERFACE -fno-sanitize=enum)
    # With sanitizers GCC warns of uninitialised variables inside the standard library (std::regex).
    target_compile_options(mxdnn_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_compile_options(mxdnn_options INTERFACE -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()

# Compiles sources of a target together, which takes half as long as one by one. The option is theirs in optimised builds.
function(mxdnn_compile_together target group option)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
    set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx
        PROPERTIES COMPILE_OPTIONS
        "$<$<AND:$<CONFIG:Release,RelWithDebInfo>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:${option}>")
endfunction()

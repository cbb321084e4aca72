# SPDX-License-Identifier: Apache-2.0
# Flags that every target of the project is compiled with.
add_library(mxdnn_options INTERFACE)
# Bit-exact rules are written as separate roundings: the compiler must not fuse or reorder them.
target_compile_options(mxdnn_options INTERFACE -ffp-contract=off -fno-math-errno -Wall -Wextra)
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

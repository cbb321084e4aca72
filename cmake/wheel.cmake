# SPDX-License-Identifier: Apache-2.0
# With MXDNN_WHEEL the install tree is what a Python wheel can hold: pyproject.toml puts it into site-packages/mxdnn.
# Sets what the rules of installation use: MXDNN_NAMELINK (of install(TARGETS)), MXDNN_RPATH (folders where the library
# and the programs look for oneTBB) and MXDNN_RPATH_OF_BUILD (whether they look where the build found it).

option(MXDNN_WHEEL "Install what a Python wheel can hold (set by pyproject.toml)" OFF)
set(MXDNN_NAMELINK "")
set(MXDNN_RPATH "")
set(MXDNN_RPATH_OF_BUILD ON)
if(MXDNN_WHEEL)
    # oneTBB is a package of its own, whose libraries pip puts into the environment's lib. From site-packages/mxdnn/lib
    # (or bin) that is the folder above pythonX.Y; the others are of `pip install --target` and of systems with lib64.
    set(MXDNN_RPATH "$ORIGIN/../../../.." "$ORIGIN/../../lib" "$ORIGIN/../../../../../lib")
    set(MXDNN_RPATH_OF_BUILD OFF)
    # A wheel holds no symbolic links: the library is one file, and -lmxdnn finds a linker script that names it.
    set(MXDNN_NAMELINK NAMELINK_SKIP)
    set_target_properties(mxdnn PROPERTIES VERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "${MXDNN_RPATH}")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/linker_script/libmxdnn.so"
        CONTENT "INPUT(libmxdnn.so.@PROJECT_VERSION_MAJOR@)\n" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/linker_script/libmxdnn.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

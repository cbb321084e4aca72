# SPDX-License-Identifier: Apache-2.0
# Install rules: library, public headers, programs, the CMake package and the pkg-config file. Included by the
# top-level file after all targets exist; programs and components that this build does not make are left out.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_target_property(MXDNN_LIBRARY_TYPE mxdnn TYPE)

# Only the C API leaves the shared library, not even weak instantiations of standard templates.
if(MXDNN_LIBRARY_TYPE STREQUAL "SHARED_LIBRARY")
    target_link_options(mxdnn PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
    set_property(TARGET mxdnn APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
endif()

set(_mxdnn_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mxdnn")

install(TARGETS mxdnn EXPORT mxdnnTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${MXDNN_NAMELINK}
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT mxdnnTargets NAMESPACE mxdnn:: DESTINATION "${_mxdnn_cmake_dir}")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/mxdnn" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(EXISTS "${PROJECT_BINARY_DIR}/include/mxdnn")
    install(DIRECTORY "${PROJECT_BINARY_DIR}/include/mxdnn" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
            FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()

# What the headers define, for bindings of other languages.
install(FILES "${PROJECT_SOURCE_DIR}/share/mxdnn/mxdnn-enums.json" DESTINATION "${CMAKE_INSTALL_DATADIR}/mxdnn")

# Components: a target of this name makes the component, its absence makes asking for it fail with a clear message.
foreach(_component cuda ep)
    if(TARGET mxdnn_${_component})
        set_target_properties(mxdnn_${_component} PROPERTIES EXPORT_NAME ${_component})
        install(TARGETS mxdnn_${_component} EXPORT mxdnn-${_component}-targets
                LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
                INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
        install(EXPORT mxdnn-${_component}-targets NAMESPACE mxdnn:: DESTINATION "${_mxdnn_cmake_dir}")
    endif()
endforeach()

# Programs find the library beside them wherever the tree is put. A oneDNN outside the system's folders, .deps/onednn
# too, is not copied into the install tree: it keeps its full path.
file(RELATIVE_PATH _mxdnn_bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
foreach(_program mxdnn-pack mxdnn-bench)
    if(TARGET ${_program})
        set(_rpath "$ORIGIN/${_mxdnn_bin_to_lib}" ${MXDNN_RPATH})
        if(MXDNN_ONEDNN_PROJECT_DIR)
            list(APPEND _rpath "${MXDNN_ONEDNN_PROJECT_DIR}/lib")
        endif()
        set_target_properties(${_program} PROPERTIES
                INSTALL_RPATH "${_rpath}"
                INSTALL_RPATH_USE_LINK_PATH ${MXDNN_RPATH_OF_BUILD})
        install(TARGETS ${_program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    endif()
endforeach()

if(TARGET mxdnn-bench)
    install(PROGRAMS "${PROJECT_SOURCE_DIR}/scripts/verbose-to-bench" DESTINATION "${CMAKE_INSTALL_BINDIR}"
            RENAME mxdnn-verbose-to-bench)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/tests/benchdnn/inputs/" DESTINATION "${CMAKE_INSTALL_DATADIR}/mxdnn/benchdnn")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/mxdnnConfig.cmake.in"
        "${PROJECT_BINARY_DIR}/mxdnnConfig.cmake" INSTALL_DESTINATION "${_mxdnn_cmake_dir}"
        NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mxdnnConfigVersion.cmake"
        VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/mxdnnConfig.cmake" "${PROJECT_BINARY_DIR}/mxdnnConfigVersion.cmake"
        DESTINATION "${_mxdnn_cmake_dir}")

# A static library hands its own needs on to whoever links it: the C++ library too, since a C program's linker does
# not know it.
set(MXDNN_PC_REQUIRES "")
set(MXDNN_PC_LIBS "")
if(MXDNN_LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
    if(MXDNN_CPU_RUNTIME STREQUAL "TBB")
        set(MXDNN_PC_REQUIRES "tbb >= ${MXDNN_MIN_TBB}")
    endif()
    set(_mxdnn_libs ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
    list(REMOVE_ITEM _mxdnn_libs ${CMAKE_C_IMPLICIT_LINK_LIBRARIES})
    list(APPEND _mxdnn_libs m pthread ${CMAKE_DL_LIBS})
    list(REMOVE_DUPLICATES _mxdnn_libs)
    list(TRANSFORM _mxdnn_libs PREPEND " -l")
    string(JOIN "" MXDNN_PC_LIBS ${_mxdnn_libs})
endif()

# The .pc file names its own place, so that the tree may be moved after installing.
file(RELATIVE_PATH MXDNN_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" MXDNN_PC_PREFIX "${MXDNN_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mxdnn.pc.in" "${PROJECT_BINARY_DIR}/mxdnn.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mxdnn.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# SPDX-License-Identifier: Apache-2.0
# Sets MXDNN_ISA_NAMES: the sets of CPU features that have a name, from their list in isa.hpp. Tests run under each.
set(isa_list "${CMAKE_CURRENT_SOURCE_DIR}/src/cpu/x64/isa.hpp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${isa_list}")
file(STRINGS "${isa_list}" isa_rows REGEX "\"cpu:x64:[a-z0-9_]+\"")
string(REGEX MATCHALL "cpu:x64:[a-z0-9_]+" MXDNN_ISA_NAMES "${isa_rows}")
list(TRANSFORM MXDNN_ISA_NAMES REPLACE "cpu:x64:" "")
if(NOT MXDNN_ISA_NAMES)
    message(FATAL_ERROR "${isa_list} has no rows of isa_list with targets such as \"cpu:x64:avx2\"")
endif()

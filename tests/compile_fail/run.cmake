# SPDX-License-Identifier: Apache-2.0
# Compiles `source` twice: as it is, which must work, and with MXDNN_WRONG, which must fail saying `message`.
cmake_minimum_required(VERSION 3.25)
set(ENV{LC_ALL} C) # the messages are matched in English
execute_process(COMMAND ${compiler} ${includes} -Wall -Wextra -Werror -fsyntax-only ${source}
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${source} must compile without its wrong line, but:\n${output}")
endif()
execute_process(COMMAND ${compiler} ${includes} -DMXDNN_WRONG -fsyntax-only ${source}
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
    message(FATAL_ERROR "${source} compiles with its wrong line, but must not")
elseif(NOT output MATCHES "error: [^\n]*(${message})")
    message(FATAL_ERROR "${source} fails, but not with '${message}':\n${output}")
endif()

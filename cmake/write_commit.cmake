# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a header with the commit that the tree SOURCE is at, and leaves it alone where it would be the same:
#   cmake -DSOURCE=DIR -DOUTPUT=FILE -P write_commit.cmake
# In a source archive made by `git archive` commit.txt has it. A tree inside another project's repository, and one
# without git, has none: "N/A".

cmake_minimum_required(VERSION 3.25)

set(commit "N/A")
file(READ "${SOURCE}/cmake/commit.txt" archived)
string(STRIP "${archived}" archived)
if(archived MATCHES "^[0-9a-f]+$")
    set(commit "${archived}")
else()
    find_program(git_program git)
    if(git_program)
        # The way up to the repository's own folder comes first; none in that folder itself.
        execute_process(COMMAND "${git_program}" -C "${SOURCE}" rev-parse --show-cdup HEAD
                OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        string(STRIP "${answer}" answer)
        if(NOT failed AND answer MATCHES "^[0-9a-f]+$")
            set(commit "${answer}")
        endif()
    endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define MXDNN_COMMIT \"@commit@\"\n" @ONLY)

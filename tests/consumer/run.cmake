# SPDX-License-Identifier: Apache-2.0
# Installs, moves the install tree, builds the consumer project with find_package and with pkg-config, runs the
# programs, and asks for components that exist, that this build lacks, and that never existed. With source_dir the build
# is made first: of a static library of the runtime `runtime`, from the objects of build_dir, which is not built again.

cmake_minimum_required(VERSION 3.25)

function(run)
    cmake_parse_arguments(PARSE_ARGV 0 arg "MUST_FAIL" "WHAT;MATCH" "COMMAND")
    execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    # CMake wraps messages at 80 columns; match them unwrapped.
    string(REGEX REPLACE "[ \n]+" " " flat "${output}")
    if(arg_MUST_FAIL AND status EQUAL 0)
        message(FATAL_ERROR "${arg_WHAT}: succeeded, but must not\n${output}")
    elseif(NOT arg_MUST_FAIL AND NOT status EQUAL 0)
        message(FATAL_ERROR "${arg_WHAT}: failed (${status})\n${output}")
    elseif(DEFINED arg_MATCH AND NOT flat MATCHES "${arg_MATCH}")
        message(FATAL_ERROR "${arg_WHAT}: does not say '${arg_MATCH}'\n${output}")
    endif()
    message(STATUS "${arg_WHAT}: ok")
    set(output "${output}" PARENT_SCOPE)
endfunction()

set(project "${CMAKE_CURRENT_LIST_DIR}/project")
set(prefix "${work_dir}/moved")
file(REMOVE_RECURSE "${work_dir}")
file(MAKE_DIRECTORY "${work_dir}")
set(tools -G "${generator}" "-DCMAKE_C_COMPILER=${c_compiler}" "-DCMAKE_CXX_COMPILER=${cxx_compiler}")
set(library libmxdnn.so)
set(without "")
if(source_dir)
    set(library libmxdnn.a)
    if(NOT runtime STREQUAL "TBB")
        set(without -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON)
        set(pkg_config "") # tried with oneTBB, where there is more to say
    endif()
    set(parts "")
    foreach(part BUILD_TESTS BUILD_EXAMPLES BUILD_BENCH BUILD_TOOLS CUDA ONEDNN)
        list(APPEND parts -DMXDNN_${part}=OFF)
    endforeach()
    run(WHAT "configure a static library"
            COMMAND ${CMAKE_COMMAND} -S "${source_dir}" -B "${work_dir}/build" ${tools} ${parts} ${without}
            -DBUILD_SHARED_LIBS=OFF -DMXDNN_CPU_RUNTIME=${runtime} -DCMAKE_BUILD_TYPE=Release
            "-DMXDNN_PREBUILT_OBJECTS=${build_dir}/objects.txt")
    set(build_dir "${work_dir}/build")
    run(WHAT "build it" COMMAND ${CMAKE_COMMAND} --build "${build_dir}")
endif()

run(WHAT "install" COMMAND ${CMAKE_COMMAND} --install "${build_dir}" --prefix "${work_dir}/installed")
file(RENAME "${work_dir}/installed" "${prefix}")
foreach(file include/mxdnn/mxdnn.h include/mxdnn/mxdnn_types.h include/mxdnn/mxdnn.hpp include/mxdnn/hpp/memory.hpp
        include/mxdnn/mxdnn_container.h include/mxdnn/mxdnn_container.hpp ${libdir}/${library}
        ${libdir}/pkgconfig/mxdnn.pc ${libdir}/cmake/mxdnn/mxdnnConfig.cmake share/mxdnn/mxdnn-enums.json)
    if(NOT EXISTS "${prefix}/${file}")
        message(FATAL_ERROR "not installed: ${file}")
    endif()
endforeach()

# Nothing installed may point back into the source or the build tree.
file(GLOB texts "${prefix}/${libdir}/cmake/mxdnn/*.cmake" "${prefix}/${libdir}/pkgconfig/*.pc")
foreach(text ${texts})
    file(READ "${text}" content)
    get_filename_component(sources "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
    foreach(dir "${sources}" "${build_dir}")
        string(FIND "${content}" "${dir}" at)
        if(NOT at EQUAL -1)
            message(FATAL_ERROR "${text} names ${dir}")
        endif()
    endforeach()
endforeach()

set(configure ${CMAKE_COMMAND} -S "${project}" ${tools} ${without} "-DCMAKE_PREFIX_PATH=${prefix}")
run(WHAT "find_package" COMMAND ${configure} -B "${work_dir}/cmake" "-DEXPECTED_VERSION=${version}")
run(WHAT "build" COMMAND ${CMAKE_COMMAND} --build "${work_dir}/cmake")
run(WHAT "C program" COMMAND "${work_dir}/cmake/consumer_c" MATCH "consumer_c: ok")
run(WHAT "C++ program" COMMAND "${work_dir}/cmake/consumer_cpp" MATCH "consumer_cpp: ok")

# Programs, of those that the build has, run where they were put, and mxdnn-bench brings its sets.
if(EXISTS "${prefix}/bin/mxdnn-pack")
    run(WHAT "mxdnn-pack" COMMAND "${prefix}/bin/mxdnn-pack" --help)
endif()
if(EXISTS "${prefix}/bin/mxdnn-bench")
    run(WHAT "mxdnn-verbose-to-bench" COMMAND "${prefix}/bin/mxdnn-verbose-to-bench" --help)
    run(WHAT "mxdnn-bench" COMMAND "${prefix}/bin/mxdnn-bench" --mode=L --moe_route --batch=smoke)
    run(WHAT "sets of mxdnn-bench" MUST_FAIL MATCH "${prefix}/share/mxdnn/benchdnn/moe_route"
            COMMAND "${prefix}/bin/mxdnn-bench" --moe_route --batch=nosuch)
endif()

string(REPLACE "," ";" components "${components}")
set(known cuda ep)
if(source_dir)
    set(known "") # asked for of the shared library
endif()
foreach(component ${known})
    if(component IN_LIST components)
        run(WHAT "component ${component}" COMMAND ${configure} -B "${work_dir}/${component}"
                -DCOMPONENTS=${component})
    else()
        run(WHAT "component ${component}, which this build lacks" MUST_FAIL
                MATCH "built without its component '${component}'"
                COMMAND ${configure} -B "${work_dir}/${component}" -DCOMPONENTS=${component})
    endif()
endforeach()
run(WHAT "unknown component" MUST_FAIL MATCH "no component 'nosuch'; there are: cuda;ep"
        COMMAND ${configure} -B "${work_dir}/nosuch" -DCOMPONENTS=nosuch)
run(WHAT "newer version than installed" MUST_FAIL MATCH "99.0"
        COMMAND ${configure} -B "${work_dir}/newer" -DWANTED_VERSION=99.0)

if(NOT pkg_config)
    message(STATUS "pkg-config is not here: mxdnn.pc was not tried")
    return()
endif()
set(ENV{PKG_CONFIG_PATH} "${prefix}/${libdir}/pkgconfig")
run(WHAT "pkg-config version" COMMAND ${pkg_config} --modversion mxdnn MATCH "^${version} $")
run(WHAT "pkg-config flags" COMMAND ${pkg_config} --cflags --libs mxdnn)
if(source_dir)
    set(plain "${output}")
    run(WHAT "pkg-config --static" COMMAND ${pkg_config} --static --cflags --libs mxdnn)
    foreach(flags "${plain}" "${output}")
        if(NOT flags MATCHES "-lmxdnn.* -lstdc[+][+].*-ltbb|-lmxdnn.*-ltbb.* -lstdc[+][+]|-lc[+][+]")
            message(FATAL_ERROR "pkg-config does not name what a static library needs: ${flags}")
        endif()
    endforeach()
endif()
separate_arguments(flags UNIX_COMMAND "${output}")
list(APPEND flags "-Wl,-rpath,${prefix}/${libdir}")
run(WHAT "C program with pkg-config's flags"
        COMMAND ${c_compiler} -std=c99 -pedantic-errors -Wall -Werror "${project}/consumer.c"
                -o "${work_dir}/pc_c" ${flags})
run(WHAT "C++ program with pkg-config's flags"
        COMMAND ${cxx_compiler} -std=c++17 -Wall -Werror "${project}/consumer.cpp" -o "${work_dir}/pc_cpp" ${flags})
run(WHAT "C program" COMMAND "${work_dir}/pc_c" MATCH "consumer_c: ok")
run(WHAT "C++ program" COMMAND "${work_dir}/pc_cpp" MATCH "consumer_cpp: ok")

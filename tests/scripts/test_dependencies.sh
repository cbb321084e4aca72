#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cmake/dependencies.cmake, cmake/ep.cmake and cmake/onednn.cmake: what they say when a dependency is missing, too old or not wanted.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A project that only looks for its dependencies, with folders of its own beside the real cmake/.
project=$scratch/project
mkdir "$project"
ln -s "$root/cmake" "$project/cmake"
cat >"$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(looks VERSION 0.0.1 LANGUAGES C CXX)
include(cmake/dependencies.cmake)
include(cmake/ep.cmake)
include(cmake/onednn.cmake)
message(STATUS "have oneDNN: ${MXDNN_HAVE_ONEDNN} '${MXDNN_ONEDNN_VERSION}'")
message(STATUS "have ep: ${MXDNN_HAVE_EP}")
CMAKE

count=0
look() {
    count=$((count + 1))
    run "${MXDNN_TEST_CMAKE:-cmake}" -S "$project" -B "$scratch/build$count" \
        "-DCMAKE_CXX_COMPILER=${MXDNN_TEST_CXX:-c++}" -DMXDNN_BUILD_TESTS=ON -DMXDNN_BUILD_BENCH=ON \
        -DMXDNN_BUILD_EXAMPLES=ON "$@"
}
without() { echo "-DCMAKE_DISABLE_FIND_PACKAGE_$1=ON"; }

look
expect_status "all there" 0

look "$(without TBB)"
expect_failure "no oneTBB"
expect_says "no oneTBB" "oneTBB 2021.8 or newer was not found (Debian/Ubuntu package libtbb-dev)"

look "$(without GTest)" "$(without CLI11)" "$(without nlohmann_json)" -DMXDNN_XBYAK_INCLUDE_DIR=
expect_failure "four missing"
expect_says "four missing, in one message" "apt-get install libxbyak-dev libgtest-dev nlohmann-json3-dev libcli11-dev"
expect_says "four missing" "scripts/setup"

look "$(without GTest)" -DMXDNN_BUILD_TESTS=OFF
expect_status "GoogleTest is needed for the tests only" 0
look "$(without CLI11)" "$(without nlohmann_json)" "$(without GTest)" -DMXDNN_BUILD_TESTS=OFF \
    -DMXDNN_BUILD_BENCH=OFF -DMXDNN_BUILD_EXAMPLES=OFF
expect_status "the library alone needs neither CLI11 nor nlohmann-json" 0

look "$(without TBB)" -DMXDNN_BUILD_EXAMPLES=OFF
expect_failure "oneTBB is the usual runtime"
for runtime in SEQ THREADPOOL; do
    look "$(without TBB)" -DMXDNN_BUILD_EXAMPLES=OFF -DMXDNN_CPU_RUNTIME=$runtime
    expect_status "without oneTBB, $runtime" 0
done
look -DMXDNN_CPU_RUNTIME=OMP
expect_failure "a runtime that there is not"
expect_says "a runtime that there is not" "MXDNN_CPU_RUNTIME is 'OMP'; possible are TBB, THREADPOOL and SEQ"

mkdir -p "$scratch/old/xbyak" "$scratch/odd/xbyak"
echo 'enum { VERSION = 0x5990 };' >"$scratch/old/xbyak/xbyak.h"
echo '/* nothing */' >"$scratch/odd/xbyak/xbyak.h"
look "-DMXDNN_XBYAK_INCLUDE_DIR=$scratch/old"
expect_failure "old Xbyak"
expect_says "old Xbyak" "Xbyak 6.68 or newer is needed, 5.99 was found (Debian/Ubuntu package libxbyak-dev)"
look "-DMXDNN_XBYAK_INCLUDE_DIR=$scratch/odd"
expect_failure "Xbyak without a version"
expect_says "Xbyak without a version" "unreadable version in $scratch/odd/xbyak"

# A package of one version, as its own CMake files would describe it.
mkdir -p "$scratch/cli"
cat >"$scratch/cli/CLI11Config.cmake" <<'CMAKE'
add_library(CLI11::CLI11 INTERFACE IMPORTED)
CMAKE
cat >"$scratch/cli/CLI11ConfigVersion.cmake" <<'CMAKE'
set(PACKAGE_VERSION 1.9.1)
CMAKE
look "-DCLI11_DIR=$scratch/cli"
expect_failure "old CLI11"
expect_says "old CLI11" "CLI11 2.1 or newer is needed, 1.9.1 was found"

# oneDNN: none, required but missing, not wanted, in .deps/onednn, elsewhere, too old, without a CPU engine.
# Real ones on this machine stay out of it.
fake_onednn() { # FOLDER VERSION RUNTIME
    mkdir -p "$1/lib/cmake/dnnl"
    cat >"$1/lib/cmake/dnnl/dnnl-config.cmake" <<CMAKE
set(DNNL_CPU_RUNTIME "$3")
set(DNNL_CPU_THREADING_RUNTIME "$3")
add_library(DNNL::dnnl INTERFACE IMPORTED)
CMAKE
    cat >"$1/lib/cmake/dnnl/dnnl-config-version.cmake" <<CMAKE
set(PACKAGE_VERSION $2)
if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
CMAKE
}
look "$(without dnnl)"
expect_status "no oneDNN" 0
expect_says "no oneDNN" "have oneDNN: OFF ''"
expect_says "no oneDNN" "building without interop"
look "$(without dnnl)" -DMXDNN_ONEDNN=ON
expect_failure "oneDNN required"
expect_says "oneDNN required" "scripts/setup puts one into .deps/onednn"

fake_onednn "$project/.deps/onednn" 3.2.0 OMP
look -DMXDNN_ONEDNN=OFF
expect_says "oneDNN not wanted" "have oneDNN: OFF"
fake_onednn "$scratch/newer" 3.9.1 TBB
look "-DCMAKE_PREFIX_PATH=$scratch/newer"
expect_says "a newer oneDNN is preferred" "have oneDNN: ON '3.9.1'"
look "-DCMAKE_PREFIX_PATH=$scratch/nowhere" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
if printf '%s' "$output" | grep -q 'have oneDNN'; then
    expect_says "the project's own oneDNN" "have oneDNN: ON '3.2.0'"
fi
fake_onednn "$scratch/older" 3.1.0 OMP
look "-DCMAKE_PREFIX_PATH=$scratch/older"
expect_says "an older oneDNN is passed over" "have oneDNN: ON"
expect_silent "an older oneDNN is passed over" "'3.1.0'"
grep -q '^dnnl_DIR:PATH=.*/\.deps/' "$scratch/build$count/CMakeCache.txt" && wrong "dnnl_DIR stays in the cache"

# MPI: none, required but missing, not wanted, not for static libraries.
look "$(without MPI)"
expect_status "no MPI" 0
expect_says "no MPI" "have ep: FALSE"
expect_says "no MPI" "libmxdnn_ep is left out"
look "$(without MPI)" -DMXDNN_EP=ON
expect_failure "MPI required"
expect_says "MPI required" "(Debian/Ubuntu package libopenmpi-dev)"
look -DMXDNN_EP=OFF
expect_says "MPI not wanted" "have ep: FALSE"
look -DBUILD_SHARED_LIBS=OFF
expect_says "a static library" "left out of wheels and of static builds"
look -DMXDNN_EP=MAYBE
expect_failure "MXDNN_EP"
expect_says "MXDNN_EP" "possible are AUTO, ON and OFF"

echo "dependencies: $count configurations, all as expected"

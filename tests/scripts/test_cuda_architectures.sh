#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MXDNN_CUDA_ARCHITECTURES and MXDNN_CUDA_PORTABLE_CODE: what they make of portable and Hopper's own kernels, and what
# is refused. Needs no toolkit.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A compiler that knows some architectures.
cat >"$scratch/nvcc" <<'end'
#!/bin/sh
printf 'sm_80\nsm_86\nsm_89\nsm_90\nsm_90a\n%s' "$LATER"
end
chmod +x "$scratch/nvcc"
cat >"$scratch/show.cmake" <<'end'
set(CMAKE_CUDA_COMPILER_VERSION 12.4)
include(${ROOT}/cmake/cuda_architectures.cmake)
message("portable=${MXDNN_CUDA_PORTABLE} early=${MXDNN_CUDA_EARLY} sm90=${MXDNN_CUDA_SM90} least=${MXDNN_CUDA_LEAST}.")
end
of() {
    run "${MXDNN_TEST_CMAKE:-cmake}" "-DROOT=$root" "-DCMAKE_CUDA_COMPILER=$scratch/nvcc" \
        "-DMXDNN_CUDA_ARCHITECTURES=$1" "-DMXDNN_CUDA_PORTABLE_CODE=${code:-ALL}" -P "$scratch/show.cmake"
}
is() { # what early kernels are built for is said where it is not the same
    of "$1"
    expect_status "$1" 0
    expect_says "$1" "portable=$2 early=${5:-$2} sm90=$3 least=$4."
}
refuses() {
    of "$1"
    expect_failure "$1"
    expect_says "$1" "$2"
}

is "80;90a" "80;90-real" ON 80
is "90a;80" "80;90-real" ON 80
is "90;90a" "90" ON 90
is 80 80 OFF 80
is "89;86" "86;89-real" OFF 86
refuses 75 "MXDNN_CUDA_ARCHITECTURES has '75'; possible are"
refuses "80;90f" "has '90f'"
refuses "" "is empty; possible are"
refuses "80;100" "has '100', which CUDA 12.4 does"
code=LEAST
is "80;90a" 80 ON 80 "80;90-real"
is "80;86" 80 OFF 80
is "90a" "90" ON 90
code=NONE
is "80;90a" 80-virtual ON 80 "80-virtual;90-real"
is "80;86" 80-virtual OFF 80
is "90a" 90-virtual ON 90
code=SOME
refuses "80;90a" "MXDNN_CUDA_PORTABLE_CODE is 'SOME'; possible are ALL, LEAST and NONE"
code=ALL
export LATER="sm_100
sm_120
"
is "120;100;90a;80" "80;90-real;100-real;120-real" ON 80
echo "cuda_architectures: all as expected"

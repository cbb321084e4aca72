#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every part of the build can be left out, and what is left configures: its sources are those of the parts that stay.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# configures NAME OPTIONS...: $output is the list of sources and options.
configures() {
    local name=$1
    shift
    run "${MXDNN_TEST_CMAKE:-cmake}" -S "$root" -B "$scratch/$name" "-DCMAKE_CXX_COMPILER=${MXDNN_TEST_CXX:-c++}" \
        -DMXDNN_CUDA=OFF -DMXDNN_ONEDNN=OFF "$@"
    expect_status "$name" 0
    # Some sources are compiled together: files of the build include them.
    output=$(cat "$scratch/$name/compile_commands.json" && find "$scratch/$name" -path '*/Unity/*' -exec cat {} +)
    expect_says "$name" "src/common/api/engine.cpp"
}

configures library -DMXDNN_BUILD_TESTS=OFF -DMXDNN_BUILD_BENCH=OFF -DMXDNN_BUILD_TOOLS=OFF -DMXDNN_BUILD_EXAMPLES=OFF
for part in tests/ tools/ examples/; do expect_silent "library" "$root/$part"; done

configures tests_alone -DMXDNN_BUILD_BENCH=OFF -DMXDNN_BUILD_TOOLS=OFF -DMXDNN_BUILD_EXAMPLES=OFF
expect_says "tests alone" "$root/tests/gtests/test_blob.cpp"
for part in tests/benchdnn/ tools/mxdnn-pack/ examples/minilm/main.cpp; do expect_silent "tests alone" "$root/$part"; done

configures no_tests -DMXDNN_BUILD_TESTS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
expect_says "no tests" "$root/tests/benchdnn/mxdnn_bench.cpp"
expect_says "no tests" "$root/tools/mxdnn-pack/main.cpp"
expect_says "no tests" "$root/examples/minilm/main.cpp"
for part in tests/gtests/ tests/fuzz/ cmake_pch; do expect_silent "no tests" "$part"; done

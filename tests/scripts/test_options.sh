#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every script says what it is for when asked, and refuses what it does not know before it does anything.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for script in "$root"/scripts/*; do
    [ -x "$script" ] || continue # read by others
    name=scripts/${script##*/}
    run "$script" --help
    expect_status "$name --help" 0
    [ "${#output}" -gt 100 ] || wrong "$name --help: says next to nothing"
    run timeout 20 "$script" --nonsense
    expect_failure "$name --nonsense"
    [ "$status" -ne 124 ] || wrong "$name --nonsense: does something else before"
    expect_silent "$name --nonsense" "1/4"
    expect_silent "$name --nonsense" "oneDNN"
    expect_silent "$name --nonsense" Traceback
    expect_silent "$name --nonsense" "line "
done

for name in check test-gpu measure; do
    run "$root/scripts/$name" --only test,nonsense
    [ "$name" = check ] || run "$root/scripts/$name" --only tests,nonsense
    expect_failure "$name --only"
    expect_says "$name --only" "'nonsense'; possible are"
done

# Values are looked at before anything else is done, too.
refuses() {
    local says=$1 script=$2
    shift 2
    run timeout 20 "$root/scripts/$script" "$@"
    expect_failure "$script $*"
    expect_says "$script $*" "$says"
    expect_silent "$script $*" "building"
    expect_silent "$script $*" "1/4"
}
refuses "--threads is 'many'; it takes a number" quickstart --threads many
refuses "--seconds needs a value" quickstart --seconds
refuses "unknown option 'table'" quickstart table
refuses "unknown option '--packed'" quickstart --chat "Why?" --packed here
refuses "unknown option '--nonsense'" quickstart --chat --nonsense
refuses "--tokens is 'x'" quickstart --chat "Why?" --raw --tokens=x
refuses "unknown option '--nonsense'" test --nonsense
refuses "there is no preset 'fast'; possible are" test --preset fast
refuses "--preset comes first" test -L fuzz --preset asan
refuses "no commit 'nosuch'" check --since nosuch
refuses "no commit 'nosuch'" check-tidy --since nosuch
refuses "no commit 'nosuch'" perf --reference nosuch
refuses "--rounds is '0'; it takes a whole number from 1 on" perf --rounds 0
refuses "there is no driver 'mx'" perf --drivers mx
refuses "--threads is 'x'" test-llm --threads x
refuses "--torch is '../x'" test-torch --torch ../x

# A test of CUDA that is not in scripts/test-gpu would never run on a device.
for name in $(sed -n 's/^mxdnn_cuda_test(\([a-z0-9_]*\) .*/\1/p' "$root/tests/gtests/CMakeLists.txt"); do
    grep -qw "$name" "$root/scripts/test-gpu" || wrong "scripts/test-gpu does not run $name"
done

run "$root/scripts/test" --torch --only pages,nonsense
expect_failure "test --torch --only"
expect_says "test --torch --only" "'nonsense'; possible are"

# Files that are not there, and lines that are not what they should be.
printf 'plot,jit:avx2,--mx_matmul --dt=bf16:mxfp4:bf16 1x64:64x32,10,50%%,none,-\n' >"$scratch/good"
printf 'plot,jit:avx2,--mx_matmul --dt=bf16:mxfp4:bf16 1x64:64x32,fast,50%%,none,-\n' >"$scratch/bad"
run "$root/scripts/plot-perf" --title t --out "$scratch/t.svg" "$scratch/good"
expect_status "plot-perf" 0
for log in nosuch bad; do
    run "$root/scripts/plot-perf" --title t --out "$scratch/t.svg" "$scratch/$log"
    expect_failure "plot-perf of $log"
    expect_says "plot-perf of $log" "$log: "
    expect_silent "plot-perf of $log" Traceback
done
printf '| part | a, ms |\n|---|---|\n| norms | 1.5 |\n' >"$scratch/good"
printf '| part | a, ms |\n|---|---|\n| norms | fast |\n' >"$scratch/bad"
run "$root/scripts/plot-step" --title t --out "$scratch/t.svg" "$scratch/good"
expect_status "plot-step" 0
for record in nosuch bad; do
    run "$root/scripts/plot-step" --title t --out "$scratch/t.svg" "$scratch/$record"
    expect_failure "plot-step of $record"
    expect_says "plot-step of $record" "$record: "
    expect_silent "plot-step of $record" Traceback
done
printf 'span,a 2,0,exchange,dispatch 0,0,50\nspan,a 2,0,experts,gate_up 0,50,90\n' >"$scratch/spans"
run "$root/scripts/plot-overlap" --title t --out "$scratch/t.svg" --way "a 2" "$scratch/spans"
expect_status "plot-overlap" 0
for way in "b 2" "a"; do
    run "$root/scripts/plot-overlap" --title t --out "$scratch/t.svg" --way "$way" "$scratch/spans"
    expect_failure "plot-overlap of '$way'"
    expect_says "plot-overlap of '$way'" "no lines of '$way'"
done

# 10 us, 2 us for each other rank, and 1 us for a kB.
for ranks in 2 4; do
    for bytes in 1000 100000; do
        echo "exchange,x,$ranks,$bytes,$((10 + (ranks - 1) * (2 + bytes / 1000)))"
    done
done >"$scratch/times"
run "$root/scripts/fit-exchange" --network 50 "$scratch/times"
expect_status "fit-exchange" 0
expect_says "fit-exchange" "| x | 2, 4 | 10.0 | 2.00 | 1.0 | 0 % | 0 % |"
run "$root/scripts/fit-exchange" "$scratch/spans"
expect_failure "fit-exchange without times"
expect_says "fit-exchange without times" "no lines that begin with"

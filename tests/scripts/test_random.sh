#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mxdnn-bench --random: problems are the seed's, each has a line that makes it again, and among them is every word of
# every knob, every type, format and post-op that --help has.
#   test_random.sh MXDNN_BENCH
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench=$1

# lines ARGS...: the problems of a command line, as it repeats them.
lines() { "$bench" --mode=L "$@" | sed -n 's/.*__REPRO: \([^[]*\).*/\1/p' | sed 's/ *$//'; }
# words_of NAME: those of a line of --help.
words_of() { "$bench" --help | sed -n "s/^$1: *//p"; }

for driver in mx_matmul mx_reorder grouped_matmul grouped_matmul_backward_weights moe_route moe_permute moe_unpermute; do
    all=$scratch/$driver
    lines --seed=9 --$driver --random=2000 >"$all"
    [ "$(wc -l <"$all")" -eq 2000 ] || wrong "$driver: not 2000 problems"
    run diff <(head -n 20 "$all") <(lines --seed=9 --$driver --random=20)
    expect_status "$driver: fewer problems are the first of many" 0
    # shellcheck disable=SC2046
    run diff <(head -n 20 "$all") <(lines $(head -n 20 "$all" | sed 's/$/ --reset/'))
    expect_status "$driver: each is made again by its line" 0
    run diff -q "$all" <(lines --seed=10 --$driver --random=2000)
    expect_failure "$driver: another seed has other problems"

    # --name=usual (word|word|...): what is as usual may be left out.
    while IFS=$'\t' read -r name usual possible; do
        for word in ${possible//|/ }; do
            [ "$word" = "$usual" ] || grep -q -- "--$name=$word " "$all" || wrong "$driver: no --$name=$word"
        done
    done < <("$bench" --$driver --help | sed -n 's/^  --\([^=]*\)=\([^ ]*\) (\(.*|.*\))$/\1\t\2\t\3/p')
done

for format in $(words_of formats) f32 bf16 f16; do
    for driver in mx_matmul grouped_matmul; do
        for side in "$format:[^:]*:[^:]*" "[^:]*:[^:]*:$format"; do
            grep -q -- "--dt=$side " "$scratch/$driver" || wrong "$driver: no --dt=$side"
        done
    done
    for side in sdt ddt; do
        grep -q -- "--$side=$format " "$scratch/mx_reorder" || wrong "mx_reorder: no --$side=$format"
    done
done
for format in $(words_of formats) u4; do
    for driver in mx_matmul grouped_matmul; do
        grep -q -- "--dt=[^:]*:$format:" "$scratch/$driver" || wrong "$driver: no weights of $format"
    done
done
for op in $(words_of post-ops); do
    grep -q -- "[=+]$op[ :+]" "$scratch/mx_matmul" || wrong "mx_matmul: no post-op $op"
done

# A kernel that is wrong is found, by a line that finds it again.
run "$bench" --plant-fault=true --seed=9 --mx_matmul --random=10
expect_says "a planted fault" "FAILED"
first=$(sed -n 's/^[0-9]*:FAILED .*__REPRO: //p' <<<"$output" | head -n 1)
# shellcheck disable=SC2086
run "$bench" --plant-fault=true $first
expect_says "the line of a planted fault" "failed:1"

# What is set stays, and problems that are refused are no failures.
run "$bench" --mx_reorder --sdt=u64 --random=5
expect_status "refused problems" 0
expect_says "refused problems" "refused:5 failed:0"

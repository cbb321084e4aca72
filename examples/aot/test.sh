#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program gives the generator's result, from the same file, with every set of CPU features; and it refuses a file
# without weights for the engine, and a damaged one.
#   test.sh GENERATE RUN WORK cpu|cuda ISA...
set -euo pipefail
generate=$1 run=$2 work=$3 kind=$4
shift 4
mkdir -p "$work"
cd "$work"
"$generate" artefact.aot | tee generated
expected=$(grep '^result: ' generated)

checked=0
for isa in "$@"; do
    echo "MXDNN_MAX_CPU_ISA=$isa"
    status=0
    MXDNN_MAX_CPU_ISA=$isa "$run" artefact.aot "$kind" >out 2>&1 || status=$?
    cat out
    if [ "$kind" = cuda ] && grep -q 'this machine has 0' out; then exit 77; fi
    [ $status = 0 ] || { echo "exit status $status" && exit 1; }
    grep -qxF "$expected" out || { echo "the generator says: $expected" && exit 1; }
    grep -q "^up .*packed:$kind" out || { echo "these are weights for another target" && exit 1; }
    checked=$((checked + 1))
done
[ $checked -gt 0 ] || { echo "nothing was run" && exit 1; }

refused() { # FILE SENTENCE
    if "$run" "$1" "$kind" >out 2>&1; then
        echo "$1 was taken" && exit 1
    fi
    cat out
    grep -q "$2" out || { echo "it should say: $2" && exit 1; }
}
cp artefact.aot damaged.aot
size=$(stat -c %s damaged.aot)
for at in $(seq 2048 997 $((size - 2))); do # among the packed bytes of every record
    printf '\x5a\xa5' | dd of=damaged.aot bs=1 seek="$at" count=2 conv=notrunc status=none
done
refused damaged.aot "are damaged"
head -c 1000 artefact.aot >short.aot
refused short.aot "has 1000 bytes of $size"
: >empty.aot
refused empty.aot "cannot be mapped"
refused nowhere.aot "cannot be mapped"
refused /dev/zero "cannot be mapped"
refused "$generate" "no artefact"
echo "aot: $checked runs gave the generator's result, 6 files were refused"

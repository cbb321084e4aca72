#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: test_rights.sh MXDNN-BENCH. A program that runs with the rights of root for another user takes nothing from
# that user's environment.
set -eu
skip() {
    echo "skipped: $1"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can give its rights away"
command -v setpriv >/dev/null || skip "there is no setpriv"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$1" "$folder/bench"
cp "$(command -v id)" "$folder/id"
chmod 4755 "$folder/id"
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env OMP_WAIT_POLICY=passive MXDNN_JIT_DUMP=7 "$@"; }
[ "$(as_nobody "$folder/id" -u)" = 0 ] || skip "the file system gives no rights away"
bench() { as_nobody "$folder/bench" --mode=R --mx_matmul --dt=f32:mxfp4:f32 4x64:64x64 2>&1; }
chmod 755 "$folder/bench"
plain=$(bench) || skip "another user cannot run it: $plain"
case $plain in *"MXDNN_JIT_DUMP is '7'"*) ;; *) echo "the variable has no effect: $plain"; exit 1 ;; esac
chmod 4755 "$folder/bench"
with_rights=$(bench)
case $with_rights in *MXDNN_JIT_DUMP*) echo "the variable has an effect: $with_rights"; exit 1 ;; esac
case $with_rights in *"passed:1"*) ;; *) echo "it does not work: $with_rights"; exit 1 ;; esac

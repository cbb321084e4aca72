# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the script tests: a scratch folder, and expectations that say what was seen instead.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export root
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
output=
status=0

# run COMMAND...: sets $status and $output.
run() {
    status=0
    output=$("$@" 2>&1) || status=$?
}

wrong() {
    echo "FAILED: $1"
    echo "exit status $status, output:"
    printf '%s\n' "$output"
    exit 1
}

expect_status() { [ "$status" -eq "$2" ] || wrong "$1: exit status is not $2"; }
expect_failure() { [ "$status" -ne 0 ] || wrong "$1: succeeded, but must not"; }

# CMake wraps its messages, so blanks and line ends count as one blank.
expect_says() {
    local flat
    flat=$(printf '%s' "$output" | tr -s ' \n' ' ')
    [[ $flat == *"$2"* ]] || wrong "$1: does not say '$2'"
}
expect_silent() { [[ $output != *"$2"* ]] || wrong "$1: says '$2', but must not"; }
expect_absent() { [ ! -e "$2" ] || wrong "$1: $2 exists"; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# .ci/run: both parts run whatever becomes of the first, and the last line is the sum of their counts.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

checkout=$scratch/checkout
mkdir -p "$checkout/.ci" "$checkout/scripts"
cp "$root/.ci/run" "$checkout/.ci/run"
# Stands for both: prints the line that the case gives for its part, and ends with the status before it.
cat >"$checkout/scripts/test" <<'EOS'
#!/bin/bash
line=$(sed -n "$([ "${1:-}" = --torch ] && echo 2 || echo 1)p" "$TEST_LINES")
echo "some output"
echo "${line#* }"
exit "${line%% *}"
EOS
chmod +x "$checkout/scripts/test"

case_of() { # WHAT STATUS LAST_LINE LINE_OF_FIRST LINE_OF_SECOND
    printf '%s\n%s\n' "$4" "$5" >"$scratch/lines"
    run env TEST_LINES="$scratch/lines" "$checkout/.ci/run"
    expect_status "$1" "$2"
    [ "$(tail -n 1 <<<"$output")" = "$3" ] || wrong "$1: ends on '$(tail -n 1 <<<"$output")' instead of '$3'"
    expect_says "$1" "${4#* }"
    expect_says "$1" "${5#* }"
}
ctest='tests passed, 0 tests failed out of 250'
case_of "all pass" 0 "262 passed, 0 failed" "0 100% $ctest" "0 12 passed, 0 failed"
case_of "ctest fails" 1 "259 passed, 3 failed" "8 99% tests passed, 3 tests failed out of 250" "0 12 passed, 0 failed"
case_of "a package fails" 1 "260 passed, 2 failed" "0 100% $ctest" "1 10 passed, 2 failed"
case_of "no packages" 1 "250 passed, 1 failed" "0 100% $ctest" "1 error: no network"
case_of "a status without a failed test" 1 "262 passed, 1 failed" "0 100% $ctest" "3 12 passed, 0 failed"
case_of "no build" 1 "12 passed, 1 failed" "1 error: the build failed" "0 12 passed, 0 failed"
case_of "nothing" 1 "0 passed, 2 failed" "1 " "1 "
echo ".ci/run: all as expected"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_page.py notices each way in which a page may be wrong, and nothing in a page that is right.
#   test_run_page.sh PREFIX
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
prefix=$1

page() { # LINE...: a page of these lines
    printf '%s\n' "$@" >"$scratch/page.md"
    run "$root/tests/docs/run_page.py" "$scratch/page.md" "$prefix" "$scratch/work"
}

page '# Title' '```' 'exit 1' '```'
expect_status "a page without marks" 77

right=('<!-- file: a.txt -->' '```' 'one 1.50' '```' '<!-- run -->' '```sh' 'cat a.txt; echo two' '```')
page "${right[@]}" '<!-- output -->' '```' 'one 1.50' 'two' '```'
expect_status "the output" 0
page "${right[@]}" '<!-- output -->' '```' '...' 't...' '```'
expect_status "an ellipsis" 0
page "${right[@]}" '<!-- output, numbers vary -->' '```' 'one 27' 'two' '```'
expect_status "other numbers" 0
page '<!-- run, exit status 3 -->' '```sh' 'exit 3' '```'
expect_status "a command that has to fail" 0
page '<!-- snippet(dim n) -->' '```cpp' 'memory::desc md({n, 2}, dt::f32, tag::ab);' '```'
expect_status "a snippet" 0

page "${right[@]}" '<!-- output -->' '```' 'one 1.5' 'two' '```'
expect_failure "another number"
expect_says "another number" "page.md:11: FAILED: the page shows"
page "${right[@]}" '<!-- output -->' '```' 'one 1.50' '```'
expect_failure "a line that is missing"
page "${right[@]}" '<!-- output, numbers vary -->' '```' 'ones 1' 'two' '```'
expect_failure "another word"
page '<!-- run -->' '```sh' 'false' 'true' '```'
expect_failure "a command that fails"
expect_says "a command that fails" "page.md:3: FAILED: the exit status should be 0"
page '<!-- run, exit status 3 -->' '```sh' 'exit 2' '```'
expect_failure "another exit status"
page '<!-- snippet() -->' '```cpp' 'memory::desc md({n, 2}, dt::f32, tag::ab);' '```'
expect_failure "a snippet that does not compile"
expect_says "a snippet that does not compile" "page.md:3:"
echo "run_page: all as expected"

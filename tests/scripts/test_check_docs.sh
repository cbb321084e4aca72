#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the quoted backticks are Markdown
# scripts/check-docs finds each kind of stale word, and nothing in a document that is right.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

git -C "$root" rev-parse --git-dir >/dev/null 2>&1 || exit 77 # an unpacked archive: no list of files to compare with

cp "$root/LICENSE" "$scratch/there.txt"
cat >"$scratch/good.md" <<'MD'
# A title, with `code`
[file](there.txt) [heading](#a-title-with-code) [elsewhere](https://example.org/x)
`include/mxdnn/mxdnn_types.h`, `src/cpu/x64/<isa>/`, `mxdnn_success`, `MXDNN_ARG_SRC`, `mxdnn_blob_*`, `mxdnn::mxdnn`
```
scripts/setup --check
```
MD
run "$root/scripts/check-docs" "$scratch/good.md"
expect_status "a right document" 0

stale() { # WHAT IT SAYS, LINE
    printf '# Title\n%s\n' "$2" >"$scratch/stale.md"
    run "$root/scripts/check-docs" "$scratch/stale.md"
    expect_failure "$2"
    expect_says "$2" "$1"
    expect_says "$2" "stale.md:2:"
}
stale "no such file" '[x](nowhere.md)'
stale "no such heading" '[x](#nowhere)'
stale "not relative" '[x](/etc/hostname)'
stale "no such file or folder" '`src/common/nowhere.hpp`'
stale "not in the code" '`mxdnn_nosuchfunction()`'
stale "begins with" '`mxdnn_nosuch_*`'
stale "not in the public headers" '`mxdnn::nosuchclass`'
stale "no option --nonsense" '`scripts/setup --nonsense`'
stale "121 columns" "$(printf 'x%.0s' {1..121})"
stale "without a fenced block" '<!-- run -->'
stale "not a mark" '<!-- file nowhere.cpp -->'
printf '# Title\n```cpp\nint main() {}\n```\n' >"$scratch/stale.md"
run "$root/scripts/check-docs" "$scratch/stale.md"
expect_failure "a program without a mark"
expect_says "a program without a mark" "stale.md:3: a whole program"
# The versions that the build requires are those that the page on installation names.
while read -r name version; do
    grep -q "^|.* ${version}[ ,].*|" "$root/doc/start/installation.md" ||
        wrong "doc/start/installation.md does not name $version, which is $name"
done < <(sed -nE 's/^set\((MXDNN_MIN_\w+) ([0-9.]+)\)/\1 \2/p' "$root"/cmake/*.cmake)
echo "check-docs: all as expected"

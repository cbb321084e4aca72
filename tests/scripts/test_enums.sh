#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The list of enumerants for bindings: what the header says, value by value as a compiler has them, and nothing missing.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v python3 >/dev/null || exit 77
cc=${MXDNN_TEST_CC:-cc}
header=$root/include/mxdnn/mxdnn_types.h
list=$root/share/mxdnn/mxdnn-enums.json

run "$root/scripts/update-enums" --check
expect_status "update-enums --check" 0
run python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$list"
expect_status "the list is JSON" 0

# Every value, and every enumerator of each enumeration.
compile() { run "$cc" -std=c11 -Wall -Wextra -Werror -Werror=switch-enum -I"$1/include" -fsyntax-only "$scratch/enums.c"; }
run "$root/scripts/update-enums" --c "$scratch/enums.c"
expect_status "update-enums --c" 0
compile "$root"
expect_status "the compiler agrees" 0

# Every enumeration, constant, type and structure of the C headers.
headers=("$root"/include/mxdnn/*.h)
names() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print("\n".join(x["name"] for g in sys.argv[2:] for x in d[g]))' \
    "$list" "$@" | LC_ALL=C sort; }
expect_same() { [ "$2" = "$3" ] || { output=$(diff <(printf '%s\n' "$2") <(printf '%s\n' "$3")); wrong "$1: the header (<) and the list (>) differ"; }; }
expect_same "macros" "$(for h in "${headers[@]}"; do "$cc" -I"$root/include" -dM -E "$h"; done | sed -n 's/^#define \(MXDNN_[A-Za-z0-9_]*\).*/\1/p' \
    | grep -v -x -E 'MXDNN_([A-Z]+_)?H|MXDNN_API' | LC_ALL=C sort -u)" "$(names constants macros)"
expect_same "types" "$(grep -h -o -E '(\} |\*|_t )(const_)?mxdnn_[a-z0-9_]+_t(\[[A-Z_]+\])?;|^typedef .*\(\*mxdnn_[a-z0-9_]+\)' "${headers[@]}" \
    | sed -E 's/^(\} |\*|_t )//; s/^typedef .*\(\*//; s/[[)].*//; s/;//' | LC_ALL=C sort -u)" \
    "$(names enums typedefs structs)"

# What would be wrong is noticed: a value, an enumerator that the list lacks, a file that is out of date.
for change in 's/mxdnn_bf16 = 2/mxdnn_bf16 = 7/' 's/mxdnn_s32 = 4,/mxdnn_s32 = 4, mxdnn_new = 99,/' \
    's/MXDNN_ARG_BIAS 41/MXDNN_ARG_BIAS 42/'; do # of mxdnn_types.h
    mkdir -p "$scratch/changed/scripts"
    cp -r "$root/include" "$scratch/changed/"
    sed "$change" "$header" >"$scratch/changed/include/mxdnn/mxdnn_types.h"
    cp -r "$root/share" "$scratch/changed/"
    cp "$root/scripts/update-enums" "$scratch/changed/scripts/"
    mkdir -p "$scratch/changed/src/common/formats"
    cp "$root/src/common/formats/named_formats.hpp" "$scratch/changed/src/common/formats/"
    compile "$scratch/changed"
    expect_failure "compiling after $change"
    run "$scratch/changed/scripts/update-enums" --check
    expect_failure "update-enums --check after $change"
    expect_says "update-enums --check after $change" "run scripts/update-enums"
done

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts here (sourced, not run): the project's root, lines with elapsed time, the number of jobs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# A script called by another goes on counting from the caller's start.
: "${MXDNN_SCRIPT_START:=$(date +%s)}"
export MXDNN_SCRIPT_START

elapsed() { echo $(($(date +%s) - MXDNN_SCRIPT_START)); }

say() { printf '[%4d s] %s\n' "$(elapsed)" "$*"; }

fail() {
    printf '[%4d s] error: %s\n' "$(elapsed)" "$*" >&2
    exit 1
}

# all_of WHAT GIVEN NAMES...: fails unless every word of the list A,B is one of the names.
all_of() {
    local what=$1 word
    local -a words
    IFS=, read -ra words <<<"$2"
    shift 2
    for word in "${words[@]}"; do
        [[ " $* " == *" $word "* ]] || fail "there is no $what '$word'; possible are $*"
    done
}

# number WHAT GIVEN [LEAST]: fails unless that is a whole number, and at least 1 or LEAST.
number() {
    { [[ $2 =~ ^[0-9]{1,9}$ ]] && [ "$2" -ge "${3:-1}" ]; } || fail "$1 is '$2'; it takes a whole number from ${3:-1} on"
}

# commit WHAT GIVEN: fails unless that names a commit.
commit() {
    git -C "$root" rev-parse --quiet --verify "$2^{commit}" >/dev/null 2>&1 || fail "$1: there is no commit '$2'"
}

# Jobs: one per core that this process may use, but not more than memory carries (the largest files take ~1.5 GB).
job_count() {
    local cores mem
    cores=$(nproc 2>/dev/null || echo 2)
    mem=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null || echo "$cores")
    [ "${mem:-1}" -lt 1 ] && mem=1
    echo $((cores < mem ? cores : mem))
}

# configure DIR [cmake options]: Ninja, unless the folder was already configured with something else.
configure() {
    local dir=$1
    shift
    local generator=(-G Ninja)
    [ -f "$dir/CMakeCache.txt" ] && generator=()
    cmake -S "$root" -B "$dir" "${generator[@]}" "$@"
}

build() {
    local dir=$1
    shift
    NINJA_STATUS="${NINJA_STATUS:-[%f/%t %es] }" cmake --build "$dir" --parallel "${JOBS:-$(job_count)}" "$@"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commit that mxdnn_version() has: of a repository, of a source archive, of a tree inside another repository.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v git >/dev/null || exit 77
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t

# commit_of FOLDER: what the header says that is made for it.
commit_of() {
    run "${MXDNN_TEST_CMAKE:-cmake}" -DSOURCE="$1" -DOUTPUT="$scratch/commit.h" -P "$root/cmake/write_commit.cmake"
    expect_status "write_commit.cmake of $1" 0
    sed -n 's/^#define MXDNN_COMMIT "\(.*\)"$/\1/p' "$scratch/commit.h"
}
expect_commit() {
    local found
    found=$(commit_of "$2")
    [ "$found" = "$3" ] || wrong "$1: the commit is '$found' instead of '$3'"
}

repository=$scratch/repository
mkdir -p "$repository/cmake" "$repository/vendored"
cp "$root/cmake/commit.txt" "$repository/cmake/"
cp "$root/.gitattributes" "$repository/"
cp -r "$repository/cmake" "$repository/vendored/"
git -C "$repository" init -q
git -C "$repository" add -A
expect_commit "a repository without a commit" "$repository" N/A
git -C "$repository" commit -qm one
expect_commit "a repository" "$repository" "$(git -C "$repository" rev-parse HEAD)"
expect_commit "a tree in another project's repository" "$repository/vendored" N/A

# The same again leaves the file alone; the next commit does not.
touch -d @1000000000 "$scratch/commit.h"
commit_of "$repository/vendored" >/dev/null
[ "$(stat -c %Y "$scratch/commit.h")" = 1000000000 ] || wrong "the same commit: the header was written anew"
git -C "$repository" commit -qm two --allow-empty
expect_commit "the next commit" "$repository" "$(git -C "$repository" rev-parse HEAD)"

mkdir "$scratch/archive" "$scratch/bare"
git -C "$repository" archive HEAD | tar -x -C "$scratch/archive"
expect_commit "a source archive" "$scratch/archive" "$(git -C "$repository" rev-parse HEAD)"
cp -r "$repository/cmake" "$scratch/bare/"
GIT_CEILING_DIRECTORIES=$scratch expect_commit "a tree without git" "$scratch/bare" N/A

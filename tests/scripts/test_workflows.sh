#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The workflows of .github: they are YAML, and the scripts, presets, stages and tests that they name are there.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python3 -c 'import yaml' 2>/dev/null || exit 77

run python3 - "$root" <<'EOF'
import glob, json, os, re, subprocess, sys

import yaml

root = sys.argv[1]
presets = {p["name"] for p in json.load(open(root + "/CMakePresets.json"))["configurePresets"]}
stages = subprocess.run([root + "/scripts/check", "--list"], check=True, capture_output=True, text=True).stdout.split()
wrong, runs = [], 0
for path in sorted(glob.glob(root + "/.github/**/*.yml", recursive=True)):
    data = yaml.safe_load(open(path, encoding="utf-8"))
    for name, job in data.get("jobs", {}).items():
        matrix = job.get("strategy", {}).get("matrix", {})
        values = {k: v for k, v in matrix.items() if k != "include"}
        for key in {k for row in matrix.get("include", []) for k in row}:
            values[key] = [row[key] for row in matrix["include"]]
        for step in job["steps"]:
            if "run" not in step:
                continue
            lines = [step["run"]]
            for key, all_values in values.items():
                lines = [l.replace("${{ matrix.%s }}" % key, v) for l in lines for v in all_values]
            for line in sorted(set(lines)):
                runs += 1
                where = "%s: %s: %s" % (os.path.basename(path), name, line.strip())
                if "${{" in line:
                    wrong.append(where + ": unknown value")
                for script in re.findall(r"\bscripts/[\w-]+", line):
                    if not os.access(os.path.join(root, script), os.X_OK):
                        wrong.append(where + ": no " + script)
                for preset in re.findall(r"--preset (\w+)", line):
                    if preset not in presets:
                        wrong.append(where + ": no preset " + preset)
                for stage in ",".join(re.findall(r"--only ([\w,]+)", line)).split(","):
                    if stage and stage not in stages:
                        wrong.append(where + ": no stage " + stage)
print("\n".join(wrong + ["%d commands" % runs]))
sys.exit(bool(wrong) or runs < 20)
EOF
expect_status "the workflows" 0
echo "workflows: all as expected ($output)"

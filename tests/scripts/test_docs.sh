#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/docs: every name of the headers has a text, every page is in the navigation, no link of the HTML is dead. An
# undocumented name fails.
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v doxygen >/dev/null || exit 77

run "$root/scripts/docs" --out "$scratch/docs"
expect_status "the documentation" 0
html=$scratch/docs/html
for page in index reference_mx_matmul concepts_decisions mxdnn_8h structmxdnn_1_1mx__matmul; do
    [ -s "$html/$page.html" ] || wrong "no page $page"
done
run python3 - "$html" <<'EOF'
import glob, html, os, re, sys

folder = sys.argv[1]
texts = {os.path.basename(f): open(f, encoding="utf-8").read() for f in glob.glob(folder + "/*.html")}
names = {f: set(re.findall(r'(?:id|name)="([^"]+)"', t)) for f, t in texts.items()}
dead = []
for page, text in texts.items():
    for target, anchor in re.findall(r'href="([^"#:]*\.html)(?:#([^"]*))?"', text):
        if target not in texts or (anchor and html.unescape(anchor) not in names[target]):
            dead.append("%s: %s#%s" % (page, target, anchor))
    for image in re.findall(r'<img src="([^":]+)"', text):
        if not os.path.exists(os.path.join(folder, image)):
            dead.append("%s: %s" % (page, image))
print("\n".join(dead))
sys.exit(bool(dead))
EOF
expect_status "links of the HTML" 0

# The same from a copy with one name that has no text.
mkdir "$scratch/copy"
cp -r "$root/include" "$root/doc" "$root/scripts" "$root/examples" "$root"/*.md "$root/CMakeLists.txt" "$scratch/copy"
echo 'mxdnn_status_t MXDNN_API mxdnn_nobody_says(void);' >>"$scratch/copy/include/mxdnn/mxdnn_cuda.h"
run "$scratch/copy/scripts/docs"
expect_failure "a name without a text"
expect_says "a name without a text" "mxdnn_nobody_says"

run env PATH=/nowhere "$(python3 -c 'import sys; print(sys.executable)')" "$root/scripts/docs" --out "$scratch/none"
expect_failure "without Doxygen"
expect_says "without Doxygen" "scripts/setup --docs"
run "$root/scripts/docs" --nonsense
expect_failure "unknown option"
echo "docs: all as expected"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything of mxdnn_torch that needs a GPU, on a machine that has one, a CUDA toolkit and a Python with torch:
#   integrations/pytorch/tests/run_cuda.sh [PYTHON]
# Builds libmxdnn with its CUDA part and the operators below $WORK (default: build-cuda-torch), then runs the tests, the
# measurement of call overhead, and whole models in every format. The record is $WORK/record.txt.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
python=$(command -v "${1:-python3}")
work=${WORK:-$root/build-cuda-torch}
mkdir -p "$work"

cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMXDNN_CUDA=ON -DMXDNN_BUILD_TESTS=OFF \
    -DMXDNN_BUILD_EXAMPLES=OFF -DMXDNN_BUILD_TOOLS=OFF -DMXDNN_CUDA_PORTABLE_CODE="${MXDNN_CUDA_PORTABLE_CODE:-LEAST}"
cmake --build "$work/build" --parallel "${JOBS:-$(nproc)}"
cmake --install "$work/build" --prefix "$work/prefix"
cmake -S "$root/integrations/pytorch" -B "$work/operators" -G Ninja -DPython_EXECUTABLE="$python" \
    -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/operators"
rm -rf "$work/package"
mkdir "$work/package"
cp -r "$root/integrations/pytorch/mxdnn_torch" "$work/package/"
cp "$work/operators/"*.so "$work/package/mxdnn_torch/"

export LD_LIBRARY_PATH="$work/prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PYTHONPATH="$work/package"
export PATH="$work/prefix/bin:$PATH"
tests=$root/integrations/pytorch
cd "$work" # away from the sources of the package, which have no library beside them
{
    "$python" -c "import torch, sys; print('torch', torch.__version__, 'Python', sys.version.split()[0],
        torch.cuda.get_device_name() if torch.cuda.is_available() else 'no CUDA device')"
    "$python" -m pytest -c "$tests/pyproject.toml" -p no:cacheprovider -q -rs -m cuda "$tests/tests"
    "$python" "$tests/benchmarks/call_overhead.py" --device cuda
    # What transformers prints while it loads does not belong into a record.
    "$python" "$tests/benchmarks/models.py" --device cuda --seconds 0.5 2>"$work/models.log"
} 2>&1 | tee "$work/record.txt"

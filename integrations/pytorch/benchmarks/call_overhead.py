# SPDX-License-Identifier: Apache-2.0
"""Time of a call that has almost nothing to compute, next to torch.nn.functional.linear in the same run.

Calls take turns in short rounds, so that a busy machine slows all of them alike. Printed are the least time, the median
of the rounds, and the median of each round's quotient. As with timeit, the garbage collector is off."""

import argparse
import gc
import statistics
import time

import torch
import torch.nn.functional as F

import mxdnn_torch
from mxdnn_torch import PackedTensor


def rounds_of(calls, rounds: int, repeats: int) -> dict[str, list[float]]:
    """Microseconds of each call in each round."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            begin = time.perf_counter()
            for _ in range(repeats):
                call()
            times[name].append((time.perf_counter() - begin) / repeats * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=301)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--format", default="mxfp8")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad):
        for dtype in (torch.float32, torch.bfloat16):
            with mode():
                w, x, b = (torch.randn(s, dtype=dtype, device=options.device) for s in ((64, 64), (1, 64), (64,)))
                t = PackedTensor.from_float(w, options.format)
                op = torch.ops.mxdnn.linear.default
                calls = {
                    "F.linear": lambda: F.linear(x, w),
                    "F.linear, bias": lambda: F.linear(x, w, b),
                    "torch.ops.aten.linear": lambda: torch.ops.aten.linear.default(x, w),
                    "torch.ops.mxdnn.linear": lambda: op(x, t.packed, t.blob),
                    "torch.ops.mxdnn.linear, bias": lambda: op(x, t.packed, t.blob, b),
                    "mxdnn_torch.ops.linear": lambda: mxdnn_torch.ops.linear(x, t.packed, t.blob),
                    "F.linear(PackedTensor)": lambda: F.linear(x, t),
                }
                times = rounds_of(calls, options.rounds, options.repeats)
            for name, us in times.items():
                base = times["F.linear, bias" if "bias" in name else "F.linear"]
                quotient = statistics.median(mine / other for mine, other in zip(us, base))
                print(
                    f"{mode.__name__:15} {str(dtype):15} {name:30} {min(us):7.2f} us least "
                    f"{statistics.median(us):7.2f} us median {quotient:6.2f}x"
                )


if __name__ == "__main__":
    main()

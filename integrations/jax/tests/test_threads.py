# SPDX-License-Identifier: Apache-2.0
"""Many calls at once: on XLA's threads, from many threads of Python, with more primitives than are kept."""
import concurrent.futures

import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest
from mxdnn_jax import _native

pytestmark = pytest.mark.everywhere


def test_calls_from_many_threads():
    # Each call occupies a thread of XLA's pool and asks for others: none may wait for one that never comes.
    packed = [mxdnn_jax.pack(exact.random(f"w{i}", 512, 512), "mxfp4") for i in range(4)]
    x = exact.random("x", 64, 512)
    function = jax.jit(lambda x: [mxdnn_jax.linear(x, p, activation="relu") for p in packed])
    expected = [np.asarray(y) for y in function(x)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for results in pool.map(lambda _: jax.block_until_ready(function(x)), range(200)):
            for y, e in zip(results, expected):
                np.testing.assert_array_equal(y, e)


def test_first_calls_of_one_problem_at_once():
    packed, x = mxdnn_jax.pack(exact.random("w", 96, 48), "mxfp6"), exact.random("x", 7, 96, dtype="float16")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: np.asarray(mxdnn_jax.linear(x, packed)), range(32)))
    for y in results:
        exact.check(jnp.asarray(y), x, packed)


def test_more_problems_than_are_kept():
    shapes = [(8, n) for n in range(1, 300)]  # 256 are kept
    target = None if jax.default_backend() == "cpu" else _native.target_of_cuda_device(0)
    blobs = [_native.make_blob("mxfp8", s, "float32", global_scale=False, block=None, target=target) for s in shapes]
    packed = [mxdnn_jax.Packed(jnp.zeros(_native.describe(b).size, jnp.uint8), b) for b in blobs]
    function = jax.jit(lambda x, packed: [mxdnn_jax.linear(x, p, jnp.full(p.shape[1], p.shape[1], x.dtype))
                                          for p in packed])
    for _ in range(2):
        for n, y in enumerate(function(jnp.ones((2, 8)), packed), 1):
            np.testing.assert_array_equal(y, np.full((2, n), n))

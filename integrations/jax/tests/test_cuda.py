# SPDX-License-Identifier: Apache-2.0
"""What is different on a CUDA device; the tests marked `everywhere` run there, too. tests/on-cuda runs all of them."""
import concurrent.futures

import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("format", exact.FORMATS)
def test_a_device_packs_the_bytes_that_a_cpu_packs_for_it(format):
    w = exact.random("w", 3, 160, 96)
    here = mxdnn_jax.pack(w, format)
    assert ":cuda:" in repr(here)
    cpu = jax.devices("cpu")[0]
    target = mxdnn_jax._native.target_of_cuda_device(0)
    there = mxdnn_jax.pack(jax.device_put(w, cpu), format, target)
    assert here.blob == there.blob
    np.testing.assert_array_equal(here.data, there.data)
    np.testing.assert_array_equal(mxdnn_jax.unpack(here), mxdnn_jax.unpack(there))


def test_weights_that_the_same_program_writes():
    # The multiplication begins when the packing has ended, however busy the stream is.
    x = exact.random("x", 64, 1024, dtype="bfloat16")

    @jax.jit
    def both(seed):
        w = jax.random.normal(jax.random.key(seed), (1024, 1024))
        packed = mxdnn_jax.pack(w, "mxfp8")
        return mxdnn_jax.linear(x, packed), packed

    for seed in range(20):
        y, packed = both(seed)
        exact.check(y, x, packed)


@pytest.mark.parametrize("rows", [1, 16, 300, 4096])
@pytest.mark.parametrize("format", ["mxfp4", "nvfp4", "int4"])
def test_sizes_of_models(format, rows):
    x = exact.random("x", rows, 2880, dtype="bfloat16")
    packed = mxdnn_jax.pack(exact.random("w", 2880, 1440, scale=0.02), format)
    exact.check(jax.jit(mxdnn_jax.linear)(x, packed), x, packed)


def test_in_loops():
    # XLA may record loops as command buffers, without these calls.
    packed = mxdnn_jax.pack(exact.random("w", 256, 256, scale=0.05), "mxfp8")
    x = exact.random("x", 8, 256)
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, x: mxdnn_jax.linear(x, packed, activation="tanh"), x))
    expected = x
    for _ in range(50):
        expected = mxdnn_jax.linear(expected, packed, activation="tanh")
    for _ in range(3):
        np.testing.assert_array_equal(looped(x), expected)


def test_calls_from_many_threads():
    packed = [mxdnn_jax.pack(exact.random(f"w{i}", 512, 512), "mxfp4") for i in range(4)]
    x = exact.random("x", 64, 512, dtype="bfloat16")
    function = jax.jit(lambda x: [mxdnn_jax.linear(x, p) for p in packed])
    expected = [np.asarray(y) for y in function(x)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for results in pool.map(lambda _: jax.block_until_ready(function(x)), range(100)):
            for y, e in zip(results, expected):
                np.testing.assert_array_equal(y, e)


def test_group_sizes_that_are_wrong_harm_nothing():
    # The device leaves out what is out of range; nothing can be refused.
    packed, x = mxdnn_jax.pack(exact.random("w", 4, 65, 34), "mxfp4"), exact.random("x", 13, 65)
    for sizes in ([3, 0, 5, 60], [-1, 2, 3, 4], [100, 0, 0, 0]):
        jax.block_until_ready(mxdnn_jax.grouped_linear(x, packed, jnp.array(sizes, jnp.int32)))
    y = mxdnn_jax.grouped_linear(x, packed, jnp.array([0, 13, 0, 0], jnp.int32))
    exact.check(y, x, packed, expert=1)


def test_refused():
    x, packed = exact.random("x", 3, 64), mxdnn_jax.pack(exact.random("w", 64, 32), "mxfp4")
    blob = np.frombuffer(packed.blob, np.uint8).copy()
    blob[40] ^= 1
    call = jax.ffi.ffi_call("mxdnn_linear", jax.ShapeDtypeStruct((3, 32), "float32"))
    with pytest.raises(Exception, match="blob"):
        jax.block_until_ready(call(x, packed.data, blob=blob, activation=""))
    with pytest.raises(Exception, match="packed is U8"):
        jax.block_until_ready(call(x, packed.data[:-1], blob=np.frombuffer(packed.blob, np.uint8), activation=""))
    with pytest.raises(Exception, match="packs and unpacks for itself only"):
        jax.block_until_ready(mxdnn_jax.pack(exact.random("w", 64, 32), "mxfp4", "cpu:x64:avx2"))

# SPDX-License-Identifier: Apache-2.0
"""Functions that are exported to bytes and run in a fresh process."""
import subprocess
import sys

import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest
from jax import export

pytest.importorskip("flatbuffers")  # jax.export writes with it
pytestmark = pytest.mark.everywhere

K, N, E = 65, 34, 3
MAGIC = b"\x89mxdnn\r\n"

# Imports mxdnn_jax, and nothing that knows of what was exported.
LOADER = """
import sys
import numpy as np
import jax.export
{imports}
with open(sys.argv[1], "rb") as f:
    function = jax.export.deserialize(f.read())
arguments = np.load(sys.argv[2])
np.save(sys.argv[3], np.asarray(function.call(*[arguments[name] for name in arguments.files]), np.float32))
"""


def run_elsewhere(tmp_path, exported: bytes, *arguments, imports="import mxdnn_jax"):
    """The result of a fresh process; or what it prints where it fails."""
    (tmp_path / "function").write_bytes(exported)
    np.savez(tmp_path / "arguments.npz", *arguments)
    done = subprocess.run([sys.executable, "-c", LOADER.format(imports=imports), tmp_path / "function",
                           tmp_path / "arguments.npz", tmp_path / "result.npy"], capture_output=True, text=True)
    return np.load(tmp_path / "result.npy") if done.returncode == 0 else done.stderr


def exported(function, *arguments) -> bytes:
    return bytes(export.export(jax.jit(function), disabled_checks=mxdnn_jax.export_checks())(*arguments).serialize())


def weights(format="mxfp4"):
    return mxdnn_jax.pack(exact.random("w", K, N), format)


def with_packed_inside(packed):
    bias = exact.random("b", N)
    return lambda x: mxdnn_jax.linear(x, packed, bias, activation="gelu_tanh")


@pytest.mark.parametrize("format", exact.FORMATS)
def test_same_bits_in_a_fresh_process(tmp_path, format):
    packed, x = weights(format), exact.random("x", 5, K)
    function = with_packed_inside(packed)
    data = exported(function, x)
    assert packed.blob in data and bytes(np.asarray(packed.data)) in data
    np.testing.assert_array_equal(run_elsewhere(tmp_path, data, x), jax.jit(function)(x))


def test_experts_and_gradient(tmp_path):
    packed = mxdnn_jax.pack(exact.random("w", E, K, N), "mxfp8")
    x, sizes = exact.random("x", 9, K), jnp.array([4, 0, 3], jnp.int32)

    def function(x, sizes):
        loss = lambda x: mxdnn_jax.grouped_linear(x, packed, sizes, activation="swish").sum()
        return jax.grad(loss)(x)

    result = run_elsewhere(tmp_path, exported(function, x, sizes), x, sizes)
    np.testing.assert_allclose(result, jax.jit(function)(x, sizes), rtol=1e-5, atol=1e-5)


def test_batch_size_that_is_not_known(tmp_path):
    packed, (rows,) = weights(), export.symbolic_shape("rows")
    function = with_packed_inside(packed)
    data = exported(function, jax.ShapeDtypeStruct((rows, K), jnp.bfloat16))
    for n in (1, 7):
        x = exact.random("x", n, K, dtype="bfloat16")
        loaded = export.deserialize(bytearray(data))
        np.testing.assert_array_equal(loaded.call(x), jax.jit(function)(x))
    sizes, packed = export.symbolic_shape("rows"), mxdnn_jax.pack(exact.random("w", E, K, N), "mxfp4")
    data = exported(lambda x, sizes: mxdnn_jax.grouped_linear(x, packed, sizes),
                    jax.ShapeDtypeStruct((sizes[0], K), jnp.float32), jax.ShapeDtypeStruct((E,), jnp.int32))
    x, sizes = exact.random("x", 7, K), jnp.array([2, 2, 2], jnp.int32)
    np.testing.assert_array_equal(export.deserialize(bytearray(data)).call(x, sizes),
                                  mxdnn_jax.grouped_linear(x, packed, sizes))


def test_weights_as_argument():
    packed, x = weights(), exact.random("x", 5, K)
    loaded = export.deserialize(bytearray(exported(mxdnn_jax.linear, x, packed)))
    np.testing.assert_array_equal(loaded.call(x, packed), mxdnn_jax.linear(x, packed))
    other = weights("mxint8")
    with pytest.raises(Exception):  # another blob is another pytree
        loaded.call(x, other)
    with pytest.raises(Exception):
        loaded.call(x, mxdnn_jax.Packed(packed.data[:-1], packed.blob))
    with pytest.raises(Exception):
        loaded.call(x, mxdnn_jax.Packed(other.data, packed.blob))


def test_without_the_package_it_does_not_run(tmp_path):
    x = exact.random("x", 5, K)
    message = run_elsewhere(tmp_path, exported(with_packed_inside(weights()), x), x, imports="")
    assert isinstance(message, str) and "mxdnn_linear" in message


def test_needs_its_allow_list():
    with pytest.raises(ValueError, match="mxdnn_linear"):
        export.export(jax.jit(with_packed_inside(weights())))(jnp.ones((1, K)))


def test_every_changed_byte_of_a_blob_is_an_error():
    packed, x = weights(), exact.random("x", 5, K)
    data = exported(with_packed_inside(packed), x)
    at = data.index(MAGIC)
    assert data.count(MAGIC) == 1 and data[at:at + len(packed.blob)] == packed.blob
    for i in range(0, len(packed.blob), 5):
        changed = bytearray(data)
        changed[at + i] ^= 0x10
        with pytest.raises(Exception, match="create_with_blob|check_blob|blob"):
            jax.block_until_ready(export.deserialize(changed).call(x))


@pytest.mark.parametrize("other", ["mxint8", "int4_zp"])
def test_the_blob_of_other_weights_is_an_error(other):
    packed, x = weights(), exact.random("x", 5, K)
    other = weights(other)
    data = exported(with_packed_inside(packed), x)
    assert len(other.blob) == len(packed.blob)
    with pytest.raises(Exception, match="packed is U8.*its blob describes"):
        jax.block_until_ready(export.deserialize(bytearray(data.replace(packed.blob, other.blob))).call(x))


def test_packed_for_another_target_is_an_error():
    x = exact.random("x", 5, K)
    target = "cuda:sm_90" if jax.default_backend() == "cpu" else "cpu:x64:avx2"
    with jax.default_device(jax.devices("cpu")[0]):
        packed = mxdnn_jax.pack(exact.random("w", K, N), "mxfp4", target)
    packed = jax.device_put(packed, jax.devices()[0])
    with pytest.raises(Exception, match="packed for"):
        jax.block_until_ready(mxdnn_jax.linear(x, packed))

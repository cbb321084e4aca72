# SPDX-License-Identifier: Apache-2.0
"""Bad input is an exception with a sentence; odd input is computed."""

import base64
import gc
import random
import threading

import pytest
import torch
import torch.nn.functional as F

from mxdnn_torch import FORMATS, PackedTensor, ops

mxdnn = torch.ops.mxdnn
K, N, E = 64, 40, 3


def weight(format="mxfp8", *shape):
    torch.manual_seed(3)
    return PackedTensor.from_float(torch.randn(*(shape or (N, K))), format)


def refused(sentence):
    return pytest.raises(RuntimeError, match=sentence)


def test_blobs_of_others():
    w, x = weight(), torch.randn(2, K)
    other, fewer = weight("mxfp4"), weight("mxfp8", N, 96)
    with refused("packed has shape .*, but its blob describes 3648 bytes|but its blob describes"):
        mxdnn.linear(x, w.packed, other.blob)
    with refused("its last dimension must be 96"):
        mxdnn.linear(x, fewer.packed, fewer.blob)
    longer = (w.blob + "AAAA", w.blob + "\n", " " + w.blob, "A" * 100000)
    for text in ("", "a", "####", "AAAA", w.blob[:-4], *longer, "é" * 4):
        with pytest.raises(RuntimeError):
            mxdnn.linear(x, w.packed, text)


def test_altered_blobs_never_compute():
    """The blob's checksum finds every altered byte."""
    w, x = weight(), torch.randn(2, K)
    data = base64.b64decode(w.blob)
    for i in range(len(data)):
        altered = bytearray(data)
        altered[i] ^= 1 << (i % 8)
        with pytest.raises(RuntimeError):
            mxdnn.linear(x, w.packed, base64.b64encode(bytes(altered)).decode())
        with pytest.raises((RuntimeError, ValueError)):
            PackedTensor(w.packed, base64.b64encode(bytes(altered)).decode()).dequantize()


def test_base64_that_says_the_same_otherwise_is_refused():
    blob = next(t.blob for t in (weight(), weight("mxfp8", 2, N, K)) if t.blob.endswith("="))
    at = len(blob.rstrip("=")) - 1
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    altered = blob[:at] + alphabet[alphabet.index(blob[at]) ^ 1] + blob[at + 1 :]
    assert base64.b64decode(altered) == base64.b64decode(blob)
    w = weight()
    with refused("the blob is not base64"):
        mxdnn.linear(torch.randn(2, K), w.packed, altered)


def test_foreign_bytes():
    w = weight()
    random.seed(4)
    for size in (0, 1, 15, 24, 100, 4096, 5000):
        text = base64.b64encode(random.randbytes(size)).decode()
        with pytest.raises(RuntimeError):
            mxdnn.linear(torch.randn(2, K), w.packed, text)
        with pytest.raises(ValueError, match="this is no blob of packed weights"):
            PackedTensor(w.packed, text)


def test_wrong_tensors():
    w, x = weight(), torch.randn(2, K)
    for bad, sentence in [
        (w.packed[:-1], "describes"), (w.packed.view(torch.int8), "packed has dtype int8; it must be uint8"),
        (w.packed.reshape(2, -1), "describes"), (torch.cat([w.packed, w.packed])[::2], "is not contiguous"),
        (torch.cat([w.packed[:1], w.packed])[1:], "an address that is not a multiple of 16"),
    ]:  # fmt: skip
        with refused(sentence):
            mxdnn.linear(x, bad, w.blob)
    for bad, sentence in [
        (x.double(), "x has dtype float64"), (x.int(), "x has dtype int32"),
        (x[:, :-1], "its last dimension must be 64"),
        (torch.tensor(1.0), "its last dimension must be 64"), (x.to(torch.complex64), "x has dtype another type"),
        (x.bool(), "x has dtype bool"),
    ]:  # fmt: skip
        with refused(sentence):
            mxdnn.linear(bad, w.packed, w.blob)
    for bad, sentence in [
        (torch.randn(N - 1), r"bias has shape \[39\]; it must have \[40\]"), (torch.randn(1, N), "bias has shape"),
        (torch.randn(N).double(), "bias has dtype float64"), (torch.randn(2 * N)[::2], "bias is not contiguous"),
    ]:  # fmt: skip
        with refused(sentence):
            mxdnn.linear(x, w.packed, w.blob, bad)
    for bad in ("gelu", "relu:x", "relu:1:2", "swiglu_oai:1:2:3", "silu:halves:1", ":", "relu:"):
        with refused("activation is|is no number|numbers follow"):
            mxdnn.linear(x, w.packed, w.blob, None, bad)


def test_devices_that_are_mixed():
    w = weight()
    with pytest.raises((RuntimeError, NotImplementedError)):
        F.linear(torch.randn(2, K, device="meta"), w)
    assert F.linear(torch.randn(2, K, device="meta"), w.to("meta")).shape == (2, N)
    with refused("packed is on cpu, but it was packed for cuda"):
        F.linear(torch.randn(2, K), PackedTensor.from_float(torch.randn(N, K), "mxfp8", target="cuda"))


@pytest.mark.parametrize("format", FORMATS)
def test_odd_inputs_are_computed(format):
    w = weight(format)
    plain = w.dequantize(torch.float32)
    big = torch.randn(9, 2 * K)
    views = {
        "columns": big[:, ::2], "transposed": torch.randn(K, 4).t(), "expanded": torch.randn(1, K).expand(5, K),
        "no rows": big[:0, :K], "no rows of many dims": torch.randn(3, 0, K), "one row": big[0, :K],
        "four dims": torch.randn(2, 1, 3, K), "permuted": torch.randn(K, 2, 3).permute(2, 1, 0),
        "flipped": big[:, :K].flip(0), "overlapping": torch.randn(200).as_strided((5, K), (7, 1)),
    }  # fmt: skip
    for name, x in views.items():
        torch.testing.assert_close(F.linear(x, w), F.linear(x, plain), rtol=1e-4, atol=1e-4, msg=name)


def test_shapes_without_elements():
    for shape in ((0, 64), (64, 0), (0, 0), (3, 0, 64), (0, 40, 64)):
        w = PackedTensor.from_float(torch.randn(shape), "mxfp4")
        assert w.dequantize().shape == shape
        assert w.to_codes().codes.shape[:-1] == shape[:-1]
        if len(shape) == 2:
            y = F.linear(torch.randn(5, shape[1]), w, torch.ones(shape[0]))
            assert torch.equal(y, torch.ones(5, shape[0]))
            assert torch.equal(F.linear(torch.randn(2, 3, shape[1]), w), torch.zeros(2, 3, shape[0]))


def test_nan_and_inf_stay_where_they_are():
    w = weight()
    x = torch.randn(3, K)
    clean = F.linear(x, w)
    x[1, 5] = float("nan")
    y = F.linear(x, w)
    assert y[1].isnan().all() and torch.equal(y[[0, 2]], clean[[0, 2]])


def test_index_tensors():
    w, x = weight("mxfp8", E, N, K), torch.randn(4, K)

    def grouped(ends, gather=None, **rest):
        def ints(v):
            return None if v is None else torch.tensor(v, dtype=torch.int32)

        return mxdnn.grouped_linear(x, w.packed, w.blob, ints(ends), None, "none", ints(gather), **rest)

    for ends in ([3, 2, 4], [0, 0, 5], [-1, 2, 4], [2**31 - 1] * 3, [-(2**31)] * 3):
        with pytest.raises(RuntimeError):
            grouped(ends)
    for gather in ([0, 1, 2, 4], [0, -2, 1, 1]):
        with pytest.raises(RuntimeError):
            grouped([1, 2, 4], gather)
    with refused(r"group_ends has shape \[2\]; it must have \[3\]"):
        grouped([1, 2])
    with refused("group_ends has dtype int64; it must be int32"):
        mxdnn.grouped_linear(x, w.packed, w.blob, torch.tensor([1, 2, 4]))
    with refused("scatter_idx and dst_rows belong together"):
        grouped([1, 2, 4], dst_rows=4)
    assert grouped([0, 0, 0], []).shape == (0, N)
    with refused("grouped_linear takes"):
        two = weight()
        mxdnn.grouped_linear(x, two.packed, two.blob, torch.tensor([4], dtype=torch.int32))
    with refused("linear takes"):
        F.linear(x, w)


def test_gradient_of_the_weights_of_experts():
    x, grad, ends = torch.zeros(4, K), torch.zeros(4, N), torch.tensor([1, 4], dtype=torch.int32)
    for arguments, sentence in [
        ((x[0], grad, ends), r"x has shape \[64\]; it must be \[rows, K\]"),
        ((x.double(), grad, ends), "x has dtype float64"),
        ((x.t(), grad, ends), "x is not contiguous"),
        ((x, grad[1:], ends), r"grad has shape \[3, 40\]; it must be \[rows, N\] with the 4 rows of x"),
        ((x, grad.bfloat16(), ends), "grad has dtype bfloat16; it must be float32"),
        ((x, grad, ends.long()), "group_ends has dtype int64; it must be int32"),
        ((x, grad, ends[None]), r"group_ends has shape \[1, 2\]; it must be \[experts\]"),
        ((x, grad, torch.tensor([4, 1], dtype=torch.int32)), "GROUP_OFFSETS"),
        ((x, grad, torch.tensor([4, 5], dtype=torch.int32)), "GROUP_OFFSETS"),
    ]:
        with refused(sentence):
            mxdnn.grouped_weights_gradient(*arguments)


def test_route_and_permute():
    logits = torch.randn(4, E)
    for topk in (0, -1, E + 1, 2**62):
        with refused("topk is"):
            mxdnn.moe_route(logits, topk, "sigmoid")
    with refused("scoring is 'best'; it must be one of softmax_topk"):
        mxdnn.moe_route(logits, 1, "best")
    with pytest.raises(RuntimeError):
        mxdnn.moe_route(logits, 1, "sigmoid", expert_groups=2)
    assert [t.shape[0] for t in mxdnn.moe_route(logits[:0], 1, "sigmoid")] == [0, 0, E, 0, 0, 0, E]
    counts = torch.tensor([[1, 1]], dtype=torch.int32)
    wrong = ((counts * 9, 1, 20), (-counts, 1, 20), (counts, 1, 1), (counts, 0, 20), (counts, -4, 20))
    for bad, alignment, rows in wrong:
        with pytest.raises(RuntimeError):
            mxdnn.moe_permute(torch.randn(3, 8), bad, alignment, rows)
    for idx in ([0, 0], [5, 1], [-3, 0]):
        with pytest.raises(RuntimeError):
            mxdnn.moe_unpermute(torch.randn(2, 8), torch.tensor(idx, dtype=torch.int32), 2)
    with refused("dst_rows is -1; it must not be negative"):
        mxdnn.moe_unpermute(torch.randn(2, 8), torch.tensor([0, 1], dtype=torch.int32), -1)


def test_requires_grad_is_refused():
    w = weight()
    with pytest.raises(NotImplementedError, match="make parameters of it with requires_grad=False"):
        torch.nn.Parameter(w)


def test_shapes_that_are_too_large():
    for shape in ((2**40, 2**40), (2**62, 2), (-1, 32), (2**31, 2**31, 2**31)):
        with pytest.raises((RuntimeError, TypeError)):
            mxdnn.packed_blob(list(shape), "f4_e2m1", "e8m0", 32, "none", "none", "cpu", "bf16", "")
    with pytest.raises(RuntimeError):
        mxdnn.packed_blob([32] * 5, "f4_e2m1", "e8m0", 32, "none", "none", "cpu", "bf16", "")
    with pytest.raises(RuntimeError):
        mxdnn.packed_blob([32], "f4_e2m1", "e8m0", 32, "none", "none", "cpu", "bf16", "")
    for target in ("", "gpu", "cuda:sm_1", "cpu:x64:nonsense", "cpu\0"):
        with pytest.raises(RuntimeError):
            mxdnn.packed_blob([32, 32], "f4_e2m1", "e8m0", 32, "none", "none", target, "bf16", "")


def test_many_threads_and_many_blobs():
    """More descriptors than the caches keep, in several threads at once; results are those of one thread."""
    torch.manual_seed(9)
    weights = [PackedTensor.from_float(torch.randn(16, 32), "mxfp4", recipe=r) for r in ("", "int8_row", "mxfp8")]
    x = torch.randn(3, 32)
    expected = [F.linear(x, w) for w in weights]
    blobs = [ops.packed_blob((16, 32 * (1 + i % 40) + i), weights[0].format) for i in range(5000)]
    failures = []

    def work(seed):
        order = random.Random(seed)
        try:
            for _ in range(300):
                i = order.randrange(len(weights))
                if not torch.equal(F.linear(x, weights[i]), expected[i]):
                    failures.append("a result differs")
                blob = order.choice(blobs)
                try:
                    mxdnn.linear(x, weights[0].packed, blob)
                except RuntimeError:
                    pass
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    for blob in blobs:
        with pytest.raises(RuntimeError):
            mxdnn.linear(x, weights[0].packed[:-1], blob)
    assert torch.equal(F.linear(x, weights[0]), expected[0])
    gc.collect()


def test_number_of_threads_does_not_change_results():
    w = weight("mxfp4", 512, 256)
    x = torch.randn(64, 256)
    before = torch.get_num_threads()
    try:
        results = []
        for n in (1, 2, 3, 1):
            torch.set_num_threads(n)
            results.append(F.linear(x, w))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(r, results[0]) for r in results)

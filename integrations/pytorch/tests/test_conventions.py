# SPDX-License-Identifier: Apache-2.0
"""What callers of torch's functions rely on holds for PackedTensor, too."""

import pytest
import torch
import torch.nn.functional as F

from mxdnn_torch import PackedTensor, ops

N, K = 40, 64


def weight(n=N):
    torch.manual_seed(1)
    w = PackedTensor.from_float(torch.randn(n, K), "mxfp8")
    return w, w.dequantize(), torch.randn(3, K)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_arguments_have_the_names_of_torch():
    w, plain, x = weight()
    expected = x @ plain.t()
    close(F.linear(input=x, weight=w), expected)
    close(F.linear(x, w, bias=torch.ones(N)), expected + 1)
    close(torch.matmul(x, other=w.t()), expected)
    close(torch.matmul(input=x, other=w.t()), expected)
    close(x.matmul(other=w.t()), expected)
    close(torch.mm(x, mat2=w.t()), expected)


def test_a_result_that_is_given_is_refused():
    w, _, x = weight()
    with pytest.raises(TypeError, match="out"):
        torch.matmul(x, w.t(), out=torch.empty(3, N))


def test_addmm_with_beta_0_does_not_read_the_addend():
    w, plain, x = weight()
    close(torch.addmm(torch.full((3, N), torch.nan), x, w.t(), beta=0, alpha=2), 2 * (x @ plain.t()))
    close(torch.addmm(torch.ones(3, N), x, w.t(), beta=3), 3 + x @ plain.t())


def test_split_takes_what_torch_takes():
    w, plain, _ = weight()
    for sizes in ([1, 2, 37], [0, 40], [40], 7, 40, 100):
        assert [t.shape for t in w.split(sizes)] == [t.shape for t in plain.split(sizes)]
    for sizes in ([1, 2], [20, 21], [41, -1], [], 0, -1):
        with pytest.raises((RuntimeError, ValueError)):
            plain.split(sizes)
        with pytest.raises((RuntimeError, ValueError), match="parts of|split"):
            w.split(sizes)


@pytest.mark.parametrize("short,long", [
    ("swish", "swish:1"), ("linear", "linear:1:0"), ("relu", "relu:0"), ("swiglu_oai", "swiglu_oai:1.702:0:interleaved"),
    ("silu", "silu:0:0:interleaved"), ("silu:halves", "silu:0:0:halves"),
])  # fmt: skip
def test_words_without_numbers_mean_what_mxdnn_bench_means(short, long):
    w, _, x = weight()
    x.requires_grad_()
    results = [ops.linear(x, w.packed, w.blob, None, word) for word in (short, long)]
    assert torch.equal(*results) and results[0].any()
    close(*(torch.autograd.grad(y.sum(), x)[0] for y in results))


def test_what_reaches_for_the_bytes_of_a_plain_tensor():
    w, plain, x = weight()
    assert w.share_memory_() is w and w.packed.is_shared()
    assert torch.equal(w.dequantize(), plain)
    parameter = torch.nn.Parameter(w, requires_grad=False)
    for data in (weight()[0].bfloat16(), torch.zeros(N, K)):
        with pytest.raises(NotImplementedError, match="assign a new parameter, or use copy_"):
            parameter.data = data
    with pytest.raises(NotImplementedError, match="dequantize"):
        torch.from_dlpack(w)
    close(F.linear(x, parameter), x @ plain.t())

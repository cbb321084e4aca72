# SPDX-License-Identifier: Apache-2.0
"""Calls that skip torch's dispatcher (csrc/python/direct.cpp) do what the operator does, and skip it unseen only."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from mxdnn_torch import PackedTensor, ops

N, K = 40, 64


@pytest.fixture
def weight():
    torch.manual_seed(4)
    return PackedTensor.from_float(torch.randn(N, K), "mxfp8")


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_result_is_the_operators(weight, mode, dtype):
    bias = torch.randn(N, dtype=dtype)
    with mode():
        for x in torch.randn(3, K), torch.randn(2, 5, K), torch.randn(K), torch.randn(K, 3).t(), torch.randn(0, K):
            x = x.to(dtype)
            for arguments in (None, "none"), (bias, "none"), (None, "gelu_tanh"):
                y = ops.linear(x, weight.packed, weight.blob, *arguments)
                expected = torch.ops.mxdnn.linear(x, weight.packed, weight.blob, *arguments)
                assert type(y) is torch.Tensor and y.dtype == dtype and torch.equal(y, expected)
                assert y.is_inference() == expected.is_inference()


def test_gradients_go_through_the_operator(weight):
    x, bias = torch.randn(3, K), torch.randn(N)
    for wants in x, bias:
        wants.requires_grad_()
        assert ops.linear(x, weight.packed, weight.blob, bias).requires_grad
        assert F.linear(x, weight, bias).requires_grad
        with torch.no_grad():
            assert not F.linear(x, weight, bias).requires_grad
        wants.requires_grad_(False)


def test_who_watches_sees_the_operator(weight):
    x, seen = torch.randn(3, K), []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        F.linear(x, weight)
    assert "mxdnn.linear.default" in seen
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        F.linear(x, weight)
    assert "mxdnn::linear" in {event.name for event in profile.events()}


def test_refusals_are_the_operators(weight):
    x = torch.randn(3, K)
    for arguments, sentence in [
        ((x[:, 1:], weight.packed, weight.blob), "its last dimension must be 64"),
        ((x.double(), weight.packed, weight.blob), "x has dtype float64"),
        ((x, weight.packed[1:], weight.blob), "but its blob describes"),
        ((x, weight.packed, weight.blob[:-4]), "the blob has 108 bytes"),
        ((x, weight.packed, weight.blob, torch.randn(N + 1)), r"bias has shape \[41\]"),
        ((x, weight.packed, weight.blob, None, "quick"), "activation is 'quick'"),
    ]:
        with pytest.raises(RuntimeError, match=sentence):
            ops.linear(*arguments)
    for arguments in [(x.numpy(), weight.packed, weight.blob), (x, weight.packed, None), (x, weight.packed, "\ud800")]:
        with pytest.raises((RuntimeError, TypeError, AttributeError, UnicodeError)):
            ops.linear(*arguments)


def test_subclasses_are_left_to_torch(weight):
    class Named(torch.Tensor):
        pass

    x = torch.randn(3, K).as_subclass(Named)
    assert type(F.linear(x, weight)) is Named
    x = x.as_subclass(torch.Tensor)
    torch.testing.assert_close(torch.vmap(lambda row: F.linear(row, weight))(x), F.linear(x, weight))

# SPDX-License-Identifier: Apache-2.0
"""The operators on a CUDA device: results of the host, the current stream, graphs, torch's allocator, no waiting."""

import gc

import pytest
import torch
import torch.nn.functional as F

from mxdnn_torch import FORMATS, PackedTensor, QuantizeConfig, ops, quantize_
from mxdnn_torch.gradients import weights_gradient

mxdnn = torch.ops.mxdnn
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
GATED = "swiglu_oai:1.702:7:interleaved"


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(21)


def bound(x, weight):
    """As test_packed_tensor's: f32 sums in any order, one rounding of the result."""
    k, unit = x.shape[-1], torch.finfo(torch.float32).eps / 2
    magnitude = x.double().abs() @ weight.double().abs().T
    return magnitude * ((k + 2) * unit + torch.finfo(x.dtype).eps) + torch.finfo(x.dtype).tiny


@pytest.mark.parametrize("rows", [1, 5, 64, 300])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("format", FORMATS)
def test_linear(format, dtype, rows):
    weight = PackedTensor.from_float(torch.randn(256, 512, device="cuda"), format)
    assert weight.description.family == "cuda"
    x = torch.randn(rows, 512, device="cuda", dtype=dtype)
    plain = weight.dequantize(torch.float32).double()
    assert ((F.linear(x, weight).double() - x.double() @ plain.T).abs() <= bound(x, plain)).all()


@pytest.mark.parametrize("format", FORMATS)
def test_codes_are_those_of_the_host(format):
    plain = torch.randn(96, 160)
    host, device = PackedTensor.from_float(plain, format), PackedTensor.from_float(plain.cuda(), format)
    moved = host.cuda()
    assert moved.blob == device.blob and torch.equal(moved.packed, device.packed)
    back = device.cpu()
    assert back.blob == host.blob and torch.equal(back.packed, host.packed)
    for mine, other in zip(device.to_codes(), host.to_codes()):
        assert mine is None and other is None or torch.equal(_bytes(mine).cpu(), _bytes(other))


def _bytes(t):
    return t.contiguous().view(torch.uint8)


RECIPES = ["int8_row", "fp8_row", "mxint8", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "nvfp4:dynamic", "nvfp4:0.002"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_are_those_of_the_host(recipe):
    plain, x = torch.randn(64, 128), torch.randn(7, 128)
    host = PackedTensor.from_float(plain, "mxfp4", recipe=recipe)
    device = host.cuda()
    torch.testing.assert_close(F.linear(x.cuda(), device).cpu(), F.linear(x, host), rtol=1e-5, atol=1e-4)


def layer(device="cuda"):
    gate_up = PackedTensor.from_float(torch.randn(4, 192, 128) / 11, "mxfp4").to(device)
    down = PackedTensor.from_float(torch.randn(4, 128, 96) / 10, "mxfp4").to(device)
    x, logits = torch.randn(9, 128, device=device), 3 * torch.randn(9, 4, device=device)
    return (x, logits, gate_up.packed, gate_up.blob, down.packed, down.blob, 2, "topk_softmax", GATED)


def to_host(args):
    gate_up, down = PackedTensor(args[2], args[3]).cpu(), PackedTensor(args[4], args[5]).cpu()
    return (args[0].cpu(), args[1].cpu(), gate_up.packed, gate_up.blob, down.packed, down.blob, *args[6:])


def test_moe_layer():
    args = layer()
    torch.testing.assert_close(mxdnn.moe_layer(*args).cpu(), mxdnn.moe_layer(*to_host(args)), rtol=1e-4, atol=1e-4)


def test_gradients():
    args = layer()
    grads = []
    for a in (args, to_host(args)):
        x, logits = a[0].detach().requires_grad_(), a[1].detach().requires_grad_()
        grads.append(torch.autograd.grad(mxdnn.moe_layer(x, logits, *a[2:]).sum(), (x, logits)))
    for mine, other in zip(*grads):
        torch.testing.assert_close(mine.cpu(), other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradient_of_the_weights_of_experts(dtype):
    """As on the host, but for the order of sums; rows of no expert count nowhere, whatever they are."""
    x, grad = torch.randn(700, 136, device="cuda").to(dtype), torch.randn(700, 200, device="cuda").to(dtype)
    x[690:], grad[690:] = torch.nan, torch.inf
    ends = torch.tensor([70, 70, 71, 690], dtype=torch.int32, device="cuda")
    got = weights_gradient(x, grad, ends)
    assert got.dtype == dtype and got.shape == (4, 200, 136) and got[1].eq(0).all()
    unit, result = torch.finfo(torch.float32).eps / 2, torch.finfo(dtype).eps / 2
    for expert, (begin, end) in enumerate(zip([0, 70, 70, 71], ends.tolist())):
        rows, grads = x[begin:end].double(), grad[begin:end].double()
        bound = grads.abs().t() @ rows.abs() * ((end - begin + 2) * unit + result) + torch.finfo(dtype).tiny * result
        assert ((got[expert].double() - grads.t() @ rows).abs() <= bound).all()


def test_gradient_of_weights_in_a_graph():
    """The gradient of weights of rows of 16 bits can be captured: nothing is read back."""
    x, grad = torch.randn(300, 128, device="cuda").bfloat16(), torch.randn(300, 192, device="cuda").bfloat16()
    ends = torch.tensor([100, 300], dtype=torch.int32, device="cuda")
    want = weights_gradient(x, grad, ends)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = weights_gradient(x, grad, ends)
    graph.replay()
    assert torch.equal(got, want)


def test_permute_and_back():
    counts = torch.tensor([[2, 0, 3], [1, 2, 0]], dtype=torch.int32, device="cuda")
    x = torch.randn(8, 64, device="cuda")
    permuted, ends, idx = mxdnn.moe_permute(x, counts, 4, 20)
    assert ends.tolist() == [4, 8, 12]
    assert torch.equal(mxdnn.moe_unpermute(permuted, idx, 8), x)


def test_current_stream_orders_executions():
    """What is put into a side stream is done in its order: a product waits for the fill before it."""
    weight = PackedTensor.from_float(torch.ones(128, 4096, device="cuda"), "mxfp8")
    x = torch.zeros(64, 4096, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.fill_(1)
        y = F.linear(x, weight)
    side.synchronize()
    assert (y == 4096).all()


def test_calls_do_not_wait():
    """A call returns while the stream is still busy with what came before it."""
    weight = PackedTensor.from_float(torch.randn(128, 256, device="cuda"), "mxfp4")
    x = torch.randn(4, 256, device="cuda", dtype=torch.bfloat16)
    args = layer()
    F.linear(x, weight), mxdnn.moe_layer(*args)  # makes primitives
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)
    done = torch.cuda.Event()
    F.linear(x, weight), mxdnn.moe_layer(*args)
    done.record()
    assert not done.query()
    torch.cuda.synchronize()


@pytest.mark.parametrize("what", ["linear", "recipe", "moe_layer"])
def test_graph(what):
    if what == "moe_layer":
        args = layer()
        x = args[0]

        def run():
            return mxdnn.moe_layer(*args)
    else:
        weight = PackedTensor.from_float(
            torch.randn(128, 256, device="cuda"), "mxfp4", recipe="mxfp8" if what == "recipe" else ""
        )
        x = torch.randn(4, 256, device="cuda", dtype=torch.bfloat16)

        def run():
            return F.linear(x, weight)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run()
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(y, run(), rtol=1e-5, atol=1e-5)


def test_reduce_overhead():
    m = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda().bfloat16()
    quantize_(m, QuantizeConfig("mxfp4"))
    compiled = torch.compile(m, fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(8, 256, device="cuda", dtype=torch.bfloat16)
            torch.testing.assert_close(compiled(x).clone(), m(x), rtol=2e-2, atol=2e-2)
    from torch._dynamo.utils import counters

    assert counters["inductor"]["cudagraph_skips"] == 0


def test_memory_is_torchs():
    """Outputs and scratchpads come from the caching allocator and go back to it."""
    args = layer()
    mxdnn.moe_layer(*args)
    gc.collect()
    torch.cuda.synchronize()
    before, free_before = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(50):
        mxdnn.moe_layer(*args)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.mem_get_info()[0] >= free_before - (64 << 20)


def test_refused():
    weight = PackedTensor.from_float(torch.randn(64, 128, device="cuda"), "mxfp4")
    host = PackedTensor.from_float(torch.randn(64, 128), "mxfp4")
    x = torch.randn(2, 128, device="cuda")
    with pytest.raises(RuntimeError, match="packed is on cpu"):
        F.linear(x, host)
    with pytest.raises(RuntimeError, match="packed is on cuda:0"):
        F.linear(x.cpu(), weight)
    with pytest.raises(RuntimeError, match="packed is on cuda:0, but it was packed for cpu:x64"):
        mxdnn.linear(x, host.packed.cuda(), host.blob)
    with pytest.raises(RuntimeError, match="bias is on cpu"):
        F.linear(x, weight, torch.randn(64))
    if torch.cuda.device_count() > 1:
        with pytest.raises(RuntimeError, match="it must be on cuda:1, where the other tensors are"):
            F.linear(x.to("cuda:1"), weight)


def test_save_and_load(tmp_path):
    weight = PackedTensor.from_float(torch.randn(64, 128, device="cuda"), "nvfp4")
    torch.save(weight, tmp_path / "w.pt")
    again = torch.load(tmp_path / "w.pt", weights_only=True)
    assert again.is_cuda and again.blob == weight.blob and torch.equal(again.packed, weight.packed)
    host = torch.load(tmp_path / "w.pt", weights_only=True, map_location="cpu")
    assert host.description.family == "cpu:x64"
    assert torch.equal(host.cuda().packed, weight.packed)


CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def test_opcheck():
    weight = PackedTensor.from_float(torch.randn(64, 128, device="cuda"), "mxfp4")
    x = torch.randn(2, 128, device="cuda", requires_grad=True)
    torch.library.opcheck(mxdnn.linear.default, (x, weight.packed, weight.blob), test_utils=CHECKS)
    args = layer()
    torch.library.opcheck(mxdnn.moe_layer.default, (args[0].requires_grad_(), *args[1:]), test_utils=CHECKS)
    assert ops.is_gated(GATED)

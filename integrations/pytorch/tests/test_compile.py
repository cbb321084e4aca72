# SPDX-License-Identifier: Apache-2.0
"""torch.compile and torch.export see operators, not this package's Python."""

import pytest
import torch
from torch import nn

from mxdnn_torch import PackedTensor, QuantizeConfig, quantize_

mxdnn = torch.ops.mxdnn


def model(format="mxfp8", activation="") -> nn.Sequential:
    torch.manual_seed(6)
    m = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 32, bias=False))
    return quantize_(m, QuantizeConfig(format, activation))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile_with_any_batch(backend):
    m = model()
    compiled = torch.compile(m, fullgraph=True, dynamic=True, backend=backend)
    with torch.no_grad():
        for batch in (3, 5, 17):
            x = torch.randn(batch, 64)
            torch.testing.assert_close(compiled(x), m(x))
    counters = torch._dynamo.utils.counters
    assert not counters["graph_break"]


def test_one_graph_serves_every_batch():
    from torch._dynamo.backends.common import aot_autograd

    torch._dynamo.reset()
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(
        model(), fullgraph=True, dynamic=True, backend=aot_autograd(fw_compiler=compiler, inference_compiler=compiler)
    )
    with torch.no_grad():
        for batch in (3, 5, 17):
            compiled(torch.randn(batch, 64))
    assert len(graphs) == 1
    targets = [str(n.target) for n in graphs[0].graph.nodes if n.op == "call_function"]
    assert sum(t.startswith("mxdnn.linear") for t in targets) == 2, targets


def test_gradient_of_the_input():
    m = model()
    compiled = torch.compile(m, fullgraph=True, backend="aot_eager")
    x = torch.randn(4, 64, requires_grad=True)
    (eager,) = torch.autograd.grad(m(x).sum(), x)
    (traced,) = torch.autograd.grad(compiled(x).sum(), x)
    torch.testing.assert_close(traced, eager)


def test_experts():
    torch.manual_seed(7)
    gate_up, down = (PackedTensor.from_float(torch.randn(s) / 8, "mxfp4") for s in ((4, 96, 64), (4, 64, 48)))

    def layer(x, logits, gu, gu_blob, d, d_blob):
        return mxdnn.moe_layer(x, logits, gu, gu_blob, d, d_blob, 2, "topk_softmax", "silu:0:0:halves").relu()

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for tokens in (3, 9):
        args = (torch.randn(tokens, 64), torch.randn(tokens, 4), gate_up.packed, gate_up.blob, down.packed, down.blob)
        torch.testing.assert_close(compiled(*args), layer(*args))


@pytest.mark.parametrize("format", ["mxfp8", "nvfp4"])
def test_export(format, tmp_path):
    m = model(format).eval()
    x = torch.randn(4, 64)
    batch = torch.export.Dim("batch", min=2)
    with torch.no_grad():
        program = torch.export.export(m, (x,), dynamic_shapes=({0: batch},))
        expected = m(torch.randn(9, 64, generator=torch.Generator().manual_seed(1)))
        got = program.module()(torch.randn(9, 64, generator=torch.Generator().manual_seed(1)))
    torch.testing.assert_close(got, expected)
    program = program.run_decompositions({})
    calls = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert sum(c.startswith("mxdnn.linear") for c in calls) == 2, calls

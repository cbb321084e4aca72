# SPDX-License-Identifier: Apache-2.0
"""Every operator: torch's own checks, gradients, and results against plain torch."""

import pytest
import torch

from mxdnn_torch import PackedTensor, activations, get_format

mxdnn = torch.ops.mxdnn
E, T, K, I, TOPK = 5, 7, 64, 48, 2
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
GATED = "swiglu_oai:1.702:7:interleaved"


def packed(*shape, format="mxfp8", recipe=""):
    t = PackedTensor.from_float(torch.randn(*shape) / shape[-1] ** 0.5, format, recipe=recipe)
    return t.packed, t.blob


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(11)


def route(logits, **options):
    return mxdnn.moe_route(logits, TOPK, "topk_softmax", **options)


def linear_case(grad=False, activation="none"):
    w, blob = packed(40, K)
    return (torch.randn(3, K, requires_grad=grad), w, blob, torch.randn(40), activation)


def grouped_case(grad=False, activation="none"):
    w, blob = packed(E, 40, K)
    _, _, ends, tokens, _, weights, _ = route(torch.randn(T, E))
    x = torch.randn(T, K, requires_grad=grad)
    return (x, w, blob, ends, torch.randn(E, 40), activation, tokens, tokens, weights, T)


def layer_case(grad=False, **options):
    gate_up, down = packed(E, 2 * I, K), packed(E, K, I)
    x, logits = torch.randn(T, K, requires_grad=grad), torch.randn(T, E, requires_grad=grad)
    return (x, logits, *gate_up, *down, TOPK, "topk_softmax", GATED, torch.randn(E, 2 * I), torch.randn(E, K))


def permute_case(grad=False):
    counts = torch.tensor([[2, 0, 3], [1, 2, 0]], dtype=torch.int32)
    return (torch.randn(8, 16, requires_grad=grad), counts, 4, 8 + 3 * 4)


def unpermute_case(grad=False):
    rows, _, idx = mxdnn.moe_permute(*permute_case())
    return (rows.requires_grad_(grad), idx, 4, torch.rand(4, 2, requires_grad=grad))


def codes_case():
    w, blob = packed(40, K, format="nvfp4")
    codes, scales, _, global_scale = mxdnn.unpack_codes(w, blob)
    return (codes, scales, None, global_scale, blob)


CASES = {
    "quantize_pack": lambda: (torch.randn(40, K), packed(40, K)[1], "rceil"),
    "pack_codes": codes_case,
    "unpack_codes": lambda: packed(40, K, format="int4_zp"),
    "unpack": lambda: (*packed(40, K), torch.bfloat16),
    "linear": lambda: linear_case(grad=True),
    "linear gated": lambda: linear_case(grad=True, activation=GATED),
    "grouped_linear": lambda: grouped_case(grad=True),
    "grouped_linear gated": lambda: grouped_case(grad=True, activation=GATED),
    "grouped_weights_gradient": lambda: (torch.randn(T, K), torch.randn(T, 40), torch.tensor([1, 3, T]).int()),
    "moe_route": lambda: (torch.randn(T, E, requires_grad=True), TOPK, "softmax_topk", True),
    "moe_layer": lambda: layer_case(grad=True),
    "moe_permute": lambda: permute_case(grad=True),
    "moe_unpermute": lambda: unpermute_case(grad=True),
    "grouped_linear_backward": lambda: (torch.randn(T, 40), *grouped_case()[:-1]),
    "moe_layer_backward": lambda: (
        torch.randn(T, K), *layer_case(), False, None, 1, 1, False, 1.0,
    ),  # fmt: skip
}


@pytest.mark.parametrize("case", CASES)
def test_opcheck(case):
    result = torch.library.opcheck(
        getattr(mxdnn, case.split()[0]).default, CASES[case](), test_utils=CHECKS
    )
    assert set(result.values()) == {"SUCCESS"}, result


def test_every_operator_with_tensors_is_checked():
    names = {n.split("::")[1] for n in torch._C._dispatch_get_all_op_names() if n.startswith("mxdnn::")}
    texts = {"packed_blob", "describe_blob", "packed_checksum", "cpu_target"}
    assert names - texts == {c.split()[0] for c in CASES}


# ---- Gradients, against differences ----


def check_gradient(f, *inputs):
    """Directional derivative of a f64 sum of f's results against the gradient. f computes in f32: steps are large
    enough that rounding (about 1e-6 of the sum) and the remainder of the differences stay below the tolerance."""
    y = f(*inputs)
    weights = torch.randn_like(y)
    grads = torch.autograd.grad((y * weights).sum(), inputs)
    for i, (x, grad) in enumerate(zip(inputs, grads)):
        direction = torch.randn_like(x)
        direction /= direction.norm()

        def along(step):
            moved = [t.detach() + step * direction if j == i else t.detach() for j, t in enumerate(inputs)]
            return (f(*moved).double() * weights.double()).sum().item()

        step = 3e-2
        # Fourth order: the remainder is of the step's fourth power.
        expected = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
        got = (grad.double() * direction.double()).sum().item()
        assert abs(got - expected) <= 2e-3 * max(1.0, abs(expected)), (i, got, expected)


ACTIVATIONS = [
    "none", "tanh", "square", "linear:0.5:1", "logistic", "gelu_tanh", "gelu_erf", "swish:1.5",
    "relu2", "silu:0:0:halves", GATED, "geglu_erf", "geglu_tanh",
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_gradient(activation):
    x, w, blob, bias, _ = linear_case(grad=True)
    check_gradient(lambda x, b: mxdnn.linear(x, w, blob, b, activation), x, bias.requires_grad_())


@pytest.mark.parametrize("activation", [*ACTIVATIONS, "relu:0.1", "clip:-0.5:0.5", "silu", "silu:0:0.7:halves"])
def test_activations_are_those_of_the_library(activation):
    x, w, blob, bias, _ = linear_case()
    z = mxdnn.linear(x, w, blob, bias)
    torch.testing.assert_close(
        mxdnn.linear(x, w, blob, bias, activation), activations.apply(activation, z), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("activation", ["none", "gelu_tanh", GATED])
def test_grouped_linear_gradient(activation):
    x, w, blob, ends, bias, _, tokens, _, weights, _ = grouped_case(grad=True)
    weights = weights.requires_grad_()
    check_gradient(
        lambda x, t: mxdnn.grouped_linear(x, w, blob, ends, bias, activation, tokens, tokens, t, T), x, weights
    )
    check_gradient(lambda x: mxdnn.grouped_linear(x, w, blob, ends, bias, activation, tokens), x)


@pytest.mark.parametrize("scoring", ["softmax_topk", "topk_softmax", "sigmoid"])
@pytest.mark.parametrize("renormalize", [False, True])
def test_route_gradient(scoring, renormalize):
    logits = (torch.randn(T, E) * 3).requires_grad_()

    def weights(logits):
        weights, _, _, _, _, row_weights, _ = mxdnn.moe_route(logits, TOPK, scoring, renormalize, scale=2.5)
        return torch.cat([weights.flatten(), row_weights.sum()[None]])

    check_gradient(weights, logits)


def test_moe_layer_gradient():
    x, logits, *rest = layer_case()
    logits = logits * 4  # far from ties: a step must not change the choice of experts
    check_gradient(lambda x, l: mxdnn.moe_layer(x, l, *rest), x.requires_grad_(), logits.requires_grad_())


def test_permute_gradients():
    x, *rest = permute_case(grad=True)
    check_gradient(lambda x: mxdnn.moe_permute(x, *rest)[0], x)
    rows, idx, n, weights = unpermute_case(grad=True)
    check_gradient(lambda r, w: mxdnn.moe_unpermute(r, idx, n, w), rows, weights)


# ---- Results of the expert operators ----


def test_moe_layer_is_route_gate_up_down():
    x, logits, gu, gu_blob, down, down_blob, _, _, _, gu_bias, down_bias = layer_case()
    y = mxdnn.moe_layer(*layer_case_args(x, logits, gu, gu_blob, down, down_blob, gu_bias, down_bias))
    weights, ids = torch.topk(logits, TOPK)
    weights = torch.softmax(weights, 1)
    gate_up = mxdnn.unpack(gu, gu_blob, torch.float32).double()
    down_w = mxdnn.unpack(down, down_blob, torch.float32).double()
    expected = torch.zeros(T, K, dtype=torch.float64)
    for t in range(T):
        for w, e in zip(weights[t], ids[t]):
            z = x[t].double() @ gate_up[e].T + gu_bias[e].double()
            h = activations.apply(GATED, z)
            expected[t] += w.double() * (h @ down_w[e].T + down_bias[e].double())
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


def layer_case_args(x, logits, gu, gu_blob, down, down_blob, gu_bias, down_bias):
    return (x, logits, gu, gu_blob, down, down_blob, TOPK, "topk_softmax", GATED, gu_bias, down_bias)


def test_rows_without_expert_are_zero():
    w, blob = packed(E, 40, K)
    ends = torch.tensor([1, 1, 2, 3, 3], dtype=torch.int32)
    y = mxdnn.grouped_linear(torch.randn(9, K), w, blob, ends)
    assert y[:3].abs().sum() > 0 and y[3:].abs().sum() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradient_of_the_weights_of_experts(dtype):
    x, grad = torch.randn(33, K).to(dtype), torch.randn(33, 40).to(dtype)
    x[30:], grad[30:] = torch.nan, torch.inf  # rows of no expert
    ends = torch.tensor([7, 7, 8, 30], dtype=torch.int32)
    got = mxdnn.grouped_weights_gradient(x, grad, ends)
    assert got.dtype == dtype and got.shape == (4, 40, K) and got[1].eq(0).all()
    unit, result = torch.finfo(torch.float32).eps / 2, torch.finfo(dtype).eps / 2
    for expert, (begin, end) in enumerate(zip([0, 7, 7, 8], ends.tolist())):
        rows, grads = x[begin:end].double(), grad[begin:end].double()
        bound = grads.abs().t() @ rows.abs() * ((end - begin + 2) * unit + result)
        assert ((got[expert].double() - grads.t() @ rows).abs() <= bound).all()
    none = mxdnn.grouped_weights_gradient(x[:0], grad[:0], torch.zeros(4, dtype=torch.int32))
    assert none.shape == got.shape and none.eq(0).all()


def test_permute_and_back():
    x, counts, alignment, rows = permute_case()
    permuted, ends, idx = mxdnn.moe_permute(x, counts, alignment, rows)
    assert ends.tolist() == [4, 8, 12]
    assert torch.equal(mxdnn.moe_unpermute(permuted, idx, 8), x)


# ---- Recipes: the input is quantised as the recipe says ----

RECIPES = {
    "mxfp8": "mxfp8", "mxfp8:floor": "mxfp8", "mxfp8_e5m2": "mxfp8_e5m2", "mxfp6": "mxfp6", "mxfp6_e3m2": "mxfp6_e3m2",
    "mxfp4": "mxfp4", "mxint8": "mxint8", "nvfp4:dynamic": "nvfp4",
}  # fmt: skip


@pytest.mark.parametrize("recipe", [*RECIPES, "nvfp4", "nvfp4:0.002", "int8_row", "fp8_row"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recipes(recipe, dtype):
    w, blob = packed(40, K, format="mxfp4", recipe=recipe)
    x = torch.randn(6, K, dtype=dtype)
    if recipe in RECIPES:
        rounding = recipe.split(":")[1] if recipe.startswith("mxfp8:") else "rceil"
        rows = PackedTensor.from_float(x, RECIPES[recipe], rounding=rounding).dequantize(torch.float32)
    elif recipe.startswith("nvfp4"):
        given = torch.tensor([0.002]) if ":" in recipe else None
        f = get_format("nvfp4", global_scale=given is not None)
        rows = PackedTensor.from_float(x, f, global_scale=given).dequantize(torch.float32)
    elif recipe == "int8_row":
        scale = x.float().abs().amax(1, keepdim=True) / 127
        rows = torch.round(x.float() / scale) * scale
    else:
        scale = x.float().abs().amax(1, keepdim=True) / 448
        rows = (x.float() / scale).to(torch.float8_e4m3fn).float() * scale
    plain = mxdnn.unpack(w, blob, torch.float32).double()
    exact = rows.double() @ plain.T
    magnitude = rows.double().abs() @ plain.abs().T
    unit, result = torch.finfo(torch.float32).eps / 2, torch.finfo(dtype).eps / 2
    # K products and sums; a row's scale is one more factor, where the f32 of the test and the library's may differ.
    bound = magnitude * ((K + 6) * unit + result) + 1e-30
    got = mxdnn.linear(x, w, blob)
    assert ((got.double() - exact).abs() <= bound).all()


def test_recipes_of_experts():
    x, _, _, ends, bias, _, tokens, _, weights, _ = grouped_case()
    for recipe in (*RECIPES, "int8_row", "fp8_row"):
        w, blob = packed(E, 40, K, format="mxfp4", recipe=recipe)
        y = mxdnn.grouped_linear(x, w, blob, ends, bias, "none", tokens)
        for expert, (begin, end) in enumerate(zip([0, *ends.tolist()], ends.tolist())):
            if end == begin:
                continue
            one = PackedTensor(w, blob)[expert]
            expected = mxdnn.linear(x, one.packed, one.blob, bias[expert])[tokens[begin:end].long()]
            torch.testing.assert_close(y[begin:end], expected, rtol=1e-5, atol=1e-5)

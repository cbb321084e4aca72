# SPDX-License-Identifier: Apache-2.0
"""Expert parallelism: stages on several ranks (ep_ranks.py), and what is refused."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("torchao.prototype.mx_formats")

from ep_ranks import sqnr  # noqa: E402

from mxdnn_torch import ep  # noqa: E402


def checks_of_ranks(meeting, *words):
    done = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("ep_ranks.py"), meeting, *words],
        capture_output=True, text=True, timeout=300, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(int(line) for line in done.stdout.splitlines() if line.isdigit())  # NCCL may print, too


def test_stages_on_1_2_and_4_ranks(tmp_path):
    # 5 cases and a layer, with and without MXFP8; rank 0 is in three groups, rank 1 in two
    assert checks_of_ranks(tmp_path / "meeting") == [12, 12, 24, 36]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_stages_over_nccl(tmp_path):
    devices = min(torch.cuda.device_count(), 4)
    expected = {1: [12], 2: [12, 24], 3: [0, 12, 24], 4: [12, 12, 24, 36]}[devices]
    assert checks_of_ranks(tmp_path / "meeting", "cuda") == expected


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A world of this process alone."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_needs_a_process_group():
    with pytest.raises(RuntimeError, match="there is no process group"):
        ep.a2a_dispatch(torch.zeros(4, 32), [4], [4])


def test_groups_by_name(world):
    x = torch.randn(4, 32)
    for group in None, dist.group.WORLD, dist.group.WORLD.group_name:
        assert torch.equal(ep.a2a_combine(x, [4], [4], group), x)


@pytest.mark.parametrize("travel", [ep.a2a_dispatch, ep.a2a_combine])
def test_bad_input_of_dispatch_and_combine(world, travel):
    x = torch.zeros(4, 64)
    for arguments, sentence in [
        ((x[0], [4], [4]), r"input has shape \[64\]; it must be \[rows, columns\]"),
        ((x.int(), [4], [4]), "input has dtype torch.int32; it must be a floating-point type"),
        ((x.double(), [4], [4]), "bfloat16 and float32 can be quantised"),
        ((x[:, :40], [4], [4]), "input has 40 columns; rows in MXFP8 need a multiple of 32"),
        ((x, [4], [2, 2]), "input_splits has 2 numbers; the group has 1 ranks"),
        ((x, [4, 0], [4]), "output_splits has 2 numbers; the group has 1 ranks"),
        ((x, [4], [3]), r"input_splits is \[3\], 3 rows in all; input has 4"),
        ((x, [-4], [4]), "numbers of rows are not negative"),
        ((x, [4], [4], None, ep.RCEIL, 16), "block_size is 16; MXFP8 has blocks of 32"),
        ((ep.quantize(x), [4], [4]), "input is an MXTensor"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            travel(*arguments)


def test_bad_input_of_permute_and_unpermute():
    x, counts = torch.zeros(5, 32), torch.tensor([2, 3])
    for arguments, sentence in [
        ((x[0], counts, 1, 2), "mx_tensor has shape"),
        ((x.int(), counts, 1, 2), "mx_tensor has dtype torch.int32"),
        ((x, counts, 2, 2), "it must be 2 x 2 integers"),
        ((x, counts.float(), 1, 2), "it must be 1 x 2 integers"),
        ((x, counts, 0, 2), "ep_degree is 0; it must be at least 1"),
        ((x, counts, 1, 0), "num_local_experts is 0"),
        ((x, counts, 1, 2, 0), "group_size_multiple_of is 0"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            ep.permute(*arguments)
    for bad in torch.tensor([3, 3]), torch.tensor([6, -1]):
        with pytest.raises(RuntimeError, match="GROUP_COUNTS"):
            ep.permute(x, bad, 1, 2)
    shape, rows, indices, *_ = ep.permute(x, counts, 1, 2)
    for arguments, sentence in [
        ((rows[1:], indices, shape), "permuted_indices has shape"),
        ((rows, indices, (0, 32)), r"padded_shape is \[0, 32\]"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            ep.unpermute(*arguments)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16, torch.float64])
def test_permute_of_every_type_keeps_bits(dtype):
    torch.manual_seed(1)
    x = torch.randn(7, 5).to(dtype)
    x[2, 1], x[3, 2] = torch.nan, torch.inf
    shape, rows, indices, sizes, ends = ep.permute(x, torch.tensor([[1, 2], [4, 0]]), 2, 2, 4)
    assert sizes.tolist() == [8, 4] and ends.tolist() == [8, 12]
    assert indices.tolist() == [0, 3, 4, 5, 6, -1, -1, -1, 1, 2, -1, -1, *[-1] * (len(rows) - 12)]
    expected = torch.where((indices >= 0)[:, None], x[indices], 0)
    assert torch.equal(rows.view(torch.uint8), expected.view(torch.uint8))
    assert torch.equal(ep.unpermute(rows, indices, shape).view(torch.uint8), x.view(torch.uint8))


def test_gradients_of_permute_and_unpermute():
    torch.manual_seed(2)
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([[1, 2], [3, 0]])  # one row belongs to nobody
    assert torch.autograd.gradcheck(lambda x: ep.permute(x, counts, 2, 2, 4)[1], x)
    shape, rows, indices, *_ = ep.permute(x.detach(), counts, 2, 2, 4)
    rows.requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: ep.unpermute(rows, indices, shape), rows)


def test_gradients_of_routing():
    torch.manual_seed(3)
    logits = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    weights, token, counts = ep.route(logits, 2)
    assert counts.sum() == 12 and torch.equal(token.sort()[0], torch.arange(6).repeat_interleave(2))
    torch.testing.assert_close(torch.zeros(6).double().index_add(0, token, weights), torch.ones(6).double())
    assert torch.autograd.gradcheck(lambda logits: ep.route(logits, 2)[0], logits)


def grouped_problem(dtype, mxfp8):
    """A product whose second expert is empty, and its plain computation; rows behind the last end are NaN."""
    torch.manual_seed(4)
    ends = torch.tensor([32, 32, 96], dtype=torch.int32)
    a, b_t, grad = (torch.randn(*s).to(dtype) for s in ((128, 192), (3, 192, 160), (128, 160)))
    expected = torch.cat([a[:32] @ b_t[0], a[32:96] @ b_t[2], torch.zeros(32, 160, dtype=dtype)])
    expected_a = torch.cat([grad[:32] @ b_t[0].t(), grad[32:96] @ b_t[2].t(), torch.zeros(32, 192, dtype=dtype)])
    expected_b = torch.stack([a[:32].t() @ grad[:32], torch.zeros(192, 160, dtype=dtype), a[32:96].t() @ grad[32:96]])
    a[96:], grad[96:] = torch.nan, torch.nan
    a.requires_grad_()
    b_t.requires_grad_()
    y = ep.grouped_mm(a, b_t, ends, mxfp8)
    y.backward(grad)
    return (expected, y.detach()), (expected_a, a.grad), (expected_b, b_t.grad)


def test_grouped_mm():
    for expected, computed in grouped_problem(torch.float64, False):
        torch.testing.assert_close(computed, expected)
    for dtype in torch.bfloat16, torch.float32:
        for decibel, (expected, computed) in zip((28, 26, 25), grouped_problem(dtype, True)):
            assert computed.dtype == dtype
            assert sqnr(expected, computed) >= decibel
    assert not computed[1].any()  # the gradient of an expert without rows


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_accuracy_through_all_stages(world, dtype):
    """Rows and gradients reach the product as MX tensors, and leave it as plain ones."""
    torch.manual_seed(6)
    x, b_t, grad = (torch.randn(*s).to(dtype) for s in ((101, 192), (3, 192, 160), (101, 160)))
    x.requires_grad_()
    b_t.requires_grad_()
    plain = torch.cat([x[:40] @ b_t[0], x[40:] @ b_t[2]])
    expected = [plain.detach(), *torch.autograd.grad(plain, (x, b_t), grad)]

    rows = ep.a2a_dispatch(x, [101], [101])
    shape, rows, indices, _, ends = ep.permute(rows, torch.tensor([40, 0, 61]), 1, 3)
    y = ep.unpermute(ep.grouped_mm(rows, b_t, ends), indices, shape)
    y = ep.a2a_combine(y, [101], [101])
    computed = [y.detach(), *torch.autograd.grad(y, (x, b_t), grad)]
    for decibel, a, b in zip((28, 26, 25), expected, computed):
        assert decibel <= sqnr(a, b) < 60  # codes of 8 bits are not exact
    assert not computed[2][1].any()


def test_bad_input_of_grouped_mm_and_moe(world):
    a, b_t, ends = torch.zeros(64, 32), torch.zeros(2, 32, 64), torch.tensor([32, 64], dtype=torch.int32)
    for arguments, sentence in [
        ((a, b_t[0], ends), r"B_t has shape \[32, 64\]"),
        ((a, b_t.transpose(1, 2), ends), r"it must be \[experts, 32, N\]"),
        ((a, b_t.double(), ends), "B_t has .* dtype torch.float64"),
        ((a, b_t, ends[:1]), "it must be 2 numbers of int32"),
        ((a, b_t, ends.long()), "offs has .* dtype torch.int64"),
        ((a, b_t[..., :40], ends), "K and N of MXFP8 must be multiples of 32"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            ep.grouped_mm(*arguments)
    with pytest.raises(ValueError, match="topk is 3; it must be from 1 to the 2 experts"):
        ep.MoE(32, 32, 2, 3)

# SPDX-License-Identifier: Apache-2.0
"""Parts of a PackedTensor have the codes of the whole."""

import pytest
import torch

from mxdnn_torch import FORMATS, PackedTensor


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("format", FORMATS)
def test_rows(format, target):
    torch.manual_seed(1)
    whole = PackedTensor.from_float(torch.randn(200, 96), format, target=target)
    plain = whole.dequantize()
    for begin, end in [(0, 64), (64, 128), (128, 200), (3, 77), (192, 200), (5, 5), (0, 200)]:
        part = whole[begin:end]
        assert part.shape == (end - begin, 96)
        for mine, all_ in zip(part.to_codes(), whole.to_codes()):
            if mine is not None and mine.dim() > 1:
                assert torch.equal(mine.view(torch.uint8), all_[begin:end].view(torch.uint8))
        assert torch.equal(part.dequantize(), plain[begin:end])
    if target == "cpu":  # rows between panels are not copied, unless a global scale stands before them
        shares = whole[64:128].packed.untyped_storage().data_ptr() == whole.packed.untyped_storage().data_ptr()
        assert shares == (format != "nvfp4")


@pytest.mark.parametrize("format", FORMATS)
def test_experts(format):
    torch.manual_seed(2)
    whole = PackedTensor.from_float(torch.randn(4, 40, 64), format)
    plain = whole.dequantize()
    assert torch.equal(whole[1:3].dequantize(), plain[1:3])
    assert torch.equal(whole[-1].dequantize(), plain[-1])
    assert torch.equal(whole[:, 7:20].dequantize(), plain[:, 7:20])
    assert [t.shape for t in whole.split(3)] == [(3, 40, 64), (1, 40, 64)]
    assert torch.equal(torch.chunk(whole, 2)[1].dequantize(), plain[2:])


def test_columns_are_cut_between_blocks():
    torch.manual_seed(3)
    whole = PackedTensor.from_float(torch.randn(40, 128), "mxfp6")
    assert torch.equal(whole[:, 32:96].dequantize(), whole.dequantize()[:, 32:96])
    assert torch.equal(whole.t()[32:96].dequantize(), whole.dequantize().t()[32:96])
    with pytest.raises(NotImplementedError, match="cut a block of 32 that shares a scale; cut between blocks"):
        whole[:, 5:96]


def test_refused():
    whole = PackedTensor.from_float(torch.randn(40, 128), "mxfp4")
    for index in [(slice(None, None, 2),), 3]:
        with pytest.raises(NotImplementedError):
            whole[index]
    with pytest.raises(IndexError):
        PackedTensor.from_float(torch.randn(2, 40, 128), "mxfp4")[2]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles MiniLM with packed weights to an AOTInductor package that runs without Python.

  export_minilm.py OUT [--model DIR] [--format mxfp8] [--target cpu:x64:avx512_core] [--device cpu]

OUT gets model.pt2, inputs.pt, and expected.pt: what eager mode makes of the inputs. Weights are packed here, for the
named target; the package holds the packed bytes, their blobs and their checksums, and loading packs nothing.
"""

import argparse
import pathlib

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

import mxdnn_torch
from mxdnn_torch import PackedTensor
from mxdnn_torch.aoti import compile_and_package

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Encoder(torch.nn.Module):
    """Sentence embeddings: the mean of the last hidden states, of length 1."""

    def __init__(self, bert: BertModel):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[..., None].to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


def minilm(directory: pathlib.Path, format: str | None, target: str | None, device: str) -> Encoder:
    """The model; with a format, every linear layer of the encoder is packed for `target`."""
    config = BertConfig.from_json_file(directory / "config.json")
    config._attn_implementation = "sdpa"
    bert = BertModel(config, add_pooling_layer=False).eval()
    weights = {k.removeprefix("bert."): v for k, v in load_file(directory / "model.safetensors").items()}
    missing = bert.load_state_dict(weights, strict=False).missing_keys
    if [name for name in missing if "position_ids" not in name]:
        raise SystemExit(f"{directory} lacks {', '.join(missing)}")
    bert.to(device)
    for module in bert.encoder.modules():
        if format is not None and isinstance(module, torch.nn.Linear):
            packed = PackedTensor.from_float(module.weight, format, target=target)
            module.weight = torch.nn.Parameter(packed, requires_grad=False)
    return Encoder(bert)


def sentences(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two rows of token numbers, the second one shorter."""
    torch.manual_seed(6)
    ids = torch.randint(1000, 30000, (2, 24), device=device)
    mask = torch.ones_like(ids)
    mask[1, 15:] = 0
    return ids, mask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".deps/minilm")
    parser.add_argument("--format", default="mxfp8", choices=list(mxdnn_torch.FORMATS))
    parser.add_argument("--target", help="where the package will run; by default this machine")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = minilm(args.model, args.format, args.target, args.device)
    inputs = sentences(args.device)
    with torch.no_grad():
        expected = model(*inputs)
        torch.save([t.cpu() for t in inputs], args.out / "inputs.pt")
        torch.save([expected.cpu()], args.out / "expected.pt")
        names = compile_and_package(model, inputs, args.out / "model.pt2", target=args.target)
    print(f"{len(names)} packed weights in {args.out / 'model.pt2'}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""mxdnn-llm on the models of golden/, and on files that are wrong: check_models.py MXDNN_LLM MXDNN_PACK."""

import array
import json
import math
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import Callable

import to_gguf

LLM, PACK = (os.path.abspath(p) for p in sys.argv[1:3])
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
TIGHT, LOOSE = 1e-4, 1e-2


def run(model: str, ids: list[list[int]], *options: str) -> array.array:
    args = [word for i in ids for word in ("--ids", ",".join(map(str, i)))]
    done = subprocess.run([LLM, "logits", model, *args, "--output", "logits.f32", "--threads", "2", *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (model, options, done.returncode, done.stderr)
    return floats("logits.f32")


def floats(path: str) -> array.array:
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def error(got: array.array, want: array.array) -> float:
    assert len(got) == len(want), (len(got), len(want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def write_tensors(path: str, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def golden(name: str) -> None:
    folder = os.path.join(GOLDEN, name)
    with open(os.path.join(folder, "ids.json")) as f:
        ids = json.load(f)
    want = floats(os.path.join(folder, "logits.f32"))
    for options in ([], ["--at-once", "1"], ["--at-once", "3"], ["--chunk", "4"]):
        assert (e := error(run(folder, ids, "--encoding", "f32", *options), want)) <= TIGHT, (name, options, e)
    baseline = run(folder, ids, "--encoding", "bf16")
    stored = run(folder, ids)
    assert (e := error(stored, baseline)) <= LOOSE, (name, e)
    assert (e := error(run(folder, ids, "--at-once", "1"), baseline)) <= LOOSE, (name, e)

    # A packed container gives what its checkpoint gives, when all values are packed in both.
    os.makedirs(f"packed/{name}")
    shutil.copy(os.path.join(folder, "config.json"), f"packed/{name}")
    which = ["--include", r"(proj|lm_head)\.weight$"] if name == "llama" else ["--codes-only"]
    subprocess.run([PACK, "pack", *which, "--format", "mxfp8", os.path.join(folder, "model.safetensors"),
                    f"packed/{name}/model.safetensors"], check=True, capture_output=True, timeout=120)
    same = run(folder, ids, "--encoding", "mxfp8", "--dense", "mxfp8") if name == "llama" else stored
    packed = run(f"packed/{name}", ids)
    # Gate and up that are packed apart are two matmuls, with f32 between them: both ways round to the type of
    # activations once, from values that differ by the rounding of f32.
    assert (e := error(packed, same)) <= (TIGHT if name == "llama" else 0), (name, "packed", e)
    for plain in ("bf16", "f32"):
        values = run(f"packed/{name}", ids, "--encoding", plain)
        if name != "llama": # whose checkpoint has no codes
            assert values == run(folder, ids, "--encoding", plain), (name, plain)
        assert (e := error(packed, values)) <= LOOSE, (name, plain, e)
    refuses("packed as mxf", f"packed/{name}", "--ids", "1", "--encoding", "nvfp4")


def heads() -> None:
    """The head is as --head says, or as all of attention and head."""
    folder, ids = os.path.join(GOLDEN, "llama"), [[3, 1, 4]]
    dense = run(folder, ids, "--dense", "mxfp8")
    assert run(folder, ids, "--dense", "mxfp8", "--head", "mxfp8") == dense
    assert run(folder, ids, "--dense", "mxfp8", "--head", "stored") != dense
    assert run(folder, ids, "--dense", "bf16", "--head", "mxfp8") != run(folder, ids, "--dense", "bf16")


def gguf() -> None:
    """GGUF files of gpt-oss give the bits of the checkpoint that they are made from."""
    folder = os.path.join(GOLDEN, "gpt-oss")
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(folder, "ids.json")) as f:
        ids = json.load(f)
    keys = to_gguf.keys(config)
    tensors = list(to_gguf.tensors(to_gguf.read_tensors(f"{folder}/model.safetensors")))
    to_gguf.write("tiny.gguf", keys, tensors)
    for options in ([], ["--encoding", "f32"], ["--encoding", "bf16"], ["--encoding", "mxfp8", "--dense", "mxfp8"]):
        assert run("tiny.gguf", ids, *options) == run(folder, ids, *options), options

    # Gate and up in one tensor, gate first.
    by_name = {t.name: t for t in tensors}
    for layer in range(config["num_hidden_layers"]):
        for kind in ("weight", "bias"):
            gate, up = (by_name.pop(f"blk.{layer}.ffn_{part}_exps.{kind}") for part in ("gate", "up"))
            size = len(gate.data) // gate.dims[0]
            data = b"".join(t.data[i:i + size] for i in range(0, len(gate.data), size) for t in (gate, up))
            name = f"blk.{layer}.ffn_gate_up_exps.{kind}"
            by_name[name] = to_gguf.Tensor(name, gate.element, [gate.dims[0], 2 * gate.dims[1], *gate.dims[2:]], data)
    to_gguf.write("fused.gguf", keys, list(by_name.values()))
    assert run("fused.gguf", ids) == run(folder, ids)

    # Frequencies that the file divides.
    def without(part: str) -> dict:
        return {k: v for k, v in keys.items() if part not in k}

    def linear(c: dict, _: dict) -> None:
        c["rope_parameters"] = {"rope_type": "linear", "factor": 2.0, "rope_theta": 150000.0}

    divisors = to_gguf.Tensor("rope_freqs.weight", "F32", [4], struct.pack("<4f", 2, 2, 2, 2))
    to_gguf.write("divided.gguf", without("rope.scaling"), [*tensors, divisors])
    want = run(changed(linear), ids, "--encoding", "f32")
    assert (e := error(run("divided.gguf", ids, "--encoding", "f32"), want)) <= TIGHT, e

    def refuses_with(words: str, changes: dict, extra: list = (), dropped: str = "") -> None:
        left = {k: v for k, v in {**keys, **changes}.items() if v is not None}
        to_gguf.write("wrong.gguf", left, [t for t in tensors if t.name != dropped] + list(extra))
        refuses(words, "wrong.gguf")

    a, u32, number, string = "gpt-oss.", to_gguf.U32, to_gguf.F32, to_gguf.STRING
    for key in ("block_count", "embedding_length", "attention.head_count", "expert_count", "rope.scaling.factor"):
        refuses_with(f"'{a}{key}'", {a + key: None})
    for key, kind, value in (
            ("block_count", u32, 0), ("expert_count", u32, 2**32 - 1), ("expert_used_count", u32, 0),
            ("attention.sliding_window", u32, 0), ("attention.head_count_kv", string, "2"),
            ("rope.freq_base", number, math.nan), ("rope.scaling.factor", number, -1.0),
            ("attention.layer_norm_rms_epsilon", number, 2.0), ("rope.dimension_count", u32, 4),
            ("attention.value_length", u32, 16), ("rope.scaling.type", string, "longrope"),
            ("rope.scaling.attn_factor", number, 0.5), ("block_count", number, 2.0)):
        refuses_with(f"{a}{key}'", {a + key: (kind, value)})
    refuses_with("'gpt-oss.rope.scaling.original_context_length', which yarn needs",
                 {a + "rope.scaling.original_context_length": None})
    refuses_with("'gpt-oss.attention.head_count_kv' is an array",
                 {a + "attention.head_count_kv": (to_gguf.ARRAY, [2, 1])})
    refuses_with("the architecture is 'gemma'", {"general.architecture": (string, "gemma")})
    refuses_with("7 of 6 experts", {a + "expert_used_count": (u32, 7)})
    refuses_with("the configuration asks for [5]", {a + "expert_count": (u32, 5)})
    refuses_with("there is no tensor 'blk.2.", {a + "block_count": (u32, 3)})
    for name in ("blk.1.attn_sinks.weight", "blk.0.ffn_up_exps.weight", "blk.1.ffn_gate_exps.bias"):
        refuses_with(f"there is no tensor '{name}'", {}, dropped=name)
    up = to_gguf.Tensor("blk.1.ffn_up_exps.weight", "BF16", [6, 32, 32], bytes(2 * 6 * 32 * 32))
    refuses_with("gate and up of the experts of layer 1 are stored in two formats", {}, [up], dropped=up.name)
    refuses_with("'rope_freqs.weight' is not F32 [4]",
                 {}, [to_gguf.Tensor("rope_freqs.weight", "F32", [3], bytes(12))])
    refuses_with("'rope_freqs.weight' has a number", {}, [to_gguf.Tensor("rope_freqs.weight", "F32", [4], bytes(16))])


def refuses(words: str, model: str, *options: str) -> None:
    args = options or ("--ids", "1,2,3")
    output = [] if "--output" in args else ["--output", "refused.f32"]
    done = subprocess.run([LLM, "logits", model, *args, *output], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and words in done.stderr, (words, done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr


def changed(change: Callable[[dict, dict], None]) -> str:
    """A folder with a changed gpt-oss: change(config, tensors)."""
    source = os.path.join(GOLDEN, "gpt-oss")
    with open(f"{source}/config.json") as f:
        config = json.load(f)
    tensors = to_gguf.read_tensors(f"{source}/model.safetensors")
    change(config, tensors)
    shutil.rmtree("changed", ignore_errors=True)
    os.makedirs("changed")
    with open("changed/config.json", "w") as f:
        json.dump(config, f)
    write_tensors("changed/model.safetensors", tensors)
    return "changed"


def with_number(tensor: str, at: int, value: bytes) -> str:
    """A folder with a gpt-oss, one of whose numbers is another one."""
    def change(_: dict, tensors: dict) -> None:
        dtype, dims, data = tensors[tensor]
        tensors[tensor] = dtype, dims, data[:2 * at] + value + data[2 * at + 2:]
    return changed(change)


def logits_that_are_none() -> None:
    """Of a prompt, and of a token that only the decoder has seen."""
    nan, infinity = b"\xc0\x7f", b"\x80\x7f"
    for value in (nan, infinity):
        refuses("the logits that follow position 0 of sequence 0, one is NaN or infinite",
                with_number("model.norm.weight", 3, value))

    def generate(folder: str) -> subprocess.CompletedProcess:
        args = ["--ids", "3,1,4", "--tokens", "6", "--threads", "2"]
        return subprocess.run([LLM, "generate", folder, *args], capture_output=True, text=True, timeout=60)

    first = int(generate(changed(lambda c, t: None)).stdout.split(",")[0])
    assert first not in (3, 1, 4), first
    done = generate(with_number("model.embed_tokens.weight", 32 * first, nan))
    assert done.returncode == 1 and "that follow position 3 of sequence 0, one is NaN" in done.stderr, done.stderr
    assert done.stdout.strip() == str(first), done.stdout


def several_types() -> None:
    """Weights of one product that are stored in several types are several products."""
    folder, ids = os.path.join(GOLDEN, "gpt-oss"), [[3, 1, 4], [5]]

    def with_wider_values(_: dict, tensors: dict) -> None:
        for name in [n for n in tensors if n.endswith("v_proj.weight")]:
            _, dims, data = tensors[name]
            tensors[name] = "F32", dims, to_gguf.wider(data)

    want = run(folder, ids, "--encoding", "f32")
    assert (e := error(run(changed(with_wider_values), ids, "--encoding", "f32"), want)) <= TIGHT, e


def routes() -> None:
    """Experts that are taken from a file give the logits of the run that noted them."""
    folder, ids, same = os.path.join(GOLDEN, "gpt-oss"), [[3, 1, 4], [5]], ["--routes", "routes.s32"]
    want = run(folder, ids)
    assert run(folder, ids, *same) == want and run(folder, ids, *same) == want
    with open("routes.s32", "rb") as f:
        data = f.read()
    assert len(data) == 4 * 2 * 4 * 2, len(data)  # layers, tokens, experts of a token
    with open("others.s32", "wb") as f:
        f.write(struct.pack("<16i", *[0, 1] * 8))
    assert run(folder, ids, "--routes", "others.s32") != want
    ids_args = [word for i in ids for word in ("--ids", ",".join(map(str, i)))]
    for words, wrong in (("16 choices, and the file has another number", data[:-4]),
                         ("16 choices, and the file has another number", data + b"\0"),
                         ("there is no expert 6 of 6", data[:-4] + struct.pack("<i", 6)),
                         ("there is no expert -1 of 6", data[:-4] + struct.pack("<i", -1))):
        with open("wrong.s32", "wb") as f:
            f.write(wrong)
        refuses(words, folder, *ids_args, "--routes", "wrong.s32")
    refuses("cannot write nowhere/x", folder, "--ids", "1", "--routes", "nowhere/x")
    refuses("cannot read routes.s32/x: Not a directory", folder, "--ids", "1", "--routes", "routes.s32/x")
    refuses("the model has no experts", os.path.join(GOLDEN, "llama"), "--ids", "1", "--routes", "routes.s32")


def wrong_files() -> None:
    experts = "model.layers.1.mlp.experts.gate_up_proj"
    refuses("has no 'model.layers.1.mlp.experts.gate_up_proj_scales' beside it",
            changed(lambda c, t: t.pop(f"{experts}_scales")))

    def with_plain_outputs(_: dict, tensors: dict) -> None:
        name = "model.layers.1.mlp.experts.down_proj"
        count, rows, blocks, _ = tensors.pop(f"{name}_blocks")[1]
        del tensors[f"{name}_scales"]
        tensors[name] = "BF16", [count, rows, 32 * blocks], bytes(64 * count * rows * blocks)

    refuses("the experts of layer 1 are stored in several formats; --encoding names one", changed(with_plain_outputs))
    refuses("there is no tensor 'model.layers.0.self_attn.sinks'",
            changed(lambda c, t: t.pop("model.layers.0.self_attn.sinks")))
    refuses("there is no tensor 'model.layers.2.", changed(lambda c, t: c.update(num_hidden_layers=3, layer_types=None)))
    refuses("has no embedding", changed(lambda c, t: t.pop("model.embed_tokens.weight")))
    refuses("tensor 'model.norm.weight' is F64; F32, BF16 and F16 can be read",
            changed(lambda c, t: t.update({"model.norm.weight": ("F64", [32], bytes(256))})))
    refuses("is [6, 64], and the configuration asks for [6, 128]", changed(lambda c, t: c.update(intermediate_size=64)))
    refuses("the configuration asks for [41, 64]", changed(lambda c, t: c.update(hidden_size=64)))
    for key, value in [("num_attention_heads", 0), ("hidden_size", -1), ("vocab_size", 2**63), ("head_dim", 1e9),
                       ("num_hidden_layers", 10**6), ("num_local_experts", "8"), ("rms_norm_eps", "nan"),
                       ("sliding_window", 0), ("num_experts_per_tok", 65), ("tie_word_embeddings", 1),
                       ("model_type", 3)]:
        refuses(f"'{key}'", changed(lambda c, t: c.update({key: value})))
    refuses("not a multiple of 3 key-value heads", changed(lambda c, t: c.update(num_key_value_heads=3)))
    refuses("cannot be rotated in pairs", changed(lambda c, t: c.update(head_dim=7)))
    refuses("7 of 6 experts", changed(lambda c, t: c.update(num_experts_per_tok=7)))
    refuses("'model_type' is 'bert'", changed(lambda c, t: c.update(model_type="bert")))
    # What a terminal would obey is escaped.
    refuses("'model_type' is '\\x1b[2J'", changed(lambda c, t: c.update(model_type="\x1b[2J")))
    refuses('from 1 to 65536, not "\\u009b2J"', changed(lambda c, t: c.update(hidden_size="\x9b2J")))
    refuses("'layer_types'", changed(lambda c, t: c.update(layer_types=["full_attention"])))
    refuses("rope_type", changed(lambda c, t: c.update(rope_parameters={"rope_type": "other", "factor": 2})))

    folder = changed(lambda c, t: None)
    shutil.copytree("packed/llama", "packed/wider")
    with open("packed/llama/config.json") as f:
        config = json.load(f)
    with open("packed/wider/config.json", "w") as f:
        json.dump({**config, "intermediate_size": 64}, f)
    refuses("packed weights 'model.layers.0.mlp.gate_proj.weight' are [43, 32], and the configuration asks for "
            "[64, 32]", "packed/wider")
    refuses("there is no token 41", folder, "--ids", "3,41")
    refuses("is no list of tokens", folder, "--ids", "3,x")
    refuses("exceed the context of 2", folder, "--ids", "1,2,3", "--context", "2")
    refuses("positions of the model", folder, "--ids", "1", "--context", "257")
    refuses("513 sequences are more than the 512 rows of a step", folder, *["--ids", "1"] * 513)
    refuses("there is no encoding 'fp3'", folder, "--ids", "1", "--encoding", "fp3")
    refuses("there is no engine 'tpu'", folder, "--ids", "1", "--engine", "tpu")
    refuses("cannot write", folder, "--ids", "1", "--output", "nowhere/x")
    file = f"{folder}/model.safetensors"
    with open(file, "rb") as f:
        data = f.read()
    for size in (0, 7, 100, len(data) // 2, len(data) - 1):
        with open(file, "wb") as f:
            f.write(data[:size])
        refuses("model.safetensors", folder)
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"}}, f)
    refuses("model-00001-of-00001.safetensors", folder)
    with open(f"{folder}/config.json", "w") as f:
        f.write("[" * 100_000)
    refuses("config.json", folder)
    with open(f"{folder}/config.json", "w") as f:
        f.write("{}" + " " * 2**20)
    refuses("config.json has more than 1048576 bytes", folder)
    os.remove(f"{folder}/config.json")
    os.mkfifo(f"{folder}/config.json")
    refuses("config.json: it is not a regular file", folder)
    refuses("cannot open nowhere", "nowhere")


def wrong_texts() -> None:
    """Files beside tokenizer.json: each may be missing, and none is trusted."""
    os.makedirs("texts")
    shutil.copy(os.path.join(GOLDEN, "gpt-oss", "tokenizer.json"), "texts")

    def tokenize() -> subprocess.CompletedProcess:
        command = [LLM, "tokenize", "texts", "the hello", "--raw"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done := tokenize()).returncode == 0, done.stderr
    for name in ("tokenizer_config.json", "generation_config.json", "config.json"):
        file = f"texts/{name}"
        for content, words in (("[]", "is no object"), ("{", "is not JSON"), (None, "bytes, more than 16777216")):
            with open(file, "w") as f:
                f.write(content) if content else f.truncate(2**24 + 1)
            assert (done := tokenize()).returncode == 1 and file in done.stderr and words in done.stderr, done.stderr
        os.remove(file)
        os.mkfifo(file)
        assert (done := tokenize()).returncode == 1 and "is not a regular file" in done.stderr, done.stderr
        os.remove(file)
    assert tokenize().returncode == 0
    with open("texts/tokenizer.json", "r+") as f:
        f.truncate(2**28 + 1)
    assert (done := tokenize()).returncode == 1 and "a tokenizer has at most 268435456" in done.stderr, done.stderr


def wrong_command_lines() -> None:
    for words, *args in [
        ("mxdnn-llm: there is no command 'descirbe'; possible are describe logits", "descirbe", "model"),
        ("mxdnn-llm: option '--tokns=3' is not known; mxdnn-llm generate --help", "generate", "model", "--tokns=3"),
        ("mxdnn-llm: model is required", "describe"),
    ]:
        done = subprocess.run([LLM, *args], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and done.stderr.startswith(words), (words, done.returncode, done.stderr)
    done = subprocess.run([LLM, "generate", "shape:gpt-oss-tiny", "a text"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "takes tokens, not a text" in done.stderr, done.stderr
    wrong = {w: f"'{w}' in shape:gpt-oss-tiny:{w} is no number" for w in ("x", "+2", " 2", "-1", "2.0")}
    for layers, words in {**wrong, "9" * 30: "must be a whole number from 1 to", "0": "must be a whole number"}.items():
        command = [LLM, "describe", f"shape:gpt-oss-tiny:{layers}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and words in done.stderr, (layers, done.stdout, done.stderr)
    refuses("there is no shape 'nothing'; known are", "shape:nothing")
    with open("/dev/full", "w") as full:
        done = subprocess.run([LLM, "describe", os.path.join(GOLDEN, "llama")], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr, done.stderr
    # One position: nothing is predicted.
    folder = changed(lambda c, t: c.update(max_position_embeddings=1, rope_parameters=None))
    shutil.copy(os.path.join(GOLDEN, "gpt-oss", "tokenizer.json"), folder)
    with open("text", "w") as f:
        f.write("the hello of there")
    done = subprocess.run([LLM, "perplexity", folder, "text"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "one position" in done.stderr, (done.stdout, done.stderr)


def on_a_terminal() -> None:
    """Text of a model is shown by a terminal and not obeyed; a pipe gets its bytes."""
    folder = changed(lambda c, t: None)
    with open(os.path.join(GOLDEN, "gpt-oss", "tokenizer.json")) as f:
        tokenizer = json.load(f)
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["\u011b"] = vocabulary.pop("m")  # how tokenizers write the byte ESC
    with open(f"{folder}/tokenizer.json", "w") as f:
        json.dump(tokenizer, f)
    command = [LLM, "generate", folder, "the hello", "--raw", "--tokens", "12", "--threads", "2"]
    text = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    assert b"\x1b" in text, text
    ours, its = pty.openpty()
    with os.fdopen(its, "wb") as terminal:
        subprocess.run(command, stdout=terminal, stderr=subprocess.DEVNULL, check=True, timeout=60)
        shown = os.read(ours, 4096)
    os.close(ours)
    assert shown == text.replace(b"\x1b", b"\\x1b").replace(b"\n", b"\r\n"), (shown, text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sorted(os.listdir(GOLDEN)):
            golden(name)
        heads()
        gguf()
        several_types()
        routes()
        wrong_files()
        wrong_texts()
        wrong_command_lines()
        logits_that_are_none()
        on_a_terminal()
    print("as they should be")


main()

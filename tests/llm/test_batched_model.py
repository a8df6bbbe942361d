"""Tests of batches: the arithmetic against a plain forward pass, rows, sampling, and the client."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.llm.endpoint import EndpointSettings
from kernel_gym.llm.local.endpoints import BatchedEndpoint
from kernel_gym.llm.transcript import Transcript

pytest.importorskip("gguf", reason="pip install 'kernel_gym[batched]'")

from tiny_model import HEADS, KV_HEADS, LAYERS, WIDTH, write_tiny_model

from kernel_gym.llm.local.batched_model import BatchedModel, Prompt, Sampling, draw
from kernel_gym.llm.local.gguf_file import GgufFile

GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


def model(file: Path, rows: int = 4) -> BatchedModel:
    return BatchedModel(GgufFile(file), rows, "cpu", threads=1)


def plain_logits(file: Path, tokens: list[int]) -> torch.Tensor:
    """The logits after a text, by a forward pass over all of it, written as the architecture is published."""
    weights = {name: torch.from_numpy(np.array(value)) for name, value in GgufFile(file).weights(1)}
    count, head = len(tokens), WIDTH // HEADS
    hidden = weights["token_embd.weight"][tokens]
    rates = 10_000.0 ** (-torch.arange(0, head, 2) / head)
    angle = torch.outer(torch.arange(count), rates)

    def normal(value: torch.Tensor, name: str) -> torch.Tensor:
        return value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + 1e-6) * weights[name]

    def heads(value: torch.Tensor, number: int, turn: bool) -> torch.Tensor:
        parts = value.view(count, number, head).transpose(0, 1)
        if turn:
            first, second = parts[..., : head // 2], parts[..., head // 2 :]
            parts = torch.cat(
                (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()), -1
            )
        return parts.repeat_interleave(HEADS // number, 0)

    for layer in range(LAYERS):
        name = f"blk.{layer}"
        value = normal(hidden, f"{name}.attn_norm.weight")
        q, k, v = (F.linear(value, weights[f"{name}.attn_{p}.weight"], weights[f"{name}.attn_{p}.bias"]) for p in "qkv")
        scores = heads(q, HEADS, True) @ heads(k, KV_HEADS, True).transpose(1, 2) / head**0.5
        scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
        mixed = (scores.softmax(-1) @ heads(v, KV_HEADS, False)).transpose(0, 1).reshape(count, WIDTH)
        hidden = hidden + mixed @ weights[f"{name}.attn_output.weight"].T
        value = normal(hidden, f"{name}.ffn_norm.weight")
        inner = F.silu(value @ weights[f"{name}.ffn_gate.weight"].T) * (value @ weights[f"{name}.ffn_up.weight"].T)
        hidden = hidden + inner @ weights[f"{name}.ffn_down.weight"].T
    return normal(hidden, "output_norm.weight")[-1] @ weights["output.weight"].T


def plain_answer(file: Path, tokens: tuple[int, ...], limit: int) -> list[int]:
    text = list(tokens)
    while len(text) - len(tokens) < limit and (token := int(plain_logits(file, text).argmax())) not in (257, 258):
        text.append(token)
    return text[len(tokens) :]


@pytest.mark.slow
def test_answers_are_those_of_a_plain_forward_pass(file: Path) -> None:
    texts = [(1, 2, 3), (7,), tuple(range(30)), (9, 8, 7, 6)]
    prompts = [Prompt(text, seed=0, max_tokens=20) for text in texts]
    answers = {answer.index: answer.tokens for answer in model(file).answers(prompts, GREEDY)}
    assert answers == {index: plain_answer(file, text, 20) for index, text in enumerate(texts)}
    assert any(answers.values())


def test_an_answer_does_not_depend_on_the_batch(file: Path) -> None:
    prompts = [Prompt((seed % 3, 5, 5 + seed % 4), seed, max_tokens=5 + 3 * seed) for seed in range(9)]
    together = {answer.index: answer for answer in model(file, rows=2).answers(prompts, Sampling())}
    assert sorted(together) == list(range(9))
    for index, prompt in enumerate(prompts):
        (alone,) = model(file, rows=1).answers([prompt], Sampling())
        assert (alone.tokens, alone.ended) == (together[index].tokens, together[index].ended)
        assert len(alone.tokens) <= prompt.max_tokens
        assert alone.ended or len(alone.tokens) == prompt.max_tokens
    assert len({tuple(answer.tokens) for answer in together.values()}) > 1


def test_sampling_keeps_to_the_most_likely_tokens() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]])).repeat(1000, 1)
    uniforms = torch.linspace(0, 0.9999, 1000)
    every = draw(logits, uniforms, Sampling(1.0, top_k=4, top_p=1.0))
    assert torch.allclose(torch.bincount(every) / 1000, torch.tensor([0.5, 0.3, 0.15, 0.05]), atol=0.002)
    assert draw(logits, uniforms, Sampling(1.0, top_k=2, top_p=1.0)).unique().tolist() == [0, 1]
    assert draw(logits, uniforms, Sampling(1.0, top_k=4, top_p=0.7)).unique().tolist() == [0, 1]
    assert draw(logits, uniforms, Sampling(0.0)).unique().tolist() == [0]


def test_texts_survive_the_tokenizer(file: Path) -> None:
    tokenizer, text = GgufFile(file).tokenizer(), "if (x < 1) { y = 'é'; }\n\n\tdone 123"
    tokens = tokenizer.encode(f"<|im_start|>{text}<|im_end|>", add_special_tokens=False).ids
    assert (tokens[0], tokens[-1]) == (256, 257)
    assert tokenizer.decode(tokens[1:-1]) == text
    assert GgufFile(file).prompt([{"role": "user", "content": "hi"}]).endswith("<|im_start|>assistant\n")


def test_other_architectures_and_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="architecture llama; batches are for qwen2"):
        GgufFile(write_tiny_model(tmp_path / "llama.gguf", architecture="llama"))
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ConfigError, match="not a GGUF file"):
        GgufFile(tmp_path / "text.gguf")


def test_a_prompt_that_is_too_long_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="16384 in all: lower context_tokens"):
        list(model(file).answers([Prompt((1,) * 16384, 0, 1)], GREEDY))


def endpoint(file: Path, transcript: Path | None = None, read_only: bool = False) -> BatchedEndpoint:
    client = BatchedEndpoint(EndpointSettings(model="tiny", max_tokens=8), str(file), 3, "cpu")
    if transcript is not None:
        client.use_transcript(Transcript(transcript, read_only))
    return client


def question(text: str, nonce: int) -> tuple[list[dict[str, str]], int]:
    return [{"role": "user", "content": text}], nonce


def test_batches_are_recorded_resumed_and_replayed(file: Path, tmp_path: Path) -> None:
    questions = [question("a", 1), question("b", 2), question("a", 1), question("a", 3)]
    first = endpoint(file, tmp_path / "transcript.jsonl")
    replies = first.chat_many(questions[:2])
    resumed = endpoint(file, tmp_path / "transcript.jsonl")
    seen: list[int] = []
    everything = resumed.chat_many(questions, lambda done, tokens: seen.append(done))
    assert everything[:2] == replies
    assert everything[2] == everything[0]
    assert seen == [1]  # of the four, one is new
    assert resumed.usage()["tokens_out"] == sum(everything[index].tokens_out for index in (0, 1, 3))
    gone = endpoint(tmp_path / "gone.gguf", tmp_path / "transcript.jsonl", read_only=True)
    assert gone.chat_many(questions) == everything
    with pytest.raises(KernelGymError, match="has no answer to this request"):
        gone.chat(*question("new", 1))


def test_a_missing_file_or_gpu_is_found_before_the_work(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"there is no model file .*gone.gguf"):
        endpoint(file.with_name("gone.gguf")).check()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    client = BatchedEndpoint(EndpointSettings(model="tiny"), str(file), 3, "cuda")
    with pytest.raises(ConfigError, match="needs an NVIDIA GPU"):
        client.check()

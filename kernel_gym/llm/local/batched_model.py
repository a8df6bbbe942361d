"""Writes many answers at once with one model on a GPU.

A decoder of the architecture Qwen2 with a fixed cache of keys and values: one row for each answer under way. A step
adds one token to every row. On a GPU the step is captured as a CUDA graph, so it costs one launch. A row that has
ended is given the next prompt. Equal prompts are read once and copied into the rows of all their answers.

Each token is drawn with a uniform number that depends on the seed of the answer and on the position alone. So an answer
does not depend on what else is in the batch, up to the rounding of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from kernel_gym.errors import ConfigError

if TYPE_CHECKING:
    from kernel_gym.llm.local.gguf_file import GgufFile, ModelSizes

#: Lengths of the cache that steps are captured for are multiples of this.
BLOCK = 256
#: Steps between two looks at which rows have ended.
STEPS = 16
#: Share of the free GPU memory that the cache may take.
MEMORY_SHARE = 0.7


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn.

    Args:
        temperature: Divides the logits; 0 takes the most likely token.
        top_k: Number of most likely tokens that are drawn from.
        top_p: Of these, the fewest whose probabilities sum to this.
    """

    temperature: float = 0.7
    top_k: int = 20
    top_p: float = 0.8


@dataclass(frozen=True)
class Prompt:
    """A text to continue.

    Args:
        tokens: The text.
        seed: Seed of the answer.
        max_tokens: Most tokens of the answer.
    """

    tokens: tuple[int, ...]
    seed: int
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """An answer: the number of its prompt, its tokens without the end token, and whether it ended by itself."""

    index: int
    tokens: list[int]
    ended: bool


@dataclass
class _Layer:
    """The weights of a layer; those with the same input are one matrix."""

    norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    ffn_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass
class _Rows:
    """The state of the answers under way: tensors with one entry for each row."""

    keys: Tensor  # layers, rows, heads, length, width
    values: Tensor
    tokens: Tensor
    positions: Tensor
    drawn: Tensor  # rows, steps
    uniforms: Tensor
    counts: Tensor


class Decoder:
    """The model's arithmetic.

    Args:
        file: The model file.
        device: Where it runs, such as `cuda` or `cpu`.
        threads: Threads that expand weights.
    """

    def __init__(self, file: GgufFile, device: str = "cuda", threads: int = 8) -> None:
        self.sizes = file.sizes()
        self.device = torch.device(device)
        self.type = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        weights = {
            name: torch.from_numpy(np.array(value)).to(self.device, self.type) for name, value in file.weights(threads)
        }
        #: Memory that all captured steps share; they never run at the same time.
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self._embedding = weights["token_embd.weight"]
        self._output = weights.get("output.weight", self._embedding)
        self._norm = weights["output_norm.weight"]
        self._layers = [_layer(weights, f"blk.{index}") for index in range(self.sizes.layers)]
        self._turns = _turns(self.sizes, self.device)

    def read(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the keys and values of a text: layers, heads, length, width."""
        count, sizes = len(tokens), self.sizes
        hidden = self._embedding[torch.tensor(tokens, device=self.device)]
        keys = torch.empty((sizes.layers, sizes.kv_heads, count, sizes.head_width), dtype=self.type, device=self.device)
        values = torch.empty_like(keys)
        positions = torch.arange(count, device=self.device)
        for index, layer in enumerate(self._layers):
            query, key, value = self._projected(layer, hidden, positions)
            keys[index], values[index] = key.transpose(0, 1), value.transpose(0, 1)
            attended = F.scaled_dot_product_attention(
                query.transpose(0, 1)[None], keys[index][None], values[index][None], is_causal=True, enable_gqa=True
            )
            hidden = self._mixed(layer, hidden, attended[0].transpose(0, 1).reshape(count, -1))
        return keys, values

    def step(self, rows: _Rows, length: int) -> Tensor:
        """Return the logits of the next token of each row; the last token joins the cache.

        Args:
            rows: The rows; their positions must be below `length`.
            length: How much of the cache is used.

        Returns:
            Logits, one row each.
        """
        sizes, count = self.sizes, len(rows.tokens)
        every = torch.arange(count, device=self.device)
        unseen = torch.arange(length, device=self.device)[None] > rows.positions[:, None]
        groups = sizes.heads // sizes.kv_heads
        hidden = self._embedding[rows.tokens]
        for index, layer in enumerate(self._layers):
            query, key, value = self._projected(layer, hidden, rows.positions)
            rows.keys[index][every, :, rows.positions] = key
            rows.values[index][every, :, rows.positions] = value
            query = query.reshape(count, sizes.kv_heads, groups, sizes.head_width) * sizes.head_width**-0.5
            scores = query @ rows.keys[index][:, :, :length].transpose(-1, -2)
            scores = scores.float().masked_fill_(unseen[:, None, None], -torch.inf)
            shares = torch.softmax(scores, -1).to(self.type)
            attended = shares @ rows.values[index][:, :, :length]
            hidden = self._mixed(layer, hidden, attended.reshape(count, -1))
        return (self._normal(hidden, self._norm) @ self._output.T).float()

    def _projected(self, layer: _Layer, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values: tokens, heads, width; queries and keys turned to their positions."""
        sizes = self.sizes
        mixed = torch.addmm(layer.qkv_bias, self._normal(hidden, layer.norm), layer.qkv.T)
        parts = [sizes.heads, sizes.kv_heads, sizes.kv_heads]
        query, key, value = torch.split(mixed.view(len(hidden), -1, sizes.head_width), parts, 1)
        cosine, sine = self._turns[0][positions][:, None], self._turns[1][positions][:, None]
        return _turned(query, cosine, sine), _turned(key, cosine, sine), value

    def _mixed(self, layer: _Layer, hidden: Tensor, attended: Tensor) -> Tensor:
        hidden = torch.addmm(hidden, attended, layer.out.T)
        gate, up = (self._normal(hidden, layer.ffn_norm) @ layer.gate_up.T).chunk(2, -1)
        return torch.addmm(hidden, F.silu(gate) * up, layer.down.T)

    def _normal(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(hidden, (self.sizes.width,), weight, self.sizes.epsilon)


def _layer(weights: dict[str, Tensor], name: str) -> _Layer:
    def joined(pattern: str, parts: Sequence[str]) -> Tensor:
        return torch.cat([weights[f"{name}.{pattern.format(part)}"] for part in parts])

    return _Layer(
        norm=weights[f"{name}.attn_norm.weight"],
        qkv=joined("attn_{}.weight", "qkv"),
        qkv_bias=joined("attn_{}.bias", "qkv"),
        out=weights[f"{name}.attn_output.weight"],
        ffn_norm=weights[f"{name}.ffn_norm.weight"],
        gate_up=joined("ffn_{}.weight", ("gate", "up")),
        down=weights[f"{name}.ffn_down.weight"],
    )


def _turns(sizes: ModelSizes, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the angle of every position and pair of places."""
    rates = sizes.theta ** (
        -torch.arange(0, sizes.head_width, 2, device=device, dtype=torch.float32) / sizes.head_width
    )
    angles = torch.arange(sizes.context, device=device, dtype=torch.float32)[:, None] * rates
    return torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)


def _turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = heads.float().chunk(2, -1)
    return (heads.float() * cosine + torch.cat((-second, first), -1) * sine).to(heads.dtype)


class BatchedModel:
    """Answers prompts in batches.

    Args:
        file: The model file.
        rows: Most answers under way at once.
        device: Where the model runs, `cuda` or `cpu`.
        threads: Threads that expand weights.
    """

    def __init__(self, file: GgufFile, rows: int = 128, device: str = "cuda", threads: int = 8) -> None:
        self.file, self.rows = file, rows
        self.decoder = Decoder(file, device, threads)
        self.tokenizer = file.tokenizer()

    def encoded(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Return messages as the tokens that the model continues."""
        return tuple(self.tokenizer.encode(self.file.prompt(messages), add_special_tokens=False).ids)

    @torch.inference_mode()
    def answers(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Answer]:
        """Answer prompts.

        Args:
            prompts: The prompts.
            sampling: How tokens are drawn.

        Yields:
            The answers, in the order in which they end.

        Raises:
            ConfigError: A prompt and its answer are longer than the model allows.
        """
        if not prompts:
            return
        for prompt in prompts:
            if len(prompt.tokens) + prompt.max_tokens > self.decoder.sizes.context:
                raise ConfigError(
                    f"the prompt has {len(prompt.tokens)} tokens, its answer may have {prompt.max_tokens}, "
                    f"the model takes {self.decoder.sizes.context} in all: lower context_tokens or max_tokens"
                )
        length = max(len(prompt.tokens) + prompt.max_tokens for prompt in prompts)
        batch = self.batch(len(prompts), length, max(prompt.max_tokens for prompt in prompts), sampling)
        # Long prompts first, so that rows of about the same length are under way together; equal ones side by side.
        waiting = sorted(range(len(prompts)), key=lambda index: (len(prompts[index].tokens), prompts[index].tokens))
        while waiting or batch.busy:
            count = min(batch.free, len(waiting))
            batch.add([(index, prompts[index]) for index in (waiting.pop() for _ in range(count))])
            yield from batch.advance()

    def batch(self, rows: int, length: int, max_tokens: int, sampling: Sampling) -> Batch:
        """Return an empty batch.

        Args:
            rows: Most answers under way at once; fewer if the GPU's memory is too small.
            length: Most tokens of a prompt and its answer.
            max_tokens: Most tokens of an answer.
            sampling: How tokens are drawn.

        Returns:
            The batch.
        """
        blocks = _rounded(length + STEPS + 1, 1 << 30)
        count = min(self.rows, rows, self._affordable(blocks))
        return Batch(self.decoder, sorted(self.file.end_tokens()), (count, blocks, max_tokens), sampling)

    def _affordable(self, length: int) -> int:
        """Return how many rows of a length fit into the GPU's memory."""
        if self.decoder.device.type != "cuda":
            return self.rows
        sizes = self.decoder.sizes
        row = 2 * sizes.layers * sizes.kv_heads * length * sizes.head_width * 2
        return max(1, int(torch.cuda.mem_get_info(self.decoder.device)[0] * MEMORY_SHARE) // row)


class Batch:
    """The answers under way. Prompts may join at any time while a row is free.

    Args:
        decoder: The model.
        ends: The tokens that end an answer.
        shape: Number of rows, tokens of a row, tokens of an answer.
        sampling: How tokens are drawn.
    """

    def __init__(self, decoder: Decoder, ends: list[int], shape: tuple[int, int, int], sampling: Sampling) -> None:
        self._decoder, self._sampling = decoder, sampling
        self._ends = torch.tensor(ends, device=decoder.device)
        self._rows = _empty_rows(decoder, *shape)
        self._prompts: list[tuple[int, Prompt] | None] = [None] * shape[0]
        self._steps: dict[int, _Steps] = {}

    @property
    def free(self) -> int:
        """How many prompts can join."""
        return self._prompts.count(None)

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return self.free < len(self._prompts)

    def add(self, prompts: Sequence[tuple[int, Prompt]]) -> None:
        """Give free rows prompts with their numbers; one that follows an equal one is read once."""
        rows = self._rows
        free = [row for row, prompt in enumerate(self._prompts) if prompt is None]
        text: tuple[int, ...] = ()
        for row, (number, prompt) in zip(free[: len(prompts)], prompts, strict=True):
            if prompt.tokens != text:
                text = prompt.tokens
                # The last token is the first step's.
                keys, values = self._decoder.read(text[:-1]) if len(text) > 1 else (rows.keys[:, row, :, :0],) * 2
            rows.keys[:, row, :, : len(text) - 1] = keys
            rows.values[:, row, :, : len(text) - 1] = values
            rows.tokens[row], rows.positions[row], rows.counts[row] = text[-1], len(text) - 1, 0
            draws = np.random.default_rng(prompt.seed).random(rows.uniforms.shape[1], np.float32)
            rows.uniforms[row] = torch.from_numpy(draws)
            self._prompts[row] = number, prompt

    def advance(self) -> list[Answer]:
        """Add `STEPS` tokens to every answer under way; return the answers that have ended, and free their rows."""
        rows = self._rows
        for row in (row for row, prompt in enumerate(self._prompts) if prompt is None):
            rows.positions[row] = rows.counts[row] = 0  # an idle row must not lengthen the others
        length = _rounded(int(rows.positions.max()) + STEPS + 1, rows.keys.shape[3])
        if length not in self._steps:
            self._steps[length] = _Steps(self._decoder, rows, length, self._sampling)
        self._steps[length].run()
        return list(self._ended())

    def _ended(self) -> Iterator[Answer]:
        rows = self._rows
        counts = rows.counts.tolist()
        ends = torch.isin(rows.drawn, self._ends)
        ends &= torch.arange(rows.drawn.shape[1], device=ends.device)[None] < rows.counts[:, None]
        first = torch.where(ends.any(1), ends.int().argmax(1), rows.drawn.shape[1]).tolist()
        for row, numbered in enumerate(self._prompts):
            if numbered is None:
                continue
            number, prompt = numbered
            if first[row] >= counts[row] and counts[row] < prompt.max_tokens:
                continue
            length = min(first[row], prompt.max_tokens)
            self._prompts[row] = None
            yield Answer(number, rows.drawn[row, :length].tolist(), first[row] < prompt.max_tokens)


def _empty_rows(decoder: Decoder, count: int, length: int, max_tokens: int) -> _Rows:
    sizes, device = decoder.sizes, decoder.device
    steps = _rounded(max_tokens + STEPS, 1 << 30)
    shape = (sizes.layers, count, sizes.kv_heads, length, sizes.head_width)
    return _Rows(
        # Zeros: what is behind a row's position is hidden, but must be a number.
        keys=torch.zeros(shape, dtype=decoder.type, device=device),
        values=torch.zeros(shape, dtype=decoder.type, device=device),
        tokens=torch.zeros(count, dtype=torch.long, device=device),
        positions=torch.zeros(count, dtype=torch.long, device=device),
        drawn=torch.zeros((count, steps), dtype=torch.long, device=device),
        uniforms=torch.zeros((count, steps), device=device),
        counts=torch.zeros(count, dtype=torch.long, device=device),
    )


class _Steps:
    """`STEPS` steps of all rows at one length of the cache; captured as a graph on a GPU.

    Args:
        decoder: The model.
        rows: The rows, whose tensors every step changes in place.
        length: How much of the cache the steps use.
        sampling: How tokens are drawn.
    """

    def __init__(self, decoder: Decoder, rows: _Rows, length: int, sampling: Sampling) -> None:
        self.decoder, self.rows, self.length, self.sampling = decoder, rows, length, sampling
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self) -> None:
        """Add `STEPS` tokens to every row."""
        if self.decoder.device.type != "cuda":
            for _ in range(STEPS):
                self._step()
            return
        if self._graph is None:
            self._graph = self._captured()
        for _ in range(STEPS):
            self._graph.replay()

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Capture a step; the warm-up before it changes nothing, because it works on a copy of the small tensors."""
        rows = self.rows
        saved = [tensor.clone() for tensor in (rows.tokens, rows.positions, rows.counts, rows.drawn)]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.decoder.pool):
            self._step()
        for tensor, before in zip((rows.tokens, rows.positions, rows.counts, rows.drawn), saved, strict=True):
            tensor.copy_(before)
        return graph

    def _step(self) -> None:
        rows = self.rows
        logits = self.decoder.step(rows, self.length)
        uniforms = rows.uniforms.gather(1, rows.counts[:, None])[:, 0]
        tokens = draw(logits, uniforms, self.sampling)
        rows.drawn.scatter_(1, rows.counts[:, None], tokens[:, None])
        rows.tokens.copy_(tokens)
        rows.positions.add_(1).clamp_(max=rows.keys.shape[3] - 1)
        rows.counts.add_(1).clamp_(max=rows.drawn.shape[1] - 1)


def draw(logits: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """Draw one token of each row.

    Args:
        logits: Logits, one row each.
        uniforms: A number in [0, 1) for each row.
        sampling: How tokens are drawn.

    Returns:
        The tokens.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    top, tokens = logits.topk(min(sampling.top_k, logits.shape[-1]), -1)
    shares = torch.softmax(top / sampling.temperature, -1)
    before = shares.cumsum(-1) - shares
    shares = torch.where(before < sampling.top_p, shares, 0.0)
    sums = shares.cumsum(-1)
    place = (sums <= uniforms[:, None] * sums[:, -1:]).sum(-1).clamp_(max=tokens.shape[-1] - 1)
    return tokens.gather(1, place[:, None])[:, 0]


def _rounded(length: int, limit: int) -> int:
    """Return a length rounded up to whole blocks, at most `limit`."""
    return min(-(-length // BLOCK) * BLOCK, limit)

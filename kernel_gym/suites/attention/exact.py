"""Softmax attention over sequences: plain, with several heads, with shared keys and values."""

from __future__ import annotations

from kernel_gym.suites.attention.family import Family, linear
from kernel_gym.suites.definitions import CaseSizes

VASWANI = "Vaswani et al., Attention Is All You Need, 2017, arXiv:1706.03762"
SIZES = CaseSizes(
    "batch length width",
    public=(3, 10, 128),
    hidden=((1, 17, 72), (5, 7, 200), (2, 33, 8)),
    timing=(4, 256, 512),
)
SEQUENCE = Family(
    sizes=SIZES,
    inputs={"x": "torch.randn(batch, length, width)"},
    init="width",
    settings={"heads": 8},
    published="x float32[32, 512, 512]",
)
#: Layers of a module with one projection each for queries, keys and values.
PROJECTIONS = dict.fromkeys(("query", "key", "value", "out"), linear("width", "width"))
FUSED = {"qkv": linear("width", "3 * width"), "out": linear("width", "width")}
#: Queries, keys and values of shape (batch, heads, length, depth).
SPLIT = """
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(x), self.key(x), self.value(x))
)"""
SPLIT_FUSED = "q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)"
ATTEND = "x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v"
JOIN = "return self.out(x.transpose(1, 2).flatten(2))"


def lines(*parts: str) -> str:
    """Return statements, one below the other."""
    return "\n".join(part.strip("\n") for part in parts)


DEFINITIONS = (
    SEQUENCE.module(
        1,
        "scaled_dot_product_attention",
        "Softmax of scaled query-key products, times the values.",
        VASWANI,
        "torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v",
        sizes=CaseSizes(
            "batch heads length width",
            public=(2, 3, 16, 32),
            hidden=((1, 5, 17, 13), (3, 1, 29, 8), (1, 2, 1, 64)),
            timing=(2, 8, 256, 64),
        ),
        inputs=dict.fromkeys("qkv", "torch.randn(batch, heads, length, width)"),
        init="width",
        published="q, k, v float32[2, 8, 128, 64]",
        arguments="[64]",
    ),
    SEQUENCE.module(
        2,
        "multi_head_attention",
        "Attention of several heads over projected queries, keys and values, and an output projection.",
        VASWANI,
        lines(
            """
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(q), self.key(k), self.value(v))
)""",
            ATTEND,
            JOIN,
        ),
        PROJECTIONS,
        inputs=dict.fromkeys("qkv", "torch.randn(batch, length, width)"),
        published="q, k, v float32[32, 512, 512]",
        arguments="[512, 8]",
    ),
    SEQUENCE.module(
        3,
        "self_attention",
        "Attention of several heads of a sequence over itself, with one projection for queries, keys and values.",
        VASWANI,
        lines(SPLIT_FUSED, ATTEND, JOIN),
        FUSED,
        arguments="[512, 8]",
    ),
    SEQUENCE.module(
        4,
        "cross_attention",
        "Attention of several heads of one sequence over another one.",
        VASWANI,
        lines(
            """
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
    for y in (self.query(x), self.key(context), self.value(context))
)""",
            ATTEND,
            JOIN,
        ),
        PROJECTIONS,
        sizes=CaseSizes(
            "batch length context_length width",
            public=(3, 10, 14, 128),
            hidden=((1, 17, 5, 72), (5, 7, 12, 200), (2, 33, 1, 8)),
            timing=(4, 256, 128, 512),
        ),
        inputs={"x": "torch.randn(batch, length, width)", "context": "torch.randn(batch, context_length, width)"},
        published="x float32[32, 512, 512]; context float32[32, 256, 512]",
        arguments="[512, 8]",
    ),
    SEQUENCE.module(
        5,
        "flash_attention",
        "Exact self-attention, which kernels compute tile by tile with a running maximum and a running sum.",
        "Dao et al., FlashAttention, 2022, arXiv:2205.14135",
        lines(SPLIT_FUSED, ATTEND, JOIN),
        {"qkv": linear("width", "3 * width", bias=False), "out": linear("width", "width")},
        arguments="[512, 8, 64, 64], the last two are tile sizes, which do not change the result",
    ),
    SEQUENCE.module(
        6,
        "flash_attention_v2",
        "Exact self-attention without biases; kernels divide by the running sum once, after the last tile of keys.",
        "Dao, FlashAttention-2, 2023, arXiv:2307.08691",
        lines(SPLIT, ATTEND, JOIN),
        dict.fromkeys(("query", "key", "value", "out"), linear("width", "width", bias=False)),
        arguments="[512, 8]",
    ),
    SEQUENCE.module(
        7,
        "optimized_flash_attention",
        "Exact causal self-attention: a position attends to itself and to earlier positions.",
        "Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 3.1.1 on causal masks",
        lines(
            SPLIT_FUSED,
            """
scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
place = torch.arange(x.shape[1])
scores = scores.masked_fill(place[None, :] > place[:, None], float("-inf"))
x = torch.softmax(scores, dim=-1) @ v""",
            JOIN,
        ),
        FUSED,
        arguments="[512, 8, True, False]",
    ),
    SEQUENCE.module(
        8,
        "grouped_query_attention",
        "Self-attention in which four heads of queries share one head of keys and values.",
        "Ainslie et al., GQA, 2023, arXiv:2305.13245",
        """
q = self.query(x).unflatten(-1, (self.groups, self.heads // self.groups, -1)).permute(0, 2, 3, 1, 4)
k, v = (y.unflatten(-1, (self.groups, -1)).transpose(1, 2).unsqueeze(2) for y in (self.key(x), self.value(x)))
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
return self.out(x.permute(0, 3, 1, 2, 4).flatten(2))""",
        {
            "query": linear("width", "width"),
            "key": linear("width", "width // heads * groups"),
            "value": linear("width", "width // heads * groups"),
            "out": linear("width", "width"),
        },
        arguments="[512, 8, 2]",
        groups=2,
    ),
    SEQUENCE.module(
        9,
        "multi_query_attention",
        "Self-attention in which all heads of queries share one head of keys and values.",
        "Shazeer, Fast Transformer Decoding, 2019, arXiv:1911.02150",
        """
q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
k, v = self.key(x).unsqueeze(1), self.value(x).unsqueeze(1)
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
return self.out(x.transpose(1, 2).flatten(2))""",
        {
            "query": linear("width", "width"),
            "key": linear("width", "width // heads"),
            "value": linear("width", "width // heads"),
            "out": linear("width", "width"),
        },
        arguments="[512, 8]",
    ),
    SEQUENCE.module(
        10,
        "adaptive_attention",
        "Self-attention whose heads are weighted for each token by a router.",
        "Jin et al., MoH: Multi-Head Attention as Mixture-of-Head Attention, 2024, arXiv:2410.11842",
        lines(
            SPLIT,
            ATTEND.replace("x = ", "y = "),
            """
routes = torch.softmax(self.router(x), dim=-1) * self.heads
x = y * routes.transpose(1, 2).unsqueeze(-1)""",
            JOIN,
        ),
        {**PROJECTIONS, "router": linear("width", "heads", bias=False)},
        arguments="[512, 8]",
    ),
)

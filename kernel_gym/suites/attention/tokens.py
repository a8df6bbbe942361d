"""Attention over the tokens of images, and polarized attention."""

from __future__ import annotations

from kernel_gym.suites.attention.channel_gates import IMAGE, SMALL
from kernel_gym.suites.attention.exact import ATTEND, VASWANI, lines
from kernel_gym.suites.attention.family import Family, linear, pointwise
from kernel_gym.suites.definitions import CaseSizes

TOKENS = CaseSizes(
    "batch length width",
    public=(3, 10, 128),
    hidden=((1, 17, 72), (5, 7, 200), (2, 33, 8)),
    timing=(16, 49, 512),
)
TOKEN = Family(
    sizes=TOKENS,
    inputs={"x": "torch.randn(batch, length, width)"},
    init="width",
    published="x float32[32, 49, 512]",
)
#: Modules with queries, keys and values of their own, and heads of a given depth.
DEEP = Family(
    sizes=CaseSizes(
        "batch length width depth",
        public=(3, 10, 96, 12),
        hidden=((1, 17, 72, 9), (5, 7, 40, 16), (2, 33, 8, 10)),
        timing=(16, 49, 512, 64),
    ),
    inputs=dict.fromkeys("qkv", "torch.randn(batch, length, width)"),
    init="width depth",
    settings={"heads": 8},
    published="q, k, v float32[32, 49, 512]",
)
DEEP_LAYERS = {
    **dict.fromkeys(("query", "key", "value"), linear("width", "heads * depth")),
    "out": linear("heads * depth", "width"),
}
DEEP_SPLIT = """
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(q), self.key(k), self.value(v))
)"""
DEEP_JOIN = "return self.out(x.transpose(1, 2).flatten(2))"
POLARIZED = {
    "channel_value": pointwise("channels", "channels // 2"),
    "channel_query": pointwise("channels", "1"),
    "channel_out": linear("channels // 2", "channels"),
    "norm": "nn.LayerNorm(channels)",
    "spatial_value": pointwise("channels", "channels // 2"),
    "spatial_query": pointwise("channels", "channels // 2"),
}
CHANNEL_BRANCH = """
weight = torch.softmax(self.channel_query(x).flatten(2), dim=-1)
y = (self.channel_value(x).flatten(2) @ weight.transpose(1, 2)).squeeze(-1)
channel = x * torch.sigmoid(self.norm(self.channel_out(y)))[:, :, None, None]"""
SPATIAL_BRANCH = """
weight = torch.softmax(self.spatial_query({0}).mean(dim=(2, 3)), dim=1).unsqueeze(1)
gate = torch.sigmoid(weight @ self.spatial_value({0}).flatten(2))
spatial = {0} * gate.unflatten(2, ({0}.shape[2], {0}.shape[3]))"""
LIU = "Liu et al., Polarized Self-Attention, 2021, arXiv:2107.00782"

DEFINITIONS = (
    DEEP.module(
        39,
        "scaled_dot_product_attention_modular",
        "Attention of several heads whose depth does not depend on the width of the tokens.",
        VASWANI,
        lines(DEEP_SPLIT, ATTEND, DEEP_JOIN),
        DEEP_LAYERS,
        arguments="[512, 64, 64, 8]",
    ),
    TOKEN.module(
        40,
        "simplified_self_attention",
        "Attention of several heads without projections of queries, keys and values.",
        f"{VASWANI}, section 3.2 without the projections",
        """
q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (q, k, v))
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
return self.out(x.transpose(1, 2).flatten(2))""",
        {"out": linear("width", "width")},
        inputs=dict.fromkeys("qkv", "torch.randn(batch, length, width)"),
        published="q, k, v float32[32, 49, 512]",
        arguments="[512, 8]",
        heads=8,
    ),
    TOKEN.module(
        41,
        "external_attention",
        "Attention over learned memories: softmax over the tokens, then normalised over the memory's slots.",
        "Guo et al., Beyond Self-attention: External Attention, 2021, arXiv:2105.02358",
        """
y = torch.softmax(self.keys(x), dim=1)
return self.values(y / y.sum(dim=2, keepdim=True))""",
        {"keys": linear("width", "slots", bias=False), "values": linear("slots", "width", bias=False)},
        sizes=CaseSizes(
            "batch length width slots",
            public=(3, 10, 128, 24),
            hidden=((1, 17, 72, 16), (5, 7, 200, 9), (2, 33, 8, 12)),
            timing=(64, 49, 512, 64),
        ),
        init="width slots",
        arguments="[512, 64]",
    ),
    IMAGE.module(
        42,
        "parallel_polarized_self_attention",
        "The sum of an image gated by channels and gated by positions, each gate from a softmax of the other.",
        LIU,
        lines(CHANNEL_BRANCH, SPATIAL_BRANCH.format("x"), "return channel + spatial"),
        POLARIZED,
        sizes=SMALL,
        arguments="[512]",
    ),
    IMAGE.module(
        43,
        "sequential_polarized_self_attention",
        "An image gated by channels and then by positions, each gate from a softmax of the other.",
        LIU,
        lines(CHANNEL_BRANCH, SPATIAL_BRANCH.format("channel"), "return spatial"),
        POLARIZED,
        sizes=SMALL,
        arguments="[512]",
    ),
    DEEP.module(
        44,
        "muse_attention",
        "Attention of several heads plus depthwise convolutions of the values with three windows and learned weights.",
        "Zhao et al., MUSE: Parallel Multi-Scale Attention, 2019, arXiv:1911.09483",
        lines(
            """
values = self.value(v)
weight = torch.softmax(self.mix, dim=0)
y = values.transpose(1, 2)
local = weight[0] * self.conv1(y) + weight[1] * self.conv3(y) + weight[2] * self.conv5(y)
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(q), self.key(k), values)
)""",
            ATTEND,
            "return self.out(x.transpose(1, 2).flatten(2) + local.transpose(1, 2))",
        ),
        {
            **DEEP_LAYERS,
            **{
                f"conv{k}": f"nn.Conv1d(heads * depth, heads * depth, {k}, padding={k // 2}, groups=heads * depth)"
                for k in (1, 3, 5)
            },
            "mix": "nn.Parameter(torch.randn(3))",
        },
        arguments="[512, 64, 64, 8]",
    ),
    TOKEN.module(
        45,
        "aft_full",
        "Attention without queries times keys: values weighted by exp of keys plus learned biases of positions.",
        "Zhai et al., An Attention Free Transformer, 2021, arXiv:2105.14103",
        """
q, k, v = self.query(x), self.key(x), self.value(x)
weight = torch.exp(self.bias - self.bias.amax(dim=1, keepdim=True))
keys = torch.exp(k - k.amax(dim=1, keepdim=True))
return torch.sigmoid(q) * (weight @ (keys * v)) / (weight @ keys)""",
        {
            **dict.fromkeys(("query", "key", "value"), linear("width", "width")),
            "bias": "nn.Parameter(torch.randn(length, length))",
        },
        init="width length",
        arguments="[512, 49]",
    ),
    DEEP.module(
        46,
        "ufo_attention",
        "Attention of linear cost: normalised keys times values, then normalised queries times the product.",
        "Song, UFO-ViT, 2021, arXiv:2109.14382",
        lines(
            DEEP_SPLIT,
            """
context = k.transpose(-1, -2) @ v
context = context * self.gamma / (context.norm(dim=-1, keepdim=True) + self.epsilon)
q = q * self.gamma / (q.norm(dim=-1, keepdim=True) + self.epsilon)
x = q @ context""",
            DEEP_JOIN,
        ),
        {**DEEP_LAYERS, "gamma": "nn.Parameter(torch.randn(1, heads, 1, 1))"},
        arguments="[512, 64, 64, 8]",
        epsilon=1e-6,
    ),
)

"""Attention within windows, transformer blocks on patches and mixers of tokens."""

from __future__ import annotations

from kernel_gym.suites.attention.channel_gates import IMAGE
from kernel_gym.suites.attention.exact import ATTEND, JOIN, SPLIT_FUSED, lines
from kernel_gym.suites.attention.family import linear, pointwise
from kernel_gym.suites.attention.tokens import DEEP, TOKEN
from kernel_gym.suites.definitions import CaseSizes

#: Tokens of windows of 7 x 7.
WINDOW = CaseSizes(
    "batch width",
    public=(3, 80),
    hidden=((1, 72), (5, 48), (2, 16)),
    timing=(16, 512),
)
WINDOW_INPUT = {"x": "torch.randn(batch, 49, width)"}
FUSED = {"qkv": linear("width", "3 * width"), "out": linear("width", "width")}
#: The bias of each pair of positions, from a table with one row for each pair of distances.
RELATIVE = """
bias = table.unfold(0, 7, 1).unfold(1, 7, 1).flip(3, 4).permute(2, 0, 1, 3, 4).flatten(3, 4).flatten(1, 2)
scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
x = torch.softmax(scores, dim=-1) @ v"""

DEFINITIONS = (
    IMAGE.module(
        55,
        "halo_attention",
        "Attention of blocks of positions over the block and its halo, with learned relative positions.",
        "Vaswani et al., Scaling Local Self-Attention: HaloNets, 2021, arXiv:2103.12731",
        """
side = self.block + 2 * self.halo
tokens = x.permute(0, 2, 3, 1)
q = self.query(tokens).unflatten(-1, (self.heads, -1)).unflatten(2, (-1, self.block)).unflatten(1, (-1, self.block))
q = q.permute(0, 1, 3, 5, 2, 4, 6) / math.sqrt(q.shape[-1])
around = (self.halo,) * 4
near = F.pad(self.key_value(tokens).permute(0, 3, 1, 2), around)
near = near.unfold(2, side, self.block).unfold(3, side, self.block).unflatten(1, (2, self.heads, -1))
k, v = near.permute(1, 0, 4, 5, 2, 6, 7, 3).flatten(5, 6).unbind(0)
first = range(self.block - 1, -1, -1)
rows = torch.stack([self.rows[i : i + side] for i in first])
columns = torch.stack([self.columns[i : i + side] for i in first])
by_row = (q.unsqueeze(-2) * rows[:, None]).sum(dim=-1)
by_column = (q.unsqueeze(-2) * columns).sum(dim=-1)
scores = (q.flatten(4, 5) @ k.transpose(-1, -2)).unflatten(4, (self.block, self.block)).unflatten(6, (side, side))
scores = scores + by_row.unsqueeze(-1) + by_column.unsqueeze(-2)
seen = F.pad(torch.ones(x.shape[2:], dtype=x.dtype), around).unfold(0, side, self.block).unfold(1, side, self.block)
scores = scores.masked_fill(seen[:, :, None, None, None] == 0, float("-inf"))
y = torch.softmax(scores.flatten(6).flatten(4, 5), dim=-1) @ v
y = y.unflatten(4, (self.block, self.block)).permute(0, 1, 4, 2, 5, 3, 6).flatten(5)
return self.out(y.flatten(3, 4).flatten(1, 2)).permute(0, 3, 1, 2)""",
        {
            "query": linear("channels", "heads * depth", bias=False),
            "key_value": linear("channels", "2 * heads * depth", bias=False),
            "out": linear("heads * depth", "channels"),
            "rows": "nn.Parameter(torch.randn(2 * block + 2 * halo - 1, depth))",
            "columns": "nn.Parameter(torch.randn(2 * block + 2 * halo - 1, depth))",
        },
        init="channels depth",
        sizes=CaseSizes(
            "batch channels height width depth",
            public=(3, 40, 14, 10, 11),
            hidden=((1, 32, 6, 4, 9), (2, 24, 2, 8, 13), (1, 48, 12, 6, 16)),
            timing=(8, 256, 8, 8, 64),
        ),
        published="x float32[128, 512, 8, 8]",
        arguments="[512, 2, 1, 64, 8]",
        block=2,
        halo=1,
        heads=8,
    ),
    IMAGE.module(
        56,
        "outlook_attention",
        "Values of 3 x 3 windows mixed by weights from the central token alone; overlapping windows are added.",
        "Yuan et al., VOLO: Vision Outlooker, 2021, arXiv:2106.13112",
        """
v = F.pad(self.value(x).permute(0, 3, 1, 2), (1, 1, 1, 1)).unfold(2, 3, 1).unfold(3, 3, 1)
v = v.unflatten(1, (self.heads, -1)).flatten(5).permute(0, 1, 3, 4, 5, 2)
weight = self.weigh(x).unflatten(-1, (self.heads, 9, 9)).permute(0, 3, 1, 2, 4, 5)
y = torch.softmax(weight / math.sqrt(v.shape[-1]), dim=-1) @ v
y = y.permute(0, 1, 5, 4, 2, 3).flatten(1, 2)
shifted = [F.pad(y[:, :, 3 * i + j], (j, 2 - j, i, 2 - i)) for i in range(3) for j in range(3)]
y = sum(shifted[1:], shifted[0])[:, :, 1:-1, 1:-1]
return self.out(y.permute(0, 2, 3, 1))""",
        {
            "value": linear("channels", "channels", bias=False),
            "weigh": linear("channels", "heads * 81"),
            "out": linear("channels", "channels"),
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 20, 7, 5),
            hidden=((1, 32, 5, 7), (2, 24, 8, 3), (5, 13, 4, 4)),
            timing=(8, 256, 7, 7),
        ),
        inputs={"x": "torch.randn(batch, height, width, channels)"},
        published="x float32[128, 7, 7, 512]",
        arguments="[512, 1, 3, 1, 1]",
        heads=1,
    ),
    IMAGE.module(
        57,
        "mobilevit_attention",
        "A convolution, two transformer layers over the patches of an image, and a fusion with the input.",
        "Mehta and Rastegari, MobileViT, 2022, arXiv:2110.02178",
        """
y = self.project(self.local(x))
y = y.unflatten(3, (-1, self.patch)).unflatten(2, (-1, self.patch)).permute(0, 3, 5, 2, 4, 1)
y = y.flatten(3, 4).flatten(1, 2)
for i in range(self.stages):
    q, k, v = self.qkv[i](self.norm1[i](y)).unflatten(-1, (3, self.heads, -1)).permute(3, 0, 1, 4, 2, 5).unbind(0)
    z = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
    y = y + self.attended[i](z.transpose(2, 3).flatten(3))
    y = y + self.down[i](F.silu(self.up[i](self.norm2[i](y))))
y = y.unflatten(2, (x.shape[2] // self.patch, -1)).unflatten(1, (self.patch, self.patch))
y = y.permute(0, 5, 3, 1, 4, 2).flatten(4, 5).flatten(2, 3)
return self.fuse(torch.cat([x, self.restore(y)], dim=1))""",
        {
            "local": "nn.Conv2d(channels, channels, 3, padding=1)",
            "project": pointwise("channels", "depth"),
            "norm1": "nn.ModuleList(nn.LayerNorm(depth) for _ in range(stages))",
            "qkv": "nn.ModuleList(nn.Linear(depth, 3 * depth, bias=False) for _ in range(stages))",
            "attended": "nn.ModuleList(nn.Linear(depth, depth) for _ in range(stages))",
            "norm2": "nn.ModuleList(nn.LayerNorm(depth) for _ in range(stages))",
            "up": "nn.ModuleList(nn.Linear(depth, 2 * depth) for _ in range(stages))",
            "down": "nn.ModuleList(nn.Linear(2 * depth, depth) for _ in range(stages))",
            "restore": pointwise("depth", "channels"),
            "fuse": "nn.Conv2d(2 * channels, channels, 3, padding=1)",
        },
        init="channels depth",
        sizes=CaseSizes(
            "batch channels height width depth",
            public=(2, 3, 21, 14, 40),
            hidden=((1, 4, 7, 21, 32), (3, 2, 14, 7, 24), (1, 3, 28, 14, 48)),
            timing=(2, 3, 28, 28, 128),
        ),
        published="x float32[32, 3, 49, 49]",
        arguments="[3, 512, 3, 7]",
        patch=7,
        stages=2,
        heads=4,
    ),
    TOKEN.module(
        58,
        "mobilevitv2_attention",
        "Separable self-attention: one softmax over the tokens gives a context, which scales rectified values.",
        "Mehta and Rastegari, Separable Self-attention for Mobile Vision Transformers, 2022, arXiv:2206.02680",
        """
weight = torch.softmax(self.score(x), dim=1)
context = (weight * self.key(x)).sum(dim=1, keepdim=True)
return self.out(torch.relu(self.value(x)) * context)""",
        {
            "score": linear("width", "1"),
            "key": linear("width", "width"),
            "value": linear("width", "width"),
            "out": linear("width", "width"),
        },
        arguments="[512]",
    ),
    DEEP.module(
        59,
        "emsa",
        "Attention over keys and values of a smaller image, with scores mixed across heads and normalised.",
        "Zhang and Yang, ResT: An Efficient Transformer, 2021, arXiv:2105.13677",
        lines(
            """
k, v = (y.transpose(1, 2).unflatten(2, (-1, self.columns)) for y in (k, v))
k, v = (self.norm(self.reduce(y).flatten(2).transpose(1, 2)) for y in (k, v))
q, k, v = (
    y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(q), self.key(k), self.value(v))
)
scores = self.mix(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]))
x = self.scale(torch.softmax(scores, dim=-1)) @ v""",
            JOIN,
        ),
        {
            **dict.fromkeys(("query", "key", "value"), linear("width", "heads * depth")),
            "out": linear("heads * depth", "width"),
            "reduce": "nn.Conv2d(width, width, ratio + 1, stride=ratio, padding=ratio // 2, groups=width)",
            "norm": "nn.LayerNorm(width)",
            "mix": pointwise("heads", "heads"),
            "scale": "nn.InstanceNorm2d(heads)",
        },
        sizes=CaseSizes(
            "batch rows width depth",
            public=(3, 5, 96, 12),
            hidden=((1, 6, 72, 9), (5, 4, 40, 16), (2, 7, 24, 10)),
            timing=(16, 7, 512, 64),
        ),
        inputs=dict.fromkeys("qkv", "torch.randn(batch, 7 * rows, width)"),
        arguments="[512, 64, 64, 8, 7, 7, 3, True]",
        columns=7,
        ratio=3,
    ),
    IMAGE.module(
        60,
        "dattention_baseline",
        "Attention over positions that are sampled at learned offsets, with a bias for the distance to each of them.",
        "Xia et al., Vision Transformer with Deformable Attention, 2022, arXiv:2201.00520",
        """
height, width = x.shape[2], x.shape[3]
rows = (torch.arange(height, dtype=x.dtype) * 2 + 1) / height - 1
columns = (torch.arange(width, dtype=x.dtype) * 2 + 1) / width - 1
q = self.query(x)
y = self.depthwise(q.unflatten(1, (self.groups, -1)).flatten(0, 1))
y = self.point(F.gelu(self.norm(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)))
y_rows = (torch.tanh(y[:, 0]) * (self.range_factor / height) + rows[:, None]).flatten(1)
y_columns = (torch.tanh(y[:, 1]) * (self.range_factor / width) + columns).flatten(1)
grid = torch.stack([y_columns, y_rows], dim=-1).unsqueeze(1)
sampled = F.grid_sample(x.unflatten(1, (self.groups, -1)).flatten(0, 1), grid, align_corners=True)
sampled = sampled.squeeze(2).unflatten(0, (-1, self.groups)).flatten(1, 2).unsqueeze(2)
heads = lambda y: y.flatten(2).unflatten(1, (self.heads, -1))
k, v = heads(self.key(sampled)), heads(self.value(sampled))
scores = heads(q).transpose(-1, -2) @ k / math.sqrt(k.shape[2])
q_rows = rows[:, None].expand(height, width).flatten()
q_columns = columns.expand(height, width).flatten()
far = torch.stack([q_columns[:, None] - y_columns.unsqueeze(1), q_rows[:, None] - y_rows.unsqueeze(1)], dim=-1)
table = self.table.unflatten(0, (self.groups, -1)).unsqueeze(0).expand(x.shape[0], -1, -1, -1, -1).flatten(0, 1)
bias = F.grid_sample(table, far * 0.5, align_corners=True).unflatten(0, (-1, self.groups)).flatten(1, 2)
y = v @ torch.softmax(scores + bias, dim=-1).transpose(-1, -2)
return self.out(y.flatten(1, 2).unflatten(2, (height, width)))""",
        {
            "query": pointwise("channels", "channels"),
            "key": pointwise("channels", "channels"),
            "value": pointwise("channels", "channels"),
            "out": pointwise("channels", "channels"),
            "depthwise": "nn.Conv2d(channels // groups, channels // groups, 9, padding=4, groups=channels // groups)",
            "norm": "nn.LayerNorm(channels // groups)",
            "point": pointwise("channels // groups", "2", bias=False),
            "table": "nn.Parameter(torch.randn(heads, 2 * height - 1, 2 * width - 1))",
        },
        init="channels height width",
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 80, 7, 5),
            hidden=((1, 32, 5, 7), (2, 96, 8, 3), (5, 48, 4, 4)),
            timing=(4, 256, 7, 7),
        ),
        arguments="[(7, 7), (7, 7), 8, 64, 4, 0.0, 0.0, 1, 2, True, False, False, False, 0]",
        heads=8,
        groups=4,
        range_factor=2.0,
    ),
    IMAGE.module(
        61,
        "weighted_permute_mlp",
        "Linear layers along rows, columns and channels of segmented features, mixed by a softmax.",
        "Hou et al., Vision Permutator, 2021, arXiv:2106.12368",
        """
y = x.unflatten(-1, (self.segments, -1))
rows = self.rows(y.permute(0, 3, 2, 1, 4).flatten(3)).unflatten(-1, (self.segments, -1))
rows = rows.permute(0, 3, 2, 1, 4).flatten(3)
columns = self.columns(y.permute(0, 1, 3, 2, 4).flatten(3)).unflatten(-1, (self.segments, -1))
columns = columns.permute(0, 1, 3, 2, 4).flatten(3)
channels = self.channels(x)
gate = self.excite(F.gelu(self.squeeze((rows + columns + channels).mean(dim=(1, 2)))))
gate = torch.softmax(gate.unflatten(1, (-1, 3)), dim=2)[:, None, None]
return self.out(rows * gate[..., 0] + columns * gate[..., 1] + channels * gate[..., 2])""",
        {
            **dict.fromkeys(("rows", "columns", "channels", "out"), linear("width", "width")),
            "squeeze": linear("width", "width // 4"),
            "excite": linear("width // 4", "3 * width"),
        },
        sizes=CaseSizes("batch width", public=(3, 80), hidden=((1, 72), (5, 48), (2, 16)), timing=(16, 512)),
        inputs={"x": "torch.randn(batch, 8, 8, width)"},
        init="width",
        published="x float32[128, 8, 8, 512]",
        arguments="[512, 8]",
        segments=8,
    ),
    TOKEN.module(
        62,
        "vit_attention",
        "Self-attention of several heads over the tokens of an image, without biases of queries, keys and values.",
        "Dosovitskiy et al., An Image is Worth 16x16 Words, 2021, arXiv:2010.11929",
        lines(SPLIT_FUSED, ATTEND, JOIN),
        {"qkv": linear("width", "3 * width", bias=False), "out": linear("width", "width")},
        arguments="[512, 8]",
        heads=8,
    ),
    TOKEN.module(
        63,
        "crossformer_attention",
        "Self-attention within a group of 7 x 7 tokens, with biases that a small network computes from distances.",
        "Wang et al., CrossFormer, 2022, arXiv:2108.00154",
        lines(
            "table = self.bias(self.distances).unflatten(0, (13, 13))",
            SPLIT_FUSED,
            RELATIVE,
            JOIN,
        ),
        {
            **FUSED,
            "distances": "nn.Buffer(torch.cartesian_prod(*[torch.arange(-6.0, 7.0)] * 2))",
            "bias": "nn.Sequential(nn.Linear(2, width // 16), "
            + "nn.LayerNorm(width // 16), nn.ReLU(), nn.Linear(width // 16, width // 16), " * 2
            + "nn.LayerNorm(width // 16), nn.ReLU(), nn.Linear(width // 16, heads))",
        },
        sizes=CaseSizes("batch width", public=(3, 80), hidden=((1, 96), (5, 48), (2, 64)), timing=(16, 512)),
        inputs=WINDOW_INPUT,
        arguments="[512, 7, 8]",
        heads=8,
    ),
    TOKEN.module(
        64,
        "window_attention",
        "Self-attention within a window of 7 x 7 tokens, with a learned bias for every distance.",
        "Liu et al., Swin Transformer, 2021, arXiv:2103.14030",
        lines("table = self.bias", SPLIT_FUSED, RELATIVE, JOIN),
        {**FUSED, "bias": "nn.Parameter(torch.randn(13, 13, heads))"},
        sizes=WINDOW,
        inputs=WINDOW_INPUT,
        arguments="[512, 7, 8]",
        heads=8,
    ),
    TOKEN.module(
        65,
        "global_filter",
        "Tokens of 7 x 7 positions multiplied by a learned filter in the frequency domain of a real Fourier transform.",
        "Rao et al., Global Filter Networks, 2021, arXiv:2107.00645; transforms are products with cosines and sines",
        """
x = x.unflatten(1, (7, 7))
real, imaginary = (t[:4] @ x for t in (self.cosine, -self.sine))
turn = lambda y, t: (t @ y.flatten(2)).unflatten(2, (4, -1))
real, imaginary = (
    turn(real, self.cosine) + turn(imaginary, self.sine),
    turn(imaginary, self.cosine) - turn(real, self.sine),
)
a, b = self.filter.unbind(-1)
real, imaginary = real * a - imaginary * b, real * b + imaginary * a
real, imaginary = (
    turn(real, self.cosine) - turn(imaginary, self.sine),
    turn(imaginary, self.cosine) + turn(real, self.sine),
)
x = (self.cosine[:, :4] * self.counted) @ real - (self.sine[:, :4] * self.counted) @ imaginary
return x.flatten(1, 2) / 49""",
        {
            "filter": "nn.Parameter(torch.randn(7, 4, width, 2))",
            "cosine": "nn.Buffer(torch.cos(torch.outer(torch.arange(7.0), torch.arange(7.0)) * (2 * math.pi / 7)))",
            "sine": "nn.Buffer(torch.sin(torch.outer(torch.arange(7.0), torch.arange(7.0)) * (2 * math.pi / 7)))",
            "counted": "nn.Buffer(torch.tensor([1.0, 2.0, 2.0, 2.0]))",
        },
        sizes=CaseSizes("batch width", public=(3, 80), hidden=((1, 72), (5, 50), (2, 17)), timing=(32, 512)),
        inputs=WINDOW_INPUT,
        arguments="[512, 7, 4]",
    ),
)

"""Attention over the positions, rows, columns and channels of images."""

from __future__ import annotations

from kernel_gym.suites.attention.channel_gates import IMAGE, SMALL
from kernel_gym.suites.attention.family import linear, pointwise
from kernel_gym.suites.definitions import CaseSizes

FU = "Fu et al., Dual Attention Network for Scene Segmentation, 2019, arXiv:1809.02983"
#: Attention over positions, and over channels.
POSITION = """
q, k = self.query({0}).flatten(2), self.key({0}).flatten(2)
weight = torch.softmax(q.transpose(1, 2) @ k, dim=-1)
z = self.value({0}).flatten(2) @ weight.transpose(1, 2)
position = self.alpha * z.unflatten(2, (x.shape[2], x.shape[3])) + {0}"""
POSITION_LAYERS = {
    "query": pointwise("channels", "channels // 8"),
    "key": pointwise("channels", "channels // 8"),
    "value": pointwise("channels", "channels"),
    "alpha": "nn.Parameter(torch.randn(1))",
}

DEFINITIONS = (
    IMAGE.module(
        47,
        "cot_attention",
        "Keys with the context of their neighbours, plus values summed over windows with weights from keys and input.",
        "Li et al., Contextual Transformer Networks, 2021, arXiv:2107.12292",
        """
keys = torch.relu(self.key_norm(self.key(x)))
y = torch.relu(self.mix_norm(self.mix(torch.cat([keys, x], dim=1))))
weight = torch.softmax(self.weigh(y).unflatten(1, (self.heads, 1, -1)), dim=3)
windows = F.pad(self.value_norm(self.value(x)), (1, 1, 1, 1)).unfold(2, 3, 1).unfold(3, 3, 1)
windows = windows.unflatten(1, (self.heads, -1)).flatten(5)
y = (windows * weight.permute(0, 1, 2, 4, 5, 3)).sum(dim=-1)
return keys + y.flatten(1, 2)""",
        {
            "key": "nn.Conv2d(channels, channels, 3, padding=1, groups=4, bias=False)",
            "key_norm": "nn.BatchNorm2d(channels)",
            "value": pointwise("channels", "channels", bias=False),
            "value_norm": "nn.BatchNorm2d(channels)",
            "mix": pointwise("2 * channels", "channels // 2", bias=False),
            "mix_norm": "nn.BatchNorm2d(channels // 2)",
            "weigh": pointwise("channels // 2", "heads * 9"),
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 80, 7, 5),
            hidden=((1, 32, 5, 7), (2, 96, 8, 3), (5, 48, 4, 4)),
            timing=(8, 256, 7, 7),
        ),
        arguments="[512, 3]",
        heads=8,
    ),
    IMAGE.module(
        48,
        "s2_attention",
        "Channels in three branches, quarters of two of them shifted by one position, mixed by a softmax.",
        "Yu et al., S2-MLPv2: Improved Spatial-Shift MLP, 2021, arXiv:2108.01072",
        """
down = lambda y: torch.cat([y[:, :1], y[:, :-1]], dim=1)
up = lambda y: torch.cat([y[:, 1:], y[:, -1:]], dim=1)
right = lambda y: torch.cat([y[:, :, :1], y[:, :, :-1]], dim=2)
left = lambda y: torch.cat([y[:, :, 1:], y[:, :, -1:]], dim=2)
one, two, three = self.expand(x.permute(0, 2, 3, 1)).unflatten(-1, (3, 4, -1)).unbind(3)
a, b, c, d = one.unbind(3)
one = torch.stack([down(a), up(b), right(c), left(d)], dim=3)
a, b, c, d = two.unbind(3)
two = torch.stack([right(a), left(b), down(c), up(d)], dim=3)
branches = torch.stack([one, two, three], dim=1).flatten(4)
gate = self.excite(F.gelu(self.squeeze(branches.sum(dim=(1, 2, 3)))))
gate = torch.softmax(gate.unflatten(1, (3, -1)), dim=1)
return self.out((branches * gate[:, :, None, None]).sum(dim=1)).permute(0, 3, 1, 2)""",
        {
            "expand": linear("channels", "3 * channels"),
            "squeeze": linear("channels", "channels", bias=False),
            "excite": linear("channels", "3 * channels", bias=False),
            "out": linear("channels", "channels"),
        },
        sizes=SMALL,
        arguments="[512]",
    ),
    IMAGE.module(
        49,
        "acmix",
        "One set of projections for attention within windows and for a convolution of shifted features; their sum.",
        "Pan et al., On the Integration of Self-Attention and Convolution, 2022, arXiv:2111.14556",
        """
q, k, v = self.query(x), self.key(x), self.value(x)
rows = (torch.arange(x.shape[2], dtype=x.dtype) * 2 + 1) / x.shape[2] - 1
columns = (torch.arange(x.shape[3], dtype=x.dtype) * 2 + 1) / x.shape[3] - 1
grid = torch.stack([rows[:, None].expand(x.shape[2:]), columns[None, :].expand(x.shape[2:])]).unsqueeze(0)
place = self.place(grid)
window = lambda y: F.pad(y, (3, 3, 3, 3)).unfold(2, 7, 1).unfold(3, 7, 1).flatten(4)
heads = lambda y: y.unflatten(1, (self.heads, -1))
near = (place.unsqueeze(-1) - window(place)).unsqueeze(1)
scores = (heads(q).unsqueeze(-1) * (heads(window(k)) + near)).sum(dim=2, keepdim=True)
weight = torch.softmax(scores / math.sqrt(k.shape[1] / self.heads), dim=-1)
attention = (weight * heads(window(v))).sum(dim=-1).flatten(1, 2)
y = torch.stack([q, k, v], dim=1).unflatten(2, (self.heads, -1)).flatten(1, 2).flatten(3)
y = self.features(y).transpose(1, 2).unflatten(3, (x.shape[2], x.shape[3]))
y = F.pad(y, (1, 1, 1, 1)).unfold(3, 3, 1).unfold(4, 3, 1).unsqueeze(2)
convolution = (y * self.shift).sum(dim=(3, 6, 7)).transpose(1, 2).flatten(1, 2)
return self.rates[0] * attention + self.rates[1] * convolution""",
        {
            **dict.fromkeys(("query", "key", "value"), pointwise("channels", "channels")),
            "place": pointwise("2", "channels // heads"),
            "features": pointwise("3 * heads", "9", bias=False),
            "shift": "nn.Parameter(torch.randn(channels // heads, heads, 9, 1, 1, 3, 3) / 9)",
            "rates": "nn.Parameter(torch.randn(2))",
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(2, 52, 6, 5),
            hidden=((1, 32, 5, 7), (2, 24, 8, 3), (3, 40, 4, 4)),
            timing=(4, 128, 7, 7),
        ),
        arguments="[512, 512]",
        heads=4,
    ),
    IMAGE.module(
        50,
        "double_attention",
        "Features gathered by attention maps into descriptors, which attention vectors distribute over the positions.",
        "Chen et al., A2-Nets: Double Attention Networks, 2018, arXiv:1810.11579",
        """
features = self.features(x).flatten(2)
maps = torch.softmax(self.maps(x).flatten(2), dim=-1)
vectors = torch.softmax(self.vectors(x).flatten(2), dim=1)
y = (features @ maps.transpose(1, 2)) @ vectors
return self.out(y.unflatten(2, (x.shape[2], x.shape[3])))""",
        {
            "features": pointwise("channels", "depth"),
            "maps": pointwise("channels", "descriptors"),
            "vectors": pointwise("channels", "descriptors"),
            "out": pointwise("depth", "channels"),
        },
        init="channels depth descriptors",
        sizes=CaseSizes(
            "batch channels height width depth descriptors",
            public=(3, 64, 7, 9, 24, 20),
            hidden=((1, 32, 5, 7, 16, 9), (2, 96, 8, 3, 10, 33), (5, 48, 4, 4, 12, 16)),
            timing=(16, 512, 7, 7, 128, 128),
        ),
        arguments="[512, 128, 128, True]",
    ),
    IMAGE.module(
        51,
        "da_module",
        "The sum of attention over positions and attention over channels, each after a 3 x 3 convolution.",
        FU,
        "y = self.before_position(x)"
        + POSITION.format("y")
        + """
z = self.before_channel(x)
flat = z.flatten(2)
energy = flat @ flat.transpose(1, 2)
weight = torch.softmax(energy.amax(dim=-1, keepdim=True) - energy, dim=-1)
channel = self.beta * (weight @ flat).unflatten(2, (x.shape[2], x.shape[3])) + z
return position + channel""",
        {
            **POSITION_LAYERS,
            "before_position": "nn.Conv2d(channels, channels, 3, padding=1)",
            "before_channel": "nn.Conv2d(channels, channels, 3, padding=1)",
            "beta": "nn.Parameter(torch.randn(1))",
        },
        sizes=SMALL,
        arguments="[512, 3, 7, 7]",
    ),
    IMAGE.module(
        52,
        "pam",
        "Attention of every position of an image over all positions, scaled and added to the input.",
        FU,
        POSITION.format("x") + "\nreturn position",
        POSITION_LAYERS,
        sizes=SMALL,
        arguments="[512]",
    ),
    IMAGE.module(
        53,
        "axial_attention",
        "The sum of self-attention along the columns and along the rows of an image.",
        "Ho et al., Axial Attention in Multidimensional Transformers, 2019, arXiv:1912.12180",
        """
split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(-2, -3)
columns, rows = x.permute(0, 3, 2, 1), x.permute(0, 2, 3, 1)
q, k, v = split(self.column_query(columns)), split(self.column_key(columns)), split(self.column_value(columns))
y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
columns = self.column_out(y.transpose(-2, -3).flatten(3)).permute(0, 3, 2, 1)
q, k, v = split(self.row_query(rows)), split(self.row_key(rows)), split(self.row_value(rows))
y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
rows = self.row_out(y.transpose(-2, -3).flatten(3)).permute(0, 3, 1, 2)
return columns + rows""",
        {
            **{
                f"{axis}_{name}": linear("channels", "channels", bias=False)
                for axis in ("column", "row")
                for name in ("query", "key", "value")
            },
            "column_out": linear("channels", "channels"),
            "row_out": linear("channels", "channels"),
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 80, 7, 9),
            hidden=((1, 32, 5, 7), (2, 96, 8, 3), (5, 48, 4, 4)),
            timing=(8, 256, 7, 7),
        ),
        arguments="[512, 2, 8, None, 1]",
        heads=8,
    ),
    IMAGE.module(
        54,
        "criss_cross_attention",
        "Attention of every position over its row and its column, scaled and added to the input.",
        "Huang et al., CCNet: Criss-Cross Attention, 2019, arXiv:1811.11721",
        """
q, k, v = self.query(x), self.key(x), self.value(x)
height, width = x.shape[2], x.shape[3]
row = torch.arange(height)
columns = q.permute(0, 3, 2, 1) @ k.permute(0, 3, 1, 2)
columns = columns.masked_fill(row[:, None] == row[None, :], float("-inf")).transpose(1, 2)
rows = q.permute(0, 2, 3, 1) @ k.permute(0, 2, 1, 3)
weight = torch.softmax(torch.cat([columns, rows], dim=-1), dim=-1)
columns, rows = torch.split(weight, [height, width], dim=-1)
columns = (columns.transpose(1, 2) @ v.permute(0, 3, 2, 1)).permute(0, 3, 2, 1)
rows = (rows @ v.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
return self.gamma * (columns + rows) + x""",
        {
            "query": pointwise("channels", "channels // 8"),
            "key": pointwise("channels", "channels // 8"),
            "value": pointwise("channels", "channels"),
            "gamma": "nn.Parameter(torch.randn(1))",
        },
        sizes=SMALL,
        arguments="[512]",
    ),
)

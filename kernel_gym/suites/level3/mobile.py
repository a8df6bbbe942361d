"""Networks for small devices: MobileNet, EfficientNet and ShuffleNet."""

from __future__ import annotations

from math import ceil

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import CONV, network

MOBILE = "Howard et al., MobileNets: Efficient Convolutional Neural Networks, 2017, arXiv:1704.04861"
MOBILE2 = "Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018, arXiv:1801.04381"
EFFICIENT = (
    "Tan and Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, 2019, arXiv:1905.11946"
)
SHUFFLE = "Zhang et al., ShuffleNet: An Extremely Efficient Convolutional Neural Network, 2017, arXiv:1707.01083"

SEPARABLE = """
class Separable(nn.Module):
    \"\"\"A convolution of each channel, then a projection.\"\"\"

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.body = nn.Sequential(Conv(inputs, inputs, 3, stride, groups=inputs), Conv(inputs, outputs, 1))

    def forward(self, x):
        return self.body(x)
"""
INVERTED = """
class Inverted(nn.Module):
    \"\"\"Expands, convolves each channel and projects; a shortcut where the shape stays.\"\"\"

    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        wide = inputs * expansion
        layers = [Conv(inputs, wide, 1, activation=nn.ReLU6)] if expansion > 1 else []
        layers += [Conv(wide, wide, 3, stride, groups=wide, activation=nn.ReLU6)]
        self.body = nn.Sequential(*layers, Conv(wide, outputs, 1, activation=nn.Identity))
        self.short = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.short else self.body(x)
"""
GATED = """
class Gated(nn.Module):
    \"\"\"Expands, convolves each channel, gates channels by their means and projects, with a shortcut.\"\"\"

    def __init__(self, inputs, outputs, kernel, stride, expansion):
        super().__init__()
        wide, narrow = inputs * expansion, max(1, inputs // 4)
        layers = [Conv(inputs, wide, 1, activation=nn.SiLU)] if expansion > 1 else []
        self.expand = nn.Sequential(*layers, Conv(wide, wide, kernel, stride, groups=wide, activation=nn.SiLU))
        self.gate = nn.Sequential(nn.Conv2d(wide, narrow, 1), nn.SiLU(), nn.Conv2d(narrow, wide, 1), nn.Sigmoid())
        self.project = Conv(wide, outputs, 1, activation=nn.Identity)
        self.short = stride == 1 and inputs == outputs

    def forward(self, x):
        wide = self.expand(x)
        narrow = self.project(wide * self.gate(wide.mean((2, 3), keepdim=True)))
        return x + narrow if self.short else narrow
"""
UNIT = """
class Unit(nn.Module):
    \"\"\"Grouped projections around a convolution of each channel, with channels shuffled between groups.\"\"\"

    def __init__(self, inputs, outputs, groups):
        super().__init__()
        middle = outputs // 4
        self.groups = groups
        self.first = Conv(inputs, middle, 1, groups=groups)
        self.second = Conv(middle, middle, 3, groups=middle, activation=nn.Identity)
        self.third = Conv(middle, outputs, 1, groups=groups)
        self.short = nn.Identity() if inputs == outputs else Conv(inputs, outputs, 1, activation=nn.Identity)

    def forward(self, x):
        y = self.first(x)
        y = y.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        return self.third(self.second(y)) + self.short(x)
"""
IMAGE = CaseSizes("batch height width", public=(2, 12, 14), hidden=((1, 9, 11), (3, 13, 8)), timing=(8, 32, 32))
#: Groups of EfficientNet-B0: expansion, channels / 8, blocks, stride of the first, kernel.
GROUPS = (
    (1, 2, 1, 1, 3),
    (6, 3, 2, 2, 3),
    (6, 5, 2, 2, 5),
    (6, 10, 3, 2, 3),
    (6, 14, 3, 1, 5),
    (6, 24, 4, 2, 5),
    (6, 40, 1, 1, 3),
)


def _mobile() -> str:
    rows = ((8, 1), (12, 2), (12, 1), (16, 2), (16, 1), (24, 2), *[(24, 1)] * 5, (32, 2), (32, 1))
    texts, inputs = [], 8
    for outputs, stride in rows:
        texts.append(f"Separable({inputs}, {outputs}, {stride})")
        inputs = outputs
    return ", ".join(texts)


def _mobile2() -> str:
    rows = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 8, 4, 2), (6, 12, 3, 1), (6, 16, 3, 2), (6, 20, 1, 1))
    texts, inputs = [], 8
    for expansion, outputs, depth, stride in rows:
        for place in range(depth):
            texts.append(f"Inverted({inputs}, {outputs}, {stride if place == 0 else 1}, {expansion})")
            inputs = outputs
    return ", ".join(texts)


def _efficient(number: int, name: str, width: float, depth: float, side: int) -> TaskDefinition:
    texts, inputs = [], 8
    for expansion, eighths, blocks, stride, kernel in GROUPS:
        outputs = max(4, int(eighths * width) // 2 * 2)
        for place in range(ceil(blocks * depth)):
            texts.append(f"Gated({inputs}, {outputs}, {kernel}, {stride if place == 0 else 1}, {expansion})")
            inputs = outputs
    return network(
        number,
        name,
        f"A stem, {len(texts)} gated inverted bottlenecks in seven groups, a projection, a mean and a linear layer.",
        EFFICIENT,
        "self.head(self.last(self.blocks(self.stem(x))).mean((2, 3)))",
        {
            "stem": "Conv(3, 8, 3, 2, activation=nn.SiLU)",
            "blocks": f"nn.Sequential({', '.join(texts)})",
            "last": f"Conv({inputs}, 64, 1, activation=nn.SiLU)",
            "head": "nn.Linear(64, 10)",
        },
        modules=f"{CONV}\n{GATED}",
        side=side,
        published=f"batch 10, images of 3 x {side * 7} x {side * 7}, 1000 classes",
    )


DEFINITIONS = (
    network(
        19, "mobilenet_v1", "A stem and thirteen separable convolutions, a mean and a linear layer.", MOBILE,
        "self.head(self.blocks(self.stem(x)).mean((2, 3)))",
        {"stem": "Conv(3, 8, 3, 2)", "blocks": f"nn.Sequential({_mobile()})", "head": "nn.Linear(32, 10)"},
        modules=f"{CONV}\n{SEPARABLE}", side=32,
    ),
    network(
        20, "mobilenet_v2", "A stem, seventeen inverted bottlenecks, a wide projection, a mean and a linear layer.",
        MOBILE2,
        "self.head(self.last(self.blocks(self.stem(x))).mean((2, 3)))",
        {
            "stem": "Conv(3, 8, 3, 2, activation=nn.ReLU6)",
            "blocks": f"nn.Sequential({_mobile2()})",
            "last": "Conv(20, 48, 1, activation=nn.ReLU6)",
            "head": "nn.Linear(48, 10)",
        },
        modules=f"{CONV}\n{INVERTED}", side=32,
    ),
    network(
        21, "efficientnet_mbconv", "An inverted bottleneck with gated channels.", EFFICIENT, "self.block(x)",
        {"block": "Gated(12, 20, 5, 2, 6)"},
        inputs={"x": "torch.randn(batch, 12, height, width)"}, sizes=IMAGE, modules=f"{CONV}\n{GATED}",
        published="batch 10, 112 channels of 224 x 224 to 192 channels, windows of 5, stride 2, expansion 6",
    ),
    _efficient(22, "efficientnet_b0", 1.0, 1.0, 32),
    _efficient(23, "efficientnet_b1", 1.0, 1.1, 32),
    _efficient(24, "efficientnet_b2", 1.1, 1.2, 32),
    network(
        25, "shufflenet_unit", "Grouped projections around a convolution of each channel, with shuffled channels.",
        SHUFFLE,
        "self.unit(x)", {"unit": "Unit(12, 24, 3)"},
        inputs={"x": "torch.randn(batch, 12, height, width)"}, sizes=IMAGE, modules=f"{CONV}\n{UNIT}",
        published="batch 10, 240 channels of 224 x 224 to 480 channels in 3 groups",
    ),
    network(
        26, "shufflenet", "A stem, sixteen shuffling units in three groups, a projection, a mean and a linear layer.",
        SHUFFLE,
        """
x = F.max_pool2d(self.stem(x), 3, 2, 1)
for group in (self.early, self.middle, self.late):
    x = F.max_pool2d(group(x), 3, 2, 1)
return self.head(self.last(x).mean((2, 3)))""",
        {
            "stem": "Conv(3, 12, 3, 2)",
            "early": "nn.Sequential(Unit(12, 24, 3), *(Unit(24, 24, 3) for _ in range(3)))",
            "middle": "nn.Sequential(Unit(24, 48, 3), *(Unit(48, 48, 3) for _ in range(7)))",
            "late": "nn.Sequential(Unit(48, 72, 3), *(Unit(72, 72, 3) for _ in range(3)))",
            "last": "Conv(72, 64, 1)",
            "head": "nn.Linear(64, 10)",
        },
        modules=f"{CONV}\n{UNIT}", side=64,
    ),
)  # fmt: skip

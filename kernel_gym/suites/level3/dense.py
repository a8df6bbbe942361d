"""DenseNet: layers that see all earlier ones, and transitions between blocks of them."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import network

DENSE = "Huang et al., Densely Connected Convolutional Networks, 2016, arXiv:1608.06993"
LAYERS = """
class Layer(nn.Module):
    \"\"\"Adds new channels, computed from all earlier ones.\"\"\"

    def __init__(self, inputs, growth):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv(torch.relu(self.norm(x)))], dim=1)


class Transition(nn.Module):
    \"\"\"Halves channels and image.\"\"\"

    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x):
        return F.avg_pool2d(self.conv(torch.relu(self.norm(x))), 2)
"""
IMAGE = CaseSizes("batch height width", public=(2, 12, 14), hidden=((1, 9, 11), (3, 13, 8)), timing=(8, 32, 32))


def _dense(channels: int, depth: int, growth: int) -> tuple[list[str], int]:
    return [f"Layer({channels + place * growth}, {growth})" for place in range(depth)], channels + depth * growth


def _network(number: int, name: str, depths: tuple[int, ...], growth: int) -> TaskDefinition:
    texts, channels = [], 8
    for group, depth in enumerate(depths):
        layers, channels = _dense(channels, depth, growth)
        texts += layers
        if group < len(depths) - 1:
            texts.append(f"Transition({channels}, {channels // 2})")
            channels //= 2
    return network(
        number,
        name,
        f"{sum(depths)} layers in four dense blocks with transitions between them, a mean and a linear layer.",
        DENSE,
        """
x = F.max_pool2d(torch.relu(self.norm(self.stem(x))), 3, 2, 1)
return self.head(torch.relu(self.last(self.blocks(x))).mean((2, 3)))""",
        {
            "stem": "nn.Conv2d(3, 8, 7, 2, 3, bias=False)",
            "norm": "nn.BatchNorm2d(8)",
            "blocks": f"nn.Sequential({', '.join(texts)})",
            "last": f"nn.BatchNorm2d({channels})",
            "head": f"nn.Linear({channels}, 10)",
        },
        modules=LAYERS,
        side=32,
    )


DEFINITIONS = (
    network(
        13,
        "densenet121_transition_layer",
        "A normalised projection to half the channels and a mean over windows of 2.",
        DENSE,
        "self.transition(x)",
        {"transition": "Transition(32, 16)"},
        inputs={"x": "torch.randn(batch, 32, height, width)"},
        sizes=IMAGE,
        modules=LAYERS,
        published="batch 128, 32 channels of 256 x 256 to 64 channels",
    ),
    network(
        14,
        "densenet121_dense_block",
        "Six layers, each of which sees all earlier ones.",
        DENSE,
        "self.block(x)",
        {"block": f"nn.Sequential({', '.join(_dense(16, 6, 8)[0])})"},
        inputs={"x": "torch.randn(batch, 16, height, width)"},
        sizes=IMAGE,
        modules=LAYERS,
        published="batch 10, 32 channels of 224 x 224, six layers that add 32 channels each",
    ),
    _network(15, "densenet121", (6, 12, 24, 16), 4),
    _network(16, "densenet201", (6, 12, 48, 32), 4),
)

"""Networks with shortcuts: ResNet and RegNet, and the U-Net."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import CONV, network

RESNET = "He et al., Deep Residual Learning for Image Recognition, 2015, arXiv:1512.03385"
BASIC = """
class Basic(nn.Module):
    \"\"\"Two convolutions with a shortcut, which is projected where the shape changes.\"\"\"

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.first = Conv(inputs, outputs, 3, stride)
        self.second = Conv(outputs, outputs, 3, activation=nn.Identity)
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else Conv(inputs, outputs, 1, stride, activation=nn.Identity)

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.short(x))
"""
BOTTLENECK = """
class Bottleneck(nn.Module):
    \"\"\"A narrow convolution between two projections, with a shortcut.\"\"\"

    def __init__(self, inputs, width, stride=1):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            Conv(inputs, width, 1), Conv(width, width, 3, stride), Conv(width, outputs, 1, activation=nn.Identity)
        )
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else Conv(inputs, outputs, 1, stride, activation=nn.Identity)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))
"""
DOUBLE = """
class Double(nn.Module):
    \"\"\"Two normalised convolutions, each with a softmax along the last dimension.\"\"\"

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first, self.second = (nn.Conv2d(n, outputs, 3, padding=1) for n in (inputs, outputs))
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))

    def forward(self, x):
        x = torch.softmax(self.norms[0](self.first(x)), dim=-1)
        return torch.softmax(self.norms[1](self.second(x)), dim=-1)
"""


def _blocks(kind: str, inputs: int, widths: tuple[int, ...], depths: tuple[int, ...], growth: int) -> str:
    """Return the constructors of groups of blocks; every group but the first halves the image."""
    texts = []
    for group, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for place in range(depth):
            stride = 2 if group and place == 0 else 1
            texts.append(f"{kind}({inputs}, {width}, {stride})")
            inputs = growth * width
    return ", ".join(texts)


def _resnet(number: int, name: str, kind: str, depths: tuple[int, ...], widths: tuple[int, ...]) -> TaskDefinition:
    growth = 1 if kind == "Basic" else 4
    return network(
        number,
        name,
        f"A stem, {sum(depths)} residual blocks in four groups, a mean and a linear layer.",
        RESNET,
        "self.head(self.blocks(F.max_pool2d(self.stem(x), 3, 2, 1)).mean((2, 3)))",
        {
            "stem": "Conv(3, 8, 7, 2)",
            "blocks": f"nn.Sequential({_blocks(kind, 8, widths, depths, growth)})",
            "head": f"nn.Linear({growth * widths[-1]}, 10)",
        },
        modules=f"{CONV}\n{BASIC if kind == 'Basic' else BOTTLENECK}",
        side=64 if kind == "Basic" else 32,
    )


DEFINITIONS = (
    network(
        8,
        "resnet_basic_block",
        "Two convolutions with a projected shortcut.",
        RESNET,
        "self.block(x)",
        {"block": "Basic(6, 16)"},
        inputs={"x": "torch.randn(batch, 6, height, width)"},
        sizes=CaseSizes("batch height width", public=(2, 12, 15), hidden=((1, 9, 11), (3, 13, 8)), timing=(8, 32, 32)),
        modules=f"{CONV}\n{BASIC}",
        published="batch 10, 3 channels of 224 x 224 to 64 channels",
    ),
    _resnet(9, "resnet18", "Basic", (2, 2, 2, 2), (8, 16, 24, 32)),
    _resnet(10, "resnet101", "Bottleneck", (3, 4, 23, 3), (4, 6, 8, 12)),
    network(
        27,
        "regnet",
        "Groups of two convolutions and a maximum, then a mean and a linear layer.",
        "Radosavovic et al., Designing Network Design Spaces, 2020, arXiv:2003.13678",
        "self.head(self.groups(x).mean((2, 3)))",
        {
            "groups": "nn.Sequential(Conv(3, 16), Conv(16, 16), nn.MaxPool2d(2), Conv(16, 24), Conv(24, 24), "
            "nn.MaxPool2d(2), Conv(24, 32), Conv(32, 32), nn.MaxPool2d(2))",
            "head": "nn.Linear(32, 10)",
        },
        modules=CONV,
        side=32,
        published="batch 8, images of 3 x 224 x 224, groups of 64, 128 and 256 channels",
    ),
    network(
        45,
        "unet_softmax",
        "A U-Net whose activations are softmaxes along the last dimension.",
        "Ronneberger, Fischer and Brox, U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015, "
        "arXiv:1505.04597",
        """
kept = []
for block in self.down:
    kept.append(block(x))
    x = F.max_pool2d(kept[-1], 2)
x = self.bottom(x)
for up, block in zip(self.up, self.join):
    x = block(torch.cat([up(x), kept.pop()], dim=1))
return self.last(x)""",
        {
            "down": "nn.ModuleList([Double(4, 4), Double(4, 8), Double(8, 12), Double(12, 16)])",
            "bottom": "Double(16, 24)",
            "up": "nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in ((24, 16), (16, 12), (12, 8), (8, 4)))",
            "join": "nn.ModuleList([Double(32, 16), Double(24, 12), Double(16, 8), Double(8, 4)])",
            "last": "nn.Conv2d(4, 4, 1)",
        },
        inputs={"x": "torch.randn(batch, 4, 32, 64)"},
        modules=DOUBLE,
        published="batch 8, 8 channels of 64 x 512, 64 features, 4 classes",
    ),
)

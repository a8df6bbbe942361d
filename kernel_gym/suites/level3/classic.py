"""Convolutional networks without shortcuts: LeNet, AlexNet, VGG, Inception and SqueezeNet."""

from __future__ import annotations

from kernel_gym.suites.definitions import TaskDefinition
from kernel_gym.suites.level3.network import IMAGES, network

VGG = (
    "Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, 2014, arXiv:1409.1556"
)
INCEPTION = "Szegedy et al., Going Deeper with Convolutions, 2014, arXiv:1409.4842"
SQUEEZE = "Iandola et al., SqueezeNet: AlexNet-level accuracy with 50x fewer parameters, 2016, arXiv:1602.07360"

INCEPTION_MODULE = """
class Inception(nn.Module):
    \"\"\"Four branches side by side: windows of 1, 3 and 5, and a maximum, each behind a projection.\"\"\"

    def __init__(self, inputs, one, three_in, three, five_in, five, pool):
        super().__init__()
        self.one = nn.Conv2d(inputs, one, 1)
        self.three = nn.Sequential(nn.Conv2d(inputs, three_in, 1), nn.Conv2d(three_in, three, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(inputs, five_in, 1), nn.Conv2d(five_in, five, 5, padding=2))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inputs, pool, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], dim=1)
"""
FIRE_MODULE = """
class Fire(nn.Module):
    \"\"\"A squeezing layer, then two expanding ones side by side.\"\"\"

    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.one = nn.Conv2d(squeezed, expanded, 1)
        self.three = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], dim=1)
"""


def _vgg(number: int, name: str, depths: tuple[int, ...]) -> TaskDefinition:
    blocks, inputs = [], 3
    for depth, width in zip(depths, (8, 16, 32, 48, 48), strict=True):
        for _ in range(depth):
            blocks.append(f"nn.Conv2d({inputs}, {width}, 3, padding=1), nn.ReLU()")
            inputs = width
        blocks.append("nn.MaxPool2d(2)")
    return network(
        number,
        name,
        f"{sum(depths)} convolutions in five blocks, each followed by a maximum, then three linear layers.",
        VGG,
        "self.head(torch.flatten(self.features(x), 1))",
        {
            "features": f"nn.Sequential({', '.join(blocks)})",
            "head": "nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))",
        },
        side=32,
    )


DEFINITIONS = (
    network(
        4, "lenet5", "Two convolutions with maxima, then three linear layers.",
        "LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998",
        """
x = F.max_pool2d(torch.relu(self.first(x)), 2)
x = F.max_pool2d(torch.relu(self.second(x)), 2)
return self.head(torch.flatten(x, 1))""",
        {
            "first": "nn.Conv2d(1, 6, 5)",
            "second": "nn.Conv2d(6, 16, 5)",
            "head": "nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 20))",
        },
        inputs={"x": "torch.randn(batch, 1, 32, 32)"},
        published="batch 4096, images of 1 x 32 x 32, 20 classes",
    ),
    network(
        5, "alexnet", "Five convolutions with maxima between them, then three linear layers.",
        "Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012",
        "self.head(torch.flatten(self.features(x), 1))",
        {
            "features": "nn.Sequential(nn.Conv2d(3, 12, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), "
            "nn.Conv2d(12, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(32, 48, 3, padding=1), "
            "nn.ReLU(), nn.Conv2d(48, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), "
            "nn.MaxPool2d(3, 2))",
            "head": "nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))",
        },
        side=96, published="batch 1024, images of 3 x 224 x 224, 1000 classes",
    ),
    network(
        6, "googlenet_inception_module", "Four branches of convolutions side by side.", INCEPTION, "self.block(x)",
        {"block": "Inception(24, 12, 8, 16, 4, 8, 6)"},
        inputs={"x": "torch.randn(batch, 24, height, width)"},
        sizes=IMAGES.__class__(
            "batch height width", public=(2, 14, 17), hidden=((1, 9, 11), (3, 13, 8)), timing=(8, 28, 28)
        ),
        modules=INCEPTION_MODULE, published="batch 10, 480 channels of 224 x 224, branches 192, 96-208, 16-48, 64",
    ),
    network(
        7, "googlenet_inception_v1", "Nine inception modules in three groups, with maxima between the groups.",
        INCEPTION,
        """
x = self.middle(self.early(self.stem(x)))
return self.head(self.late(x).mean((2, 3)))""",
        {
            "stem": "nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 8, 1), "
            "nn.ReLU(), nn.Conv2d(8, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1))",
            "early": "nn.Sequential(Inception(24, 8, 12, 16, 2, 4, 4), Inception(32, 16, 16, 24, 4, 12, 8), "
            "nn.MaxPool2d(3, 2, 1))",
            "middle": "nn.Sequential(Inception(60, 24, 12, 26, 2, 6, 8), Inception(64, 20, 14, 28, 3, 8, 8), "
            "Inception(64, 16, 16, 32, 3, 8, 8), Inception(64, 14, 18, 36, 4, 8, 8), "
            "Inception(66, 32, 20, 40, 4, 16, 16), nn.MaxPool2d(3, 2, 1))",
            "late": "nn.Sequential(Inception(104, 32, 20, 40, 4, 16, 16), Inception(104, 48, 24, 48, 6, 16, 16))",
            "head": "nn.Linear(128, 10)",
        },
        modules=INCEPTION_MODULE, side=64,
    ),
    _vgg(11, "vgg16", (2, 2, 3, 3, 3)),
    _vgg(12, "vgg19", (2, 2, 4, 4, 4)),
    network(
        17, "squeezenet_fire_module", "A squeezing convolution, then two expanding ones side by side.", SQUEEZE,
        "self.fire(x)", {"fire": "Fire(12, 6, 24)"},
        inputs={"x": "torch.randn(batch, 12, height, width)"},
        sizes=IMAGES.__class__(
            "batch height width", public=(2, 12, 15), hidden=((1, 9, 11), (3, 13, 8)), timing=(8, 32, 32)
        ),
        modules=FIRE_MODULE, published="batch 128, 3 channels of 256 x 256, 6 squeezed to, 64 and 64 expanded to",
    ),
    network(
        18, "squeezenet", "Eight fire modules with maxima between them, then a convolution and a mean.", SQUEEZE,
        "torch.relu(self.last(self.features(x))).mean((2, 3))",
        {
            "features": "nn.Sequential(nn.Conv2d(3, 12, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), "
            "Fire(12, 4, 8), Fire(16, 4, 8), Fire(16, 8, 16), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 16), "
            "Fire(32, 12, 24), Fire(48, 12, 24), Fire(48, 16, 32), nn.MaxPool2d(3, 2, ceil_mode=True), "
            "Fire(64, 16, 32))",
            "last": "nn.Conv2d(64, 10, 1)",
        },
        modules=FIRE_MODULE, side=64, published="batch 64, images of 3 x 512 x 512, 1000 classes",
    ),
)  # fmt: skip

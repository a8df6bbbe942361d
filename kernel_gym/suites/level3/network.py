"""Definitions of networks: shared sizes and the modules that several networks are made of."""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

#: Batches of square images. The side is a multiple of 32, as five halvings need it.
IMAGES = CaseSizes("batch", public=(2,), hidden=((3,), (1,)), timing=(8,))
IMAGE_INPUT = {"x": "torch.randn(batch, 3, side, side)"}

CONV = """
class Conv(nn.Module):
    \"\"\"A convolution without bias, normalised by running statistics, with an activation.\"\"\"

    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.activation = activation()

    def forward(self, x):
        return self.activation(self.norm(self.conv(x)))
"""


def network(
    number: int,
    name: str,
    description: str,
    reference: str,
    forward: str,
    layers: Mapping[str, str],
    *,
    inputs: Mapping[str, str] | None = None,
    sizes: CaseSizes = IMAGES,
    modules: str = "",
    init: str = "",
    published: str = "batch 10, images of 3 x 224 x 224, 1000 classes",
    **settings: object,
) -> TaskDefinition:
    """Return the definition of one network; `settings` are constants that no case varies."""
    return TaskDefinition(
        number,
        name,
        "arch",
        description,
        sizes,
        forward=forward,
        inputs=inputs or IMAGE_INPUT,
        layers=layers,
        settings=settings,
        init=init,
        reference=reference,
        published=published,
        modules=modules,
    )

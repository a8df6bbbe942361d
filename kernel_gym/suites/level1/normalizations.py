"""Normalisations: with parameters and running statistics, and by a norm of the data itself."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

IMAGES = CaseSizes(
    "batch features height width",
    public=(4, 8, 8, 16),
    hidden=((3, 4, 7, 11), (1, 12, 1, 127), (7, 4, 13, 3)),
    timing=(64, 64, 64, 32),
)
ROWS = CaseSizes("rows columns", public=(32, 256), hidden=((3, 1009), (67, 61), (129, 8)), timing=(8192, 1024))


def _of_images(number: int, name: str, description: str, layer: str, init: str, **settings: object) -> TaskDefinition:
    return TaskDefinition(
        number,
        name,
        "normalization",
        description,
        IMAGES,
        forward="self.norm(x)",
        inputs={"x": "torch.randn(batch, features, height, width)"},
        layers={"norm": layer},
        settings=settings,
        init=init,
    )


def _of_rows(number: int, name: str, description: str, forward: str) -> TaskDefinition:
    inputs = {"x": "torch.randn(rows, columns)"}
    return TaskDefinition(number, name, "normalization", description, ROWS, forward, inputs)


DEFINITIONS = (
    _of_images(
        33,
        "batch_norm",
        "Batch normalisation of images by running statistics, with weight and bias.",
        "nn.BatchNorm2d(features)",
        "features",
    ),
    _of_images(
        34,
        "instance_norm",
        "Each channel of each image to mean 0 and variance 1.",
        "nn.InstanceNorm2d(features)",
        "features",
    ),
    _of_images(
        35,
        "group_norm",
        "Groups of channels of each image to mean 0 and variance 1, then weight and bias.",
        "nn.GroupNorm(num_groups, features)",
        "features num_groups",
        num_groups=4,
    ),
    TaskDefinition(
        36,
        "rms_norm",
        "normalization",
        "Division by the root mean square over the channels.",
        IMAGES,
        forward="x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)",
        inputs={"x": "torch.randn(batch, features, height, width)"},
        settings={"eps": 1e-5},
        init="features eps",
    ),
    TaskDefinition(
        37,
        "frobenius_norm",
        "normalization",
        "Division of a whole tensor by its Frobenius norm.",
        IMAGES,
        forward='x / torch.norm(x, p="fro")',
        inputs={"x": "torch.randn(batch, features, height, width)"},
    ),
    _of_rows(
        38,
        "l1_norm",
        "Division of each row by the sum of its absolute values.",
        "x / torch.sum(torch.abs(x), dim=1, keepdim=True)",
    ),
    _of_rows(
        39, "l2_norm", "Division of each row by its Euclidean length.", "x / torch.norm(x, p=2, dim=1, keepdim=True)"
    ),
    _of_images(
        40,
        "layer_norm",
        "Layer normalisation over the last three dimensions, with weight and bias.",
        "nn.LayerNorm(normalized_shape)",
        "normalized_shape",
        normalized_shape="(features, height, width)",
    ),
)

"""Pooling over windows, in one to three dimensions."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

SIGNALS = CaseSizes(
    "batch channels length",
    public=(4, 8, 64),
    hidden=((1, 5, 61), (3, 1, 127), (2, 7, 16)),
    timing=(64, 64, 4096),
)
IMAGES = CaseSizes(
    "batch channels height width",
    public=(2, 4, 16, 16),
    hidden=((1, 3, 13, 17), (3, 1, 11, 31), (2, 5, 8, 9)),
    timing=(16, 32, 128, 128),
)
VOLUMES = CaseSizes(
    "batch channels depth height width",
    public=(2, 3, 8, 10, 12),
    hidden=((1, 2, 9, 11, 13), (1, 5, 8, 8, 9), (3, 1, 10, 9, 17)),
    timing=(4, 16, 32, 64, 64),
)


def _pooling(number: int, name: str, description: str, layer: str, sizes: CaseSizes, **settings: int) -> TaskDefinition:
    shape = ", ".join(sizes.names.split())
    return TaskDefinition(
        number,
        name,
        "pooling",
        description,
        sizes,
        forward="self.pool(x)",
        inputs={"x": f"torch.randn({shape})"},
        layers={"pool": f"nn.{layer}({', '.join(f'{name}={name}' for name in settings)})"},
        settings=settings,
        init=" ".join(settings),
    )


DEFINITIONS = (
    _pooling(
        41,
        "max_pooling_1d",
        "Maximum over sliding windows of a signal, dilated and padded.",
        "MaxPool1d",
        SIGNALS,
        kernel_size=4,
        stride=2,
        padding=2,
        dilation=3,
    ),
    _pooling(
        42,
        "max_pooling_2d",
        "Maximum over sliding windows of an image.",
        "MaxPool2d",
        IMAGES,
        kernel_size=4,
        stride=1,
        padding=1,
        dilation=1,
    ),
    _pooling(
        43,
        "max_pooling_3d",
        "Maximum over sliding windows of a volume, dilated and padded.",
        "MaxPool3d",
        VOLUMES,
        kernel_size=3,
        stride=2,
        padding=1,
        dilation=3,
    ),
    _pooling(
        44,
        "average_pooling_1d",
        "Mean over sliding windows of a padded signal.",
        "AvgPool1d",
        SIGNALS,
        kernel_size=8,
        stride=1,
        padding=4,
    ),
    _pooling(45, "average_pooling_2d", "Mean over windows that tile an image.", "AvgPool2d", IMAGES, kernel_size=5),
    _pooling(
        46,
        "average_pooling_3d",
        "Mean over sliding windows of a padded volume.",
        "AvgPool3d",
        VOLUMES,
        kernel_size=3,
        stride=2,
        padding=1,
    ),
)

"""Losses: one number for a batch."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

BATCH = CaseSizes("rows columns", public=(32, 128), hidden=((5, 257), (1, 127), (67, 19)), timing=(4096, 2048))
CLASSES = CaseSizes("rows classes", public=(64, 32), hidden=((37, 10), (1, 257), (129, 5)), timing=(16384, 512))
PAIR = {"predictions": "torch.randn(rows, columns)", "targets": "torch.randn(rows, columns)"}
DISTRIBUTION = "torch.rand(rows, columns).softmax(dim=-1)"


def _loss(
    number: int,
    name: str,
    description: str,
    forward: str,
    inputs: dict[str, str] = PAIR,
    sizes: CaseSizes = BATCH,
    **settings: object,
) -> TaskDefinition:
    return TaskDefinition(
        number, name, "loss", description, sizes, forward, inputs, settings=settings, init=" ".join(settings)
    )


DEFINITIONS = (
    _loss(94, "mse_loss", "Mean of the squared differences.", "torch.mean((predictions - targets) ** 2)"),
    _loss(
        95,
        "cross_entropy_loss",
        "Mean negative logarithm of the softmax of the right class.",
        "F.cross_entropy(predictions, targets)",
        {"predictions": "torch.randn(rows, classes)", "targets": "torch.randint(0, classes, (rows,))"},
        CLASSES,
    ),
    _loss(
        96,
        "huber_loss",
        "Mean of differences, squared where small and absolute where large.",
        "F.smooth_l1_loss(predictions, targets)",
    ),
    _loss(
        98,
        "kl_div_loss",
        "Kullback-Leibler divergence of distributions, mean over the batch.",
        'F.kl_div(torch.log(predictions), targets, reduction="batchmean")',
        {"predictions": DISTRIBUTION, "targets": DISTRIBUTION},
    ),
    _loss(
        99,
        "triplet_margin_loss",
        "Mean margin by which an anchor is nearer to its positive than to its negative.",
        "F.triplet_margin_loss(anchor, positive, negative, margin=self.margin)",
        dict.fromkeys(("anchor", "positive", "negative"), "torch.randn(rows, columns)"),
        margin=1.0,
    ),
    _loss(
        100,
        "hinge_loss",
        "Mean hinge loss of predictions against labels of -1 and 1, one for each row.",
        "torch.mean(torch.clamp(1 - predictions * targets, min=0))",
        {
            "predictions": "torch.randn(rows, columns)",
            "targets": "torch.randint(0, 2, (rows, 1)).float() * 2 - 1",
        },
    ),
)

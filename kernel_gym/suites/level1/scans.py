"""Running sums and products along a row."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

ROWS = CaseSizes("rows columns", public=(32, 128), hidden=((5, 257), (1, 127), (67, 19)), timing=(4096, 1024))
X = {"x": "torch.randn(rows, columns)"}


def _scan(
    number: int, name: str, description: str, forward: str, inputs: dict[str, str] = X, repaired: str = ""
) -> TaskDefinition:
    return TaskDefinition(
        number,
        name,
        "math",
        description,
        ROWS,
        forward,
        inputs,
        settings={"dim": 1},
        init="dim",
        repaired=repaired,
    )


DEFINITIONS = (
    _scan(89, "cumsum", "Running sum of each row.", "torch.cumsum(x, dim=self.dim)"),
    _scan(90, "cumprod", "Running product of each row.", "torch.cumprod(x, dim=self.dim)"),
    _scan(
        91,
        "cumsum_reverse",
        "Running sum of each row from its end.",
        "torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)",
    ),
    _scan(
        92,
        "cumsum_exclusive",
        "Running sum of each row up to but without the element itself.",
        """
        first = torch.zeros_like(x.narrow(self.dim, 0, 1))
        shifted = torch.cat((first, x), dim=self.dim).narrow(self.dim, 0, x.shape[self.dim])
        return torch.cumsum(shifted, dim=self.dim)
        """,
        repaired="the last element of each row is dropped; the original dropped the last row",
    ),
    _scan(
        93,
        "masked_cumsum",
        "Running sum of each row over the elements that a mask marks.",
        "torch.cumsum(x * mask, dim=self.dim)",
        X | {"mask": "torch.randint(0, 2, (rows, columns)).bool()"},
    ),
)

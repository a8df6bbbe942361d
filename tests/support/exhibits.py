"""Tasks that show one idiom each, and kernels in which one idiom is wrong."""

from __future__ import annotations

from functools import cache

from kernel_gym import suites
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST, Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling, idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice, always_right
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

_MODULE = """
import torch
from torch import nn
from torch.nn import functional as F

rows = 32
columns = 100


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""
_SIZES = {"public": (32, 100), "hidden-1": (7, 61), "hidden-2": (1, 257), "timing": (2048, 512)}


def task(name: str, forward: str, layers: str = "pass", hidden: tuple[tuple[int, int], ...] = ()) -> Task:
    """A task on a matrix `x`."""
    sizes = dict(_SIZES) | {f"hidden-{n + 1}": shape for n, shape in enumerate(hidden)}
    cases = tuple(
        Case(label, label.split("-")[0], (("rows", r), ("columns", c)))  # type: ignore[arg-type]
        for label, (r, c) in sizes.items()
    )
    source = _MODULE.format(forward=forward, layers=layers)
    return Task(f"exhibits/{name}", "math", source, cases, f"{name}.")


#: Small tasks that between them need every idiom.
EXHIBITS: tuple[Task, ...] = (
    task("relu", "torch.relu(x)"),
    task("softmax", "torch.softmax(x, dim=1)"),
    task("columns", "torch.softmax(x, dim=0)"),
    task("argmax", "torch.argmax(x, dim=1)"),
    task("argmin", "torch.argmin(x, dim=1)"),
    task("lowest", "torch.min(x, dim=1)[0]"),
    task("gelu", "F.gelu(x) - 0.5"),
    task("elu", "F.elu(x) * 2.0 + torch.clamp(x, -0.5, 0.5)"),
    task("log", "torch.log(torch.abs(x) + 1.0) - 3.0"),
    task("minus", "1.0 - x / 6.0"),
    task("where", "torch.where(x > 0.5, x, x * x)"),
    task("compared", "torch.where(x > torch.abs(x) - 0.5, x, x * x)"),
    task("norm", "(x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-5)"),
    task("transposed", "x.t() + 1.0"),
    task("flipped", "x.flip(1) + 1.0"),
    task("centred", "x - x.mean(0)"),
    task("product", "x @ x.t()", hidden=((130, 61), (1, 257))),
    task("shifted", "x + self.shift", "self.shift = nn.Parameter(torch.randn(rows, 1))"),
    task("layer_norm", "self.norm(x)", "self.norm = nn.LayerNorm(columns)"),
    task("argmax_of_columns", "torch.argmax(x, dim=0)"),
    task("logsumexp", "torch.logsumexp(x, dim=1)"),
    task("running_sum", "torch.cumsum(x, dim=1)"),
    task(
        "masked",
        "torch.softmax(x.masked_fill(torch.arange(x.shape[1]) > torch.arange(x.shape[0])[:, None], -torch.inf), dim=1)",
    ),
    task("rms_norm", "x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6)"),
    task("head_depth", "x * (x.shape[1] / 8) ** -0.5"),
)


def exhibit(idiom: str) -> tuple[Task, Schedule]:
    """A task and a schedule whose kernel needs the idiom."""
    return _needs()[idiom]


@cache
def _needs() -> dict[str, tuple[Task, Schedule]]:
    exhibits: dict[str, tuple[Task, Schedule]] = {}
    larger = [
        suites.find_task(name) for name in ("level1/conv_standard_1d", "level1/79", "level1/27", "level1/layer_norm")
    ]
    pairs = [(EXHIBITS[0], Schedule(vector=False))]
    pairs += [
        (shown, s)
        for shown in (*EXHIBITS, *larger)
        for s in (BEST, Schedule(resident=False, batch=1), Schedule(bursts=False))
    ]
    for shown, schedule in pairs:
        spelling = always_right(idioms())
        write_kernel(lower(shown), schedule, spelling)
        for name in spelling.chosen:
            exhibits.setdefault(name, (shown, schedule))
    return exhibits


def with_mistake(idiom: Idiom, mistake: Spelling) -> tuple[Kernel, Task]:
    """A kernel that is right but for one idiom, and its task."""
    shown, schedule = exhibit(idiom.id)
    spelling = SpellingChoice(idioms(), lambda other: mistake if other.id == idiom.id else other.right)
    return Kernel(write_kernel(lower(shown), schedule, spelling), trusted=True), shown


def without_mistake(idiom: Idiom) -> tuple[Kernel, Task]:
    """The same kernel with everything right."""
    shown, schedule = exhibit(idiom.id)
    return Kernel(write_kernel(lower(shown), schedule, always_right(idioms())), trusted=True), shown

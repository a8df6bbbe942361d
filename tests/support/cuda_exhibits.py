"""Tasks that show one CUDA idiom each, and kernels in which one idiom is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from exhibits import task

from kernel_gym.authors.apprentice import lower
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling, idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice, always_right
from kernel_gym.authors.apprentice.cuda.kernel_file import write_kernel
from kernel_gym.authors.apprentice.cuda.schedule import BEST, NAIVE, CudaSchedule
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task


def _in_type(name: str, dtype: str) -> Task:
    plain = task(name, "torch.relu(x)")
    source = plain.source.replace("torch.randn(rows, columns)", f"torch.randn(rows, columns).to(torch.{dtype})")
    return replace(plain, source=source)


#: Small tasks that between them need every idiom.
EXHIBITS: tuple[Task, ...] = (
    task("relu", "torch.relu(x)"),
    task("lowest_of_rows", "torch.amax(-torch.abs(x) - 1.0, dim=1)"),
    task("softmax", "torch.softmax(x, dim=1)"),
    task("columns", "torch.softmax(x, dim=0)"),
    task("centred", "x - x.mean(0)"),
    task("norm", "(x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-5)"),
    task("product", "x @ x.t()", hidden=((130, 61), (1, 257), (370, 3))),
    task("argmax", "torch.argmax(x, dim=1)"),
    task("where", "torch.where(x > 0.5, x, x * x)"),
    task("sum_of_running_sums", "torch.cumsum(x, dim=1) + torch.cumsum(x, dim=0)"),
    _in_type("half", "float16"),
    _in_type("half_b", "bfloat16"),
    task(
        "masked",
        "torch.softmax(x.masked_fill(torch.arange(x.shape[1]) > torch.arange(x.shape[0])[:, None], -torch.inf), dim=1)",
    ),
    task("head_depth", "x * (x.shape[1] / 8) ** -0.5"),
)
SCHEDULES = (NAIVE, BEST, replace(BEST, tile=16, resident=False, online=True))


@cache
def exhibits() -> dict[str, tuple[Task, CudaSchedule]]:
    """For every idiom a task and a schedule whose kernel needs it."""
    exhibits: dict[str, tuple[Task, CudaSchedule]] = {}
    for shown in EXHIBITS:
        for schedule in SCHEDULES:
            spelling = always_right(idioms("cuda"))
            write_kernel(lower(shown), schedule, spelling)
            for name in spelling.chosen:
                exhibits.setdefault(name, (shown, schedule))
    return exhibits


def with_mistake(idiom: Idiom, mistake: Spelling) -> tuple[Kernel, Task]:
    """A kernel that is right but for one idiom, and its task."""
    shown, schedule = exhibits()[idiom.id]
    spelling = SpellingChoice(idioms("cuda"), lambda other: mistake if other.id == idiom.id else other.right)
    return Kernel(write_kernel(lower(shown), schedule, spelling), "cuda", trusted=True), shown


def without_mistake(idiom: Idiom) -> tuple[Kernel, Task]:
    """The same kernel with everything right."""
    return with_mistake(idiom, idiom.right)

"""The Ascend C schedules: where drafts begin, and for which plans each move changes anything."""

from __future__ import annotations

from dataclasses import replace

from kernel_gym.authors.apprentice.ascendc.nest import near
from kernel_gym.authors.apprentice.ascendc.schedule import BEST, NAIVE, recognised, recorded
from kernel_gym.authors.apprentice.ascendc.short_rows import suits
from kernel_gym.authors.apprentice.behaviour.moves import Move, ScheduleSpace
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Plan, Ref, Stage, Step


def matters(move: Move, plan: Plan) -> bool:
    """Return whether the move changes anything in kernels for this plan."""
    nests = [nest for stage in plan.stages if (nest := _nest(stage)) is not None]
    if move.field == "batch" and any(suits(nest) for nest in nests):
        return True
    if move.field in ("batch", "resident"):
        return any(nest.reductions and nest.vector_reduced and not nest.reduced for nest in nests)
    if move.field == "fused":
        return plan.unfused is not None
    if move.field == "bursts":
        return any(suits(nest) or (nest.vector_reduced and nest.kept) or _loads_near(nest) for nest in nests)
    if move.field == "immediate":
        return any(_takes_number(nest, step) for nest in nests for step in nest.steps)
    if move.field == "vector":
        return any(nest.scalar_possible for nest in nests)
    if move.field == "cube":
        return any(isinstance(stage, Either) and not stage.heavy for stage in plan.stages)
    return True


def _loads_near(nest: Nest) -> bool:
    """Return whether the nest loads elements that lie near each other, but not side by side."""
    return any(near(step.access.step) for step in nest.loads if step.access)


def _takes_number(nest: Nest, step: Step) -> bool:
    """Return whether the step is an instruction on a tensor that takes a number as well."""
    if not step.vector or step.function not in ("add", "sub", "mul", "div", "max", "min", "relu"):
        return False
    vectors = [isinstance(argument, Ref) and nest.steps[argument.step].vector for argument in step.arguments]
    return any(vectors) and (step.function == "relu" or not all(vectors))


def _nest(stage: Stage) -> Nest | None:
    if isinstance(stage, Either):
        return None if stage.heavy else stage.vector
    return stage if isinstance(stage, Nest) else None


#: Drafts begin with loops over single elements; the vector unit is a move.
SCHEDULES = ScheduleSpace("ascendc", replace(NAIVE, vector=False), NAIVE, BEST, recorded, recognised, matters)

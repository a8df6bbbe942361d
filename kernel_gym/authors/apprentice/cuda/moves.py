"""The CUDA schedules: where drafts begin, and for which plans each move changes anything."""

from __future__ import annotations

from kernel_gym.authors.apprentice.behaviour.moves import Move, ScheduleSpace
from kernel_gym.authors.apprentice.cuda import float4
from kernel_gym.authors.apprentice.cuda.schedule import BEST, NAIVE, SHARED_FLOATS, recognised, recorded
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Plan, Scan

#: Functions that have an approximate intrinsic.
_INTRINSIC = frozenset({"exp", "log", "sigmoid"})


def matters(move: Move, plan: Plan) -> bool:
    """Return whether the move changes anything in kernels for this plan."""
    nests = [stage for stage in plan.stages if isinstance(stage, Nest)]
    rows = [nest for nest in nests if nest.reductions and nest.vector_reduced]
    if move.field == "tile":
        return any(isinstance(stage, Either) for stage in plan.stages)
    if move.field == "shuffle":
        return bool(rows) or any(isinstance(stage, Scan) and stage.last for stage in plan.stages)
    if move.field == "resident":
        return any(not nest.reduced and nest.longest <= SHARED_FLOATS for nest in rows)
    if move.field == "stride":
        return len(nests) > len(rows)
    if move.field == "vector":
        return any(float4.suits(nest, BEST) for nest in nests)
    if move.field == "online":
        return any([step.function for step in nest.reductions] == ["max", "sum"] for nest in rows)
    if move.field == "fast":
        return any(step.function in _INTRINSIC for nest in nests for step in nest.steps)
    return True


SCHEDULES = ScheduleSpace("cuda", NAIVE, NAIVE, BEST, recorded, recognised, matters)

"""Shares parts of the workspace among stages that do not need them at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kernel_gym.authors.apprentice.frontend.plan import (
    Access,
    Convolution,
    Either,
    Filters,
    GroupNorm,
    Interleave,
    Lookup,
    Pad,
    Pieces,
    Plan,
    Pooling,
    Product,
    Running,
    Scan,
    Scatter,
    Taps,
    Turned,
    Unsupported,
)


def shared(plan: Plan) -> Plan:
    """Return the plan with parts of the workspace reused for results of the same size, once they were last read."""
    used = [touched(stage) for stage in plan.stages]
    temporary = {buffer.name: buffer.elements for buffer in plan.buffers if buffer.origin == "workspace"}
    spare: list[str] = []
    places: dict[str, str] = {}
    for index, names in enumerate(used):
        fresh = [name for name in temporary if name in names and not any(name in earlier for earlier in used[:index])]
        for name in fresh:
            fitting = next((place for place in spare if temporary[place] == temporary[name]), None)
            places[name] = fitting or name
            if fitting:
                spare.remove(fitting)
        spare += [
            places[name] for name in places if name in names and not any(name in later for later in used[index + 1 :])
        ]
    stages = tuple(renamed(stage, places) for stage in plan.stages)
    buffers = tuple(buffer for buffer in plan.buffers if places.get(buffer.name, buffer.name) == buffer.name)
    return replace(plan, stages=stages, buffers=buffers)


def packed(
    plan: Plan, elements: Mapping[str, int], holds: Callable[[list[list[str]]], bool], snug: bool = False
) -> Plan:
    """Return the plan with parts of the workspace reused for later results of any size, once they were last read.

    `elements` says how many elements a part has at the largest case. A reused part is as large as its largest result.
    `holds` says whether the workspace holds the parts, each given by the results that use it; `Unsupported` is raised
    if it does not. With `snug`, a part that is much larger is left for a later result.
    """
    used = [touched(stage) & elements.keys() for stage in plan.stages]
    last = {name: index for index, names in enumerate(used) for name in names}
    texts = {buffer.name: buffer.elements for buffer in plan.buffers}
    spare: list[str] = []
    places: dict[str, str] = {}
    held: dict[str, int] = {}
    sizes: dict[str, list[str]] = {}
    for index, names in enumerate(used):
        for name in sorted(names - places.keys(), key=lambda item: -elements[item]):
            free = [item for item in spare if not snug or held[item] <= 4 * elements[name]]
            place = min(free, key=lambda item: abs(held[item] - elements[name]), default=name)
            if place in spare:
                spare.remove(place)
            places[name], held[place] = place, max(held.get(place, 0), elements[name])
            sizes[place] = list(dict.fromkeys([*sizes.get(place, []), texts[name]]))
        spare += [places[name] for name in names if last[name] == index]
    if not holds([[name for name in places if places[name] == place] for place in held]):
        raise Unsupported("Unsupported: the workspace does not hold all results of an expert")
    buffers = tuple(
        replace(buffer, elements=_largest(sizes[buffer.name])) if buffer.name in sizes else buffer
        for buffer in plan.buffers
        if places.get(buffer.name, buffer.name) == buffer.name
    )
    return replace(plan, buffers=buffers, stages=tuple(renamed(stage, places) for stage in plan.stages))


def _largest(texts: list[str]) -> str:
    text = texts[0]
    for other in texts[1:]:
        text = f"AtLeast({text}, {other})"
    return text


def touched(stage: Any) -> set[str]:
    """Return the buffers that a stage reads or writes."""
    match stage:
        case Either():
            return touched(stage.vector).union(*(touched(part) for part in stage.cube))
        case Pieces():
            return {name for name, _ in stage.advance}.union(*(touched(part) for part in stage.stages))
        case Product():
            return {stage.left.buffer, stage.right.buffer, stage.target, stage.bias} - {""}
        case Scan() | Interleave() | Filters() | Turned() | Pad():
            return {stage.source, stage.target}
        case Running() | Pooling():
            other = stage.factor if isinstance(stage, Running) else stage.weights
            return {stage.source, stage.target, other} - {""}
        case GroupNorm():
            return {stage.source, stage.weight, stage.bias, stage.target}
        case Taps() | Convolution():
            return {stage.filters, stage.source, stage.target}
        case Lookup():
            return {stage.source, stage.index, stage.target}
        case Scatter():
            return {stage.update, stage.index, stage.target}
    return {step.access.buffer for step in stage.steps if step.access} | {s.access.buffer for s in stage.stores}


def renamed(stage: Any, names: Mapping[str, str]) -> Any:
    """Return the stage with its buffers renamed."""
    if isinstance(stage, Either):
        cube = tuple(renamed(part, names) for part in stage.cube)
        return replace(stage, cube=cube, vector=renamed(stage.vector, names))
    if isinstance(stage, Pieces):
        advance = tuple((names.get(name, name), text) for name, text in stage.advance)
        return replace(stage, advance=advance, stages=tuple(renamed(part, names) for part in stage.stages))
    if isinstance(stage, Product):
        left, right = (replace(m, buffer=names.get(m.buffer, m.buffer)) for m in (stage.left, stage.right))
        target, bias = (names.get(name, name) for name in (stage.target, stage.bias))
        return replace(stage, left=left, right=right, target=target, bias=bias)
    if isinstance(stage, Scan | Interleave | Filters | Turned | Pad):
        source, target = (names.get(name, name) for name in (stage.source, stage.target))
        return replace(stage, source=source, target=target)

    if isinstance(stage, Lookup | Scatter | Taps | Convolution | Running | Pooling | GroupNorm):
        places = ("source", "update", "index", "filters", "factor", "weights", "weight", "bias", "target")
        held = [name for name in places if hasattr(stage, name)]
        return replace(stage, **{name: names.get(getattr(stage, name), getattr(stage, name)) for name in held})

    def access(old: Access) -> Access:
        fresh = names.get(old.buffer, old.buffer)
        return replace(old, buffer=fresh, label=old.label.replace(old.buffer, fresh, 1))

    steps = tuple(replace(step, access=access(step.access)) if step.access else step for step in stage.steps)
    stores = tuple(replace(store, access=access(store.access)) for store in stage.stores)
    return replace(stage, steps=steps, stores=stores)

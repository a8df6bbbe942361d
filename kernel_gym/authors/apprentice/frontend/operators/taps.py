"""Convolutions without gathered windows: products of the filters with shifted rows, one for each row of the window.

A transposed convolution of stride s is s convolutions of stride 1 along each direction, one for each remainder of a
position divided by s. Each has the places of the window with that remainder, so that no zeros are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from itertools import product as combinations
from math import prod

from sympy import expand

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Tensor, Value, contiguous, reorder
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.images import ending, images, most
from kernel_gym.authors.apprentice.frontend.operators.turned import turned
from kernel_gym.authors.apprentice.frontend.plan import Interleave, Nest, Phase, Taps
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, ZERO, Size, c_expression, product, row_major, size

#: The most elements that the unified buffer holds while rows of all phases are put between each other.
ROOM = 44_000


@dataclass(frozen=True)
class Direction:
    """One direction of a convolution.

    A phase holds (place, shift) for each of its places of the window, by growing shift: its position q reads element
    q + shift of the source, which is padded by `before` and `after`. A phase has `more` positions than the source has
    elements. Of all positions, those of the phases between each other, the first `crop` are no results, and there are
    `wider` more results than elements times phases.
    """

    phases: tuple[tuple[tuple[int, int], ...], ...]
    before: int
    after: int
    more: int
    wider: int
    crop: int = 0

    @property
    def places(self) -> int:
        """The places of the window."""
        return sum(map(len, self.phases))

    @property
    def shifts(self) -> list[int]:
        """All shifts of all phases, in order."""
        return sorted({shift for phase in self.phases for _, shift in phase})

    @property
    def even(self) -> bool:
        """True if all shifts are evenly spaced, and the shifts of every phase neighbours among them."""
        shifts = self.shifts
        own = [[shifts.index(shift) for _, shift in phase] for phase in self.phases]
        neighbours = all(each == list(range(each[0], each[0] + len(each))) for each in own if each)
        return neighbours and len({late - early for early, late in pairwise(shifts)}) <= 1


def _along(kernel: int, pad: int, hop: int) -> Direction:
    """Return a direction of a convolution of stride 1."""
    more = 2 * pad - hop * (kernel - 1)
    return Direction((tuple((place, place * hop) for place in range(kernel)),), pad, pad, more, more)


def _against(kernel: int, stride: int, pad: int, hop: int, extra: int) -> Direction:
    """Return a direction of a transposed convolution. A phase without places is zero."""
    reach = hop * (kernel - 1)
    last, more = reach // stride, (reach + extra - pad) // stride
    phases = [
        [(place, last - place * hop // stride) for place in reversed(range(kernel)) if place * hop % stride == rest]
        for rest in range(stride)
    ]
    wider = reach + extra + 1 - stride - 2 * pad
    return Direction(tuple(map(tuple, phases)), last, max(0, more), more, wider, pad)


def tapped(
    plan: PlanBuilder,
    x: Value,
    weight: Tensor,
    transposed: bool,
    settings: Sequence[tuple[int, int, int, int]],
) -> Tensor | None:
    """Add the stages of a convolution; return its result, or None if it cannot be computed by taps.

    `settings` has stride, padding, dilation and output padding for each direction.
    """
    kernel = [literal(plan, extent) for extent in weight.shape[2:]]
    directions = []
    for k, (stride, pad, hop, extra) in zip(kernel, settings, strict=True):
        if k is None or (stride != 1 and not transposed):
            return None
        directions.append(_against(k, stride, pad, hop, extra) if transposed else _along(k, pad, hop))
    if not all(direction.even for direction in directions) or not _fits(plan, x, directions[-1]):
        return None
    order = (1, 0) if transposed else (0, 1)
    if weight.contiguous:  # with strides that are numbers, so that near elements are loaded together
        weight = contiguous(weight.buffer, (*weight.shape[:2], *(size(k) for k in kernel if k)), weight.dtype)
    filters = reorder(weight, (*order, *range(2, len(weight.shape))))
    assert isinstance(filters, Tensor)
    return _Convolution(plan, x, filters, directions, weight if transposed else None).result()


def literal(plan: PlanBuilder, extent: Size) -> int | None:
    """Return a size that is the same at every case; None if it is not."""
    values = {plan.sizes.value(extent), *(plan.sizes.value_at(extent, at) for at in plan.dimensions_at)}
    return values.pop() if len(values) == 1 else None


def _fits(plan: PlanBuilder, x: Value, row: Direction) -> bool:
    """Return whether a row of every phase fits on chip at every case, where there are several."""
    widths = [plan.sizes.value_at(x.shape[-1], at) for at in plan.dimensions_at]
    longest = max([plan.sizes.value(x.shape[-1]), *widths]) + row.before + row.after
    return len(row.phases) == 1 or 5 * len(row.phases) * (longest + 8) <= ROOM


class _Convolution:
    """A convolution under construction. `filters` is (out, in, places), `turned` a transposed one's (in, out, places).

    A window that begins at the end of a row runs on into the next one. Such windows are computed and never read, so
    that all windows of a sample are neighbours in memory.
    """

    def __init__(
        self, plan: PlanBuilder, x: Value, filters: Tensor, directions: Sequence[Direction], turned: Tensor | None
    ) -> None:
        self.plan, self.filters, self.directions, self.turned = plan, filters, directions, turned
        self.outputs, self.inputs = filters.shape[:2]
        self.extents = x.shape[2:]
        befores, afters = [d.before for d in directions], [size(d.after) for d in directions]
        short = expand(x.shape[-1] + befores[-1] + afters[-1])
        whole = ending(x.shape[-1] + befores[-1], afters[-1])
        # Lines of whole blocks are written faster, but all products are longer by what is added.
        if any(befores) and 4 * most(plan, expand(whole - afters[-1])) <= most(plan, short):
            afters[-1] = whole
        self.source = images(plan, x, befores, afters, directions[-1].shifts)
        self.batch, _, _, *extents = self.source.shape
        self.volume, self.steps = product(extents), row_major(extents)
        self.counts = [expand(extent + d.more) for extent, d in zip(self.extents, directions, strict=True)]

    def result(self) -> Tensor:
        """Add the stages and return the result, a part of a larger tensor."""
        plan, row = self.plan, self.directions[-1]
        columns = sum(((n - 1) * step for n, step in zip(self.counts, self.steps, strict=True)), ONE)
        filters, begins = self._arranged()
        phases = tuple(self._phases(begins))
        target = plan.scratch((size(len(phases)), self.batch, self.outputs, self.volume))
        if not all(phase.taps for phase in phases):
            plan.computed(Broadcast(target.shape, "float32", 0.0), target)
        sizes = (self.batch, self.outputs, columns, len(row.shifts) * self.inputs, self.volume)
        batch, m, n, depth, pitch = (c_expression(expand(extent)) for extent in sizes)
        buffers = (filters.buffer, self.source.buffer, target.buffer)
        plan.add(Taps("", *buffers, batch, m, n, depth, pitch, phases), IterationSpace(columns))
        if len(phases) == 1:
            part = self._part(target.buffer, (self.outputs * self.volume, self.volume, *self.steps))
            return plan.tensor(plan.copied(part)) if plan.compact else part
        return self._interleaved(target)

    def _arranged(self) -> tuple[Tensor, list[Size]]:
        """Add stages that arrange the filters; return them, and where those of each phase along a row begin.

        The filters of a phase are (places but those along a row, out, places along a row, in).
        """
        *outer, row = self.directions
        step_out, step_in, *steps = self.filters.strides
        lead = tuple(size(direction.places) for direction in outer)
        lengths = [len(phase) * prod(direction.places for direction in outer) for phase in row.phases]
        known = None if self.turned is None else turned(self.plan, self.turned, self._groups())
        if known is not None:
            return known, [sum(lengths[:n]) * self.outputs * self.inputs for n in range(len(lengths))]
        dense = self.plan.scratch((*lead, self.outputs, size(row.places), self.inputs))
        begins, begin = list[Size](), ZERO
        for phase in row.phases:
            begins.append(begin)
            if not phase:
                continue
            places = [place for place, _ in phase]
            shape = (*lead, self.outputs, size(len(places)), self.inputs)
            walk = (*steps[:-1], step_out, (places[-1] - places[0]) // max(1, len(places) - 1) * steps[-1], step_in)
            offset = expand(self.filters.offset + places[0] * steps[-1])
            view = Tensor(shape, self.filters.dtype, self.filters.buffer, walk, offset)
            part = Tensor(shape, "float32", dense.buffer, row_major(shape), expand(begin))
            self.plan.computed(self.plan.copied(view), part)
            stage = self.plan.stages[-1]
            if isinstance(stage, Nest):
                self.plan.stages[-1] = replace(stage, apart=True)
            begin += product(shape)
        return dense, begins

    def _groups(self) -> list[tuple[int, ...]]:
        """Return the places, in order, of each phase along a row and place across it."""
        *outer, row = self.directions
        across = prod(direction.places for direction in outer)
        return [
            tuple(number * row.places + place for place, _ in phase)
            for phase in row.phases
            if phase
            for number in range(across)
        ]

    def _phases(self, begins: Sequence[Size]) -> Iterator[Phase]:
        """Yield the phases, those along a row fastest."""
        *outer, row = self.directions
        for chosen in combinations(*(direction.phases for direction in outer)):
            for along, begin in zip(row.phases, begins, strict=True):
                k = len(along) * self.inputs
                first = row.shifts.index(along[0][1]) * self.inputs * self.volume if along else ZERO
                taps = list[tuple[str, str]]()
                for places in combinations(*chosen) if along else ():
                    number = 0
                    for (place, _), direction in zip(places, outer, strict=True):
                        number = number * direction.places + place
                    later = sum((shift * step for (_, shift), step in zip(places, self.steps, strict=False)), first)
                    begins_at = begin + number * self.outputs * k
                    taps.append((c_expression(expand(begins_at)), c_expression(expand(later))))
                yield Phase(c_expression(expand(k)), tuple(taps))

    def _interleaved(self, phases: Tensor) -> Tensor:
        """Add the stage that puts phases between each other; return its result."""
        whole = self.plan.scratch((self.batch, self.outputs, *self._extents()))
        results, missing = self.batch * self.outputs, 3 - len(self.directions)
        counts, extents = [*self.counts], [*whole.shape[2:]]
        pitches, places = [self.volume, *self.steps[:-1]], [*whole.strides[1:-1]]
        if missing == 2:  # the lines of one dimension are those of one result
            counts, extents, missing, results = [results, *counts], [results, *extents], 1, ONE
            pitches, places = [ZERO, self.volume], [ZERO, *places]
        alone = [ONE] * missing
        pitches, places = ([each[0], *[ZERO] * missing, *each[1:]] for each in (pitches, places))

        def texts(sizes: Sequence[Size]) -> tuple[str, ...]:
            return tuple(c_expression(expand(extent)) for extent in sizes)

        stage = Interleave(
            "",
            phases.buffer,
            whole.buffer,
            c_expression(expand(results)),
            (*(1,) * (3 - len(self.directions)), *(len(direction.phases) for direction in self.directions)),
            (*(0,) * (3 - len(self.directions)), *(direction.crop for direction in self.directions)),
            texts([*alone, *counts]),
            texts([*alone, *extents]),
            texts([self.batch * self.outputs * self.volume, *pitches]),
            texts(places),
        )
        self.plan.add(stage, IterationSpace(extents[-1]))
        return whole

    def _extents(self) -> list[Size]:
        """Return the number of results along each direction."""
        extents = [expand(n * len(d.phases) + d.wider) for n, d in zip(self.extents, self.directions, strict=True)]
        sizes = self.plan.sizes
        return [sizes.derive(f"windows{len(sizes.derived)}", n) if n.is_Add else n for n in extents]

    def _part(self, buffer: str, strides: tuple[Size, ...]) -> Tensor:
        """Return the results without positions that are none."""
        offset = sum((d.crop * step for d, step in zip(self.directions, strides[2:], strict=True)), ZERO)
        return Tensor((self.batch, self.outputs, *self._extents()), "float32", buffer, strides, expand(offset))

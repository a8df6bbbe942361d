"""The plan of a kernel: stages, one launch each, with every size as host arithmetic in C.

A plan says what is computed, in loop nests, products and scans. It does not say how: the schedule chooses cores and
tiles, and the spelling choice the idioms.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.authors.apprentice.frontend.expression import Reduction
from kernel_gym.errors import KernelGymError


class Unsupported(KernelGymError):
    """Raised for a task that has no plan: an operator, or a use of one, that the apprentice cannot lower."""


@dataclass(frozen=True)
class Buffer:
    """A region of global memory: the n-th input or output, or a part of the workspace."""

    name: str
    dtype: str
    origin: str
    index: int
    elements: str
    rank: int = 0


@dataclass(frozen=True)
class Access:
    """How a loop nest walks a buffer: a stride for each loop, in elements, as arithmetic over fields of the tiling.

    `kept` has the strides of the loops whose index remains in the result and `reduced` those of the reduced loops.
    `step` is the stride of the vector dimension (`0`: the same element throughout, `1`: contiguous). If `flat`, the
    kept loops walk the buffer as a single loop would.
    """

    buffer: str
    dtype: str
    kept: tuple[str, ...]
    reduced: tuple[str, ...]
    step: str
    offset: str = "0"
    flat: bool = False
    #: The name of the access in the kernel: the buffer's name, numbered if it is walked in several ways.
    label: str = ""


@dataclass(frozen=True)
class Ref:
    """A reference to the result of an earlier step."""

    step: int


@dataclass(frozen=True)
class Step:
    """One operation in the body of a loop nest.

    `vector` is true if it has a value for each element along the vector dimension, `inside` if it has a value for each
    reduced index. `level` is the number of reductions that must be complete before it can be computed.
    """

    function: str
    arguments: tuple[Ref | float, ...] = ()
    access: Access | None = None
    reduction: Reduction | None = None
    idiom: str = ""
    vector: bool = True
    inside: bool = False
    level: int = 0
    boolean: bool = False
    #: For a step that is a run-time size: the field that holds it.
    field: str = ""
    #: For a step that is a position along an axis: the strides and the offset that give the number.
    index: Access | None = None


@dataclass(frozen=True)
class Store:
    """Writes a step's result to global memory."""

    step: int
    access: Access


#: A scalar loop over more elements than this exceeds the device's limit of instructions.
SCALAR_ELEMENTS = 5_000_000
#: Functions that the scalar unit can compute, element by element.
SCALAR_FUNCTIONS = frozenset({"add", "sub", "mul", "div", "max", "min", "relu", "neg", "leaky_relu", "abs", "same"})


@dataclass(frozen=True)
class Nest:
    """A fused loop nest: maps and reductions over kept loops, reduced loops and one vector dimension.

    If `vector_reduced`, a reduction runs along the vector dimension and its result is one number per row; otherwise
    reductions run over the `reduced` loops and their result is a vector.
    """

    name: str
    #: Fields of the tiling by name, with the host expression of each.
    fields: tuple[tuple[str, str], ...]
    #: Names of the fields that hold the sizes of the loops.
    kept: tuple[str, ...]
    reduced: tuple[str, ...]
    vector: str
    vector_reduced: bool
    steps: tuple[Step, ...]
    stores: tuple[Store, ...]
    #: The longest vector dimension and the most elements at any case of the task, and the longest vector dimension
    #: where one size of the task is large and the others are small.
    longest: int = 0
    elements: int = 0
    longest_at_edges: int = 0
    #: True if no other stage writes where this one does.
    apart: bool = False

    @property
    def longest_anywhere(self) -> int:
        """The longest vector dimension, at the task's cases and at edges."""
        return max(self.longest, self.longest_at_edges)

    @property
    def reductions(self) -> tuple[Step, ...]:
        """The steps that reduce."""
        return tuple(step for step in self.steps if step.reduction)

    @property
    def scalar_possible(self) -> bool:
        """True if a scalar loop could compute the nest: few elements, and no function that only the vector unit has."""
        if self.elements > SCALAR_ELEMENTS:
            return False
        simple = all(step.access or step.field or step.function in SCALAR_FUNCTIONS for step in self.steps)
        return simple and not self.reductions and all(step.access.step in "01" for step in self.steps if step.access)

    @property
    def rows_join(self) -> bool:
        """True if the results of neighbouring rows are neighbours in memory, so that they are written together."""
        store = self.stores[0]
        pitches = (f"t.{self.vector}", dict(self.fields)[self.vector]) if self.steps[store.step].inside else ("1",)
        return store.access.flat and (not store.access.kept or store.access.kept[-1] in pitches)

    @property
    def loads(self) -> tuple[Step, ...]:
        """The steps that read global memory."""
        return tuple(step for step in self.steps if step.access)


@dataclass(frozen=True)
class Scan:
    """A running sum or product along an axis of a contiguous tensor, viewed as (rows, axis, length).

    If the axis is the `last` one, there is no `length`, and `fields` has only `rows` and `axis`.
    """

    name: str
    function: str
    fields: tuple[tuple[str, str], ...]
    source: str
    target: str
    last: bool
    longest: int = 0


@dataclass(frozen=True)
class Running:
    """A running sum or product along rows of a contiguous tensor; only an expert writes it.

    It runs `backwards` from the ends of rows, is `exclusive` if a result leaves its own element out, and is of the
    products with a `factor` of the same shape if there is one.
    """

    name: str
    function: str
    source: str
    target: str
    rows: str
    axis: str
    backwards: bool = False
    exclusive: bool = False
    factor: str = ""
    factor_dtype: str = ""
    longest: int = 0


@dataclass(frozen=True)
class Lookup:
    """Picks entries along an axis: `target[row, j] = source[row, index[row, j]]`, with entries of `length` elements.

    `fields` has `rows`, `count` (indices of a row), `axis` and `length`, and `indexRows`, which is 1 if all rows use
    the same indices. Indices are whole numbers held as floats. If an entry is a `single` element, there is no `length`.
    Single elements of several rows are picked together if the rows use the same indices and are `short` at all cases.
    """

    name: str
    fields: tuple[tuple[str, str], ...]
    source: str
    index: str
    target: str
    single: bool
    short: bool = False
    longest: int = 0


@dataclass(frozen=True)
class Scatter:
    """Writes entries along an axis, or adds to them: `target[row, index[row, j]] = update[row, j]`, in the order of j.

    The fields are those of `Lookup`. The target holds its former entries before the stage begins.
    """

    name: str
    fields: tuple[tuple[str, str], ...]
    update: str
    index: str
    target: str
    single: bool
    adds: bool
    longest: int = 0


@dataclass(frozen=True)
class Matrix:
    """An operand of a product: `count` matrices, `step` elements apart; columns are contiguous if `transposed`."""

    buffer: str
    transposed: bool
    count: str
    step: str


@dataclass(frozen=True)
class Product:
    """`batch` products of matrices (m, k) and (k, n) on the cube unit; result rows are `pitch` elements apart."""

    name: str
    left: Matrix
    right: Matrix
    target: str
    batch: str
    m: str
    n: str
    k: str
    pitch: str = ""
    #: Elements from one result matrix to the next; m * n if empty.
    step: str = ""
    longest: int = 0
    #: True if loads take longer than products; only an expert looks.
    deep: bool = False
    #: True if sums are so long that several cores share each: parts are added to the target, which holds zeros before.
    split: bool = False
    #: The buffer of the numbers that are added to the columns of the result, if any.
    bias: str = ""


@dataclass(frozen=True)
class Phase:
    """A part of a convolution: products over `k` rows of the source, of which the results are added up.

    `taps` holds for each product the first element of its filters and of its columns.
    """

    k: str
    taps: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Taps:
    """A convolution as sums of products on the cube unit, without gathered windows.

    The source holds `depth` rows of `pitch` elements for each of `batch` samples: every channel, shifted by each place
    along a row of the window. A product multiplies filters (m, k) by `n` columns of k such rows. A transposed
    convolution has a phase for each remainder of the positions divided by the strides.
    """

    name: str
    filters: str
    source: str
    target: str
    batch: str
    m: str
    n: str
    depth: str
    pitch: str
    phases: tuple[Phase, ...]
    longest: int = 0


@dataclass(frozen=True)
class Interleave:
    """Puts the phases of a transposed convolution between each other.

    Each of `count` results has planes of lines of elements. `strides` has the number of phases along each of these
    three directions, `crops` how many of the positions come before the first result, and `extents` the results.
    `lengths` has the positions of a phase. Parts of the source follow each other at `pitches` (phase, result, plane,
    line), those of the target at `places` (result, plane, line).
    """

    name: str
    source: str
    target: str
    count: str
    strides: tuple[int, ...]
    crops: tuple[int, ...]
    lengths: tuple[str, ...]
    extents: tuple[str, ...]
    pitches: tuple[str, ...]
    places: tuple[str, ...]
    longest: int = 0


@dataclass(frozen=True)
class Filters:
    """Arranges filters (outputs, inputs, places) as (outputs, places, inputs)."""

    name: str
    source: str
    target: str
    outputs: str
    inputs: str
    places: int
    longest: int = 0


@dataclass(frozen=True)
class Turned:
    """Arranges filters (inputs, outputs, places) as (outputs, places of the group, inputs), group by group."""

    name: str
    source: str
    target: str
    outputs: str
    inputs: str
    groups: tuple[tuple[int, ...], ...]
    longest: int = 0


@dataclass(frozen=True)
class Pad:
    """Pads images (batch, channels, `extents`) with zeros to (batch, copies, channels, `padded`).

    There is a copy for each of `shifts`, which are evenly spaced. Its lines lack that many of their first elements,
    zeros among them, and have zeros or elements of no meaning at their ends. `before` zeros come first along each
    direction.
    """

    name: str
    source: str
    target: str
    batch: str
    channels: str
    extents: tuple[str, ...]
    padded: tuple[str, ...]
    before: tuple[int, ...]
    shifts: tuple[int, ...] = (0,)
    longest: int = 0
    #: The most elements of the target at any case of the task.
    elements: int = 0


@dataclass(frozen=True)
class Convolution:
    """A convolution of stride 1 without padding, on cube cores alone.

    The source is (batch, inputs, `extents`), the target (batch, outputs, `results`), the filters are (outputs, inputs,
    places), or (outputs, places, inputs) if they are `arranged`. Extents, results, the places of the window and their
    distances are those of planes, lines and columns.
    """

    name: str
    filters: str
    source: str
    target: str
    batch: str
    inputs: str
    outputs: str
    extents: tuple[str, ...]
    results: tuple[str, ...]
    window: tuple[int, ...]
    hops: tuple[int, ...]
    arranged: bool
    longest: int = 0


@dataclass(frozen=True)
class GroupNorm:
    """Normalises `rows` groups of `axis` channels of `length` elements, `groups` of them in a sample."""

    name: str
    source: str
    weight: str
    bias: str
    target: str
    rows: str
    axis: str
    length: str
    groups: int
    epsilon: float
    longest: int = 0


@dataclass(frozen=True)
class Pooling:
    """The largest elements, or sums times `scale`, of windows that slide over `count` images.

    Extents, results, the places of a window, their distances, the strides and what comes `before` an image are those of
    planes, lines and columns.
    """

    name: str
    function: str
    source: str
    target: str
    count: str
    extents: tuple[str, ...]
    results: tuple[str, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    hops: tuple[int, ...]
    before: tuple[int, ...]
    scale: float = 1.0
    #: For sums of elements times weights of their places: the weights of each of `channels` neighbouring images.
    weights: str = ""
    channels: str = ""
    longest: int = 0


@dataclass(frozen=True)
class Pieces:
    """Stages that the host repeats, for pieces of a batch that the workspace cannot hold whole or for steps.

    `loops` holds (variable, end, step) of the host's loops. `inside` holds the variables that are computed in the
    innermost one. `advance` says by how many elements each buffer's address moves.
    """

    name: str
    loops: tuple[tuple[str, str, str], ...]
    inside: tuple[tuple[str, str], ...]
    advance: tuple[tuple[str, str], ...]
    stages: tuple[Nest | Product, ...]
    longest: int = 0
    #: What its nests do, as a part of their names.
    role: str = "Windows"


@dataclass(frozen=True)
class Either:
    """Two ways to compute the same result: on the cube unit, or by vector instructions."""

    name: str
    cube: tuple[Product | Pieces, ...]
    vector: Nest
    longest: int = 0
    #: True if vector instructions would be too many at some case of the task.
    heavy: bool = False


#: A stage that is one launch.
Launch = Nest | Scan | Lookup | Scatter | Product
#: A stage that only an expert writes.
ExpertLaunch = Taps | Interleave | Filters | Turned | Pad | Convolution | Running | Pooling | GroupNorm
Stage = Launch | ExpertLaunch | Pieces | Either


def work_condition(stage: Launch | ExpertLaunch) -> str:
    """Return the host's condition that a stage has work to do; empty if it always has.

    All but one element of a dimension are none where the dimension is 1.
    """
    match stage:
        case Nest():
            loops = (*stage.kept, *stage.reduced, stage.vector)
            extents = [text for name, text in stage.fields if name in loops]
        case Product():
            extents = [stage.batch, stage.m, stage.n, stage.k]
        case Running():
            extents = [stage.rows, stage.axis]
        case Taps() | Interleave() | Filters() | Turned() | Pad() | Convolution() | Pooling() | GroupNorm():
            extents = []  # a window that does not fit anywhere is no task
        case _:
            extents = [text for _, text in stage.fields]
    differences = dict.fromkeys(text for text in extents if " - " in text)
    return " && ".join(f"{text} > 0" for text in differences)


@dataclass(frozen=True)
class Plan:
    """What a kernel for a task computes: its buffers and its stages, in order."""

    name: str
    title: str
    buffers: tuple[Buffer, ...]
    #: Variables that the host computes first: name and expression.
    derived: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    #: The same plan with a launch for every operator of the graph; None if fusion changes nothing.
    unfused: Plan | None = None
    #: How many times the host does all stages, each time for a part of the samples, and the buffers that have samples.
    rounds: int = 1
    batched: tuple[str, ...] = ()

    def buffer(self, name: str) -> Buffer:
        """Return the buffer with this name."""
        return next(buffer for buffer in self.buffers if buffer.name == name)

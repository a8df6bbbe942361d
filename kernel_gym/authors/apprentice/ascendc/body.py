"""Writes the steps of a loop nest as vector instructions on local tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter, literal
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Ref, Step

#: Functions of one tensor that are one instruction.
_UNARY = {"exp": "Exp", "abs": "Abs", "sqrt": "Sqrt", "relu": "Relu"}
#: Functions of one tensor from the library, which use the memory that InitBuffer leaves free.
LIBRARY = {
    "tanh": "Tanh",
    "erf": "Erf",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "cos": "Cos",
    "floor": "Floor",
    "ceil": "Ceil",
    "sign": "Sign",
    "round": "Round",
    "trunc": "Trunc",
}
#: Functions of two tensors from the library.
LIBRARY_OF_TWO = {"fmod": "Fmod"}
#: Functions that round to whole numbers.
ROUNDING = frozenset({"floor", "ceil", "round", "trunc"})
#: Functions that round to an element type.
NARROW = {"as_float16": "half", "as_bfloat16": "bfloat16_t"}
#: Functions of two tensors that are one instruction.
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min"}
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_SIGNS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}
_MODES = {"gt": "GT", "lt": "LT", "ge": "GE", "le": "LE", "eq": "EQ", "ne": "NE"}


#: Functions that are computed through a bit mask.
COMPARING = frozenset({*_MODES, "where"})


@dataclass(frozen=True)
class Operand:
    """A value in C: a local tensor's name, or an expression of type float."""

    text: str
    vector: bool


@dataclass
class Body:
    """Writes steps and assigns every vector a place: a work tensor, or the output's own tensor.

    A place is free again after the last step that reads it.
    """

    spelling: SpellingChoice
    nest: Nest
    code: CodeWriter
    #: How many elements instructions work on, and how many of them belong to the tensor.
    count: str
    exact: str = ""
    values: dict[int, Operand] = field(default_factory=dict)
    free: list[str] = field(default_factory=list)
    #: How many work tensors there are.
    work_count: int = 0
    prefix: str = "work"
    named: dict[str, int] = field(default_factory=dict)
    by_vector: bool = False
    lent: set[str] = field(default_factory=set)
    #: False: numbers fill a tensor before they are used.
    immediate: bool = True
    #: Called for steps that reduce; the kind of nest decides where the result goes.
    reduce: Callable[[int], None] | None = None
    #: Called for steps that are positions along an axis; returns the number as C.
    position: Callable[[Access], str] | None = None

    def run(self, steps: Sequence[int], keep: Sequence[int] = (), homes: dict[int, str] | None = None) -> None:
        """Write `steps` in order. Values in `keep` stay live; `homes` says which tensor a result must end up in."""
        homes = homes or {}
        last = self._last_uses(steps, keep)
        # The tensor that the last step fills can serve as a work tensor until then.
        lent = homes.get(steps[-1]) if steps and not keep else None
        if lent:
            self.free.append(lent)
            self.lent.add(lent)
        for position, index in enumerate(steps):
            if lent and index == steps[-1] and lent in self.free:
                self.free.remove(lent)
            if index not in self.values:
                dying = [used for used in last if last[used] == position]
                self._write(index, dying, homes, position, last)
            self._release(position, last, homes, index)

    def _last_uses(self, steps: Sequence[int], keep: Sequence[int]) -> dict[int, int]:
        last: dict[int, int] = {}
        for position, index in enumerate(steps):
            last.setdefault(index, position)
            for argument in self.nest.steps[index].arguments:
                if isinstance(argument, Ref):
                    last[argument.step] = position
        return {index: position for index, position in last.items() if index not in keep}

    def _release(self, position: int, last: dict[int, int], homes: dict[int, str], current: int) -> None:
        """Free the places of values that were read for the last time, except the one that the result has taken over."""
        taken = self.values[current].text if last.get(current, position + 1) > position else ""
        for index, end in last.items():
            operand = self.values.get(index)
            if end != position or operand is None or not operand.vector or index in homes:
                continue
            if self._is_place(operand.text) and operand.text != taken and operand.text not in self.free:
                self.free.append(operand.text)

    def _is_place(self, name: str) -> bool:
        return name.startswith(self.prefix) or name in self.lent

    def place(self) -> str:
        """Return a free work tensor; add one if there is none."""
        if self.free:
            return self.free.pop()
        self.work_count += 1
        return f"{self.prefix}{self.work_count - 1}"

    def commit(self, keep: set[int]) -> None:
        """Forget all values except those in `keep` and free their places, at the end of a loop over tiles."""
        self.values = {index: value for index, value in self.values.items() if index in keep}
        held = {value.text for value in self.values.values()}
        self.free = [name for n in range(self.work_count) if (name := f"{self.prefix}{n}") not in held]

    def operand(self, argument: Ref | float) -> Operand:
        """Return an argument as C."""
        if isinstance(argument, Ref):
            return self.values[argument.step]
        return Operand(literal(float(argument)), False)

    def _write(self, index: int, dying: list[int], homes: dict[int, str], position: int, last: dict[int, int]) -> None:
        step = self.nest.steps[index]
        if step.reduction:
            assert self.reduce is not None
            self.reduce(index)
            return
        if step.idiom and step.function != "size" and not self.spelling.right(step.idiom):
            first = step.arguments[0]
            if isinstance(first, Ref) and index not in homes:
                self.values[index] = self.values[first.step]
                last[first.step] = max(last.get(first.step, -1), last.pop(index, position))
                return
        if step.index:
            self._place_number(index, step.index, step.vector, homes)
            return
        if step.field:
            self.values[index] = Operand(
                self.number(self.spelling.spell("cast.unsigned", number=f"t.{step.field}")), False
            )
            return
        operands = [self.operand(argument) for argument in step.arguments]
        if not any(operand.vector for operand in operands) and index not in homes:
            self.values[index] = Operand(self._scalar(step, operands), False)
            return
        home = homes.get(index) or self._inherit(dying) or self.place()
        if any(operand.vector for operand in operands):
            self._vector(step, home, operands, index)
        else:  # the same number for all elements
            number = self._scalar(step, operands)
            self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value=number, n=self.count))
        self.values[index] = Operand(home, True)

    def _place_number(self, index: int, access: Access, vector: bool, homes: dict[int, str]) -> None:
        """Write a position along an axis, as a number or as a vector of numbers."""
        assert self.position is not None
        number = self.position(access)
        first = literal(float(number)) if number.isdigit() else self.spelling.spell("cast.unsigned", number=number)
        if not vector:
            self.values[index] = Operand(self.number(first), False)
            return
        home = homes.get(index) or self.place()
        self.code.add(f"AscendC::ArithProgression({home}, {first}, {literal(float(access.step))}, {self.count});")
        self.values[index] = Operand(home, True)

    def _inherit(self, dying: list[int]) -> str | None:
        """Return the place of an operand that is read here for the last time; instructions may work in place."""
        for index in dying:
            operand = self.values.get(index)
            if operand and operand.vector and self._is_place(operand.text) and operand.text not in self.free:
                return operand.text
        return None

    def number(self, expression: str, name: str = "value") -> str:
        """Write a local float that holds an expression, and return its name, numbered if the name is taken."""
        taken = self.named.get(name, 0)
        self.named[name] = taken + 1
        fresh = f"{name}{taken}" if taken or name == "value" else name
        self.code.add(f"const float {fresh} = {expression};")
        return fresh

    # ---- scalars -----------------------------------------------------------------------------------------------

    def _scalar(self, step: Step, operands: list[Operand]) -> str:
        texts = [operand.text for operand in operands]
        if step.function in ("constant", "same"):
            return texts[0]
        if step.function in _OPERATORS:
            return self.number(f"{texts[0]} {_OPERATORS[step.function]} {texts[1]}")
        if step.function in ("max", "min"):
            return self.number(f"{'Larger' if step.function == 'max' else 'Smaller'}({texts[0]}, {texts[1]})")
        if step.function == "relu":
            return self.number(f"{texts[0]} > 0.0f ? {texts[0]} : 0.0f")
        if step.function == "leaky_relu":
            return self.number(f"{texts[0]} > 0.0f ? {texts[0]} : {texts[0]} * {texts[1]}")
        if step.function == "abs":
            return self.number(f"{texts[0]} > 0.0f ? {texts[0]} : -{texts[0]}")
        if step.function == "neg":
            return self.number(f"-{texts[0]}")
        if step.function in _SIGNS:
            return self.number(f"{texts[0]} {_SIGNS[step.function]} {texts[1]} ? 1.0f : 0.0f")
        if step.function == "where":
            return self.number(f"{texts[0]} != 0.0f ? {texts[1]} : {texts[2]}")
        if step.function == "sqrt":
            return self.number(self.spelling.spell("scalar.sqrt", value=texts[0]))
        if step.function == "rsqrt":
            return self.number(f"1.0f / {self.number(self.spelling.spell('scalar.sqrt', value=texts[0]))}")
        if step.function == "reciprocal":
            return self.number(f"1.0f / {texts[0]}")
        instruction = {**_UNARY, **LIBRARY, "log": "Log"}.get(step.function)
        if instruction and not self.spelling.right("scalar.function"):
            fields = {"function": step.function, "instruction": instruction, "value": texts[0]}
            return self.number(self.spelling.spell("scalar.function", **fields))
        # The scalar unit cannot compute this, so the vector unit does, on one block.
        self.by_vector = True
        self.code.add(self.spelling.spell("tensor.duplicate", dst="stat", value=texts[0], n="8"))
        inner = Body(self.spelling, self.nest, self.code, "8", "8", prefix="stat")
        inner._vector(step, "stat", [Operand("stat", True), *operands[1:]], -1)
        return self.number(self.spelling.spell("local.element", tensor="stat", index="0"))

    # ---- vectors -----------------------------------------------------------------------------------------------

    def _vector(self, step: Step, dst: str, operands: list[Operand], index: int) -> None:
        spell, add, n = self.spelling.spell, self.code.add, self.count
        name, texts = step.function, [operand.text for operand in operands]
        kinds = "".join("V" if operand.vector else "S" for operand in operands)
        if name == "relu" and not self.immediate:
            self._binary("max", dst, [operands[0], Operand("0.0f", False)], "VS")
        elif name in _UNARY:
            add(f"AscendC::{_UNARY[name]}({dst}, {texts[0]}, {n});")
        elif name in LIBRARY:
            add(spell("math.library", function=LIBRARY[name], dst=dst, src=texts[0], n=n))
        elif name in NARROW:
            self._narrowed(dst, texts[0], NARROW[name])
        elif name == "log":
            add(spell("math.ln", dst=dst, src=texts[0], n=n))
        elif name == "neg":
            add(spell("math.negate", dst=dst, src=texts[0], n=n))
        elif name == "reciprocal":
            self._divide(dst, Operand("1.0f", False), operands[0])
        elif name == "rsqrt":
            add(f"AscendC::Sqrt({dst}, {texts[0]}, {n});")
            self._divide(dst, Operand("1.0f", False), Operand(dst, True))
        elif name == "leaky_relu":
            add(f"AscendC::LeakyRelu({dst}, {texts[0]}, {texts[1]}, {n});")
        elif name in ("constant", "same"):
            add(
                spell("tensor.duplicate", dst=dst, value=texts[0], n=n)
                if kinds == "S"
                else spell("tensor.copy", dst=dst, src=texts[0], n=n)
            )
        elif name in _MODES:
            self._compare(step, dst, operands)
        elif name == "where":
            self._where(dst, operands)
        elif name == "div" and kinds == "VS" and self._is_rounded(index):
            self._filled(name, dst, operands)
        elif name in BINARY:
            self._binary(name, dst, operands, kinds)
        elif name in LIBRARY_OF_TWO:
            left, right = (operand if operand.vector else self.repeated(operand) for operand in operands)
            add(f"AscendC::{LIBRARY_OF_TWO[name]}({dst}, {left.text}, {right.text}, {n});")
        elif name == "bitwise_and":
            self._bitwise_and(dst, operands)
        else:
            raise KeyError(f"no instruction for {name}")

    def _is_rounded(self, index: int) -> bool:
        """Return whether a quotient is rounded: one unit in its last place decides a tie, so it has to be exact."""
        return any(step.function in ROUNDING and Ref(index) in step.arguments for step in self.nest.steps)

    def _narrowed(self, dst: str, source: str, ctype: str) -> None:
        """Write the rounding of floats to a narrower element type, and back."""
        spare = self.place()
        narrow = f"{spare}.ReinterpretCast<{ctype}>()"
        self.code.add(self.spelling.spell("cast.round", dst=narrow, src=source, mode="CAST_RINT", n=self.count))
        self.code.add(self.spelling.spell("cast.round", dst=dst, src=narrow, mode="CAST_NONE", n=self.count))
        self.free.append(spare)

    def _bitwise_and(self, dst: str, operands: list[Operand]) -> None:
        """Write the bits that two tensors of whole numbers share; the instruction works on halves of them."""
        cast, places = partial(self.spelling.spell, "cast.round", n=self.count), [self.place(), self.place()]
        for place, operand in zip(places, operands, strict=True):
            source = operand.text
            if not operand.vector:
                self.code.add(self.spelling.spell("tensor.duplicate", dst=place, value=source, n=self.count))
                source = place
            self.code.add(cast(dst=f"{place}.ReinterpretCast<int32_t>()", src=source, mode="CAST_RINT"))
        left, right = (f"{place}.ReinterpretCast<uint16_t>()" for place in places)
        self.code.add(
            f"AscendC::And({left}, {left}, {right}, {self.count} * 2);",
            cast(dst=dst, src=f"{places[0]}.ReinterpretCast<int32_t>()", mode="CAST_NONE"),
        )
        self.free += places

    def _binary(self, name: str, dst: str, operands: list[Operand], kinds: str) -> None:
        spell, add, n = self.spelling.spell, self.code.add, self.count
        left, right = (operand.text for operand in operands)
        if kinds == "VV":
            add(f"AscendC::{BINARY[name]}({dst}, {left}, {right}, {n});")
        elif not self.immediate:
            self._filled(name, dst, operands)
        elif name == "div":
            self._divide(dst, *operands)
        elif name == "sub" and kinds == "VS":
            add(spell("math.subtract-scalar", dst=dst, src=left, value=right, minus=_negated(right), n=n))
        elif name == "sub":
            add(
                spell("math.negate", dst=dst, src=right, n=n),
                spell("math.add-scalar", dst=dst, src=dst, value=left, n=n),
            )
        else:
            tensor, number = (left, right) if kinds == "VS" else (right, left)
            idiom = {"add": "math.add-scalar", "mul": "math.scale", "max": "math.max-scalar", "min": "math.min-scalar"}[
                name
            ]
            add(spell(idiom, dst=dst, src=tensor, value=number, n=n))

    def _filled(self, name: str, dst: str, operands: list[Operand]) -> None:
        """Write an instruction on two tensors, one of which is filled with a number."""
        spare = self.place()
        number = next(operand.text for operand in operands if not operand.vector)
        texts = [operand.text if operand.vector else spare for operand in operands]
        self.code.add(self.spelling.spell("tensor.duplicate", dst=spare, value=number, n=self.count))
        self.code.add(f"AscendC::{BINARY[name]}({dst}, {texts[0]}, {texts[1]}, {self.count});")
        self.free.append(spare)

    def _divide(self, dst: str, left: Operand, right: Operand) -> None:
        spell, add, n = self.spelling.spell, self.code.add, self.count
        if left.vector and not right.vector:
            add(spell("math.divide-scalar", dst=dst, src=left.text, value=right.text, n=n))
            return
        spare = self.place()
        add(
            spell("tensor.duplicate", dst=spare, value=left.text, n=n),
            f"AscendC::Div({dst}, {spare}, {right.text}, {n});",
        )
        self.free.append(spare)

    def _compare(self, step: Step, dst: str, operands: list[Operand]) -> None:
        """Write a comparison that gives 0 or 1, by way of a bit mask."""
        mask, ones = self.place(), self.place()
        self._mask(f"{mask}.ReinterpretCast<uint8_t>()", _MODES[step.function], operands)
        self.code.add(self.spelling.spell("tensor.duplicate", dst=ones, value="1.0f", n=self.count))
        self._select(dst, f"{mask}.ReinterpretCast<uint8_t>()", ones, "0.0f", False)
        self.free += [mask, ones]

    def _mask(self, mask: str, mode: str, operands: list[Operand]) -> None:
        left, right = operands
        if not left.vector:
            left, right = right, left
            mode = {"GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}.get(mode, mode)
        # Compare works on whole repeats of 256 bytes; elements past the tile's end are never read again.
        whole = f"Align({self.count}, 64)"
        if left.vector and right.vector:
            text = self.spelling.spell(
                "compare.tensors", mask=mask, left=left.text, right=right.text, mode=mode, n=whole
            )
        else:
            text = self.spelling.spell(
                "compare.scalar", mask=mask, left=left.text, value=right.text, mode=mode, n=whole
            )
        self.code.add(text)

    def _where(self, dst: str, operands: list[Operand]) -> None:
        condition, yes, no = operands
        if not condition.vector:
            condition = self.repeated(condition)
        mask = self.place()
        self._mask(f"{mask}.ReinterpretCast<uint8_t>()", "NE", [condition, Operand("0.0f", False)])
        spare = ""
        if not yes.vector:
            spare = self.place()
            self.code.add(self.spelling.spell("tensor.duplicate", dst=spare, value=yes.text, n=self.count))
        self._select(dst, f"{mask}.ReinterpretCast<uint8_t>()", spare or yes.text, no.text, no.vector)
        self.free += [mask] + ([spare] if spare else [])

    def repeated(self, number: Operand) -> Operand:
        """Return a tensor that holds a number throughout."""
        home = self.place()
        self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value=number.text, n=self.count))
        self.free.append(home)
        return Operand(home, True)

    def _select(self, dst: str, mask: str, yes: str, no: str, vector: bool) -> None:
        mode = "VSEL_TENSOR_TENSOR_MODE" if vector else "VSEL_TENSOR_SCALAR_MODE"
        self.code.add(self.spelling.spell("select.mask", dst=dst, mask=mask, yes=yes, no=no, mode=mode, n=self.count))


def _negated(number: str) -> str:
    return number[1:] if number.startswith("-") else f"-{number}"

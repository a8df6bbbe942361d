"""What is packed in the kernel process is what the device process unpacks, for every call of the border."""

from __future__ import annotations

import subprocess
from pathlib import Path

import kept_programs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.ascend_sim import marshal
from kernel_gym.hardware.ascend_sim.marshal import Argument, Call

HERE = Path(marshal.__file__).parent
ABI = (HERE / "include" / "abi.h").read_text()

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(lambda name: name != "line")
TYPES = st.sampled_from(["uint32_t", "uint64_t", "int32_t", "asc_local", "asc_walk", "asc_burst"])


@st.composite
def declarations(draw: st.DrawFn) -> tuple[Call, ...]:
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=6))
    calls = []
    for name in names:
        fields = draw(st.lists(NAMES, unique=True, max_size=4))
        arguments = tuple(Argument(draw(TYPES), field) for field in fields)
        calls.append(
            Call(
                name, (*arguments, Argument("int32_t", "line")), draw(st.sampled_from([None, "asc_block", "uint64_t"]))
            )
        )
    return tuple(calls)


def declare(call: Call) -> str:
    head = f"ASC_QUERY {call.answer}" if call.answer else "ASC_CALL"
    return f"{head} asc_{call.name}({', '.join(map(str, call.arguments))});   // a comment (with brackets)"


@given(declarations())
def test_declarations_are_read_back(calls: tuple[Call, ...]) -> None:
    assert marshal.parse("\n".join(map(declare, calls))) == calls


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ASC_CALL asc_a(uint32_t x);", "must end in"),
        ("ASC_CALL asc_a(int32_t line);\nASC_CALL asc_a(int32_t line);", "declared twice"),
        ("ASC_CALL asc_a(const char *x, int32_t line);", "cannot read the parameter"),
        ("ASC_QUERY asc_a(int32_t line);", "declare an answer"),
        ("ASC_CALL uint32_t asc_a(int32_t line);", "not declare an answer"),
    ],
)
def test_a_bad_declaration_is_named(text: str, complaint: str) -> None:
    with pytest.raises(KernelGymError, match=complaint):
        marshal.parse(text)


def test_every_call_of_the_abi_is_parsed() -> None:
    declared = sum(ABI.count(f"\n{macro} ") for macro in ("ASC_CALL", "ASC_QUERY"))
    assert len(marshal.parse(ABI)) == declared > 50


DRIVER = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "kernel_process/kernel_process.h"
using namespace sim;
static uint64_t state = 88172645463325252ull;
static uint64_t draw() { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
template <class T> T random_value() { T value; auto *bytes = reinterpret_cast<uint8_t *>(&value);
    for (size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<uint8_t>(draw()); return value; }
static void fail(const char *what) { std::printf("%s differs\n", what); std::exit(1); }
template <class T> void same(const T &a, const T &b, const char *what) {
    if (std::memcmp(&a, &b, sizeof(T))) fail(what);
}
static Ring *ring;
static uint64_t got;
template <class Args> Args unpack(const Record &record) {
    Args args;
    std::memcpy(&args, record.payload, sizeof args);
    return args;
}
struct Expectation { @fields@ } expected;
struct Executor {
@methods@
};
static void answer_block(const asc_block &) {}
static void answer(uint64_t) {}
static void dispatch(Executor &executor, const Record &record) {
    switch (record.op) {
#include "dispatch.inc"
        default: fail("the number of a call");
    }
}
int main() {
    ring = new Ring{};
    ring->call.budget = ~0ull;
    kernel_process::attach(ring);
    Executor executor;
    for (int round = 0; round < 20; ++round) {
@calls@
    }
    std::printf("%llu\n", static_cast<unsigned long long>(got));
}
"""


def driver(calls: tuple[Call, ...]) -> str:
    fields, methods, sends = [], [], []
    for number, call in enumerate(calls):
        names = [f"e{number}_{argument.name}" for argument in call.arguments]
        fields += [f"{argument.type} {name};" for argument, name in zip(call.arguments, names, strict=True)]
        checks = "".join(
            f'same({argument.name}, expected.{name}, "{call.name}.{argument.name}"); '
            for argument, name in zip(call.arguments, names, strict=True)
        )
        returned = f"return {call.answer}{{}};" if call.answer else ""
        methods.append(
            f"    {call.answer or 'void'} {call.name}({', '.join(map(str, call.arguments))}) {{ {checks}"
            f"++got; {returned} }}"
        )
        draws = "".join(
            f"expected.{name} = random_value<{argument.type}>(); "
            for argument, name in zip(call.arguments, names, strict=True)
        )
        values = ", ".join(f"expected.{name}" for name in names)
        reply = "ring->answers = ring->answers + 1; " if call.answer else ""
        sends.append(
            f"        {draws}{reply}kernel_process::wire::{call.name}({values}); "
            "ring->tail = ring->head.load(); dispatch(executor, ring->records[(ring->head - 1) % Ring::SLOTS]);"
        )
    text = DRIVER.replace("@fields@", " ".join(fields)).replace("@methods@", "\n".join(methods))
    return text.replace("@calls@", "\n".join(sends))


def test_every_call_arrives_as_it_was_sent(tmp_path: Path) -> None:
    calls = marshal.parse(ABI)
    marshal.generate(HERE / "include" / "abi.h", tmp_path)
    generated = {path.name: path.read_text() for path in tmp_path.iterdir()} | {"driver.inc": driver(calls)}
    (tmp_path / "driver.cpp").write_text('#include "driver.inc"\n')
    parts = sorted(path for path in (HERE / "src/kernel_process").glob("*.cpp") if path.stem != "process")
    program = kept_programs.build("marshal", [tmp_path / "driver.cpp", *parts], ["-std=c++17", "-w"], generated)
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert int(run.stdout) == 20 * len(calls)

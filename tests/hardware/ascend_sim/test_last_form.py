"""Blocks keep their prices where the compiler leaves out, merges or divides blocks after its dump."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.ascend_sim import last_form, operations
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from tests.support.kernels import source


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim(chip="910B2") as simulator:
        yield simulator


#: Two functions, templates whose instances are functions of their own, and one without a body.
ADDRESSES = """
#define ONCE f = f / g
#define TWICE f = f / g / g
#define THRICE f = f / g / g / g
#define NEVER f = f / g / g / g / g / g
__aicore__ inline int One(int a) { return a; }
__aicore__ inline int Two(int a) { return a + 1; }
template <class T> __aicore__ inline void Tag() {}
template <class T> float Undefined(T);
"""
#: Statements, and the divisions of their blocks in the order of the code.
DECIDED_LATE = {
    "if (&One == &Two) { NEVER; } ONCE; if (a) TWICE; THRICE;": [1, 2, 3],
    "if (&One != &Two) { TWICE; } else { NEVER; } ONCE; if (a) THRICE;": [2, 1, 3],
    "if (&Tag<int> == &Tag<half>) NEVER; TWICE; if (a) ONCE; if (a > 1) THRICE;": [2, 1, 3],
    "if (Undefined<int> == nullptr) { NEVER; return f; } ONCE; if (a) THRICE; TWICE;": [1, 3, 2],
    "while (&One == &Two) { for (int i = 0; i < a; ++i) { if (i) continue; NEVER; } } THRICE; if (a) TWICE;": [3, 2],
    "do { TWICE; if (&One == &Two) { NEVER; break; } ONCE; } while (--a); THRICE;": [2, 1, 3],
    "do { TWICE; } while (&One == &Two); if (Undefined<int> == nullptr) NEVER; if (a) THRICE; ONCE;": [2, 3, 1],
    "f = &One == &Two ? NEVER : TWICE; if (a) ONCE; f = &One != &Two && a > 2 ? THRICE : TWICE;": [2, 1, 3, 2],
    "goto at; back: TWICE; if (a) THRICE; return f; at: if (&One == &Two) { NEVER; } ONCE; goto back;": [1, 2, 3],
    "switch (a) { case 1: if (&One == &Two) { NEVER; case 2: ONCE; } break; default: TWICE; } THRICE;": [1, 2, 3],
}


#: Loops that are run once, which the compiler knows late: it merges the block of the condition, which is behind the
#: body in the dump, with the one before the body. It does so only where columns of the text are not told apart.
MERGED_LATE = {
    "int i = 0; while (i < 1) { TWICE; if (a) THRICE; if (&One != &Two) break; } ONCE;": [2, 3, 1],
    "for (int i = 0; i < a; ++i) { if (a > 2) { THRICE; } TWICE; if (&One != &Two) break; } ONCE;": [3, 2, 1],
    "int i = 0; while (i < a) { THRICE; if (&One == &Two) continue; break; } TWICE; if (a) ONCE;": [3, 2, 1],
}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [*DECIDED_LATE.items(), *((";" * 5000 + statements, expected) for statements, expected in MERGED_LATE.items())],
    ids=[*DECIDED_LATE, *MERGED_LATE],
)
def test_blocks_that_the_compiler_leaves_out_or_merges_after_its_dump_keep_their_price(
    device: AscendSim, statements: str, expected: list[int]
) -> None:
    """It decides comparisons of addresses when the dump is written."""
    text = f"{ADDRESSES}__aicore__ float late(float f, float g, int a) {{ {statements} return f; }}"
    build = device.build(Kernel(source("", 0, prelude=text)))
    assert build.artifact is not None, build.diagnostics
    artifact = build.artifact
    rows = artifact.with_name(f"{artifact.name}{operations.SUFFIX}").read_text().splitlines()
    assert [divisions for row in rows if (divisions := int(row.split()[4]))] == expected


def test_blocks_are_found_by_their_statements_whatever_their_order() -> None:
    counter = "gimple_call <{}__sanitizer_cov_trace_pc, NULL>"
    index = "gimple_assign <ssa_name, i.0_3, y_2(D), NULL, NULL>"
    bodies = {
        "defines": "gimple_assign <plus_expr, x_1, y_2(D), 1, NULL>",
        "calls": "gimple_call <{}, NULL, x_1>",
        "checks": index + "\n{}\ngimple_assign <array_ref, z_4, a[i.0_3], NULL>",
        "empty": "gimple_return <x_1>",
        "decides": "gimple_cond <eq_expr, One, Two, NULL, NULL>",
    }
    check = "gimple_call <.UBSAN_BOUNDS, NULL, 0B, i.0_3, 7>"
    branch = "gimple_assign <nop_expr, _9, i.0_3, NULL, NULL>\n<bb 9> :"
    first = [f"<bb 2> :\n{counter.format('__builtin_')}\n{body}" for body in bodies.values()]
    first = [each.replace("<{}, NULL, x_1>", "<f, NULL, x_1>").replace("{}", check) for each in first]
    last = [f"<bb 2> :\n{counter.format('')}\n{body}" for body in bodies.values()]
    last = [each.replace("<{}, NULL, x_1>", "<_Z1fi, NULL, x_5>").replace("{}", branch) for each in last]
    order = [2, 0, 3, 1]
    found = last_form.origins("\n".join(first), "\n".join(last[place] for place in order))
    assert [places[0] for places in found] == order
    assert found == [[2], [0], [3], [1]]
    decided = last_form.origins("\n".join(first), f"{last[0]}\n{counter.format('')}\n{last[1]}")
    assert decided == [[0], [3], [1]]
    assert last_form.origins("\n".join(first[:2]), last[2]) == [[0, 1]]


def test_a_case_does_not_pay_for_the_switch() -> None:
    counter = "<bb 2> :\ngimple_call <{}__sanitizer_cov_trace_pc, NULL>\n"
    first, last = counter.format("__builtin_"), counter.format("")
    case = "gimple_assign <mult_expr, b_3, a_1(D), 7, NULL>"
    dump = f"{first}gimple_switch <a_1(D), default: <L1>, case 1: <L2>>\n{first}{case}"
    branch = "gimple_cond <eq_expr, a_1(D), 1, NULL, NULL>"
    assert last_form.origins(dump, f"{last}{branch}\n<bb 3> :\n{last}{case}") == [[0], [1]]

"""Functions that are called as ones of another type cost operations, all others none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.ascend_sim import call_types
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel

FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
@outside@
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    uint64_t wide = a->num_ints; uint32_t n = a->num_ints; uint8_t byte = a->num_ints; float f = n; double d = n;
    @statement@
    return 0;
}
"""
AS_OTHER = """template <auto function, class Type> struct AsOther {
    static inline const Type value = reinterpret_cast<Type>(reinterpret_cast<uint64_t>(function));
};
"""
PAIR = "struct Pair { uint32_t a, b; }; Pair Swap(Pair p) { return {p.b, p.a}; }"
HONEST = {
    "numbers": ("uint64_t F(uint64_t a, uint32_t b, float c, double d) { return a + b; }", "F(wide, n, f, d);"),
    "constants": ("int F(int64_t a, float b, bool c, const char *d) { return a; }", 'F(-1, 0.5f, true, "x");'),
    "narrow ones": ("uint8_t F(uint8_t a, int16_t b, bool c) { return a; }", "byte = F(byte, (int16_t)n, n > 3);"),
    "an object": (PAIR, "Pair p{n, n}; p = Swap(p);"),
    "a large object": ("struct Large { uint64_t w[9]; }; Large F(Large x) { return x; }", "Large x{}; x = F(x);"),
    "an object by its alias": (PAIR + "using Both = Pair;", "Both p{n, n}; Both q = Swap(p); p = q;"),
    "what a pointer points to": (PAIR, "Pair p{n, n}; const Pair *q = &p, &r = p; p = Swap(*q); p = Swap(r);"),
    "references": ("void F(uint32_t &a, const float &b, uint8_t *c) { *c = a; }", "F(n, f, &byte);"),
    "a method": ("struct S { uint32_t n; uint32_t Add(uint32_t m) const { return n + m; } };", "S s{n}; n = s.Add(n);"),
    "a template": ("template <class T> T F(T a, T b) { return a + b; }", "n = F(n, n); d = F<double>(d, n);"),
    "a pack": ("template <class... T> uint64_t F(T... a) { return (a + ...); }", "wide = F(wide, n, byte);"),
    "a lambda": ("", "auto g = [&](uint32_t m) { return m + n; }; n = g(n);"),
    "an enumeration": ("enum class E : uint8_t { A }; E F(E e, int n) { return e; }", "E e = F(E::A, 1); n += (int)e;"),
    "names of types": ("using Word = uint32_t; Word F(Word a) { return a; }", "unsigned int m = F(n); n = m;"),
    "a recursion": ("uint32_t F(uint32_t a) { return a ? F(a - 1) : 0; }", "n = F(n);"),
    "its own type": ("uint32_t F(uint32_t a) { return a; }", "n = AsOther<F, uint32_t (*)(uint32_t)>::value(n);"),
}  # fmt: skip
CAST = {
    "an object as a number": (PAIR, "wide = AsOther<Swap, uint64_t (*)(uint64_t)>::value(wide);"),
    "an object as another": (
        PAIR + "struct Other { uint16_t w[4]; };",
        "Other o{}; AsOther<Swap, void (*)(Other)>::value(o);",
    ),
    "another of the same name": (
        "struct Pair { uint16_t w[4]; }; namespace own { " + PAIR + " }",
        "Pair o{}; AsOther<own::Swap, void (*)(Pair)>::value(o);",
    ),
    "a narrower argument": ("uint8_t F(uint8_t a) { return a; }", "n = AsOther<F, uint32_t (*)(uint32_t)>::value(n);"),
    "a narrower result": ("uint16_t F(uint32_t a) { return a; }", "n = AsOther<F, uint32_t (*)(uint32_t)>::value(n);"),
    "a wider argument": ("uint64_t F(uint64_t a) { return a; }", "AsOther<F, uint64_t (*)(uint32_t)>::value(n);"),
    "a float as a number": ("float F(float a) { return a; }", "d = AsOther<F, double (*)(double)>::value(d);"),
    "fewer arguments": ("uint64_t F(int a, int b) { return b; }", "wide = AsOther<F, uint64_t (*)()>::value();"),
}  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as opened:
        yield opened


def costs(device: AscendSim, monkeypatch: pytest.MonkeyPatch, outside: str, statement: str) -> bool:
    """Return whether a function of a kernel is found to be called as one of another type."""
    found: list[frozenset[str]] = []
    search = call_types.called_as_others
    monkeypatch.setattr(call_types, "called_as_others", lambda *args: found.append(search(*args)) or found[-1])
    build = device.build(
        Kernel(
            FILE.replace("@outside@", AS_OTHER * ("AsOther" in statement) + outside).replace("@statement@", statement)
        )
    )
    assert build.ok, build.diagnostics
    return bool(found[0])


@pytest.mark.parametrize("name", HONEST)
def test_calls_with_the_types_of_their_function_cost_nothing(
    device: AscendSim, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert not costs(device, monkeypatch, *HONEST[name])


@pytest.mark.parametrize("name", CAST)
def test_a_function_that_is_called_as_another_costs(
    device: AscendSim, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert costs(device, monkeypatch, *CAST[name])

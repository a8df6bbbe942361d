"""Every access through a pointer is guarded; a kernel with one that the compiler leaves out does not compile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.ascend_sim import accesses
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from tests.hardware.ascend_sim.test_guard import run, source

TYPES = """
struct Padded { uint64_t word; uint8_t byte; __aicore__ inline Padded() : word(1), byte(2) {} };
struct Derived : Padded {
    uint8_t more = 3;
    __aicore__ inline Derived() {}
    __aicore__ inline Derived(const Padded &base) : Padded(base) {}
};
struct Holder { [[no_unique_address]] Padded inner; uint8_t more = 3; };
struct Bits { uint32_t a : 3; uint32_t b : 7; uint64_t c : 33; uint8_t d; };
struct Pair { uint64_t word = 1, other = 2; };
struct Many { uint32_t words[8]; Padded padded[4]; Bits bits[2]; Pair pairs[4]; };
union Views { uint64_t number; float parts[2]; uint64_t few : 5; };
"""

UNGUARDED = {
    "a base whose padding is used": "__aicore__ Padded Go(Derived *p) { Padded x = *p; return x; }",
    "an argument that is a base": """
        __aicore__ inline uint64_t Take(Padded p) { return p.word; }
        __aicore__ uint64_t Go(Derived *p) { return Take(*p); }""",
    "a member whose padding is used": "__aicore__ Padded Go(Holder *p) { Padded x = p->inner; return x; }",
    "a base that is constructed": "__aicore__ void Go(Derived *p, Padded *from) { *p = Derived(*from); }",
    "complex numbers": "__aicore__ void Go(float _Complex *p, float _Complex *q) { *p = *q + *p; }",
    "a bit-field that is compared": """
        struct Half { uint32_t low : 12, high : 20; };
        __aicore__ bool Go(Half *p) { return p->high == 0; }""",
    "a padded base behind a variable": """
        struct Far { uint64_t words[99]; Derived derived; };
        __aicore__ uint64_t Go() {
            uint64_t here[200] = {};
            Padded got = reinterpret_cast<Far &>(here).derived;
            return got.word;
        }""",
    "a parameter of a pack": """
        template <class... Places> __aicore__ uint64_t Peek(Places... p) {
            Padded got = (*(const Derived *)p, ...);
            return got.word;
        }
        __aicore__ uint64_t Go(uint64_t *p) { return Peek(p); }""",
    "a base behind the end of an array": """
        __aicore__ uint64_t Go() {
            Derived here[2];
            Padded got = *(&here[2]);
            return got.word;
        }""",
    "an object behind the end of an array as a number": """
        __aicore__ uint64_t Go() {
            Many here[2] = {};
            return __builtin_bit_cast(uint64_t, (&here[2])->bits[1]);
        }""",
    "an object as a number": "__aicore__ uint64_t Go(Many *p) { return __builtin_bit_cast(uint64_t, p->bits[1]); }",
}

GUARDED = {
    "bit-fields": "__aicore__ int Go(Bits *p) { p->a = 3; p->c += p->b; return p->b == 3 && p->a == p->b; }",
    "bit-fields in arrays": "__aicore__ void Go(Many *p, int i) { p->bits[i].b = 3; p->bits[0] = p->bits[1]; }",
    "unions": "__aicore__ float Go(Views *p, int i) { p->few = i; p->number += p->few; return p->parts[i]; }",
    "objects in arrays": "__aicore__ void Go(Many *p, int i) { p->pairs[i] = p->pairs[i + 1]; *p = p[i]; }",
    "arrays behind pointers": """
        __aicore__ uint32_t Go(uint32_t (*p)[8], Many *q, int i) { (*p)[i] += q->words[2]; return p[1][i]; }""",
    "members of bases": """
        __aicore__ uint64_t Go(Derived *p) { p->byte += p->more; Padded &base = *p; return base.word++; }""",
    "arguments and results": """
        __aicore__ inline Many Take(Many many, Padded) { return many; }
        __aicore__ void Go(Many *p) { p[1] = Take(*p, p->padded[2]); }""",
    "volatile numbers": "__aicore__ void Go(volatile uint32_t *p, double *r) { *p = *p + 1; *r += *p; }",
    "variables": """
        __aicore__ uint64_t Go(int i) {
            Many many{}, other = many;
            many.words[i] = other.padded[i].word + reinterpret_cast<Views &>(other.words[i]).number;
            many.bits[i].b = other.bits[1].a;
            many.pairs[i] = other.pairs[1];
            return many.bits[i].c == 3 && other.bits[0].b == 2 ? reinterpret_cast<uint64_t &>(many) : 0;
        }""",
    "a number that is read as another one": """
        union Bits32 { float f; uint32_t u; };
        __aicore__ uint32_t Go(Bits32 &b, float x) { b.f = x; return b.u >> 23; }""",
    "captures": """
        __aicore__ uint32_t Go(Many *p, int i) {
            auto add = [&, p](uint32_t n) { return p->words[n] += i; };
            return add(1) + add(2);
        }""",
}


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as opened:
        yield opened


@pytest.mark.parametrize("name", UNGUARDED)
def test_accesses_that_are_not_guarded_do_not_compile(device: AscendSim, name: str) -> None:
    build = device.build(Kernel(source("core", "", TYPES + UNGUARDED[name])))
    (error,) = build.diagnostics
    assert "what cannot be guarded" in error.message


@pytest.mark.parametrize("name", GUARDED)
def test_other_accesses_compile(device: AscendSim, name: str) -> None:
    result = run(device, "core", "", compute=False, outside=TYPES + GUARDED[name])
    assert result.status == "ok", result.fault


FUNCTION = """
;; Function Go (_Z2GoP4Many, funcdef_no=1, decl_uid=9, cgraph_uid=2, symbol_order=1)

void GoD.9 (struct ManyD.2 * pD.10)
{{
  <bb 2> :
  _1 = &{address};
  _2 = (unsigned long) _1;
  _3 = (unsigned long) 16;
  __builtin___asan_loadN_noabortD.1658 (_2, _3);
  {access}
}}
"""


@pytest.mark.parametrize(
    ("address", "access"),
    [
        ("p_4(D)->firstD.5", "xD.6 = p_4(D)->secondD.7;"),
        ("p_4(D)->firstD.5", "p_4(D)->secondD.7 = p_4(D)->firstD.5;"),
        ("p_4(D)->firstD.5", "xD.6 = q_4(D)->firstD.5;"),
        ("p_4(D)->firstD.5", "xD.6 = p_4(D)->firstD.5.partD.8;"),
        ("p_4(D)->firstD.5", 'TakeD.20 ("p", &p_4(D)->firstD.5, p_4(D)->secondD.7);'),
        ("p_4(D)->firstD.5", "x_6 = REALPART_EXPR <p_4(D)->firstD.5>;"),
        ("p_4(D)->firstD.5", "xD.6 = MEM <charD.8[2]> [(struct ManyD.2 *)p_4(D) + 8B];"),
        ("p_4(D)->firstD.5", "xD.8 = p_4(D)->firstD.5; y_5 = MEM[(charD.8 *)_1];"),
        ("p_4(D)->D.5", "xD.8 = p_4(D)->secondD.7;"),
        ("xD.4[i_4]", "xD.8 = xD.4[i_5];"),
        ("xD.4[i_4]", "xD.8 = xD.4[i_4].innerD.7;"),
        ("xD.4[i_4]", "yD.8 = MEM[(struct FarD.5 &)&xD.4].derivedD.7.D.9;"),
        ("xD.4[i_4]", "y_8 = VIEW_CONVERT_EXPR<longD.3>(MEM[(struct FarD.5 &)&xD.4].derivedD.7);"),
        ("p_4(ab)->firstD.5", "xD.6 = p_4(ab)->secondD.7;"),
        ("*p_4(D)", '  "_1 = &p_4(D)->secondD.7;" (p_4(D)->secondD.7);'),
    ],
    ids=[
        "another field",
        "a write",
        "another pointer",
        "a part",
        "an argument",
        "a part of a complex number",
        "a place behind",
        "an address that is used",
        "no bit-field",
        "another element",
        "a part of an element",
        "a part behind a variable",
        "a bit cast behind a variable",
        "a register that is kept",
        "a text",
    ],
)
def test_a_guarded_access_guards_no_other_one(address: str, access: str) -> None:
    guarded = FUNCTION.format(address=address, access=f"x_6 = {address};")
    assert accesses.unguarded(guarded) is None
    assert accesses.unguarded(FUNCTION.format(address=address, access=access)) == "_Z2GoP4Many"


def test_a_number_is_guarded_by_the_compiler() -> None:
    """It guards a bit-field with the field around it, and the same place under two names once."""
    dump = FUNCTION.format(address="p_4(D)->D.5", access="p_4(D)->bitsD.7 = x_6;\n  x_7 = p_4(D)->bitsD.7;")
    assert accesses.unguarded(dump) is None


def test_a_virtual_function_is_no_access() -> None:
    """The binary is refused for the call itself."""
    call = "_6 = OBJ_TYPE_REF(_5;(struct ManyD.2)p_4(D)->0B) (p_4(D));"
    assert accesses.unguarded(FUNCTION.format(address="p_4(D)->firstD.5", access=call)) is None

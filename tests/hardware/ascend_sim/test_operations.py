"""Plain code costs what it computes, however it is written, on every machine the same."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend_sim import chip, gimple, operations, runtime
from kernel_gym.hardware.ascend_sim.assembly.guards import Computed
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Build, Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature, TensorSpec
from tests.support.kernels import source

#: Functions, and what all of their basic blocks compute together: branches, integer, float, divisions.
FUNCTIONS = {
    "int sum(int a, int b) { return a + b; }": (0, 1, 0, 0),
    "int bits(int a, int b) { return (a << 3 | b >> 2) ^ ~a; }": (0, 5, 0, 0),
    "unsigned char narrow(unsigned char a, char b) { return a + b; }": (0, 2, 0, 0),  # added, and cut
    "int quotient(int a, int b) { return a / b + a % b; }": (0, 1, 0, 2),
    "int by_constant(int a) { return a / 48 + a % 7; }": (0, 5, 0, 0),
    "int folded() { constexpr int k = 3 * 5 / 2; return k * 8 + sizeof(int); }": (0, 0, 0, 0),
    "float product(float a, float b) { return a * b - a; }": (0, 0, 2, 0),
    "float ratio(float a, float b) { return a / b; }": (0, 0, 0, 1),
    "float root(float a) { return sqrt(a); }": (0, 0, 0, 0),  # of the header's function, which is counted by itself
    "float converted(int a) { return (float)a; }": (0, 0, 1, 0),
    "int truncated(float a) { return (int)a; }": (0, 0, 1, 0),
    "bool less(float a, float b) { return a < b; }": (0, 0, 1, 0),
    "int choice(int a, int b) { return a < b ? a : b; }": (1, 1, 0, 0),
    "int flag(bool a) { return a ? 3 : 4; }": (1, 0, 0, 0),
    "int compared(int a, int b) { bool c = a < b; if (c) return 3; return 4; }": (1, 1, 0, 0),
    "int number(int a) { return a ? 3 : 4; }": (1, 1, 0, 0),
    "int turns(int a) { while (a--) continue; return a; }": (1, 2, 0, 0),
    "int cases(int a) { switch (a) { case 1: return 5; case 2: return 7; case 9: return 8; } return 1; }": (1, 2, 0, 0),
    "int smaller(int a, int b) { return min(a, b); }": (0, 1, 0, 0),
    "float largest(float a, float b) { return max(a, abs(b)); }": (0, 0, 2, 0),
    "int64_t block() { return GetBlockIdx() + GetBlockNum(); }": (0, 1, 0, 0),
    "int64_t block_by_its_low_names() { return block_idx + get_block_num(); }": (0, 1, 0, 0),
    "void assumed(int a) { __builtin_assume(++a > 0); }": (0, 0, 0, 0),
    "uint32_t part(GlobalTensor<float> &t, int i) { return t[i].GetSize(); }": (0, 5, 0, 0),  # of 64 bits, cut
    "uint64_t doubled(GlobalTensor<half> &t) { return t.ReinterpretCast<uint8_t>().GetSize(); }": (0, 3, 0, 0),
    "void moved(GlobalTensor<float> &t, uint64_t i) { t.SetGlobalBuffer(t.GetPhyAddr(i)); }": (0, 1, 0, 0),
    "uint64_t address(LocalTensor<float> &t, int i) { return t.GetPhyAddr() + t.GetPhyAddr(i); }": (0, 2, 0, 0),
    "void sized(LocalTensor<float> &t, int i) { t.SetSize(i); t.SetBufferLen(i); }": (0, 2, 0, 0),
    "void shared(LocalTensor<float> &t, LocalTensor<half> &u, int i) { t.SetAddrWithOffset(u, i); }": (0, 1, 0, 0),
    "uint32_t got(TBuf<> &b, int i) { return b.Get<half>().GetSize() + b.Get<half>(i).GetSize(); }": (0, 8, 0, 0),
    "uint32_t got_behind(TBuf<> &b, int i) { return b.GetWithOffset<float>(i, 32).GetSize(); }": (0, 4, 0, 0),
    "void taken(LocalMemAllocator<> &m, int i) { m.Alloc<TPosition::VECIN, float>(i); }": (0, 1, 0, 0),
    "void placed(int i) { LocalTensor<int> t(TPosition::VECCALC, 0, i); }": (0, 0, 0, 0),  # by the constructor
    "int element(int i) { int q[4] = {1, 2, 3, 4}; return q[i]; }": (0, 1, 0, 0),
    "int pointed(const int *p, int i) { return p[i + 1]; }": (0, 3, 0, 0),
    "Real named(Real a, Real b) { Real c = a * b; return c; }": (0, 0, 1, 0),
    "Index indexed(Index a, Index b) { Index c = a * b; return c; }": (0, 1, 0, 0),
    "Count counted(Count a, Count b) { Count c = a * b; return c; }": (0, 1, 0, 0),
    "bool same(Colour a, Colour b) { return a == b; }": (0, 1, 0, 0),
    "float shadowed(float a, int b) { { int x = b; b = x + x; } { float x = a; a = x + x; } return a; }": (0, 1, 1, 0),
    "int pasted(int a) { return TWICE(a * 3); }": (0, 2, 0, 0),
    "double widened(float a) { return a; }": (0, 0, 1, 0),
    "float narrowed(double a) { return a; }": (0, 0, 1, 0),
    "double renamed(Real a) { return a; }": (0, 0, 1, 0),
    "float mixed(float a) { return a * 2.5 + 1; }": (0, 0, 4, 0),
    "Real unchanged(float a) { const Real b = (Real)a; return b; }": (0, 0, 0, 0),
    "Colour coloured(uint8_t a) { return (Colour)a; }": (0, 0, 0, 0),
    "uint64_t field(Fields *f) { return f->low; }": (0, 1, 0, 0),
    "uint32_t field_of_a_word(Fields *f) { return f->word; }": (0, 1, 0, 0),
    "bool field_of_a_bit(Fields f) { return f.on; }": (0, 1, 0, 0),
    "uint32_t beside_fields(Fields *f) { return f->rest; }": (0, 1, 0, 0),
    "void written(Fields *f, uint64_t a) { f->low = a; }": (0, 2, 0, 0),  # cut, and put in
    "void written_word(Fields *f, uint32_t a) { f->word = a; }": (0, 1, 0, 0),
    "void written_constant(Fields *f) { f->low = 3; }": (0, 1, 0, 0),
    "void written_result(Fields *f) { f->word = folded(); }": (0, 1, 0, 0),
    "uint64_t turned(uint64_t a) { Fields f = *(Fields *)&a; return f.low; }": (0, 2, 0, 0),  # read as fields, and cut
    "Node *member(Node *p) { return (Node *)&p->value; }": (0, 1, 0, 0),
    "int *element_of(int (*p)[8]) { return &(*p)[3]; }": (0, 1, 0, 0),
    "int *elements_of(Node *p) { return p->many; }": (0, 1, 0, 0),
    "int *element_at(Node *p, int i) { return &p->many[i]; }": (0, 2, 0, 0),
    "int *referred(Node &n) { int &r = n.value; return &r; }": (0, 1, 0, 0),
    "void handed(Node *p) { set(&p->value); set(p->many); }": (0, 2, 0, 0),
    "int local(int a) { Node n{}; int *p = &n.value, *q = n.many; set(p); set(&q[0]); set(&n.value); return a; }": (
        *(0, 0, 0, 0),
    ),
    "Node *chased(Node *p) { p = p->next; return p->next; }": (0, 2, 0, 0),
    "Link linked(Link p) { return p->next; }": (0, 1, 0, 0),
    "int *pointed_to(int **p) { return *p; }": (0, 1, 0, 0),
    "int *pointed_behind(int **p) { return p[3]; }": (0, 1, 0, 0),
    "int *kept(int *p) { int *q[4] = {p}; return q[1]; }": (0, 1, 0, 0),
    "int *copied(int *p, bool b) { int *q = p; if (b) q = nullptr; return q; }": (1, 0, 0, 0),
    "int *called(int *p) { return copied(p, true); }": (0, 0, 0, 0),
    "int *from_a_number(uint64_t a) { return (int *)a; }": (0, 1, 0, 0),
    "uint64_t as_a_number(int *p) { return (uint64_t)p; }": (0, 0, 0, 0),
    "int read(Node *p) { return p->value; }": (0, 1, 0, 0),
    "Real read_float(Node *p) { Real x = p->weight; return x; }": (0, 1, 0, 0),
    "Node whole(Node *p) { return *p; }": (0, 1, 0, 0),
    "int read_reference(const int &a) { return a; }": (0, 1, 0, 0),
    "int read_variable(int i) { Node n{}; int q[2]{}; int &r = i; return n.many[2] + q[1]; }": (0, 1, 0, 0),
    "int read_behind(Node *p) { return p->next->value; }": (0, 2, 0, 0),
    "int compared_behind(Node *p, int a) { if (p->value < a) return 3; return 4; }": (1, 2, 0, 0),
    "int chosen_behind(Node *p) { switch (p->value) { case 1: return 5; case 2: return 7; } return 1; }": (1, 3, 0, 0),
    "void written_behind(Node *p, int a) { p->value = a; p->many[2] = 3; }": (0, 2, 0, 0),
    "void copied_behind(Node *p, Node *q) { *p = *q; }": (0, 2, 0, 0),
    "int passed_behind(Node *p) { return of_node(*p); }": (0, 1, 0, 0),
    "void filled_behind(Node *p) { *p = {}; }": (0, 1, 0, 0),
    "void written_as_another(uint64_t a) { Bytes b; *(uint64_t *)&b = a; }": (0, 1, 0, 0),
    "int called_behind(Node *p) { return p->get(); }": (0, 1, 0, 0),
    "int called_on_a_part(Outer2 *o) { return o->node.get(); }": (0, 1, 0, 0),  # the address of the part
    "int called_on_a_variable(int a) { Node n{}; return n.get(); }": (0, 0, 0, 0),
    "int called_inlined(Node *p) { return p->inlined(); }": (0, 1, 0, 0),
    "int called_inlined_on_a_variable(int a) { Node n{}; return n.inlined(); }": (0, 0, 0, 0),
    "uint8_t cut(uint64_t a) { return a; }": (0, 1, 0, 0),
    "uint64_t cut_and_extended(uint64_t a) { return (int8_t)a; }": (0, 1, 0, 0),
    "uint32_t cut_to_a_word(uint64_t a) { return a; }": (0, 1, 0, 0),
    "uint16_t cut_a_pointer(int *p) { return (uint16_t)(uint64_t)p; }": (0, 1, 0, 0),
    "Small cut_by_name(int a) { return (Small)a; }": (0, 1, 0, 0),
    "Tiny cut_to_a_choice(int a) { return (Tiny)a; }": (0, 1, 0, 0),
    "Plain cut_to_the_unknown(int a) { return (Plain)a; }": (0, 1, 0, 0),
    "uint64_t extended(int8_t a, uint32_t b) { return (uint64_t)a; }": (0, 0, 0, 0),
    "uint32_t with_another_sign(int a) { return a; }": (0, 0, 0, 0),
    "int from_a_choice(Tiny a) { return (int)a; }": (0, 0, 0, 0),
    "uint8_t counted_up(uint8_t a) { a++; a += 3; a <<= 2; return a; }": (0, 6, 0, 0),
    "uint8_t within_its_width(uint8_t a, uint8_t b) { return (a | b) >> 1; }": (0, 2, 0, 0),
    "uint16_t masked_once(uint32_t a, uint32_t b) { return a * b + 3; }": (0, 3, 0, 0),
    "int16_t of_shorts(int16_t a, int16_t b) { int16_t c = a * b; return c; }": (0, 2, 0, 0),
    "uint16_t cut_and_used(uint32_t a) { uint16_t b = a; return b + 1; }": (0, 3, 0, 0),
    "bool turned_round(bool a) { return !a; }": (0, 1, 0, 0),
    "uint8_t byte_of_a_variable(Bytes b) { return b.byte[3]; }": (0, 1, 0, 0),
    "uint16_t short_variable(uint16_t a) { short_set(&a); return a; }": (0, 1, 0, 0),
    "bool flag_of_a_variable(Flags f) { return f.on; }": (0, 1, 0, 0),
    "uint8_t byte_at(const uint8_t *p, int i) { return p[i]; }": (0, 1, 0, 0),
    "int element_behind(const int *p, int i) { return p[i]; }": (0, 2, 0, 0),
    "float of_halves(half a, half b) { return a; }": (0, 0, 0, 0),  # by the header's function
    "uint8_t byte_of(uint32_t a) { return ((uint8_t *)&a)[3]; }": (0, 1, 0, 0),
    "uint32_t bits_of(float a) { return *(uint32_t *)&a; }": (0, 1, 0, 0),
    "uint16_t bytes_of(Node *p) { return *(uint16_t *)((char *)p + 6); }": (0, 1, 0, 0),
    "uint8_t first_of(uint64_t a) { Bytes b = *(Bytes *)&a; return b.byte[1]; }": (0, 2, 0, 0),
    "int of_same_name(Box<float> b) { Box<int> c = (const Box<int> &)b; return c.value; }": (0, 1, 0, 0),
    "uint8_t given(uint64_t a) { return taken_apart(*(Bytes *)&a); }": (0, 1, 0, 0),
    "uint8_t of_union(uint32_t a) { Parts u; u.entire = a; return u.part[3]; }": (0, 1, 0, 0),
    "uint32_t of_nameless(float a) { union { uint32_t bits; float number; }; number = a; return bits; }": (0, 1, 0, 0),
    "uint16_t within(Outer *o) { return o->high; }": (0, 1, 0, 0),
    "uint8_t *of_union_address(Parts &u) { return &u.part[1]; }": (0, 1, 0, 0),
    "bool below(float x) { { Index x = 3; x = x; } return x < 0.0f; }": (0, 0, 1, 0),
    "float shifted(float x, Index y) { { Index x = y; y = x; } x = x + 1; return x; }": (0, 0, 1, 0),
    "long behind(int *a, int *b) { return b - a; }": (0, 2, 0, 0),
    "bool before(Link a, Link b) { return a < b; }": (0, 1, 0, 0),
    "int by_member(Node &n, int Node::*m) { return n.*m; }": (0, 2, 0, 0),
    "int by_reference(int a, int b) { auto f = [&](int c) { return a + b + c; }; return f(3); }": (0, 0, 0, 0),
    "template <class F> int by_closure(F &f) { return f(3); }": (0, 1, 0, 0),
    "int use_closure(int a) { auto f = [a](int c) { return a + c; }; return by_closure(f); }": (0, 0, 0, 0),
    "half *returned_address(GlobalTensor<half> &t) { return (half *)t.GetPhyAddr(); }": (0, 1, 0, 0),
    "void into_a_queue(Queues *q) { q->in.FreeAllEvent(); q->out.FreeAllEvent(); }": (0, 0, 0, 0),
    "void into_a_function(Queues *q) { freed(q->in); }": (0, 1, 0, 0),
    "int into_a_constructor(Node *p) { Kept k(p->value); return 3; }": (0, 1, 0, 0),
    "int constructed(int a) { Keeper k(a); return a; }": (0, 0, 0, 0),
}
PRELUDE = """
using Real = float; typedef uint32_t Index; using Count = Index; enum class Colour { Red, Blue };
struct Fields { uint64_t low : 7, word : 32, : 3; bool on : 1, off [[maybe_unused]] : 1; uint32_t rest; };
struct Node { Node *next; int value, many[4]; float weight; __aicore__ int get() { return value + many[1]; }
    __attribute__((always_inline)) __aicore__ int inlined() { return value; } };
struct Outer2 { int first; Node node; };
struct Flags { bool on, off; };
using Small = uint8_t; enum class Tiny : uint8_t { A, B }; enum Plain { C, D };
using Link = Node *;
struct Bytes { uint8_t byte[8]; };
template <class T> struct Box { T value; };
union Parts { uint32_t entire; uint8_t part[4]; };
struct Outer { int first; union { uint32_t all; struct { uint16_t low_half, high; }; }; };
struct Kept { int *p; __aicore__ Kept(int &i) : p(&i) {} };
struct Keeper { int other; Kept kept; __aicore__ Keeper(int &i) : kept(i) {} };
struct Queues { TQue<TPosition::VECIN, 1> in; TQue<TPosition::VECOUT, 1> out; };
#define TWICE(x) ((x) << 1)
__aicore__ void set(int *p) { *p = 3; }
__aicore__ void freed(TQue<TPosition::VECIN, 1> &q) { q.FreeAllEvent(); }
__aicore__ int of_node(Node n) { return n.value; }
__aicore__ void short_set(uint16_t *p) { *p = 3; }
__aicore__ uint8_t taken_apart(Bytes b) { return b.byte[3]; }
"""
FUNCTION_NAMES = [text.partition("(")[0].split()[-1].lstrip("*") for text in FUNCTIONS]


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim(chip="910B2") as simulator:
        yield simulator


def built(device: AscendSim, text: str) -> Build:
    build = device.build(Kernel(text))
    assert build.ok, build.diagnostics
    return build


def counts(build: Build, text: str) -> dict[str, tuple[int, ...]]:
    """Return the operations of each function, by its name in the source."""
    assert build.artifact is not None
    dump = build.artifact.with_name(operations.DUMP).read_text()
    sums: dict[str, tuple[int, ...]] = {}
    for mangled, blocks in gimple.read_dump(dump, text).items():
        sums[mangled] = tuple(sum(column) for column in zip(*map(astuple, blocks), strict=True))
    return sums


def with_functions(functions: dict[str, str]) -> str:
    """A kernel file with functions, by name, all of which stay in the binary."""
    return source("", 0, prelude=PRELUDE + "\n".join(f"__aicore__ {text}" for text in functions.values()))


TEXT = with_functions(dict(zip(FUNCTION_NAMES, FUNCTIONS, strict=True)))


@pytest.fixture(scope="module")
def build(device: AscendSim) -> Build:
    return built(device, TEXT)


@pytest.fixture(scope="module")
def table(build: Build) -> dict[str, tuple[int, ...]]:
    return counts(build, TEXT)


@pytest.mark.parametrize(("name", "expected"), list(zip(FUNCTION_NAMES, FUNCTIONS.values(), strict=True)))
def test_a_function_is_counted_by_what_it_computes(
    table: dict[str, tuple[int, ...]], name: str, expected: tuple[int, ...]
) -> None:
    [counted] = [sums for mangled, sums in table.items() if mangled.startswith(f"_Z{len(name)}{name}")]
    assert counted == expected


def test_what_tensors_compute_with_is_counted_in_the_header(table: dict[str, tuple[int, ...]]) -> None:
    [made] = [sums for name, sums in table.items() if "LocalTensorIiEC" in name]
    assert made == (0, 1, 0, 0)


def test_members_of_an_object_are_free_in_its_methods(table: dict[str, tuple[int, ...]]) -> None:
    [of_method] = [sums for name, sums in table.items() if name.startswith("_ZN4Node3get")]
    assert of_method == (0, 1, 0, 0)


def test_a_constructor_has_the_addresses_of_its_members(table: dict[str, tuple[int, ...]]) -> None:
    [made] = [sums for name, sums in table.items() if name.startswith("_ZN6KeeperC")]
    assert made == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("typedef float Real, *P; enum Real { X };", "Real"),
        ("namespace mine { using byte = float; }", "byte"),
        ("using TEventID [[maybe_unused]] = float;", "TEventID"),
        ("typedef float sizetype, other;", "sizetype"),
        ("float typedef ssizetype;", "ssizetype"),
        ("typedef float bitsizetype[1];", "bitsizetype"),
        ("using namespace std ; typedef :: std :: float_t Real ;", "Real"),
    ],
)
def test_a_float_does_not_become_an_integer_by_its_name(text: str, name: str) -> None:
    dump = (
        ";; Function f (f, funcdef_no=1, decl_uid=1)\n\nvoid f ()\n{\n"
        f"  {name} a;\n\n  <bb 2> :\n"
        "  gimple_call <__builtin___sanitizer_cov_trace_pc, NULL>\n"
        "  gimple_assign <plus_expr, a, a, a, NULL>\n}\n"
    )
    ((counted,),) = gimple.read_dump(dump, text).values()
    assert (counted.integer, counted.float) == (0, 1)


def test_types_of_templates_and_headers_cost_what_they_are(device: AscendSim) -> None:
    """The dump has their names, which the author may have given to other types, too."""
    text = source(
        "",
        0,
        prelude="""
template <class uint32_t> struct Number { using Value = uint32_t; };
template <class uint64_t> struct Narrow { using Byte = uint64_t; };
struct Own { using type = uint32_t; using value_type = uint32_t; };
__aicore__ Number<float>::Value of_parameter(Number<float>::Value a) { a += a; a *= a; return a; }
__aicore__ float of_header(std::remove_reference<float &>::type a) { a += a; a *= a; return a; }
__aicore__ float of_array(std::array<float, 4>::value_type a) { a += a; a *= a; return a; }
__aicore__ uint64_t cut_by_parameter(uint64_t a) { Narrow<uint8_t>::Byte b = a; return b; }
""",
    )
    build = built(device, text)
    assert build.artifact is not None
    dump = build.artifact.with_name(operations.DUMP).read_text()
    blocks = gimple.read_dump(dump, text, runtime.types_of(runtime.runtime().prelude))
    floats = {name: sum(each.float for each in of) for name, of in blocks.items()}
    integers = {name: sum(each.integer for each in of) for name, of in blocks.items()}
    assert floats["_Z12of_parameterf"] == floats["_Z9of_headerf"] == floats["_Z8of_arrayf"] == 2
    assert integers["_Z16cut_by_parameterm"] >= 1


@pytest.mark.parametrize("blank", [0, 12])
def test_a_typedef_costs_the_same_wherever_it_stands(device: AscendSim, blank: int) -> None:
    """Behind an inclusion and behind many blank lines the preprocessor says where the next line comes from."""
    function = "\n__aicore__ Wide product(Wide a, Wide b) { a *= b; return a + b; }\n"
    prices = []
    for declaration in ("using Wide = unsigned long long;", "typedef unsigned long long Wide;"):
        artifact = built(device, source("", 0, prelude="\n" * blank + declaration + function)).artifact
        assert artifact is not None
        rows = artifact.with_name(artifact.name + operations.SUFFIX).read_text().splitlines()
        prices.append([row.split()[1:] for row in rows])
    assert prices[0] == prices[1]


def test_an_alias_may_have_the_name_of_one_in_a_library_that_is_not_included(device: AscendSim) -> None:
    """`Matmul` has types of the name `T`."""
    box = "\nstruct Box { using T = uint32_t; T v; __aicore__ T Next(T x) const { return x + v; } };"
    use = "\n__aicore__ uint32_t next(Box &box, uint32_t x) { return box.Next(x); }\n"
    prices = []
    for name in ("T", "Own"):
        artifact = built(device, source("", 0, prelude=re.sub(r"\bT\b", name, box) + use)).artifact
        assert artifact is not None
        rows = artifact.with_name(artifact.name + operations.SUFFIX).read_text().splitlines()
        prices.append([row.split()[1:] for row in rows])
    assert prices[0] == prices[1]


def test_a_variable_that_is_named_like_a_version_of_a_float_does_not_make_it_an_integer() -> None:
    dump = (
        ";; Function f (f, funcdef_no=1, decl_uid=1)\n\nvoid f ()\n{\n  int x_3;\n  float x;\n\n  <bb 2> :\n"
        "  gimple_call <__builtin___sanitizer_cov_trace_pc, NULL>\n"
        "  gimple_assign <plus_expr, x_3, x_2, x_2, NULL>\n}\n"
    )
    ((counted,),) = gimple.read_dump(dump, "").values()
    assert (counted.integer, counted.float) == (0, 1)


def test_a_long_name_of_a_function_is_read_once() -> None:
    name = "a" * 300_000
    head = f";; Function {name} ({name}, funcdef_no=1, decl_uid=1)\n\n"
    dump = f"{head}int {name} (int x, struct P<int, int> * y)\n{{\n"
    counter = "  <bb 2> :\n  gimple_call <__builtin___sanitizer_cov_trace_pc, NULL>\n"
    ((counted,),) = gimple.read_dump(f"{dump}{counter}  gimple_assign <plus_expr, x, x, 1, NULL>\n}}\n", "").values()
    assert (counted.integer, counted.float) == (1, 0)


VECTORS = """
float f ({type} x)
{{
  {alias} a;
  {type} _1;

  <bb 2> :
  gimple_call <__builtin___sanitizer_cov_trace_pc, NULL>
  gimple_assign <mult_expr, {result}, a_2, x_3(D), NULL>
  gimple_assign <rdiv_expr, {result}, a_2, x_3(D), NULL>
  gimple_assign <lshift_expr, {result}, a_2, 3, NULL>
}}
"""


@pytest.mark.parametrize(
    ("alias", "type", "text", "lanes"),
    [
        ("float", "float", "", 1),
        ("vector(4) float", "vector(4) float", "", 4),
        ("V", "__Float32x4_t", "typedef __Float32x4_t V;", 4),
        ("V", "V", "using V = __Int8x16_t;", 16),
        ("V", "V", "typedef float V __attribute__((vector_size(16)));", 256),
        ("V", "V", "using V [[gnu::vector_size(16)]] = float;", 256),
        ("V", "__SVFloat32_t", "", 256),
        ("float", "float", "// vector_size\nconstexpr int vector_size = 64;", 1),
    ],
)
def test_an_operation_on_a_vector_of_the_host_counts_for_each_lane(
    alias: str, type: str, text: str, lanes: int
) -> None:
    head = ";; Function f (f, funcdef_no=1, decl_uid=1)\n"
    dump = head + VECTORS.format(alias=alias, type=type, result="a_4")
    ((counted,),) = gimple.read_dump(dump, text).values()
    assert (counted.integer + counted.float, counted.divisions) == (2 * lanes, lanes)


# ---- what it costs -------------------------------------------------------------------------------------------------

#: Loops cost a comparison, a branch and an addition by themselves.
LOOP = 3
DIVISION, FLOAT = (int(chip.load("910B2")[f"scalar.{name}"]) for name in ("division", "float"))

#: What runs in a loop, and its cycles in each turn.
STATEMENTS = {
    "": 0,
    "x += i;": 1,
    "x += i; x += i; x += i; x += i;": 4,
    "x = x * 3 + i; f = f * 2.5f + 1.0f;": 2 + 2 * FLOAT,
    "x += y / (i + 1);": 2 + DIVISION,
    "if (x > i) x -= i; else x += i;": 3,
    "h += f;": 3 * FLOAT,
    "h = h * h;": 4 * FLOAT,
    "f = sqrt(f);": DIVISION,
    "x = ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(f);": FLOAT,
    "h = ScalarCast<float, half, RoundMode::CAST_RINT>(f);": FLOAT,
    "x = AlignUp(x, 32);": 3 + DIVISION,
    "x = AlignUp(x, 32u);": 3 + DIVISION,
    "x = CeilDivision(x, 32u) + DivCeil(x, 5u);": 5 + 2 * DIVISION,
    "b.low = x; x = b.low;": 3,
    "x = b.word;": 1,
    "d = f; f = d;": 2 * FLOAT,
    "w = static_cast<uint8_t>(w); w = static_cast<uint64_t>(static_cast<int8_t>(w));": 2,
    "x += q->a; x += q->b;": 4,
    "x += q->first();": 2,
    "x += s.a; x += s.first();": 2,
    "x += r; auto add = [&](int a) { return a + y; }; x = add(x);": 3,
    "r = x;": 1,
    "GlobalTensor<int> t; t.SetGlobalBuffer(nullptr, x); x = t.ReinterpretCast<half>().GetSize();": 4,
    "LocalTensor<int> t(TPosition::VECCALC, 0, i); x = t.GetLength();": 5,
    "int many[512]; many[0] = i; x = many[0];": 0,
    "int few[64]; few[0] = i; x = few[0];": 0,
    "f += 1.0f;" * 40 + "x = x / y;" * 40: 40 * FLOAT + 40 * DIVISION,
}
#: The same arithmetic, (x * 7 + i) ^ y, in other words: three operations in each turn.
SPELLINGS = [
    "x = (x * 7 + i) ^ y;",
    "int t = x * 7;\n t += i;\n x = t ^ y;",
    "x *= 7, x += i, x ^= y;",
    "x = STEP(x, i);",
    "x = by_function(x, i, y);",
    "x = inlined(x, i, y);",
    "x = by_template<7>(x, i, y);",
    "auto step = [&](int a) { return (a * 7 + i) ^ y; }; x = step(x);",
    "x = ((Number{x} * Number{7} + Number{i}) ^ Number{y}).v;",
]
WORDS = """
struct Pair { int a, b; __aicore__ int first() { return a; } };
#define STEP(a, b) ((a * 7 + b) ^ y)
__aicore__ inline int by_function(int a, int b, int c) { return (a * 7 + b) ^ c; }
__attribute__((always_inline)) __aicore__ inline int inlined(int a, int b, int c) { return (a * 7 + b) ^ c; }
template <int k, class T> __aicore__ inline T by_template(T a, T b, T c) { return (a * k + b) ^ c; }
struct Number {
    int v;
    __aicore__ Number operator*(Number o) const { return {v * o.v}; }
    __aicore__ Number operator+(Number o) const { return {v + o.v}; }
    __aicore__ Number operator^(Number o) const { return {v ^ o.v}; }
};
"""
PROGRAMS = [*STATEMENTS, *SPELLINGS]
CYCLES = [*STATEMENTS.values(), *(3 for _ in SPELLINGS)]


@pytest.fixture(scope="module")
def programs(device: AscendSim) -> Build:
    """A kernel that runs one of the programs so many times as it is told."""
    loops = "\n".join(
        f"case {n}: for (int i = 0; i < p.v[1]; ++i) {{ {text} }} break;" for n, text in enumerate(PROGRAMS)
    )
    start = (
        "GlobalTensor<int> out; out.SetGlobalBuffer((__gm__ int *)z0); int x = 3, y = 5; float f = 1.5f; half h = f; "
        "double d = f; uint64_t w = 77; Pair s{}; Pair *q = &s; int &r = s.a; "
        "struct { uint64_t low : 7, word : 32; } b{};"
    )
    end = "out.SetValue(0, x + (int)f + (int)(float)h);"
    return built(device, source(f"{start} switch (p.v[0]) {{ {loops} }} {end}", 0, prelude=WORDS))


@pytest.mark.parametrize(("number", "expected"), list(enumerate(CYCLES)), ids=[text[:40] for text in PROGRAMS])
def test_a_loop_costs_what_it_computes(device: AscendSim, programs: Build, number: int, expected: int) -> None:
    """In whatever words it is written."""
    output = TensorSpec((8,), "int32")
    runs = [device.run(programs, Inputs(Signature((), (output,), ints=(number, turns)))) for turns in (500, 1500)]
    short, long = (run.latency_us or 0.0 for run in runs)
    assert (long - short) * chip.load("910B2")["clock_mhz"] / 1000 - LOOP == pytest.approx(expected, abs=0.01)


MORE = [
    "x += y;", "x = x * y - 3;", "x /= y | 1;", "f = f * 2.0f + x;", "if (x > y) x = -x;", "q[x & 3] += y;",
    "f -= 0.5f;", "for (int k = 0; k < 3; ++k) y ^= x >> k;", "x = x < y ? x : y;", "y = x % 9;", "x = (int)f;",
    "y = TWICE(y);", "switch (x & 3) { case 0: y++; break; case 1: x--; }", "x = max(x, y);", "while (y > 99) y /= 2;",
]  # fmt: skip


def test_more_statements_never_cost_less(device: AscendSim) -> None:
    """Each function has one statement more than the one before it."""
    program = random.Random(0).sample(MORE, len(MORE))
    functions = {
        f"first{n}": f"int first{n}(int x, int y, float f) {{ int q[4] = {{}}; {' '.join(program[:n])} return x; }}"
        for n in range(len(program) + 1)
    }
    text = with_functions(functions)
    sums = counts(built(device, text), text)
    costs = [sums[f"_Z{len(name)}{name}iif"] for name in functions]
    for shorter, longer, statement in zip(costs[:-1], costs[1:], program, strict=True):
        assert all(before <= after for before, after in zip(shorter, longer, strict=True)), statement
        assert sum(shorter) < sum(longer), statement


#: A copy of an object of so many bytes, in all the ways there are. It costs a cycle for each word beyond 256 bytes, and
#: one for each pointer.
COPIES = {
    "between locals": "a = b;",
    "through pointers": "copied(&a, &b);",
    "by value": "by_value(a);",
    "returned": "S c = returned(&a);",
    "initialised": "S c = a;",
    "filled": "S c{};",
}
POINTERS = {"through pointers": 2, "returned": 1}
COPIED = """
template <class S> __aicore__ void copied(S *a, S *b) { *a = *b; }
template <class S> __aicore__ void by_value(S a) {}
template <class S> __aicore__ S returned(S *a) { return *a; }
template <int bytes> struct Bytes { uint8_t byte[bytes]; };
"""
SIZES = (100, 256, 300, 1000, 9000)


@pytest.fixture(scope="module")
def copies(device: AscendSim) -> Build:
    """A kernel that runs one of the copies so many times as it is told."""
    cases = "\n".join(
        f"case {n}: {{ using S = Bytes<{size}>; S a{{}}, b{{}}; for (int i = 0; i < p.v[1]; ++i) {{ {text} }} break; }}"
        for n, (size, text) in enumerate((size, text) for size in SIZES for text in COPIES.values())
    )
    out = "GlobalTensor<int> out; out.SetGlobalBuffer((__gm__ int *)z0); out.SetValue(0, 1);"
    return built(device, source(f"switch (p.v[0]) {{ {cases} }} {out}", 0, prelude=COPIED))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_costs_its_words_once(device: AscendSim, copies: Build, size: int, way: str) -> None:
    """However it is written. Sizes up to 256 bytes are free."""
    number = SIZES.index(size) * len(COPIES) + list(COPIES).index(way)
    output = TensorSpec((8,), "int32")
    runs = [device.run(copies, Inputs(Signature((), (output,), ints=(number, turns)))) for turns in (100, 300)]
    short, long = (run.latency_us or 0.0 for run in runs)
    cycles = (long - short) * chip.load("910B2")["clock_mhz"] / 200 - LOOP
    assert cycles == pytest.approx(max(0, (size - 256) // 8) + POINTERS.get(way, 0), abs=0.05)


#: The same loop with its work in a branch, and behind a label that the compiler moves behind the block before it.
LOOPS = (
    """for (int i = 0; i < p.v[0]; ++i) {
        if (p.v[1] == 4) { x = 1.0f / (x + y); x = 1.0f / (x + y); x = 1.0f / (x + y); } else { x = x + y; }
    }""",
    """int i = 0;
        goto test;
    work: if (p.v[1] == 4) goto hot; x = x + y; goto next;
    next: ++i;
    test: if (i < p.v[0]) goto work; else goto done;
    hot: x = 1.0f / (x + y); x = 1.0f / (x + y); x = 1.0f / (x + y); goto next;
    done:;""",
)


def test_blocks_that_the_compiler_moves_keep_their_price(device: AscendSim) -> None:
    out = "GlobalTensor<int> out; out.SetGlobalBuffer((__gm__ int *)z0); out.SetValue(0, x > 0.0f);"
    inputs = Inputs(Signature((), (TensorSpec((8,), "int32"),), ints=(1000, 4)))
    builds = [built(device, source(f"float x = 1.5f, y = 0.25f; {loop} {out}", 0)) for loop in LOOPS]
    branch, label = (device.run(build, inputs).latency_us or 0.0 for build in builds)
    assert label == pytest.approx(branch, rel=0.02)


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("g++", runtime.GUARD_FLAGS),
        ("x86_64-linux-gnu-g++-12", ("-fsanitize=kernel-address", *runtime._X86)),
    ],
)
def test_copies_and_fills_beyond_256_bytes_are_calls_on_every_machine(
    tmp_path: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    text = "struct S{n} {{ char c[{n}]; }}; S{n} r{n}(S{n} *a, S{n} *b) {{ *a = *b; S{n} c{{}}; *b = c; return c; }}\n"
    (tmp_path / "copies.cpp").write_text("".join(text.format(n=n) for n in (8, 100, 256, 257, 1000, 9000)))
    command = [compiler, "-O0", "-w", *flags, "-S", "copies.cpp", "-o", "copies.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    _, *functions = re.split(r"^_Z\d+r(\d+)P", (tmp_path / "copies.s").read_text(), flags=re.MULTILINE)
    bodies = zip(map(int, functions[::2]), functions[1::2], strict=True)
    calls = {size: len(re.findall(r"\bmem(?:cpy|set)\b", body)) for size, body in bodies}
    assert calls == {8: 0, 100: 0, 256: 0, 257: 3, 1000: 3, 9000: 3}
    assert "rep " not in (tmp_path / "copies.s").read_text()


# ---- what does not fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dump", "message"),
    [(lambda text: text.replace("trace_pc", "other", 1), "basic blocks, but"), (lambda _: "", "are missing in the")],
    ids=["a block less", "nothing"],
)
def test_code_without_a_price_is_an_error(
    build: Build, tmp_path: Path, dump: Callable[[str], str], message: str
) -> None:
    assert build.artifact is not None
    text = build.artifact.with_name(operations.DUMP).read_text()
    blocks = gimple.read_dump(text, "")
    computed = {name: [Computed(number, 0, 0, 0) for number in range(len(each))] for name, each in blocks.items()}
    with build.artifact.open("rb") as file, pytest.raises(InfrastructureError, match=message):
        operations.count(tmp_path / "kernel.so", dump(text), "", {}, ELFFile(file), computed)


def test_no_block_costs_less_than_its_instructions() -> None:
    """Whatever the compiler's dump seems to say of a block, its instructions compute what they compute."""
    priced = gimple.Operations(branches=1, integer=5, float=2, divisions=0)
    assert priced.at_least(Computed(1, integer=18, float=2, divisions=0)) == priced
    assert priced.at_least(Computed(1, integer=30, float=9, divisions=4)) == gimple.Operations(1, 11, 9, 4)


def test_floats_that_the_dump_seems_to_lack_are_paid(device: AscendSim, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(dump: str, *_: object) -> dict[str, list[gimple.Operations]]:
        return {name: [gimple.Operations() for _ in blocks] for name, blocks in read(dump, "").items()}

    read = gimple.read_dump
    monkeypatch.setattr(operations, "read_dump", found)
    text = source(
        "float f = (float)p.v[0]; for (int i = 0; i < 9; ++i) f = f * f + 0.5f; if (f / 3.0f > 5.0f) return;", 1
    )
    built = device.build(Kernel(text))
    assert built.ok, built.diagnostics
    assert built.artifact is not None
    rows = built.artifact.with_name(f"{built.artifact.name}{operations.SUFFIX}").read_text().splitlines()
    assert sum(int(row.split()[3]) for row in rows) == 2
    assert sum(int(row.split()[4]) for row in rows) == 1

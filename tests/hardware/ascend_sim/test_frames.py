"""Kernel code cannot change the pointers that compiled code keeps in its frames; its own variables it can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend_sim import frames
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from tests.hardware.ascend_sim.test_guard import run, source

#: Functions that return large objects, or hand on pointers to their variables; the sum is 10.
RETURNING = {
    "an object filled in a loop": """
        __aicore__ inline Large Make(uint64_t n) {
            Large result;
            for (uint64_t i = 0; i < 64; ++i) result.words[i] = i < n ? i + 1 : 0;
            return result;
        }
        __aicore__ inline uint64_t Sum() {
            uint64_t sum = 0;
            for (uint64_t word : Make(4).words) sum += word;
            return sum;
        }""",
    "an object whose address is handed on": """
        __aicore__ inline void Fill(Large *large, uint64_t *sum) { for (auto &word : large->words) *sum += word = 1; }
        __aicore__ inline Large Make(uint64_t &sum) { Large result; Fill(&result, &sum); return result; }
        __aicore__ inline uint64_t Sum() { uint64_t sum = 0; Large made = Make(sum); return sum - 54 * made.words[5]; }
    """,
    "calls in calls": """
        __aicore__ inline Large Next(Large from, uint64_t n) { from.words[n] += n; return from; }
        __aicore__ inline uint64_t Sum() {
            const Large made = Next(Next(Next(Next(Large{}, 1), 2), 3), 4);
            return made.words[1] + made.words[2] + made.words[3] + made.words[4];
        }""",
    "aligned variables and arguments on the stack": """
        __aicore__ inline uint64_t Add(int a, int b, int c, int d, int e, int f, int g, uint64_t *last) {
            alignas(64) uint64_t here[2] = {1, 2};
            uint64_t *place = &here[1];
            return a + b + c + d + e + f + g + *place + *last;
        }
        __aicore__ inline uint64_t Sum() {
            alignas(128) uint64_t last = 1;
            return Add(1, 1, 1, 1, 1, 1, 1, &last);
        }""",
    "virtual functions of two bases": """
        struct First { virtual uint64_t One() const { return 1; } };
        struct Second { uint64_t own = 9; virtual uint64_t Nine() const { return own; } };
        struct Both final : First, Second { uint64_t Nine() const override { return own; } };
        __aicore__ inline uint64_t Sum() { Both both; return both.One() + both.Nine(); }""",
    "recursion": """
        __aicore__ inline Large Make(uint64_t n) {
            Large result = n ? Make(n - 1) : Large{};
            uint64_t *first = &result.words[0];
            *first += n;
            return result;
        }
        __aicore__ inline uint64_t Sum() { return Make(4).words[0]; }""",
    "members, operators, templates and lambdas": """
        template <class T> struct Box {
            T items[9];
            uint32_t used = 0;
            __aicore__ inline Box operator+(T item) const {
                Box sum = *this;
                T &place = sum.items[sum.used++];
                place = item;
                return sum;
            }
            __aicore__ inline Box Doubled() const {
                auto twice = [this](uint32_t i) { Box one = *this; one.items[i] *= 2; return one; };
                Box all = *this;
                for (uint32_t i = 0; i < used; ++i) all.items[i] = twice(i).items[i];
                return all;
            }
        };
        __aicore__ inline uint64_t Sum() {
            const auto box = ((Box<uint64_t>{} + 2) + 3).Doubled();
            const auto [items, used] = box;
            return items[0] + items[1] + used - 2;
        }""",
    "parameters that are changed through pointers": """
        __aicore__ inline void Add(uint64_t *to, uint64_t n) { *to += n; }
        __aicore__ inline uint64_t Last(Large large, int a, int, int, int, int, int, int, int, uint64_t last) {
            Add(&last, a);
            Add(large.words + 63, last);
            std::swap(large.words[0], large.words[63]);
            return large.words[0];
        }
        __aicore__ inline uint64_t Sum() { return Last(Large{}, 7, 2, 3, 4, 5, 6, 7, 8, 3); }""",
    "large parameters on the stack that are changed": """
        struct Pair { uint64_t words[2]; };
        __aicore__ inline void Add(Large *to, uint64_t n) { to->words[n] += n; }
        __aicore__ inline uint64_t Last(
            int a, int, int, int, int, int, int, int, Large large, Pair pair, Large other, const Large &same, int b
        ) {
            Add(&large, 3);
            Large *place = &other;
            place->words[a] = large.words[3] + b;
            uint64_t *second = &pair.words[1];
            *second += same.words[0];
            std::swap(large, other);
            return large.words[a] + *second;
        }
        __aicore__ inline uint64_t Sum() {
            Large large{{1}};
            const uint64_t sum = Last(2, 2, 3, 4, 5, 6, 7, 8, large, {{0, 1}}, Large{}, large, 5);
            return large.words[0] == 1 && large.words[3] == 0 ? sum : 0;
        }""",
    "an alignment of its own": """
        struct alignas(64) Line { uint64_t words[8]; };
        __aicore__ inline Line Make(uint64_t *sum, uint64_t n) {
            Line line{};
            for (uint64_t i = 1; i <= n; ++i) *sum += line.words[i] = i;
            return line;
        }
        __aicore__ inline uint64_t Sum() {
            uint64_t sum = 0;
            alignas(256) uint64_t lines[8] = {};
            for (uint64_t i = 0; i < 5; ++i) lines[i] = Make(lines + 7, i).words[i];
            std::copy(lines, lines + 5, &lines[1]);
            for (uint64_t line : lines) sum += line;
            return sum - lines[7];
        }""",
    "results in arrays, members and through pointers": """
        struct Two { Large first; Large second; };
        __aicore__ inline Large Make(uint64_t n) { return {{n}}; }
        struct Held { Large large; uint64_t n; __aicore__ inline Held(uint64_t n) : large(Make(n)), n(n) {} };
        __aicore__ inline uint64_t Sum() {
            Large many[3] = {Make(1), Make(2), Make(3)};
            Large *last = many + 2;
            *last = Make(4);
            Two two{Make(1), Make(1)};
            return many[0].words[0] + many[1].words[0] + last->words[0] + two.second.words[0] + Held(2).large.words[0];
        }""",
    "a large frame": """
        __aicore__ inline void Fill(uint64_t *words, uint64_t n) { for (uint64_t i = 0; i < n; ++i) words[i] = i; }
        __aicore__ inline uint64_t Sum() {
            uint64_t words[5000], few[4], sum = 0;
            Fill(words, 5000);
            Fill(few, 4);
            for (uint64_t i = 0; i < 4; ++i) sum += few[i] + (words[4999 - i] == 4999 - i);
            return sum;
        }""",
    "large frames of other alignments": """
        __aicore__ inline void Fill(uint64_t *words, uint64_t n) { for (uint64_t i = 0; i < n; ++i) words[i] = i; }
        template <uint64_t alignment, uint64_t n> __aicore__ inline uint64_t Last() {
            alignas(alignment) uint64_t table[n];
            Fill(table, n);
            return (uint64_t)table % alignment ? 0 : table[n - 1] - (n - 3);
        }
        __aicore__ inline uint64_t Sum() {
            return Last<64, 1000>() + Last<128, 5000>() + Last<4096, 3>() + Last<8192, 3000>() + Last<65536, 3>();
        }""",
}

#: Functions that change a pointer in a frame, which the compiled code uses without calling the guard again. `Set`
#: writes some words below a variable; the address that it writes is one that kernel code may write.
SET = """
__aicore__ inline uint64_t Set(uint64_t *variable, uint64_t *place, int words) {
    for (int i = 1; i <= words; ++i) variable[-i] = (uint64_t)place;
    return 1;
}
struct Pair { uint64_t words[2]; };
__aicore__ inline Pair SetPair(uint64_t *variable, uint64_t *place, int words) {
    return {{Set(variable, place, words), 1}};
}
"""
TRUSTED = {
    "the address of a returned object": """
        __aicore__ inline Large Change(uint64_t *place) {
            Large result;
            uint64_t here = 0;
            result.words[1] = Set(&here, place, 2);
            return result;
        }""",
    "the address of an object that is returned at once": """
        __aicore__ inline Large Change(uint64_t *place) {
            uint64_t here = 0;
            return {{1, Set(&here, place, 2)}};
        }""",
    "a pointer that is followed again": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            uint64_t other = 0, *followed = place, here = 0, *p = &here;
            *followed = 1;
            for (; other == 0; ++other) {}
            *followed = 2;
            p[-1] = (uint64_t)place;
            *followed = 3;
            return 1;
        }""",
    "a pointer that is followed after a call": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            uint64_t here = 0;
            *(Pair *)place = SetPair(&here, place, 2);
            return 1;
        }""",
    "an address that waits for the end of a call": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            uint64_t here = 0;
            place[here + 1] = Set(&here, place, 2) + here;
            return 1;
        }""",
    "a parameter on the stack": """
        __aicore__ inline uint64_t Last(int, int, int, int, int, int, int, int, uint64_t *place) {
            uint64_t here = 0;
            *(Pair *)place = SetPair(&here + 6, place, 1);
            return 1;
        }
        __aicore__ inline uint64_t Change(uint64_t *place) { return Last(1, 2, 3, 4, 5, 6, 7, 8, place); }""",
    "the address of an object on the stack": """
        __aicore__ inline uint64_t Last(uint64_t *place, int, int, int, int, int, int, int, Large large) {
            uint64_t here = 0, *p = &here;
            for (int i = 0; i < 6; ++i) p[i] = (uint64_t)place;
            large = Large{};
            return 1;
        }
        __aicore__ inline uint64_t Change(uint64_t *place) { return Last(place, 2, 3, 4, 5, 6, 7, 8, Large{}); }""",
    "in a frame of another alignment": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            alignas(128) uint64_t here = 0;
            *(Pair *)place = SetPair(&here, place, 16);
            return 1;
        }""",
    "in a frame of another alignment and several pages": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            alignas(64) uint64_t here[1000] = {};
            *(Pair *)place = SetPair(here, place, 8);
            return 1;
        }""",
    "in a frame of another alignment and many pages": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            alignas(128) uint64_t here[9000] = {};
            *(Pair *)place = SetPair(here, place, 16);
            return 1;
        }""",
    "far from the end of a frame": """
        __aicore__ inline uint64_t Change(uint64_t *place) {
            uint64_t *followed = place, many[9000] = {};
            *followed = 1;
            for (int i = 0; i < 64; ++i) Set(many + 9001 + i, place, 1);
            *followed = 2;
            return 1;
        }""",
    "behind a read": """
        __aicore__ inline Large Change(uint64_t *place) {
            Large result;
            uint64_t here = 0, *p = &here;
            p[-1] += 0;
            p[-2] += 0;
            result.words[0] = *place;
            return result;
        }""",
    "in the frame of a caller": """
        struct Deep { static __aicore__ uint64_t Dive(uint64_t *variable, uint64_t *place, int depth) {
            return depth == 0 ? Set(variable, place, 2) : Dive(variable, place, depth - 1);
        } };
        __aicore__ inline Large Change(uint64_t *place) {
            Large result;
            uint64_t here = 0;
            result.words[1] = Deep::Dive(&here, place, 5);
            return result;
        }""",
}

#: Two dumps of a function: `followed` is a pointer, `here` a variable whose address is taken.
#: `fp` is the frame pointer.
GIMPLE = """
;; Function Change (_Z6ChangePm, funcdef_no=1, decl_uid=9, cgraph_uid=2, symbol_order=1)

void ChangeD.9 (uint64_tD.2 * followedD.10)
{
  uint64_tD.2 hereD.11;

  <bb 2> :
  SetD.12 (&hereD.11, "followedD.10");
  *followed_2(D) = 3;
}
"""
INSTRUCTIONS = """
;; Function Change (_Z6ChangePm, funcdef_no=1, decl_uid=9, cgraph_uid=2, symbol_order=1)

(insn/f 20 5 21 2 (set (reg/f:DI 29 {fp})
        {record}) "kernel.cpp":3 80 {{*movdi}}
     (nil))
{prologue}
(note 22 21 2 2 NOTE_INSN_PROLOGUE_END)
(insn 2 22 3 2 (set (mem/f/c:DI (plus:DI (reg/f:DI 31 {base})
                (const_int {distance} [0x18])) [18 {name}+0 S8 A64])
        (reg:DI 5 di [ {name} ])) "kernel.cpp":3 80 {{*movdi}}
     (expr_list:REG_EQUIV (mem/f/c:DI (plus:DI (reg/f:DI 64 frame)
                (const_int -8 [0xf8])) [18 {name}+0 S8 A64])
        (nil)))
(insn 3 2 4 2 (set (mem/c:DI (plus:DI (reg/f:DI 31 {base})
                (const_int 40 [0x28])) [18 hereD.11+0 S8 A64])
        (const_int 0 [0])) "kernel.cpp":3 80 {{*movdi}}
     (nil))
"""
#: An argument without a name is read; one is stored, and handed to a function.
NAMELESS = """(insn 30 3 31 2 (set (reg:DI 1 x1 [106])
        (mem:DI (plus:DI (reg/f:DI 31 {base})
                (const_int {distance} [0xd0])) [0  S8 A128])) "kernel.cpp":3 53 {{*movdi}} (nil))
(insn 31 30 32 2 (set (mem:DI (plus:DI (reg/f:DI 31 sp)
                (const_int 8 [0x8])) [0  S8 A64])
        (reg:DI 0 x0)) "kernel.cpp":3 53 {{*movdi}} (nil))
(call_insn 32 31 33 2 (call (mem:DI (symbol_ref:DI ("_Z3Setv")) [0 SetD.12 S8 A8])
        (const_int 0 [0])) "kernel.cpp":3 46 {{*call_insn}} (nil)
    (expr_list:DI (use (mem/f:DI (plus:DI (reg/f:DI 31 sp)
                    (const_int 8 [0x8])) [0  S8 A64]))
        (nil)))
(note 33 32 34 2 NOTE_INSN_EPILOGUE_BEG)
(insn/f 34 33 35 2 (set (reg:DI 29 x29)
        (mem:DI (plus:DI (reg/f:DI 31 sp)
                (const_int 16 [0x10])) [7  S8 A8])) "kernel.cpp":3 53 {{*movdi}} (nil))
(barrier 35 34 36)
"""
LOWERED = """(insn/f 21 20 22 2 (set (reg/f:DI 31 sp)
        (plus:DI (reg/f:DI 31 sp)
            (const_int -32 [0xe0]))) "kernel.cpp":3 80 {*adddi3} (nil))"""
#: As g++ writes it for x86-64 where a frame takes several pages, and where it takes many. Each page is touched.
TOUCHED = f"""{LOWERED}
(insn 23 21 24 2 (parallel [
            (set (mem/v:DI (reg/f:DI 31 sp) [0  S8 A8])
                (unspec:DI [
                        (const_int 0 [0])
                    ] UNSPEC_PROBE_STACK))
            (clobber (reg:CC 17 flags))
        ]) "kernel.cpp":3 80 {{probe_stack_1_di}} (nil))
{LOWERED}"""
IN_A_LOOP = f"""(insn 23 21 24 2 (set (reg:DI 39 r11)
        (plus:DI (reg/f:DI 31 sp)
            (const_int -4096 [0xf000]))) "kernel.cpp":3 80 {{*leadi}} (nil))
(insn 24 23 25 2 (parallel [
            (set (reg:DI 39 r11)
                (unspec_volatile:DI [
                        (reg:DI 39 r11)
                    ] UNSPECV_PROBE_STACK_RANGE))
            (set (reg/f:DI 31 sp)
                (minus:DI (reg/f:DI 31 sp)
                    (const_int 4096 [0x1000])))
            (clobber (reg:CC 17 flags))
            (clobber (mem:BLK (scratch) [0  A8]))
        ]) "kernel.cpp":3 80 {{adjust_stack_and_probe_di}} (nil))
{LOWERED}"""
PUSHED = """(insn/f 21 20 22 2 (set (mem:DI (pre_dec:DI (reg/f:DI 31 sp)) [0  S8 A8])
        (reg:DI 0 ax)) "kernel.cpp":3 80 {*pushdi2_rex64} (nil))"""
#: As g++ writes it for aarch64 where a place is more than 32 KB away.
COMPUTED = """(insn 23 22 24 2 (set (reg:DI 0 x0 [95])
        (plus:DI (reg/f:DI 31 sp)
            (const_int 32768 [0x8000]))) "kernel.cpp":3 124 {*adddi3_aarch64} (nil))
(insn 24 23 2 2 (set (reg:DI 0 x0 [95])
        (plus:DI (reg:DI 0 x0 [95])
            (const_int 16 [0x10]))) "kernel.cpp":3 124 {*adddi3_aarch64} (nil))"""
#: The distance is in a register: 16 bits of it, then 16 more, and what is too much for these.
FAR = """(insn 23 22 24 2 (set (reg:DI 0 x0 [95])
        (const_int 54321 [0xd431])) "kernel.cpp":3 53 {*movdi_aarch64} (nil))
(insn 24 23 25 2 (set (zero_extract:DI (reg:DI 0 x0 [95])
            (const_int 16 [0x10])
            (const_int 16 [0x10]))
        (const_int 1024 [0x400])) "kernel.cpp":3 55 {insv_immdi} (nil))
(insn 25 24 26 2 (set (reg:DI 0 x0 [96])
        (plus:DI (reg:DI 0 x0 [95])
            (const_int -1 [0xffffffffffffffff]))) "kernel.cpp":3 124 {*adddi3_aarch64} (nil))
(insn 26 25 2 2 (set (reg:DI 0 x0 [95])
        (plus:DI (reg/f:DI 31 sp)
            (reg:DI 0 x0 [96]))) "kernel.cpp":3 124 {*adddi3_aarch64} (nil))"""
IN_PART = f"""{COMPUTED}
(insn 25 24 2 2 (set (zero_extract:DI (reg:DI 0 x0 [95])
            (const_int 16 [0x10])
            (const_int 16 [0x10]))
        (const_int 1024 [0x400])) "kernel.cpp":3 55 {{insv_immdi}} (nil))"""
#: The same with a call in between.
CALLED = f"""{COMPUTED}
(call_insn 25 24 2 2 (call (mem:DI (symbol_ref:DI ("_Z3Setv")))) "kernel.cpp":3 46 {{*call_insn}} (nil))"""
LOADED = f"""{COMPUTED}
(insn 25 24 2 2 (set (reg:DI 0 x0 [96])
        (mem:DI (reg/f:DI 31 sp) [0  S8 A8])) "kernel.cpp":3 53 {{*movdi_aarch64}} (nil))"""
BY_A_REGISTER = LOWERED.replace("(const_int -32 [0xe0])", "(reg:DI 12 x12)")
AT_THE_RECORD, ABOVE = "(reg/f:DI 31 sp)", "(plus:DI (reg/f:DI 31 sp)\n            (const_int 16 [0x10]))"


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as opened:
        yield opened


@pytest.mark.parametrize("place", ["core", "host"])
@pytest.mark.parametrize("name", RETURNING)
def test_large_objects_and_pointers_to_variables_are_handed_on(device: AscendSim, name: str, place: str) -> None:
    """A wrong sum reads no memory of the kernel's."""
    statement = "if (Sum() != 10) sum = *(uint64_t *)8;"
    result = run(device, place, statement, compute=True, outside=RETURNING[name])
    assert result.status == "ok", result.fault


@pytest.mark.parametrize("place", ["core", "host"])
@pytest.mark.parametrize("name", TRUSTED)
def test_pointers_that_compiled_code_keeps_in_a_frame_cannot_be_changed(
    device: AscendSim, name: str, place: str
) -> None:
    result = run(device, place, "Change(own); sum = own[0];", compute=False, outside=SET + TRUSTED[name])
    assert result.fault is not None
    assert result.fault.rule == "BAD_POINTER", result.fault
    assert "none of its variables" in result.fault.message, result.fault


@pytest.mark.parametrize(
    ("base", "record", "prologue", "distance", "place"),
    [
        ("bp", AT_THE_RECORD, LOWERED, -24, -24),
        ("x29", AT_THE_RECORD, "", 24, 24),
        ("sp", AT_THE_RECORD, "", 24, 24),
        ("sp", ABOVE, "", 24, 8),
        ("sp", AT_THE_RECORD, LOWERED, 24, -8),
        ("sp", AT_THE_RECORD, TOUCHED, 24, -40),
        ("sp", AT_THE_RECORD, IN_A_LOOP, 24, -4104),
        ("sp", AT_THE_RECORD, IN_A_LOOP.replace("(const_int 4096 [0x1000])", "(reg:DI 39 r11)"), 24, None),
        ("sp", AT_THE_RECORD, PUSHED, 24, None),
        ("bp", AT_THE_RECORD, LOWERED, -(1 << 34), None),
        ("sp", AT_THE_RECORD, BY_A_REGISTER, 24, None),
        ("x0", AT_THE_RECORD, "", 24, None),
        ("x0", AT_THE_RECORD, COMPUTED, 24, 32808),
        ("x0", ABOVE, COMPUTED, 24, 32792),
        ("x0", AT_THE_RECORD, FAR, 24, 1024 * 65536 + 54320 + 24),
        ("x0", ABOVE, FAR, 24, 1024 * 65536 + 54320 + 8),
        ("x0", AT_THE_RECORD, FAR.replace("reg/f:DI 31 sp", "reg:DI 3 x3"), 24, None),
        ("x0", AT_THE_RECORD, FAR.replace("reg:DI 0 x0 [96])))", "reg/f:DI 31 sp)))"), 24, None),
        ("x0", AT_THE_RECORD, IN_PART, 24, None),
        ("x0", AT_THE_RECORD, CALLED, 24, None),
        ("x0", AT_THE_RECORD, LOADED, 24, None),
    ],
)
@pytest.mark.parametrize("name", ["followedD.10", ".result_ptrD.13", "%sfpD.14"])
def test_words_are_found_relative_to_the_record_of_their_frame(
    name: str, base: str, record: str, prologue: str, distance: int, place: int | None
) -> None:
    """As g++ writes them for x86-64 and for aarch64."""
    pointer = "bp" if base == "bp" else "x29"
    before, behind = ("", prologue) if base == "x0" else (prologue, "")
    text = INSTRUCTIONS.format(fp=pointer, base=base, record=record, prologue=before, distance=distance, name=name)
    text = text.replace("(insn 2 22", f"{behind}\n(insn 2 22")
    ((function, words),) = frames.read(GIMPLE, text)
    assert function == "_Z6ChangePm"
    assert words == (None if place is None else [frames.Word(1, place, place + 8)])


@pytest.mark.parametrize(
    ("base", "distance", "place"),
    [("x29", 208, 208), ("bp", 48, 48), ("sp", 208, 176), ("x1", 208, None)],
)
def test_arguments_without_a_name_are_trusted_where_they_are_read(base: str, distance: int, place: int | None) -> None:
    """As g++ writes the hidden address of a large object that is the ninth argument."""
    text = INSTRUCTIONS.format(
        fp="x29", base="x29", record=AT_THE_RECORD, prologue=LOWERED, distance=24, name="followedD.10"
    ) + NAMELESS.format(base=base, distance=distance)
    ((_, words),) = frames.read(GIMPLE, text)
    assert words == [frames.Word(1, 24, 32)] + ([] if place is None else [frames.Word(1, place, place + 8)])


@pytest.mark.parametrize(
    "forged",
    [
        r"""MarkD.15<'\"'> ("followedD.10");""",
        r"""MarkD.15<'"'> ("D.10", "it's D.10");""",
        "D.10_3 = DD.16;",
        "D.10D.17 = DD.16;",
    ],
    ids=["a character", "another character", "a register", "a temporary"],
)
def test_names_and_texts_of_the_author_are_no_variables(forged: str) -> None:
    gimple = GIMPLE.replace("  SetD.12", f"  {forged}\n  SetD.12")
    text = INSTRUCTIONS.format(fp="bp", base="bp", record=AT_THE_RECORD, prologue="", distance=-24, name="followedD.10")
    assert list(frames.read(gimple, text)) == [("_Z6ChangePm", [frames.Word(1, -24, -16)])]


def test_the_head_of_a_function_is_no_block() -> None:
    gimple = GIMPLE.replace("void ChangeD.9 (", "void Change<bb [1]>D.9 (")
    text = INSTRUCTIONS.format(fp="bp", base="bp", record=AT_THE_RECORD, prologue="", distance=-24, name="followedD.10")
    assert list(frames.read(gimple, text)) == [("_Z6ChangePm", [frames.Word(1, -24, -16)])]


def test_a_frame_with_its_return_address_elsewhere_does_not_compile() -> None:
    """As g++ would write it for x86-64, if arguments were pushed."""
    elsewhere = """(insn/f 19 8 20 2 (set (reg:DI 38 r10)
        (plus:DI (reg/f:DI 7 sp)
            (const_int 8 [0x8]))) "kernel.cpp":3 80 {*lea} (nil))
"""
    text = INSTRUCTIONS.format(fp="bp", base="bp", record=AT_THE_RECORD, prologue="", distance=-24, name="followedD.10")
    ((_, words),) = frames.read(GIMPLE, text.replace("(insn/f 20", elsewhere + "(insn/f 20"))
    assert words is None


def test_a_frame_whose_words_cannot_be_placed_does_not_compile(
    device: AscendSim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "read", lambda *_: iter([("kernel_launch", None)]))
    build = device.build(Kernel(source("host", "")))
    (error,) = build.diagnostics
    assert error.message.startswith("kernel_launch keeps its local variables where they cannot be guarded: declare")


def test_a_function_without_a_dump_is_an_error(device: AscendSim, tmp_path: Path) -> None:
    build = device.build(Kernel(source("host", "")))
    assert build.artifact is not None
    (tmp_path / "kernel.instructions").write_text("")
    with build.artifact.open("rb") as file, pytest.raises(InfrastructureError, match="missing in the compiler's dump"):
        frames.write(tmp_path / "kernel.so", ELFFile(file), dump="")

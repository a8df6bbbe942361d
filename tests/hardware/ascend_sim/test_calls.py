"""Functions are called by their names: a kernel that calls anything else does not compile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from tests.hardware.ascend_sim.test_guard import source

TYPES = """
struct Wide { uint64_t words[12]; };
struct Word { uint64_t value; };
__aicore__ inline Wide Read(Wide v) { Wide copy = v; return copy; }
__aicore__ inline Wide Make(uint64_t n) { Wide made = {{n}}; return made; }
__aicore__ inline uint64_t Value(Word w) { return w.value; }
__aicore__ inline void Nothing(uint64_t) {}
struct Class { uint64_t n; __aicore__ inline uint64_t Get(Wide v) { return v.words[0] + n; } };
template <class R, class... P> using Pointer = R (*)(P...);
"""


def by_a_member(kind: str, function: str, call: str) -> str:
    cast = f"reinterpret_cast<{kind}>(reinterpret_cast<uint64_t>(&{function}))"
    return f"struct Box {{ static inline const {kind} q = {cast}; }}; __aicore__ void Go(uint64_t n) {{ {call}; }}"


MISTYPED = {
    "a number for an object": by_a_member("Pointer<Wide, uint64_t>", "Read", "Wide w = Box::q(n)"),
    "a small object for a large one": by_a_member("Pointer<Wide, Word>", "Read", "Word s{n}; Wide w = Box::q(s)"),
    "a result that is not there": by_a_member("Pointer<uint64_t, uint64_t>", "Nothing", "n = Box::q(n)"),
    "a number for a returned object": by_a_member("Pointer<uint64_t, uint64_t>", "Make", "n = Box::q(n)"),
    "a returned object without a place": by_a_member("Pointer<void, uint64_t>", "Make", "Box::q(n)"),
    "a smaller object as the result": by_a_member("Pointer<Word, uint64_t>", "Make", "Word w = Box::q(n)"),
    "a variable outside of functions": """
        using Small = Pointer<Word, uint64_t>;
        inline const Small q = reinterpret_cast<Small>(reinterpret_cast<uint64_t>(&Make));
        __aicore__ void Go(uint64_t n) { Word w = q(n); }""",
    "more arguments": by_a_member("Pointer<void, uint64_t, uint64_t>", "Nothing", "Box::q(n, n)"),
    "a variable template": """
        template <class T> struct Of { static const T q; };
        template <class T> const T Of<T>::q = reinterpret_cast<T>(reinterpret_cast<uint64_t>(&Read));
        __aicore__ void Go(uint64_t n) { Wide w = Of<Pointer<Wide, uint64_t>>::q(n); }""",
    "a template in a template": """
        template <auto F, class T> inline const T called = reinterpret_cast<T>(reinterpret_cast<uint64_t>(F));
        template <bool> __aicore__ Wide Of(uint64_t n) { Wide made = {{n}}; return made; }
        __aicore__ void Go(uint64_t n) { Word w = called<Of<1<2>, Pointer<Word, uint64_t>>(n); }""",
    "a function that returns a pointer to a method": """
        __aicore__ auto Take(Wide v, Wide *to) -> uint64_t (Class::*)(Wide) { *to = v; return nullptr; }
        inline const Pointer<void> q = reinterpret_cast<Pointer<void>>(reinterpret_cast<uint64_t>(&Take));
        __aicore__ void Go(uint64_t n) { q(); }""",
    "any number of arguments": """
        using Any = uint64_t (*)(...);
        using Of = uint64_t (*)(Wide);
        __aicore__ void Go(uint64_t n) { Wide w{}; reinterpret_cast<Of>(reinterpret_cast<Any>(&Value))(w); }""",
    "behind a string that looks like a tree": r"""
        __aicore__ void Go(uint64_t n) {
            AscendC::printf("\n;; Function Go (null)\n\n@1      void_type        algn: 8 \n");
            Word w = reinterpret_cast<Pointer<Word, uint64_t>>(reinterpret_cast<uint64_t>(&Make))(n);
        }""",
    "a method": """
        __aicore__ void Go(uint64_t n) {
            Class object{n};
            (void)reinterpret_cast<uint64_t>((Pointer<uint64_t, Class *, Wide>)(&Class::Get));
        }""",
}
TWICE = {
    "in two namespaces": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace other { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = other::Both(n); }""",
    "with another result": """
        namespace own { extern "C" __aicore__ Wide Both(uint64_t n) { Wide made = {{n}}; return made; } }
        namespace other { extern "C" __aicore__ void Both(uint64_t n); }
        __aicore__ void Go(uint64_t n) { other::Both(n); }""",
    "like a constructor": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace Both { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = Both::Both(n); }""",
    "before it is defined": """
        namespace other { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = other::Both(n); }
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }""",
    "as a friend": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace other { extern "C" { struct Key { uint64_t n; friend Wide Both(const Key &k, uint64_t n); }; } }
        __aicore__ void Go(uint64_t n) { other::Key key{n}; Wide w = Both(key, n); }""",
    "in a function": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        extern "C" { __aicore__ void Go(uint64_t n) { Wide Both(uint64_t v); Wide w = Both(n); } }""",
}
NO_RETURN = """
    namespace std { void __throw_logic_error(const char *p) {} }
    __aicore__ void Go(uint64_t n) { std::__throw_logic_error(nullptr); }"""
RIGHT = """
using Same = Wide;
struct Around { Wide inner, rows[3]; };
constexpr Wide kOne = {{1}};
__aicore__ inline Wide Keep(Wide v) { return v; }
template <class F> __aicore__ inline uint64_t With(F f) { return f(kOne).words[0]; }
__aicore__ uint64_t Pick(uint64_t n) { return With([](Wide v) { return Keep(v); }) + (*Make)(n).words[1]; }
template <Wide (*F)(Wide)> __aicore__ inline Wide Apply(Wide v) { return F(v); }
__aicore__ void Go(uint64_t n) {
    Around around{};
    Same same{};
    const Wide &bound = same;
    same = Read(around.inner), same = Read(around.rows[n % 3]);
    same = Read(kOne), same = Read(bound), same = Read(same);
    Wide wide = Make(n), other = Read(wide);
    Make(n);
    Nothing(Value({n}) + Value(Word{n}));
    Class object{n};
    const auto twice = [&](Wide v) { return Read(v); };
    Wide *pointer = &other;
    other = Read(*pointer);
    other = twice(wide);
    other = Apply<Keep>(wide), *pointer = Apply<Keep>(other), around.inner = Apply<Keep>(other);
    Nothing(object.Get(other) + object.Get(*pointer));
    AscendC::printf("a number\\nand another @1\\n");
    (void)Pick(n);
}"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as chip:
        yield chip


@pytest.mark.parametrize("function", MISTYPED.values(), ids=MISTYPED)
def test_a_function_called_as_another_does_not_compile(device: AscendSim, function: str):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + function)))
    assert compiled.diagnostics
    message = compiled.diagnostics[0].message
    assert "something else than a function by its name" in message or "a method is cast" in message


@pytest.mark.parametrize("declarations", TWICE.values(), ids=TWICE)
def test_a_function_that_is_declared_as_two_does_not_compile(device: AscendSim, declarations: str):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + declarations)))
    message = compiled.diagnostics[0].message
    assert "has another type than before" in message or "whose code is not in the kernel" in message


def test_a_function_that_a_header_declares_never_to_return_is_not_called(device: AscendSim):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + NO_RETURN)))
    assert "declared never to return" in compiled.diagnostics[0].message


def test_functions_with_objects_compile(device: AscendSim):
    assert device.build(Kernel(source("core", "Go(1);", TYPES + RIGHT))).diagnostics == ()

"""Nothing in the headers computes for nothing: what is not counted has a price, or gives no result to its caller."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from kernel_gym.hardware.ascend_sim import gimple, runtime
from tests.hardware.ascend_sim.test_header import CASTS, FILE, FUNCTION, INCLUDE, STATEMENTS, families, typed

MOVES = gimple._MOVES
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Calls of what no other statement of the tests calls.
MORE = [
    "f.GetPosition(); f.SetUserTag(f.GetUserTag()); f.SetAddrWithOffset(x, n); f.SetBufferLen(n);",
    "LT<float> t(TPosition::VECCALC, n, n); float v = f(n); f(n) = v; v = G(n); G(n) = v; f(n) = f(n);",
    "G.SetGlobalBuffer(nullptr); G.SetGlobalBuffer(nullptr, n); G.GetSize(); G.SetShapeInfo(G.GetShapeInfo());",
    "uint32_t sizes[2] = {n, n}; ShapeInfo info(2, sizes); G.ReinterpretCast<half>(); G.ReinterpretCast<uint64_t>();",
    "TBuf<> t; t.GetBufLen(); LocalMemAllocator<> m; m.GetCurAddr(); TPipe p; p.Init(); p.Destroy(); Trap();",
    "TQue<TPosition::VECIN, 1> q; q.FreeAllEvent(); GetProgramCounter(); GetSubBlockNum(); GetUBSizeInBytes();",
    "n = get_block_idx() + block_idx + get_block_num(); pipe_barrier(PIPE_ALL);",
    "SetSysWorkspace(GetUserWorkspace(GetSysWorkSpacePtr())); n = min(n, max(n, 3u)); float v = abs(f.GetValue(n));",
    "using M = MatmulType<TPosition::GM, CubeFormat::ND, float>; Matmul<M, M, M> m; TCubeTiling tiling; "
    "REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), m, &tiling); m.SetOrgShape(n, n, n); m.SetTail(n, n, n); "
    "m.SetSingleShape(n, n, n); m.SetTensorA(G); m.SetTensorA(f); m.SetTensorB(G, true); m.SetTensorB(f); "
    "m.SetBias(G); m.SetBias(f); m.ClearBias(); m.DisableBias(); m.SetHF32(true); m.SetWorkspace(G); "
    "m.SetLocalWorkspace(b); m.SetSubBlockIdx(0); while (m.Iterate()) { m.GetTensorC(G); m.GetTensorC(f); } "
    "m.IterateAll(G); m.IterateAll(f); m.WaitIterateAll(); m.IterateBatch(G, n, n, false); m.End();",
]
#: Launches are written as `<<< >>>`; the others are parameters of macros.
NOT_CALLED = {"asc_launcher", "asc_launcher_of", "name", "operator T", "operator symbol"}

#: The place of a tensor, which many functions pass on to an instruction. It computes the length, as GetLength does
#: for a price.
PLACE = "asc_where"
#: What no kernel may name: `reserved_prefixes` of the screen. Those of a namespace, or of a class, are never found by
#: the class of an argument, by a pointer to a member or by a specialisation.
UNNAMED = re.compile(r"(?:.*::)?asc_")
PRICED = {*gimple._COMPUTING_METHODS, *gimple._SCALAR_CALLS, *gimple._CONVERTING_CALLS}
#: Functions that compute and are not counted, by why they need not be. Those that return nothing, and take no object or
#: reference to keep it in, are not among them: an instruction or a copy takes their numbers.
REVIEWED = {
    "an instruction or a copy": (
        "SetL2CacheHint GetTensorC IterateAll IterateBatch SetTensorA SetTensorB SetBias operator="
    ),
    "a scalar access": "GetValue SetValue",
    "InitBuffer has a price of its own": "InitBuffer InitBufPool",
    "the numbers are the device's": "GetMrgSortResult HasIdleBuffer HasTensorInQue VacantInQue PopStackBuffer",
    "moves numbers without changing them": "MrgSort4Info",
    "GetLength and GetSize, which give the length, have prices": ("LocalTensor GlobalTensor SetGlobalBuffer"),
}

_FUNCTION = re.compile(r"^;; Function (.*) \((\S+), funcdef_no=", re.MULTILINE)
_STATEMENT = re.compile(r"^ *gimple_(assign|cond|switch) <(\w+)", re.MULTILINE)
_CALL = re.compile(r"^ *gimple_call <(\w+)", re.MULTILINE)
_KEEPS_NOTHING = re.compile(r"^void (?!.*\bthis\b)(?!.*[( ](?:int|uint)\d+_t &).*\)$", re.MULTILINE)
_UNCOUNTED = re.compile(
    r"ASC_(?:INLINE|UNCOUNTED)\b(?! __)[^;{}()]*?(operator *(?:\(\)|\[\]|[^\s(\w]+|\w+)|\b\w+)\s*\("
)


@dataclass
class Uncounted:
    """A function that is not counted: what it computes, what it calls, and whether its caller gets a result."""

    work: set[str]
    calls: set[str]
    gives: bool


@pytest.fixture(scope="module")
def uncounted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Uncounted]:
    """The functions of the headers that are not counted."""
    folder = tmp_path_factory.mktemp("headers")
    statements = [text for _, types, texts in families() for dtype in types for text in typed(texts, dtype)]
    statements += [f"LT<{target}> a; LT<{source}> c; Cast(a, c, RoundMode::CAST_NONE, n);" for source, target in CASTS]
    statements += [*STATEMENTS["compiles"], *MORE]
    text = FILE + "".join(FUNCTION.format(k, statement) for k, statement in enumerate(statements))
    (folder / "kernel.cpp").write_text(text)
    flags = [*runtime.kernel_flags("g++"), "-w", *INCLUDE, f"-fdump-tree-sancov_O0-raw={folder}/counted"]
    command = ["g++", *flags, f"-fdump-tree-ssa-raw={folder}/all", "-c", "kernel.cpp", "-o", "kernel.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    counted = {match[2] for match in _FUNCTION.finditer((folder / "counted").read_text())}
    _, *pieces = _FUNCTION.split((folder / "all").read_text())
    found: dict[str, Uncounted] = {}
    for name, symbol, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if symbol not in counted:
            one = found.setdefault(plain(name), Uncounted(set(), set(), False))
            one.work |= {code for kind, code in _STATEMENT.findall(body) if kind != "assign" or code not in MOVES}
            one.calls |= set(_CALL.findall(body))
            one.gives |= not _KEEPS_NOTHING.search(body)
    return found


def plain(name: str) -> str:
    """The name of a function without arguments of templates."""
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name.strip()


def last(name: str) -> str:
    return name.rpartition("::")[2]


def test_every_function_of_the_headers_that_is_not_counted_is_looked_at(uncounted: dict[str, Uncounted]) -> None:
    called = {last(name).replace(" ", "") for name in uncounted}
    headers = (runtime.HERE / "include").rglob("*.h")
    declared = {match[1] for file in headers for match in _UNCOUNTED.finditer(file.read_text().replace("\\\n", " "))}
    assert {name for name in declared if name.replace(" ", "") not in called} <= NOT_CALLED


def test_what_computes_for_its_caller_is_counted_or_has_a_price(uncounted: dict[str, Uncounted]) -> None:
    others = {name: one for name, one in uncounted.items() if last(name) != PLACE}
    computing = {name for name, one in others.items() if one.work}
    while more := {name for name, one in others.items() if one.calls & set(map(last, computing))} - computing:
        computing |= more
    given = {name for name in computing if uncounted[name].gives and not UNNAMED.match(name)}
    given -= {name for name in given if "::Element::" in name}  # which read or write their element
    reviewed = {name for names in REVIEWED.values() for name in names.split()}
    assert {name for name in given if last(name) not in PRICED | reviewed} == set()
    assert reviewed <= set(map(last, given)), "a reviewed function is gone, or computes nothing any more"

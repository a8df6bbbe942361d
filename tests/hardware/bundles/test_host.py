"""The host layer: tiling classes, contexts, operators and their registration, as compiled and run host code shows."""

import csv
import re
import struct

import pytest
from repository import ROOT

from kernel_gym.hardware.bundles import host
from kernel_gym.hardware.bundles.host import HostFailure, HostProgram, TensorArgument
from kernel_gym.hardware.bundles.text import Bundle, read

SAMPLES = ROOT / "tests" / "hardware" / "bundles" / "samples"
PLATFORM = (48, 24, 196608, 524288)


def build(text, folder):
    return host.build(read(text), folder)


def test_tiling_data_has_the_layout_of_the_struct_that_the_kernel_gets(sample, tmp_path):
    program = build(sample("scale"), tmp_path)
    operator = program.operator
    assert [(a.name, a.kind) for a in operator.attributes] == [("scale", "float"), ("shift", "int"), ("negate", "bool")]
    assert program.struct == "ScaleCustomTilingData"
    assert program.definition == (
        "struct ScaleCustomTilingData { uint32_t total; uint32_t perBlock; uint32_t tile; uint8_t negate; float scale; "
        "bool isShifted; int64_t shift; uint64_t unused; int32_t sign; };\n"
    )
    x = TensorArgument((7, 300), "float32")
    tiling = host.tile(program, host.request(program.operator, [x], [x], [0.5, -3, True], PLATFORM))
    # Native alignment is what a C++ compiler gives the struct.
    fields = struct.unpack("@IIIBfbqQi", tiling.data[: struct.calcsize("@IIIBfbqQi")])
    assert fields == (2100, 56, 2048, 1, 0.5, 1, -3, 0, -1)
    assert len(tiling.data) % 8 == 0
    assert (tiling.blocks, tiling.key, tiling.workspace) == (40, 0, 0)
    with pytest.raises(HostFailure, match="scale is float, and the binding passes 'x'"):
        host.tile(program, host.request(program.operator, [x], [x], ["x", 1, True], PLATFORM))


def test_errors_of_the_host_compiler_name_the_string_and_its_line(sample, tmp_path):
    wrong = (
        "uint32_t totalLength = context",
        "const gert::Shape *s = context->GetInputShape(0);\n    uint32_t totalLength = context",
    )
    (first, *_) = build(sample("relu", wrong), tmp_path)
    assert (first.part, first.line) == ("host operator", 10)
    assert "cannot convert" in first.message
    assert "gert::StorageShape" in first.message


def described(sample, *lines):
    text = ["op ReluCustom 1", "input x 2 0", "output y 2 0", "soc ascend910b", "tiling ReluCustom Data 00"]
    changed = [line for line in text if line.split()[0] not in [entry.split()[0] for entry in lines]]
    return host._described(read(sample("relu")), None, [line.split() for line in [*lines, *changed] if " " in line])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("op",), "no operator is registered: add OP_ADD(Name)"),
        (("op OtherCustom 1",), "the project JSON names the operator ReluCustom, the host code registers OtherCustom"),
        (("op ReluCustom 0",), "no tiling function"),
        (("soc",), "AddConfig"),
        (("tiling",), "REGISTER_TILING_DATA_CLASS(ReluCustom"),
    ],
)
def test_what_hardware_s_toolchain_needs_must_be_registered(sample, lines, words):
    (diagnostic,) = described(sample, *lines)
    assert words in diagnostic.message


def test_lists_of_tensors_are_refused(sample):
    with pytest.raises(HostFailure, match="x is DYNAMIC"):
        described(sample, "op ReluCustom 1", "input x 3 0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "part", "words"),
    [
        (("OP_ADD(ReluCustom);", ""), "host operator", "no operator is registered"),
        (("set_tileLength(4096)", "set_tileSize(4096)"), "host operator", "has no member named 'set_tileSize'"),
        (("TILING_DATA_FIELD_DEF(uint32_t, tileLength);", "TILING_DATA_FIELD_DEF(uint33_t, tileLength);"), "host tiling", "uint33_t"),
        (("relu_custom_tiling.h", "relu_tiling.h"), "host operator", "relu_tiling.h: No such file"),
    ],
)  # fmt: skip
def test_compile_errors_of_host_code(sample, tmp_path, change, part, words):
    diagnostics = build(sample("relu", change), tmp_path)
    assert diagnostics[0].part == part
    assert words in diagnostics[0].message.replace("‘", "'").replace("’", "'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("context->SetBlockDim(BLOCK_DIM);", ""), "SetBlockDim: 0 is not between"),
        (("context->SetBlockDim(BLOCK_DIM);", "return ge::GRAPH_FAILED;"), "returned 4294967295"),
        (("context->SetBlockDim(BLOCK_DIM);", "*(volatile int *)nullptr = 1;"), "was ended by signal 11"),
        (("context->SetBlockDim(BLOCK_DIM);", 'std::ofstream("/tmp/kernel_gym_host_test") << 1; abort();'), "signal 6"),
    ],
)
def test_a_tiling_function_that_fails_is_told(sample, tmp_path, change, words):
    program = build(
        sample("relu", change, ("namespace optiling {\nconst", "#include <fstream>\nnamespace optiling {\nconst")),
        tmp_path,
    )
    x = TensorArgument((8,), "float32")
    with pytest.raises(HostFailure, match=words):
        host.tile(program, host.request(program.operator, [x], [x], [], PLATFORM))
    assert not (tmp_path.parent.parent / "kernel_gym_host_test").exists()


def test_host_code_with_every_name_that_bundles_use_compiles_and_tiles(tmp_path):
    """`host_names.csv` lists names of host code by how many of 1,449 bundles use them."""
    tiling, operator = ((SAMPLES / name).read_text() for name in ("names_tiling.h", "names_operator.cpp"))
    with (SAMPLES.parent / "host_names.csv").open() as file:
        names = [row["host_name"] for row in csv.DictReader(file)]
    assert len(names) == 94
    assert [name for name in names if not re.search(rf"\b{name}\b", tiling + operator)] == []
    bundle = Bundle(
        {
            "project_json_src": '[{"op": "NamesCustom"}]',
            "host_tiling_src": tiling,
            "host_operator_src": operator,
        }
    )
    program = host.build(bundle, tmp_path)
    assert isinstance(program, HostProgram), program
    x = TensorArgument((64, 32), "float32")
    tiled = host.tile(program, host.request(program.operator, [x], [x], [0.5, 1, True, "mean", [3, 4]], PLATFORM))
    assert (tiled.blocks, tiled.key, tiled.workspace) == (8, 3, 16 << 20)
    fields = struct.unpack("@IfiqbBQ", tiled.data[: struct.calcsize("@IfiqbBQ")])
    assert fields == (2048, 0.5, 1, 72, 1, ord("m"), 196608)
    cube = struct.unpack("@5i", tiled.data[struct.calcsize("@IfiqbBQ") :][:20])
    assert cube[1:] == (64, 32, 32, 32)

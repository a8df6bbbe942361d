"""An honest kernel for ReLU, and the same with a line more."""

from repository import ROOT

RELU = (ROOT / "tests" / "verifier" / "honest" / "relu_class.cpp").read_text()


def with_line(line: str, marker: str = "class KernelRelu {") -> str:
    return RELU.replace(marker, f"{line}\n{marker}", 1)


def in_compute(line: str) -> str:
    return with_line(line, "        AscendC::Relu(y, x, n);")


def in_launch(line: str) -> str:
    return with_line(line, "    ReluTiling t;\n    t.total")

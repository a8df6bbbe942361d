"""Makes one kernel file of a bundle's kernel: its tiling struct and macros before it, a host function behind it.

The lines of the bundle's kernel keep their numbers. The host function takes everything from its integers: the number of
blocks, the tensor of each argument, the tiling key and the tiling data.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from kernel_gym.hardware.bundles.host import MOST_TILING, HostProgram, Operator, Tiling
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host.ascend_launches import KINDS
from kernel_gym.hardware.host.compiler import SOURCE
from kernel_gym.hardware.host.launch_syntax import Token, tokens
from kernel_gym.kernel import BUNDLE_TEXTS

#: The name of what is ours in the file, for the compiler's messages.
OURS = "kernel_gym"
PART = BUNDLE_TEXTS["kernel_src"]
_ELEMENT_TYPES = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "bool": "bool",
    **{name: f"{name}_t" for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
}
#: What the author's classes and arguments reach is counted as the author's own code.
_BEFORE = """
#include "lib/cube_tiling.h"
{definition}
namespace kernel_gym_bundle {{
template <class T>
T tiling(GM_ADDR from) {{ return *reinterpret_cast<const T *>(from); }}
inline uint64_t key(GM_ADDR from) {{ return reinterpret_cast<const uint64_t *>(from)[-1]; }}
constexpr auto AIV = ASC_AIV, AIC = ASC_AIC, MIX = ASC_MIX, MIX_1_1 = ASC_MIX_1_1;
template <asc_core_kind cores, auto kernel>
ASC_UNCOUNTED auto launcher(uint32_t blocks, void *stream) {{
    return ::asc_launcher<cores, kernel>(blocks, nullptr, stream);
}}
}}
#define GET_TILING_DATA(name, from) {struct} name = ::kernel_gym_bundle::tiling<{struct}>(from)
#define GET_TILING_DATA_WITH_STRUCT(type, name, from) type name = ::kernel_gym_bundle::tiling<type>(from)
#define GET_TILING_DATA_MEMBER(type, member, name, from) \\
    decltype(type::member) name = ::kernel_gym_bundle::tiling<type>(from).member
#define REGISTER_TILING_DEFAULT(type)
#define TILING_KEY_IS(value) (::kernel_gym_bundle::key({tiling}) == (value))
"""
#: The line before the author's first.
_BEGIN = 'static_assert ( true , "the kernel begins" ) ;\n'
_BEHIND = """
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {{
    uint64_t data[{words}] = {{}};
    for (int32_t i = {pointers} + 1; i < a->num_ints; ++i) data[i - {pointers} - 1] = static_cast<uint64_t>(a->ints[i]);
    GM_ADDR at[{pointers}];
    for (int32_t i = 0; i < {pointers}; ++i) {{
        const int64_t tensor = a->ints[i + 1];
        at[i] = tensor < 0               ? nullptr
                : tensor < a->num_inputs ? (GM_ADDR)a->inputs[tensor].ptr
                                         : (GM_ADDR)a->outputs[tensor - a->num_inputs].ptr;
    }}
    const uint32_t blocks = static_cast<uint32_t>(a->ints[0]);
{by_key}    {function}<<<blocks, nullptr, stream>>>({arguments});
    return 0;
}}
"""


def compose(kernel: str, function: str, program: HostProgram, column: int) -> str | Diagnostic:
    """Return the text of one kernel file, or what is wrong.

    Args:
        kernel: The bundle's kernel.
        function: The name that the toolchain looks up.
        program: The bundle's host code.
        column: Which of the operator's combinations of element types the kernel is compiled for.
    """
    operator = program.operator
    parameters = _parameters(tokens(kernel), function)
    names = [parameter.name for parameter in (*operator.inputs, *operator.outputs)]
    if parameters is None:
        text = f'no kernel function {function}: declare extern "C" __global__ __aicore__ void {function}(...)'
        return Diagnostic(text, None, PART)
    if len(parameters) != len(names) + 2:
        wanted = ", ".join([*names, "workspace", "tiling"])
        return Diagnostic(f"{function} takes {len(parameters)} arguments, the operator has {wanted}", None, PART)
    before = _BEFORE.format(definition=program.definition, struct=program.struct, tiling=parameters[-1])
    before += "".join(_element_type(operator, column))
    arguments = "".join(f"at[{i}], " for i in range(len(names))) + "(GM_ADDR)a->workspace, (GM_ADDR)(data + 1)"
    behind = _BEHIND.format(
        words=MOST_TILING // 8 + 1,
        pointers=len(names),
        function=function,
        arguments=arguments,
        by_key="".join(_launch_by_key(kernel, function, arguments)),
    )
    return f'#line 1 "{OURS}"{before}{_BEGIN}#line 1 "{SOURCE}"\n{kernel}\n#line 1 "{OURS}"{behind}'


def _launch_by_key(kernel: str, function: str, arguments: str) -> list[str]:
    """Return the launches of tiling keys whose cores the kernel names: `KERNEL_TASK_TYPE(1, KERNEL_TYPE_AIV_ONLY)`.

    They are screened as the author's own, so they use names that an author may use.
    """
    names = "::kernel_gym_bundle::"
    return [
        f"    if (data[0] == {key}) {{\n"
        f"        const auto launch = {names}launcher<{names}{KINDS[kind]}, {function}>(blocks, stream);\n"
        f"        launch({arguments});\n        return 0;\n    }}\n"
        for key, kind in re.findall(r"\bKERNEL_TASK_TYPE\s*\(\s*(\d+)\s*,\s*(\w+)\s*\)", kernel)
        if kind in KINDS
    ]


def of_author(preprocessed: str) -> str:
    """Return the plain text of a composed one from the author's first line on.

    The host function behind it is screened as the author's own, because the author's macros are expanded in it.
    """
    begin = max(preprocessed.find(_BEGIN), 0)
    author, marker, behind = preprocessed[begin:].rpartition(f' "{OURS}"\n')
    return f"{author}{marker.replace(OURS, SOURCE)}{behind}"


def integers(tensors: Sequence[int], tiling: Tiling) -> tuple[int, ...]:
    """Return the integers of one launch.

    Args:
        tensors: For each argument the index of its tensor among inputs and outputs; -1 for none.
        tiling: What the tiling function set.
    """
    data = tiling.data + bytes(-len(tiling.data) % 8)
    return (tiling.blocks, *tensors, tiling.key, *struct.unpack(f"<{len(data) // 8}q", data))


def _element_type(operator: Operator, column: int) -> list[str]:
    """Return the macros with the element types of the operator's tensors."""
    lines = []
    for parameter in (*operator.inputs, *operator.outputs):
        if column < len(parameter.dtypes) and parameter.dtypes[column] in _ELEMENT_TYPES:
            lines.append(f"#define DTYPE_{parameter.name.upper()} {_ELEMENT_TYPES[parameter.dtypes[column]]}\n")
    return lines


def _parameters(lexemes: Sequence[Token], function: str) -> list[str] | None:
    """Return the names of the parameters of a kernel function; None if there is no such function."""
    for index, token in enumerate(lexemes[:-1]):
        if token.text == function and lexemes[index + 1].text == "(" and _is_kernel(lexemes, index):
            return _names(lexemes, index + 2)
    return None


def _is_kernel(lexemes: Sequence[Token], index: int) -> bool:
    """Return whether `__global__` stands before the function's name, in the same declaration."""
    for token in reversed(lexemes[max(0, index - 12) : index]):
        if token.text in (";", "}"):
            return False
        if token.text == "__global__":
            return True
    return False


def _names(lexemes: Sequence[Token], begin: int) -> list[str]:
    names, last, depth = list[str](), "", 0
    for token in lexemes[begin:]:
        if token.text == ")" and depth == 0:
            return [*names, last] if last else names
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            names.append(last)
        elif token.kind == "word":
            last = token.text
    return names

"""The six texts of a bundle for a kernel in one file."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles.export.source import KernelFunction, OneFile
from kernel_gym.hardware.bundles.text import snake_case
from kernel_gym.hardware.host import runtime
from kernel_gym.hardware.host.tensors import npu_workspace_bytes
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task

#: Most words of 8 bytes for the arguments of a launch that are no tensors.
MOST_WORDS = 96
_TYPES = {
    "AIV": "KERNEL_TYPE_AIV_ONLY",
    "AIC": "KERNEL_TYPE_AIC_ONLY",
    "MIX": "KERNEL_TYPE_MIX_AIC_1_2",
    "MIX_1_1": "KERNEL_TYPE_MIX_AIC_1_1",
}
_GE_TYPES = {"float32": "DT_FLOAT", "float16": "DT_FLOAT16", "bfloat16": "DT_BF16", "bool": "DT_BOOL"}
_JSON_TYPES = {"float32": "float", "float16": "fp16", "bfloat16": "bf16"}
_AT_TYPES = {
    "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "int32": "Int", "int64": "Long", "uint8": "Byte",
    "int8": "Char", "bool": "Bool", "int16": "Short", "float64": "Double",
}  # fmt: skip


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the operator."""

    name: str
    dtype: str


class Project:
    """The texts of one operator."""

    def __init__(self, name: str, file: OneFile, signature: Signature) -> None:
        self._name, self._function = name, snake_case(name)
        self._file, self._signature = file, signature
        self._inputs = [_Tensor(f"in{i}", spec.dtype) for i, spec in enumerate(signature.inputs)]
        self._outputs = [_Tensor(f"out{i}", spec.dtype) for i, spec in enumerate(signature.outputs)]
        self.scratch_bytes = npu_workspace_bytes(signature) if file.uses_workspace else 0
        if self.scratch_bytes:
            self._outputs.append(_Tensor("scratch", "uint8"))

    def text(self, task: Task, launch_count: int, words: int = MOST_WORDS) -> str:
        """Return the bundle; `words` are those of its tiling data, which every core copies."""
        texts = {
            "project_json_src": json.dumps(self._json(), indent=4),
            "host_tiling_src": self._tiling(words),
            "host_operator_src": self._operator(words),
            "kernel_src": self._kernel(),
            "python_bind_src": self._binding(launch_count),
            "model_src": self._model(task),
        }
        if any("'''" in text for text in texts.values()):
            raise BundleError("the kernel contains three quotation marks in a row, which end a string of a bundle")
        return "\n\n".join(f"{name} = r'''\n{text.strip()}\n'''" for name, text in texts.items()) + "\n"

    def _json(self) -> list[dict[str, object]]:
        def described(tensors: Sequence[_Tensor]) -> list[dict[str, object]]:
            kinds = [_JSON_TYPES.get(tensor.dtype, tensor.dtype) for tensor in tensors]
            return [
                {"name": tensor.name, "param_type": "required", "format": ["ND"], "type": [kind]}
                for tensor, kind in zip(tensors, kinds, strict=True)
            ]

        kinds = {"ints": "list_int", "floats": "list_float", "launch": "int", "launches": "int"}
        attributes = [{"name": name, "param_type": "required", "type": kind} for name, kind in kinds.items()]
        entry: dict[str, object] = {"op": self._name, "language": "cpp", "input_desc": described(self._inputs)}
        return [entry | {"output_desc": described(self._outputs), "attr": attributes}]

    def _tiling(self, words: int) -> str:
        return f"""
#include "register/tilingdata_base.h"

namespace optiling {{
BEGIN_TILING_DATA_DEF({self._name}TilingData)
TILING_DATA_FIELD_DEF_ARR(uint64_t, {self._file.most_pointers}, tensors);
TILING_DATA_FIELD_DEF_ARR(uint64_t, {self._file.most_pointers}, offsets);
TILING_DATA_FIELD_DEF_ARR(uint64_t, {words}, words);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS({self._name}, {self._name}TilingData)
}}  // namespace optiling
"""

    def _operator(self, words: int) -> str:
        parameters = "".join(
            f'        this->{role}("{tensor.name}").ParamType(REQUIRED).DataType({{ge::{_ge_type(tensor.dtype)}}})'
            ".Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});\n"
            for role, tensors in (("Input", self._inputs), ("Output", self._outputs))
            for tensor in tensors
        )
        return _filled(
            "operator.cpp",
            function=self._function,
            name=self._name,
            structures=_structures(),
            host=self._file.host_code(),
            pointers=self._file.most_pointers,
            words=words,
            inputs=len(self._inputs),
            outputs=len(self._signature.outputs),
            parameters=parameters,
        )

    def _kernel(self) -> str:
        names = ", ".join(tensor.name for tensor in (*self._inputs, *self._outputs))
        declared = ", ".join(f"GM_ADDR {tensor.name}" for tensor in (*self._inputs, *self._outputs))
        calls = " else ".join(self._call(function) for function in self._file.functions.values())
        return f"""
{self._file.device_code()}

extern "C" __global__ __aicore__ void {self._function}({declared}, GM_ADDR workspace, GM_ADDR tiling)
{{
    GET_TILING_DATA(launch, tiling);
    GM_ADDR tensors[] = {{{names}}};
    {calls}
}}
"""

    def _call(self, function: KernelFunction) -> str:
        arguments, pointer, word = list[str](), 0, "0"
        for kind, _ in function.parameters:
            if kind == "GM_ADDR":
                arguments.append(f"tensors[launch.tensors[{pointer}]] + launch.offsets[{pointer}]")
                pointer += 1
            else:
                plain = kind.replace("const ", "").replace("&", "").strip()
                arguments.append(f"*reinterpret_cast<const {plain} *>(launch.words + {word})")
                word += f" + (sizeof({plain}) + 7) / 8"
        joined = ",\n            ".join(arguments)
        return f"""if (TILING_KEY_IS({function.key})) {{
        KERNEL_TASK_TYPE({function.key}, {_TYPES[function.cores]});
        {function.name}(
            {joined});
    }}"""

    def _binding(self, launch_count: int) -> str:
        parameters = "".join(f"const at::Tensor &{tensor.name}, " for tensor in self._inputs)
        allocations = [
            f"    at::Tensor out{i} = at::empty({{{', '.join(map(str, spec.shape))}}}, "
            f"in0.options().dtype(at::k{_AT_TYPES[spec.dtype]}));\n"
            for i, spec in enumerate(self._signature.outputs)
        ]
        if self.scratch_bytes:
            allocations.append(
                f"    at::Tensor scratch = at::empty({{{self.scratch_bytes}}}, in0.options().dtype(at::kByte));\n"
            )
        results = [f"out{i}" for i in range(len(self._signature.outputs))]
        returned = results[0] if len(results) == 1 else f"std::make_tuple({', '.join(results)})"
        kind = "at::Tensor" if len(results) == 1 else f"std::tuple<{', '.join(['at::Tensor'] * len(results))}>"
        tensors = "".join(f"{tensor.name}, " for tensor in self._inputs)
        written = ", ".join(tensor.name for tensor in self._outputs)
        return f"""
#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"

{kind} {self._function}_npu({parameters}std::vector<int64_t> ints, std::vector<double> floats)
{{
    const int64_t launches = {launch_count};
    at::IntArrayRef intList = ints;
    at::ArrayRef<double> floatList = floats;
{"".join(allocations)}    for (int64_t launch = 0; launch < launches; ++launch) {{
        EXEC_NPU_CMD(aclnn{self._name}, {tensors}intList, floatList, launch, launches, {written});
    }}
    return {returned};
}}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{{
    m.def("{self._function}", &{self._function}_npu, "{self._name}");
}}
"""

    def _model(self, task: Task) -> str:
        tree = ast.parse(task.source)
        model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
        if model is None:
            raise BundleError(f"{task.id} defines its Model in another way than by a class")
        model.body = [n for n in model.body if not (isinstance(n, ast.FunctionDef) and n.name == "forward")]
        model.body = model.body or [ast.Pass()]
        for node in ast.walk(model):
            if isinstance(node, ast.Name) and node.id == "Model":
                node.id = "ModelNew"
        model.name = "ModelNew"
        imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        return _filled("model.py", imports="\n".join(imports), model=ast.unparse(model), function=self._function)


def _structures() -> str:
    """Return the arguments of a host function: the structures of kernel_gym.h."""
    text = (runtime.INCLUDE / "kernel_gym.h").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith(("#", "//"))).strip()


def _ge_type(dtype: str) -> str:
    return _GE_TYPES.get(dtype, f"DT_{dtype.upper()}")


def _filled(template: str, **values: object) -> str:
    """Return the text of a template with values for its names, which stand between at signs."""
    text = (files(__package__) / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text

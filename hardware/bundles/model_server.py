"""The program of a confined process: runs the Python of a bundle, and asks for a launch at each EXEC_NPU_CMD.

    python -m kernel_gym.hardware.bundles.model_server REQUESTS RESPONSES

The two arguments are file descriptors. The confinement is set up before the program starts.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, BinaryIO, TypeAlias, cast

import torch
from torch.utils import _pytree as pytree

from kernel_gym.confinement.python_process import READY
from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.bundles import binding as bindings
from kernel_gym.kernel import BUNDLE_TEXTS
from kernel_gym.tasks import confined_server, messages
from kernel_gym.tasks.instance import ModuleInstance
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.value_domains import OnHost

MODEL_FILE = "<model>"
_NO_LIMIT = 1 << 62
#: The extension that models import; some import the vendor's torch package first.
EXTENSION, VENDOR = "custom_ops_lib", "torch_npu"


Fill: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
#: Functions whose result has values that nobody set.
_UNFILLED = (torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty)


class LaunchFailed(Exception):
    """Raised inside the model if a launch failed; the other process knows why."""


class _OnHost(OnHost):
    """Fills memory that the model leaves unset, so that it is the same in every call."""

    def __init__(self, fill: Fill) -> None:
        super().__init__()
        self._fill = fill

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = super().__torch_function__(func, types, args, kwargs)
        return self._fill(result) if func in _UNFILLED else result


class BundleModel(ModuleInstance):
    """The bundle's ModelNew at one case, with the reference's arguments of constructor and call.

    As in the published harness, the model's text runs in the namespace of the reference.
    """

    def __init__(self, reference: str, digest: str, case: Case, model: str, fill: Fill) -> None:
        super().__init__(reference, digest, case, ())
        self._fill = fill
        namespace = self._names
        exec(compile(model, MODEL_FILE, "exec"), namespace)
        if "ModelNew" not in namespace:
            raise KernelGymError("it defines no class ModelNew")
        self._names = namespace | {"Model": namespace["ModelNew"]}
        self._built: tuple[int, torch.nn.Module] | None = None

    def forward(
        self, seed: int, tensors: Sequence[torch.Tensor], keep: Callable[[list[torch.Tensor]], None]
    ) -> list[torch.Tensor]:
        """Call the model on the inputs of the reference's signature and return its outputs.

        Its parameters are those of the inputs where names or, in their order, shapes agree; else as its constructor
        draws them from `seed`. `keep` is told which tensors there are before the call.
        """
        values = dict(zip(self.signature.inputs, tensors, strict=True))
        arguments = iter([tensor for spec, tensor in values.items() if spec.origin == "argument"])
        leaves, structure = pytree.tree_flatten(self._arguments)
        filled = [next(arguments) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        model = self._model_of(seed)
        _load(model, {spec.name: tensor for spec, tensor in values.items() if spec.origin == "state"})
        keep([*tensors, *_tensors_of(model)])
        with torch.no_grad(), _OnHost(self._fill):
            result = model(*cast(Any, pytree.tree_unflatten(filled, structure)))
        return [leaf.contiguous() for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]

    def _model_of(self, seed: int) -> torch.nn.Module:
        if self._built is None or self._built[0] != seed:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                with _OnHost(self._fill):
                    self._built = (seed, self._build())
        return self._built[1]


def _tensors_of(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return the parameters, buffers and other tensors that a model and its parts hold."""
    attributes = [value for part in model.modules() for value in vars(part).values()]
    held = [leaf for leaf in pytree.tree_leaves(attributes) if isinstance(leaf, torch.Tensor)]
    return [*model.parameters(), *model.buffers(), *held]


def _load(model: torch.nn.Module, state: dict[str, torch.Tensor]) -> None:
    own = model.state_dict()
    shared = {name: value for name, value in state.items() if name in own and own[name].shape == value.shape}
    if len(shared) < len(state) and [v.shape for v in own.values()] == [v.shape for v in state.values()]:
        shared = dict(zip(own, state.values(), strict=True))
    with torch.no_grad():
        for name, value in shared.items():
            own[name].copy_(value)


class Server:
    """Answers requests about one bundle."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._models: dict[str, BundleModel] = {}
        self._poison = 0
        self._launched: list[torch.Tensor] = []  # of one call: none is freed, so an address stands for one tensor
        self._versions: dict[int, int] = {}  # of memory that torch has not written in this call, by its address

    def answer(self, request: dict[str, Any], tensors: list[torch.Tensor]) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Return the response to one request and its tensors."""
        try:
            outputs = self._forward(request, tensors)
            return {"kind": "result", "made": self._made(outputs)}, outputs
        except (bindings.NotUnderstood, bindings.BindingError) as error:
            return _error(BUNDLE_TEXTS["python_bind_src"], str(error), type(error).__name__), []
        except LaunchFailed:
            return _error("", "a launch failed"), []
        except BaseException as error:  # whatever a bundle raises is its fault
            cause = error.__cause__ or error
            if isinstance(cause, bindings.NotUnderstood | bindings.BindingError | LaunchFailed):
                return _error(BUNDLE_TEXTS["python_bind_src"], str(cause), type(cause).__name__), []
            words = (str(cause).strip().splitlines() or [""])[0]
            text = words if isinstance(cause, KernelGymError) else f"{type(cause).__name__}: {words}"
            return _error(BUNDLE_TEXTS["model_src"], text, "", _line(cause)), []

    def _forward(self, request: dict[str, Any], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        self._poison = request["poison"]
        key = json.dumps([request["case"], request["digest"]])
        if key not in self._models:
            self._install(request["binding"])
            case = Case(request["case"][0], request["case"][1], tuple((n, v) for n, v in request["case"][2]))
            texts = request["reference"], request["digest"], case, request["model"]
            self._models = {key: BundleModel(*texts, self._fill)}
        try:
            self._versions.clear()
            return self._models[key].forward(request["seed"], tensors, self._keep)
        finally:
            self._launched.clear()

    def _install(self, text: str) -> None:
        """Put stand-ins for the compiled extension and the vendor's package into `sys.modules`."""
        binding = bindings.read(text)
        evaluator = bindings.Evaluator(binding, self._launch, self._fill)
        extension = types.ModuleType(EXTENSION)
        for name in binding.exported:
            setattr(extension, name, _function(evaluator, name))
        sys.modules[EXTENSION] = extension
        sys.modules[VENDOR] = _Vendor(VENDOR)
        torch.npu = _Vendor("torch.npu")  # type: ignore[attr-defined]
        for library in re.findall(r"TORCH_LIBRARY\w*\s*\(\s*(\w+)", text):
            setattr(torch.ops, library, extension)

    def _fill(self, tensor: torch.Tensor) -> torch.Tensor:
        content = torch.full((tensor.nbytes,), self._poison, dtype=torch.uint8)
        words = tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor  # a copied truth value is 0 or 1
        words.copy_(content.view(words.dtype).reshape(tensor.shape))
        return tensor

    def _keep(self, tensors: Iterable[torch.Tensor]) -> None:
        """Remember that the memory of tensors is as torch found it, or as a launch left it."""
        self._versions |= dict(map(_state, tensors))

    def _made(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """Return the positions of the tensors whose memory torch has written in this call."""
        states = map(_state, tensors)
        return [i for i, (address, version) in enumerate(states) if self._versions.get(address) != version]

    def _launch(self, name: str, arguments: list[Any]) -> None:
        """Ask the other process for a launch and copy what it wrote into the output tensors."""
        sent: list[list[Any]] = []
        tensors: list[torch.Tensor] = []
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                sent.append(["tensor", len(tensors)])
                tensors.append(argument.detach())
            elif isinstance(argument, bool | int | float | str | list) or argument is None:
                sent.append(["value", argument])
            else:
                raise bindings.NotUnderstood(f"EXEC_NPU_CMD({name}): an argument of type {type(argument).__name__}")
        self._launched += tensors
        addresses = [tensor.data_ptr() for tensor in tensors]
        message = {"kind": "launch", "name": name, "arguments": sent, "addresses": addresses}
        messages.send(self._outgoing, json.dumps(message | {"made": self._made(tensors)}), tensors)
        text, outputs = messages.receive(self._incoming, _NO_LIMIT)
        reply = json.loads(text)
        if "error" in reply:
            raise LaunchFailed
        for position, output in zip(reply["outputs"], outputs, strict=True):
            tensors[position].copy_(output)
        self._keep(tensors[position] for position in reply["outputs"])


def _state(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the address of a tensor's memory, and a number that grows whenever torch writes there."""
    return tensor.untyped_storage().data_ptr(), 0 if tensor.is_inference() else tensor._version


class _Vendor(types.ModuleType):
    """A package of which a model only uses functions without a result, such as `synchronize`."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _function(evaluator: bindings.Evaluator, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return evaluator.call(name, arguments, named)
        except (bindings.NotUnderstood, bindings.BindingError, LaunchFailed):
            raise
        except Exception as error:
            words = (str(error).strip().splitlines() or [""])[0]
            raise bindings.BindingError(f"{name}(): {type(error).__name__}: {words}") from None

    return call


def _line(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == MODEL_FILE:
        return error.lineno
    frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == MODEL_FILE]
    return frames[-1] if frames else None


def _error(part: str, message: str, kind: str = "", line: int | None = None) -> dict[str, Any]:
    return {"kind": "error", "part": part, "message": message[:400], "type": kind, "line": line}


def prepare() -> None:
    """Do once in a fork server what the first request would do in each process."""
    confined_server.prepare()


def main(requests: int, responses: int) -> None:
    """Answer requests until there are no more."""
    incoming, outgoing = os.fdopen(requests, "rb"), os.fdopen(responses, "wb")
    warnings.simplefilter("ignore")  # nobody reads them
    outgoing.write(READY)
    outgoing.flush()
    answer = partial(Server(incoming, outgoing).answer)
    while True:
        try:
            text, tensors = messages.receive(incoming, _NO_LIMIT)
        except EOFError:
            return
        response, outputs = answer(json.loads(text), tensors)
        messages.send(outgoing, json.dumps(response), outputs)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

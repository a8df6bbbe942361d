"""Makes torch's registry of operators quick while a module is exported.

For every module, torch lists the composite operators of all namespaces and replaces about 5,700 of their kernels, which
takes three quarters of the time that a small module needs. The functions here do the same with less work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._C import DispatchKey
from torch._export import utils
from torch._ops import OperatorBase

_PY_IMPL = OperatorBase.py_impl
#: Gives every composite operator of torch's C++ code its Python object; torch calls it once for each namespace.
_LOADER = "_materialize_cpp_cia_ops"


@contextmanager
def quick_registry() -> Iterator[None]:
    """Replace what is slow in torch's registry; one thread at a time. Names that this torch lacks are left out."""
    with ExitStack() as stack:
        stack.enter_context(_replaced(OperatorBase, "py_impl", _register))
        if hasattr(utils, _LOADER):
            getattr(utils, _LOADER)()
            stack.enter_context(_replaced(utils, _LOADER, lambda: None))
        yield


def _register(operator: OperatorBase, key: Any) -> Callable[[Any], Any]:
    """Do what `OperatorBase.py_impl` does, which builds four generic types at every call."""
    if type(key) is not DispatchKey or key == DispatchKey.Python:
        return _PY_IMPL(operator, key)

    def register(kernel: Any) -> Any:
        if key in operator.py_kernels:
            return _PY_IMPL(operator, key)(kernel)  # raises torch's own error
        operator.py_kernels[key] = kernel
        operator._dispatch_cache.clear()
        return kernel

    return register


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)

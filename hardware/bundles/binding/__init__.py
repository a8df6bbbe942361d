"""Reads the C++ binding of a bundle and evaluates its functions on torch's tensors, without compiling them.

Bindings allocate outputs, compute shapes and call `EXEC_NPU_CMD`. What occurs in them is a small part of C++ around
functions of torch that Python has under the same names. Anything else is refused in one line.
"""

from kernel_gym.hardware.bundles.binding.evaluator import Evaluator, Launch
from kernel_gym.hardware.bundles.binding.syntax import Binding, Function, NotUnderstood, read
from kernel_gym.hardware.bundles.binding.values import BindingError, Options

__all__ = ["Binding", "BindingError", "Evaluator", "Function", "Launch", "NotUnderstood", "Options", "read"]

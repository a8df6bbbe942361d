"""Kernel synthesis as a Gymnasium environment.

`import kernel_gym` registers the environments; `gymnasium.make("kernel_gym/KernelSynthesis-v0")` makes one.
"""

from pathlib import Path as _Path

# In a checkout the sub-packages envs/, agents/, memory/ and hardware/ lie beside this folder, not in it.
_checkout = _Path(__file__).resolve().parent.parent
if (_checkout / "setup.cfg").is_file():
    __path__.append(str(_checkout))

from kernel_gym.registration import register_all as _register_all  # noqa: E402
from kernel_gym.version import __version__  # noqa: E402

_register_all()

__all__ = ["__version__"]

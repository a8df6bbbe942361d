"""Errors a person can act on.

Command lines print the message of a `KernelGymError` as one line and exit with status 2; anything else is a bug and
keeps its traceback.
"""


class KernelGymError(Exception):
    """Something the user can mend; the message says what and how, in one line."""


class TaskError(KernelGymError):
    """A task that does not exist or a problem file that cannot be loaded."""


class TaskWarning(UserWarning):
    """A problem file of a folder that was left out, and why."""


class ConfigError(KernelGymError):
    """A configuration key or value that is not accepted."""


class DeviceUnavailable(KernelGymError):
    """A device that cannot be used on this machine; the message says what is missing."""


class InfrastructureError(KernelGymError):
    """The verifier itself failed (a worker died, a disk filled): never the kernel's fault, never a verdict on it."""

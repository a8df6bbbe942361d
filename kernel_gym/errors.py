"""Errors that a user can act on.

Command lines print the message of a `KernelGymError` as one line and exit with status 2. Any other exception is a bug
and keeps its traceback.
"""


class KernelGymError(Exception):
    """Base of all errors that a user can correct. The message says in one line what is wrong and what to do."""


class TaskError(KernelGymError):
    """A task does not exist, or a problem file cannot be loaded."""


class ProblemFileDied(TaskError):
    """A problem file ended the process that runs it, or took too long."""


class BundleError(KernelGymError):
    """A file is no bundle of six strings.

    Args:
        message: One line that says what is wrong.
        line: The line of the file, if known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class TaskWarning(UserWarning):
    """A problem file of a folder was left out; the message says why."""


class AgentWarning(UserWarning):
    """An agent chose actions that have no effect; the message says how many and which."""


class ConfigError(KernelGymError):
    """A configuration key or value is not accepted."""


class DeviceUnavailable(KernelGymError):
    """A device cannot be used on this machine; the message says what is missing."""


class InfrastructureError(KernelGymError):
    """The verifier itself failed (a worker died, a disk is full). It is no verdict on the kernel."""

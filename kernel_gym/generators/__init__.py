"""Authors: whoever writes a kernel from a task and the memories it is shown."""

from kernel_gym.generators.contract import Context, Generator, Note, StartPoint

__all__ = ["Context", "Generator", "Note", "StartPoint"]

"""Authors: whoever writes a kernel from a task and the memories it is shown."""

from kernel_gym.authors.contract import Author, Context, Note, StartPoint

__all__ = ["Author", "Context", "Note", "StartPoint"]

"""Authors write a kernel from a task and the memories that they are shown.

`contract.py` defines what an author is, and `conformance.py` tests whether a class is one. There are two kinds of
author: `apprentice/` is a simulated one that needs no model, and `model/` asks a language model.
"""

from kernel_gym.authors.contract import Author, Batching, Context, Note, StartPoint, WriteRequest

__all__ = ["Author", "Batching", "Context", "Note", "StartPoint", "WriteRequest"]

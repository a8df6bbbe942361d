"""Lowers a task to a plan: exports its module, reads the ATen graph and fuses it into loop nests.

Read in this order. `lowering.py` is the entry. `reader.py` walks the graph; `operators/` says what each ATen operator
means as an `expression.py`; `plan_builder.py` collects buffers and stages. `fusion.py` turns expressions into loop
nests, with `sizes.py` for dimensions that are known only at run time. `workspace.py` shares temporary buffers. The
result is a `plan.py`, which `plan_store.py` caches on disk.
"""

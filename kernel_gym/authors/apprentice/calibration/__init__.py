"""Fits author profiles to figures that were published for protocols without memory.

Read in this order. `targets.py` reads the figures, `idiom_table.py` collects what kernels for the tasks need,
`protocols.py` computes the figures of a profile, and `fit.py` searches the profiles whose figures agree.
"""

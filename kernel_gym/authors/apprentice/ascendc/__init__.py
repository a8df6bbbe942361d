"""Writes a plan as Ascend C.

Read in this order. `kernel_file.py` is the entry: it picks a writer for each stage and writes the host function.
`stage.py` is the base of all writers, `nest.py` the base of those for loop nests: `maps.py` (elementwise), `rows.py`
(reductions along rows that fit on chip), `passes.py` (other reductions), `short_rows.py` (many short rows in a tile).
`body.py` writes the steps inside a nest. `products.py` uses the cube unit, `scans.py` writes running sums.
`schedule.py` and `moves.py` define the schedules.
"""

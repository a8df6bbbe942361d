"""Writes a plan as CUDA.

Read in this order. `kernel_file.py` is the entry: it picks a writer for each stage and writes the host function.
`stage.py` is the base of all writers. `nest.py` writes loop nests with one thread per result, `float4.py` elementwise
nests four floats at a time, `rows.py` reductions along rows with one block per row. `steps.py` writes the steps inside
a nest. `products.py` multiplies matrices, `scans.py` writes running sums. `schedule.py` and `moves.py` define the
schedules.
"""

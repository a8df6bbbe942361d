"""The apprentice without a compiler: its decisions for many attempts at once, and forecasts of their verdicts.

Read in this order. `batched_rng.py` draws the apprentice's random numbers for many attempts, `author.py` makes its
decisions. `kernel_texts.py` says what the text of a kernel shows without writing it. `measurements.py` holds what was
measured on the device, `latency_model.py` the latency of schedules between the measured ones, and `verdicts.py` turns
a decision into a verdict.
"""

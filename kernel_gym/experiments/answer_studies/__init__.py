"""Studies of a language model's answers under named conditions.

An answer study asks a model many times for kernels and shows it something else in each condition. Its stages can run on
different machines: `planning` composes the questions, `generation` asks the model and keeps a transcript, `judging` has
the kernels verified, and `figures` and `tables` make the results from both.
"""

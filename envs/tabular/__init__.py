"""The tabular environment: the author chooses among kernels that were judged beforehand."""

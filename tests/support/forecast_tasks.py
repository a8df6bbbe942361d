"""The tasks of tests on forecasts: quick to read, and measured in the package."""

#: Five tasks of level 1, four activations and a reduction.
FIVE = (
    "level1/relu",
    "level1/sigmoid",
    "level1/gelu",
    "level1/softmax",
    "level1/sum_reduction_over_a_dimension",
)

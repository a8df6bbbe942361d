"""Speed benchmarks; `make bench` and `kernel-gym bench` print their figures as JSON.

| module | what it measures | units |
|---|---|---|
| `verifier_speed` | verdicts: whole, by gate, from the cache | seconds, milliseconds, verdicts per second |
| `simulator_speed` | the Ascend simulator: compiling, timing, large runs | milliseconds, records per second, MB |
| `memory_speed` | the memory bank: embedding, searching, writing | milliseconds |
| `forecast_speed` | the forecast environment | attempts per second |
| `torch_evaluation` | the usual evaluation of a CUDA kernel with torch, for comparison | seconds, microseconds |
"""

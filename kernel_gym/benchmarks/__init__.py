"""Speed benchmarks; `make bench` and `kernel-gym bench` print their figures as JSON.

| module | what it measures | units |
|---|---|---|
| `verifier_speed` | verdicts: whole, by gate, from the cache | seconds, milliseconds, verdicts per second |
| `simulator_speed` | the Ascend simulator: compiling, timing, large runs | milliseconds, records per second, MB |
| `memory_speed` | the memory bank: embedding, searching, writing | milliseconds |
| `large_memory` | a memory bank of a million items | microseconds, seconds, milliseconds, MB |
| `service_speed` | a verification service | requests and verdicts per second |
| `cluster_speed` | clusters of several nodes, a shared bank, the driver | verdicts per second, milliseconds, shares |
| `forecast_speed` | the forecast environment | attempts per second |
| `torch_evaluation` | the usual evaluation of a CUDA kernel with torch, for comparison | seconds, microseconds |
"""

"""Selection policies of published systems, each in one file with the paper's constants and numbered deviations.

`tree_agent.py` has what they share: the tree of attempts at a task, and one rule for everything that a paper leaves
open. A new agent goes into a file of its own: derive it from `TreeAgent`, write `choose_start` and, where the paper
says what the author is shown, `pick`. The guide "Write an agent" has a whole one.

| name | module | from which kernel it starts |
|---|---|---|
| `puct` | `puct.py` | greatest PUCT score (TTT-Discover) |
| `shinka` | `shinka.py` | drawn by performance and novelty on 2 islands (ShinkaEvolve) |
| `islands` | `islands.py` | drawn on 5 islands with migration (OpenEvolve) |
| `map-elites` | `map_elites.py` | an elite of 4 x 4 x 4 cells (KernelFoundry) |
| `uct` | `uct.py` | where UCT's descent ends (OptiML, KernelEvolve) |
| `pareto` | `pareto.py` | the fastest; a memory of the Pareto front over tasks is shown (GEPA) |
| `judge` | `judge.py` | the last, even if it is slower; one practice against its bottleneck (CudaForge) |
| `greedy` | `greedy.py` | the fastest, keep or revert (AutoKernel, Metal-Sci, CUDA-LLM) |
| `one-shot` | `one_shot.py` | the fastest; one example of the category is shown (MultiKernelBench) |
| `max-value` | `max_value.py` | greatest value of the gain over the best so far (MaxCode) |
| `world-model` | `world_model.py` | the most promising by a learned model (K-Search) |
| `forecaster` | `forecaster.py` | the fastest; of several drafts the most promising is verified (GPU Forecasters) |
"""

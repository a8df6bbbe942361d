"""Agents: policies that choose which memories the author is shown.

An agent is one file that can be read top to bottom. `contract.py` says what an agent must do, `conformance.py` tests
it, `ranking.py` is the base class of agents that score candidates one by one, `scoring.py` and `rllib.py` are shared
by the agents with a network, and `support/` holds what some agents need besides: features of a context, attempts that
are still open, saved files.

A new agent goes into a file of its own here, with a line under `kernel_gym.agents` in `setup.cfg` and a test class in
`tests/agents/test_conformance.py`. Agents outside of this repository need neither: name them `module:Class`, or declare
an entry point of the group `kernel_gym.agents` in their own package.

| name | module | what it shows the author |
|---|---|---|
| `random` | `random.py` | candidates at random |
| `pass@k` | `pass_at_k.py` | no memories: every attempt is independent |
| `refinement` | `refinement.py` | earlier attempts at the same task, latest first |
| `similarity` | `similarity.py` | the most similar items |
| `heuristic` | `heuristic.py` | the same, under the paper's name for its ablation of values |
| `similarity-feasible` | `similarity_feasible.py` | the most similar kernels that passed every gate |
| `similarity-diverse` | `similarity_diverse.py` | the same, preferring kernels that differ from earlier picks |
| `value` | `value.py` | items with the highest learned value: the paper's method |
| `feature-value` | `feature_value.py` | items whose features have the highest learned value |
| `context-value` | `context_value.py` | the context with the highest learned value: our design |
| `ppo`, `dqn` | `ppo.py`, `dqn.py` | what a network trained by RLlib picks |
| `trained` | `trained.py` | what a network picks that was trained before, on forecasts |
| `maskable-ppo` | `maskable_ppo.py` | what a network trained by sb3-contrib picks |
| `oracle` | `oracle.py` | the best picks by the simulated author's own probabilities: an upper reference |

`published/` has the selection policies of published systems: `puct`, `shinka`, `islands`, `map-elites`, `uct`,
`pareto`, `judge`, `greedy`, `one-shot`, `max-value`, `world-model` and `forecaster`.
"""

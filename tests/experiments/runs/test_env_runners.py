"""RLlib's own env runners on a Ray cluster: processes of their own that share one bank."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")

from kernel_gym.agents.ppo import MaskedModule
from kernel_gym.agents.scoring import ScorerSizes
from kernel_gym.envs.observation import Layout
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind

RUNNERS, STEPS = 2, 16


def kernels(options: dict[str, Any]) -> gym.Env[Any, Any]:
    import kernel_gym  # noqa: F401

    return gym.make("kernel_gym/KernelSynthesis-v0", **options)


@pytest.mark.slow
def test_env_runners_of_a_cluster_share_one_bank(tmp_path: Path) -> None:
    """Run by `make test-slow`: two processes write to one bank at the same time, and each sees the other's kernels."""
    import ray
    from ray.cluster_utils import Cluster
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.tune.registry import register_env

    node = {"num_cpus": RUNNERS + 1, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    bank = tmp_path / "bank.sqlite"
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        register_env("kernels", kernels)
        options = {"suite": "basics", "picks": 2, "budget": 2, "workers": 1, "bank": str(bank)}
        sizes = ScorerSizes.of(Layout(8), 16)
        config = (
            PPOConfig()
            .environment("kernels", env_config=options)
            .env_runners(num_env_runners=RUNNERS, num_envs_per_env_runner=1, rollout_fragment_length=STEPS)
            .training(train_batch_size_per_learner=RUNNERS * STEPS, minibatch_size=8, num_epochs=1)
            .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"sizes": vars(sizes)}))
        )
        algorithm = config.build_algo()
        result = algorithm.train()
        seen = algorithm.env_runner_group.foreach_env_runner(
            lambda runner: len(runner.env.unwrapped.envs[0].unwrapped.bank), local_env_runner=False
        )
        algorithm.stop()
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert result["num_env_steps_sampled_lifetime"] >= RUNNERS * STEPS
    with MemoryBank(bank, StaticEmbedder(), read_only=True) as memory:
        assert memory.problems() == ()
        traces = memory.items(Kind.TRACE)
        assert memory.attempts >= RUNNERS * STEPS // 4
        assert len(traces) > 0
        assert seen == [len(memory)] * RUNNERS  # both see all of it

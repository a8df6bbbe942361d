"""PPO through RLlib, on the same lock-step environment as everyone else, with masks obeyed.

The observation describes K candidates by F numbers each and the situation by G; so one small network scores every
candidate in its situation, another scores "generate now", and illegal actions get no probability at all. Slots have no
fixed meaning, which is why the scorer is shared between them.

RLlib runs in this process (no remote runners, one learner): so a run is deterministic, and the bank is simply there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from kernel_gym.agents.contract import Agent, BudgetSpent, Info, MakeEnv, Metrics, Observation
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError

# Ray reports usage, asks for a token and starts a dashboard unless told otherwise before its first import.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

try:
    import ray
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
    from ray.tune.registry import register_env
except ImportError as error:
    raise ConfigError("the agent 'ppo' needs RLlib: pip install 'kernel_gym[rllib]'") from error

#: Logit of an illegal action: probability exactly zero in float32, no NaN in the entropy.
ILLEGAL = -1e9


class CandidateScorer(nn.Module):
    """Scores each candidate in its situation, and "generate now"; also estimates the value of the situation."""

    def __init__(self, slots: int, features: int, situation: int, hidden: int) -> None:
        super().__init__()
        self.slots, self.features = slots, features
        self.encode = nn.Sequential(
            nn.Linear(features + situation, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.score = nn.Linear(hidden, 1)
        self.generate = nn.Sequential(nn.Linear(hidden + situation, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.value = nn.Sequential(nn.Linear(hidden + situation, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, observation: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Masked logits (B, K + 1) and values (B,)."""
        flat, mask = observation["observations"], observation["action_mask"]
        candidates = flat[:, : self.slots * self.features].reshape(-1, self.slots, self.features)
        situation = flat[:, self.slots * self.features :]
        spread = situation.unsqueeze(1).expand(-1, self.slots, -1)
        encoded = self.encode(torch.cat([candidates, spread], -1))
        legal = mask[:, :-1].unsqueeze(-1)
        pooled = (encoded * legal).sum(1) / legal.sum(1).clamp(min=1.0)
        whole = torch.cat([pooled, situation], -1)
        logits = torch.cat([self.score(encoded).squeeze(-1), self.generate(whole)], -1)
        return logits.masked_fill(mask < 0.5, ILLEGAL), self.value(whole).squeeze(-1)


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """The scorer as RLlib wants it."""

    def setup(self) -> None:
        """Build the network from `model_config`."""
        self.scorer = CandidateScorer(**self.model_config["scorer"])

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.scorer(batch[Columns.OBS])[0]}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, values = self.scorer(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Values of a batch; the train pass has computed them already."""
        values: Tensor = self.scorer(batch[Columns.OBS])[1] if embeddings is None else embeddings
        return values


class PPOAgent(Agent):
    """Proximal policy optimisation over picks. Constants are RLlib's but for those below, which suit short budgets."""

    owns_loop = True

    def __init__(
        self,
        seed: int = 0,
        hidden: int = 64,
        learning_rate: float = 1e-3,
        gamma: float = 1.0,
        entropy: float = 0.01,
        epochs: int = 8,
        steps_per_batch: int = 24,
    ) -> None:
        super().__init__(seed)
        self.seed, self.hidden = seed, hidden
        self.learning_rate, self.gamma, self.entropy = learning_rate, gamma, entropy
        #: passes over each batch
        self.epochs = epochs
        #: steps of every environment that make one batch: with five picks, about four attempts each
        self.steps_per_batch = steps_per_batch
        self.scorer: CandidateScorer | None = None

    def act(self, observation: Observation, info: Info) -> int:
        """An action drawn from the trained policy; a random legal one before training.

        Drawn, not the most probable one: among memories that nothing is known of yet, a policy that always picks the
        same never finds out.
        """
        if self.scorer is None:
            return int(self.rng.choice(observation["action_mask"].nonzero()[0]))
        batch = {key: torch.as_tensor(value).unsqueeze(0) for key, value in observation.items()}
        with torch.no_grad():
            probabilities = torch.softmax(self.scorer(batch)[0][0].double(), -1).numpy()
        return int(self.rng.choice(len(probabilities), p=probabilities))

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the environment says that the budget is spent."""
        with _quietly():
            algorithm = self._build(make_env)
            try:
                while (result := _train_or_stop(algorithm)) is not None:
                    log(flatten(result), int(result["num_env_steps_sampled_lifetime"]))
                self.scorer = algorithm.get_module().scorer
            finally:
                algorithm.stop()

    def save(self, path: Path) -> None:
        """Write the network's weights and sizes."""
        if self.scorer is not None:
            torch.save({"sizes": self._sizes(self.scorer), "weights": self.scorer.state_dict()}, path / "ppo.pt")

    def load(self, path: Path) -> None:
        """Read them back."""
        saved = torch.load(path / "ppo.pt", weights_only=True)
        self.scorer = CandidateScorer(**saved["sizes"])
        self.scorer.load_state_dict(saved["weights"])

    def _sizes(self, scorer: CandidateScorer) -> dict[str, int]:
        hidden = scorer.score.in_features
        situation = scorer.encode[0].in_features - scorer.features  # type: ignore[operator]
        return {"slots": scorer.slots, "features": scorer.features, "situation": int(situation), "hidden": hidden}

    def _build(self, make_env: MakeEnv) -> PPO:
        envs = make_env.vector()
        layout = Layout(int(envs.single_action_space.n) - 1)  # type: ignore[attr-defined]
        sizes = {"slots": layout.slots, "features": layout.candidate_width, "situation": layout.global_width}
        sizes["hidden"] = self.hidden
        batch = self.steps_per_batch * envs.num_envs
        config = (
            PPOConfig()
            .environment(_SHARED_ENVS, env_config={"envs": _Shared(envs)})
            .env_runners(
                num_env_runners=0,
                num_envs_per_env_runner=envs.num_envs,
                gym_env_vectorize_mode="vector_entry_point",
                rollout_fragment_length="auto",
                batch_mode="truncate_episodes",
            )
            .learners(num_learners=0)
            .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"scorer": sizes}))
            .training(
                train_batch_size_per_learner=batch,
                minibatch_size=min(batch, 128),
                num_epochs=self.epochs,
                lr=self.learning_rate,
                gamma=self.gamma,
                entropy_coeff=self.entropy,
                use_kl_loss=False,
            )
            .debugging(seed=self.seed, log_level="ERROR")
        )
        register_env(_SHARED_ENVS, lambda context: context["envs"].thing)
        return config.build_algo()


class _Shared:
    """Takes one object through RLlib's configuration, which copies and pickles everything else."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        _SHARED[id(self)] = self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The environments hold open files and never leave this process.
        return _shared, (id(self),)


def _shared(key: int) -> _Shared:
    return _SHARED[key]


#: What is shared at the moment, by identity: a pickle made in this process is read in this process.
_SHARED: WeakValueDictionary[int, _Shared] = WeakValueDictionary()


_SHARED_ENVS = "kernel_gym.agents.ppo.shared"


def flatten(result: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """RLlib's nested result as flat scalars, for TensorBoard; settings and timers of its own machinery are left out."""
    scalars: dict[str, float] = {}
    for key, value in result.items():
        if key in ("config", "timers", "perf", "hist_stats"):
            continue
        if isinstance(value, Mapping):
            scalars |= flatten(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            scalars[f"{prefix}{key}"] = float(value)
    return scalars


def _train_or_stop(algorithm: PPO) -> dict[str, Any] | None:
    """One batch and its updates; None once the environment's budget is spent."""
    try:
        return dict(algorithm.train())
    except BudgetSpent:
        return None


@contextmanager
def _quietly() -> Iterator[None]:
    """A small, silent Ray of our own for as long as it is needed, unless one runs already."""
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the network is small: threads would only wait for one another
    try:
        with _ray_if_needed():
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _ray_if_needed() -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    ray.init(
        address="local",
        num_cpus=1,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 * 2**20,
    )
    try:
        yield
    finally:
        ray.shutdown()

"""What RLlib's learners share: the lock-step environment handed over, a small and silent Ray, metrics, weights.

The environments run in this process (no remote runners): so a run is deterministic, and the bank is simply there. With
the address of a Ray cluster the network is trained there, by one learner.
"""

from __future__ import annotations

import logging
import os
import socket
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch

from kernel_gym.agents import scoring
from kernel_gym.agents.contract import Agent, BudgetSpent, Info, MakeEnv, Metrics, Observation
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError, InfrastructureError

# Ray reports usage, asks for a token and starts a dashboard unless told otherwise before its first import.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

try:
    import ray
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.tune.registry import register_env
except ImportError as error:
    raise ConfigError("the agents 'ppo' and 'dqn' need RLlib: pip install 'kernel_gym[rllib]'") from error


class RLlibAgent(Agent):
    """An agent that RLlib trains. `settings` go to the algorithm's `training(...)` as they are.

    `ray_address` is that of a running cluster; without one, a Ray of our own is started on this machine.
    """

    owns_loop = True
    #: What its weights are saved as.
    file: str

    def __init__(self, seed: int, hidden: int, ray_address: str, settings: Mapping[str, Any] | None) -> None:
        super().__init__(seed)
        self.seed, self.hidden, self.ray_address = seed, hidden, ray_address
        self.settings = dict(settings or {})
        self.scorer: CandidateScorer | None = None

    @abstractmethod
    def config(self, num_envs: int) -> AlgorithmConfig:
        """The algorithm with its constants, but for environment, module and seed."""

    @abstractmethod
    def module(self) -> type:
        """The RLModule that holds the scorer."""

    @abstractmethod
    def act(self, observation: Observation, info: Info) -> int:
        """An action of the trained policy; a random legal one before training."""

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the environment says that the budget is spent; goes on from what was loaded."""
        with _quietly(self.ray_address), _lost_workers():
            algorithm = self._build(make_env)
            try:
                while (result := _train_or_stop(algorithm)) is not None:
                    self.scorer = algorithm.get_module().scorer
                    log(flatten(result, "rllib/"), int(result["num_env_steps_sampled_lifetime"]))
                self.scorer = algorithm.get_module().scorer
            finally:
                algorithm.stop()

    def save(self, path: Path) -> None:
        """Write the network's weights and sizes, nothing else: optimiser, replay and exploration begin anew."""
        if self.scorer is not None:
            path.mkdir(parents=True, exist_ok=True)
            scoring.save(self.scorer, path / self.file)

    def load(self, path: Path) -> None:
        """Read them back."""
        self.scorer = scoring.load(path / self.file)

    def scores(self, observation: Observation, illegal: float) -> torch.Tensor | None:
        """The network's scores of one observation; None before training."""
        if self.scorer is None:
            return None
        batch = {key: torch.as_tensor(value).unsqueeze(0) for key, value in observation.items()}
        with torch.no_grad():
            return self.scorer.masked(batch, illegal)[0][0]

    def _build(self, make_env: MakeEnv) -> Algorithm:
        envs = make_env.vector()
        sizes = ScorerSizes.of(Layout(int(envs.single_action_space.n) - 1), self.hidden)  # type: ignore[attr-defined]
        spec = RLModuleSpec(module_class=self.module(), model_config={"sizes": vars(sizes)})
        config = (
            self.config(envs.num_envs)
            .environment(_SHARED_ENVS, env_config={"envs": _Shared(envs)})
            .env_runners(
                num_env_runners=0,
                num_envs_per_env_runner=envs.num_envs,
                gym_env_vectorize_mode="vector_entry_point",
                rollout_fragment_length="auto",
                batch_mode="truncate_episodes",
            )
            .learners(num_learners=1 if self.ray_address else 0)
            .rl_module(rl_module_spec=spec)
            .debugging(seed=self.seed, log_level="ERROR")
        )
        register_env(_SHARED_ENVS, lambda context: context["envs"].thing)
        try:
            algorithm = config.training(**self.settings).build_algo()
        except TypeError as error:
            raise ConfigError(f"settings that RLlib does not take: {error}") from error
        if self.scorer is not None:
            self._go_on(algorithm, self.scorer)
        return algorithm

    def _go_on(self, algorithm: Algorithm, scorer: CandidateScorer) -> None:
        """Give learner and runner the weights that were loaded."""
        module = algorithm.get_module()
        module.scorer.load_state_dict(scorer.state_dict())
        algorithm.learner_group.set_weights({"default_policy": module.get_state()})


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


def _shared(key: int) -> _Shared | None:
    return _SHARED.get(key)


#: What is shared at the moment, by identity: a pickle made in this process is read in this process.
_SHARED: WeakValueDictionary[int, _Shared] = WeakValueDictionary()


_SHARED_ENVS = "kernel_gym.agents.rllib.shared"


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


def _train_or_stop(algorithm: Algorithm) -> dict[str, Any] | None:
    """One batch and its updates; None once the environment's budget is spent."""
    try:
        return dict(algorithm.train())
    except BudgetSpent:
        return None


@contextmanager
def _lost_workers() -> Iterator[None]:
    """A worker of the cluster that is gone is one line; what was attempted is in the journal."""
    try:
        yield
    except (ray.exceptions.RayActorError, ray.exceptions.NodeDiedError, ConnectionError) as error:
        raise InfrastructureError(f"lost a Ray worker ({type(error).__name__}); run the same command again") from error


@contextmanager
def _quietly(address: str) -> Iterator[None]:
    """A silent Ray for as long as it is needed, unless one runs already."""
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the network is small: threads would only wait for one another
    try:
        with _ray_if_needed(address):
            yield
    finally:
        torch.set_num_threads(threads)


#: Times that Ray is asked to start: on a busy machine the first may come to nothing.
STARTS = 3


def _start(address: str) -> None:
    own: dict[str, Any] = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    settings: dict[str, Any] = {} if address else own
    if not address:  # it would print pages of its log when one of its processes is lost; `apart` says that in a line
        ray._private.worker.listen_error_messages = lambda worker, stopped: None
    for left in reversed(range(STARTS)):
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **settings)
            return
        except Exception as error:  # Ray raises bare ones when it did not start in time
            ray.shutdown()
            if not left:
                reason = (str(error) or type(error).__name__).splitlines()[0]
                where = f"at {address!r}" if address else "on this machine"
                raise InfrastructureError(f"Ray can't be used {where}: {reason}; run the same command again") from error


def _reach(address: str) -> None:
    """Knock at a cluster's door: Ray itself tries for minutes before it says that nobody is there."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot reach a Ray cluster at {address!r}: {error}") from error


@contextmanager
def _ray_if_needed(address: str) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    _reach(address)
    _start(address)
    try:
        yield
    finally:
        ray.shutdown()

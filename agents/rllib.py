"""Base class of the agents that RLlib trains, `ppo` and `dqn`.

It passes the lock-step environment to RLlib, starts a small and silent Ray, selects metrics, and saves weights. The
environments run in this process, without remote runners, so that a run is deterministic and uses one memory bank. With
the address of a Ray cluster one learner trains the network there.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakValueDictionary

import torch

from kernel_gym import activity
from kernel_gym.agents import scoring
from kernel_gym.agents.contract import Agent, BudgetSpent, Info, MakeEnv, Metrics, Observation
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes, load_weights
from kernel_gym.agents.support.attempt_episodes import AttemptEpisodes
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.service.cluster_address import check_reachable

try:
    import ray
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.tune.registry import register_env
except ImportError as error:
    raise ConfigError("the agents 'ppo' and 'dqn' need RLlib: pip install 'kernel_gym[rllib]'") from error


#: Whose rewards a pick is credited with: its attempt's, or those of all attempts until the end of its task.
Credit = Literal["attempt", "episode"]


class RLlibAgent(Agent):
    """An agent that RLlib trains.

    Args:
        seed: Seed of training and of the draws in `act`.
        hidden: Width of the network's hidden layers.
        ray_address: Address of a running Ray cluster; empty to start a local Ray.
        settings: Passed to the algorithm's `training(...)`.
        credit: Whose rewards a pick is credited with.
        layers: Layers of self-attention in the network.
        weights: Packaged weights, or a file, to train on from; empty for random ones.

    Attributes:
        file: Name of the file that the weights are saved in.
        scorer: The network; None before training.
    """

    owns_loop = True
    file: str

    def __init__(
        self,
        seed: int,
        hidden: int,
        ray_address: str,
        settings: Mapping[str, Any] | None,
        credit: Credit = "attempt",
        layers: int = 0,
        weights: str = "",
    ) -> None:
        super().__init__(seed)
        if credit not in get_args(Credit):
            raise ConfigError(f"credit is one of {', '.join(get_args(Credit))}, not {credit!r}")
        self.seed, self.hidden, self.ray_address = seed, hidden, ray_address
        self.settings, self.credit, self.layers = dict(settings or {}), credit, layers
        self.scorer: CandidateScorer | None = load_weights(weights) if weights else None

    @abstractmethod
    def config(self, num_envs: int) -> AlgorithmConfig:
        """Return the algorithm with its constants, without environment, module and seed."""

    @abstractmethod
    def module(self) -> type:
        """Return the class of the RLModule that holds the scorer."""

    @abstractmethod
    def act(self, observation: Observation, info: Info) -> int:
        """Return an action of the trained policy; a random legal one before training."""

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the environment raises `BudgetSpent`, from the loaded weights if there are any.

        Raises:
            ConfigError: If RLlib refuses a setting or the cluster cannot be reached.
            InfrastructureError: If Ray does not start or a worker of the cluster is lost.
        """
        with _silent_ray(self.ray_address), _lost_workers():
            algorithm = self._build(make_env)
            try:
                while (result := _train_or_stop(algorithm)) is not None:
                    self.scorer = algorithm.get_module().scorer
                    log(learning_metrics(result), int(result["num_env_steps_sampled_lifetime"]))
                self.scorer = algorithm.get_module().scorer
            finally:
                algorithm.stop()

    def save(self, path: Path) -> None:
        """Write the network's weights and sizes; optimiser, replay and exploration are not saved."""
        if self.scorer is not None:
            path.mkdir(parents=True, exist_ok=True)
            scoring.save(self.scorer, path / self.file)

    def load(self, path: Path) -> None:
        """Read back the network that `save` wrote.

        Raises:
            ConfigError: If the folder has no network.
        """
        self.scorer = scoring.load(path / self.file)

    def scores(self, observation: Observation, illegal: float) -> torch.Tensor | None:
        """Return the network's scores of one observation, `illegal` for illegal actions; None before training."""
        if self.scorer is None:
            return None
        batch = {key: torch.as_tensor(value).unsqueeze(0) for key, value in observation.items()}
        self.scorer.check_fits(batch)
        with torch.no_grad():
            return self.scorer.masked(batch, illegal)[0][0]

    def _build(self, make_env: MakeEnv) -> Algorithm:
        envs = AttemptEpisodes(make_env.vector()) if self.credit == "attempt" else make_env.vector()
        slots, observed = int(envs.single_action_space.n) - 1, envs.single_observation_space["observations"]  # type: ignore
        sizes = ScorerSizes.of(Layout.of_size(slots, observed.shape[0]), self.hidden, self.layers)
        if self.scorer is not None:
            sizes = replace(self.scorer.sizes, slots=slots)
        spec = RLModuleSpec(module_class=self.module(), model_config={"sizes": vars(sizes)})
        config = (
            self.config(envs.num_envs)
            .environment(_SHARED_ENVS, env_config={"envs": _SharedEnvs(envs)})
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
        register_env(_SHARED_ENVS, lambda context: context["envs"].envs)
        try:
            algorithm = config.training(**self.settings).build_algo()
        except TypeError as error:
            raise ConfigError(f"RLlib does not take these settings: {error}") from error
        if self.scorer is not None:
            self._set_weights(algorithm, self.scorer)
        return algorithm

    def _set_weights(self, algorithm: Algorithm, scorer: CandidateScorer) -> None:
        """Set the weights of learner and runner to those of `scorer`."""
        module = algorithm.get_module()
        module.scorer.load_state_dict(scorer.state_dict())
        algorithm.learner_group.set_weights({"default_policy": module.get_state()})


class _SharedEnvs:
    """Passes the environments through RLlib's configuration, which copies and pickles its content, unchanged."""

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        _SHARED[id(self)] = self

    def __deepcopy__(self, memo: dict[int, Any]) -> _SharedEnvs:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The environments hold open files and never leave this process.
        return _find_shared, (id(self),)


def _find_shared(key: int) -> _SharedEnvs | None:
    return _SHARED.get(key)


#: Shared environments by identity: a pickle made in this process is read in this process.
_SHARED: WeakValueDictionary[int, _SharedEnvs] = WeakValueDictionary()


_SHARED_ENVS = "kernel_gym.agents.rllib.shared"

#: How the learner's entries begin that are about RLlib's own work.
PLUMBING = ("num_", "weights_seq_no", "module_train_batch_size", "diff_num_grad_updates")


def learning_metrics(result: Mapping[str, Any]) -> dict[str, float]:
    """Return what RLlib's result says about learning: the learner's losses, and returns and lengths of episodes.

    Counters, timers, throughputs and the state of workers are left out, and so are values that are not there yet (NaN).
    """
    learner = result.get("learners", {}).get("default_policy", {})
    runners = result.get("env_runners", {})
    metrics = {name: value for name, value in learner.items() if not name.startswith(PLUMBING)}
    metrics |= {name: runners[name] for name in ("episode_return_mean", "episode_len_mean") if name in runners}
    numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
    return {f"rllib/{name}": value for name, value in numbers.items() if not math.isnan(value)}


def _train_or_stop(algorithm: Algorithm) -> dict[str, Any] | None:
    """Train on one batch. Returns RLlib's result; None once the environment's budget is spent."""
    try:
        return dict(algorithm.train())
    except BudgetSpent:
        return None


@contextmanager
def _lost_workers() -> Iterator[None]:
    """Report a lost worker of the cluster in one line; the attempts so far are in the journal."""
    try:
        yield
    except (ray.exceptions.RayActorError, ray.exceptions.NodeDiedError, ConnectionError) as error:
        raise InfrastructureError(f"lost a Ray worker ({type(error).__name__}); run the same command again") from error


@contextmanager
def _silent_ray(address: str) -> Iterator[None]:
    """Run a silent Ray for the duration of the block, unless one runs already."""
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the network is too small to gain from threads
    try:
        with _ray_if_needed(address):
            yield
    finally:
        torch.set_num_threads(threads)


#: Attempts to start Ray: on a busy machine the first one may time out.
STARTS = 3


def _start(address: str) -> None:
    activity.prepare(f"connecting to Ray at {address}" if address else "starting Ray")
    local: dict[str, Any] = {
        "num_cpus": 1,
        "num_gpus": 0,
        "include_dashboard": False,
        "object_store_memory": 100 * 2**20,
    }
    settings: dict[str, Any] = {} if address else local
    if not address:  # Ray would print its log when one of its processes is lost; the run reports that in a line
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


@contextmanager
def _ray_if_needed(address: str) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    check_reachable(address)
    _start(address)
    try:
        yield
    finally:
        ray.shutdown()

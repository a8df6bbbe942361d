"""The forecast environment and its vector form."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile
from kernel_gym.authors.apprentice.forecast.author import ForecastAuthor, ForecastRequest
from kernel_gym.authors.apprentice.forecast.measurements import PACKAGED
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.envs import factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.episode import AttemptResult
from kernel_gym.envs.forecast.bank import ForecastBank
from kernel_gym.envs.forecast.batched_episodes import BatchedEpisodes
from kernel_gym.envs.forecast.descriptions import LANGUAGE, descriptions
from kernel_gym.envs.forecast.initial_memory import NOTHING, load_initial_memory
from kernel_gym.envs.forecast.items import Items
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.envs.options import Options, reset_option
from kernel_gym.envs.picture import Pixels, picture
from kernel_gym.envs.rendering import EpisodeState, frame, known_mode
from kernel_gym.errors import ConfigError

Actions = NDArray[np.int64]

#: Options of the live environment that have no meaning without a device, another author or a bank in a file.
_FIXED = (
    *("device", "device_options", "verifier", "service", "cluster", "policy", "inspection"),
    *("author", "bank", "operators", "sizes"),
)


class _Forecast:
    """Properties that both forms of the forecast environment share."""

    _episodes: BatchedEpisodes
    _results: list[Attempt]
    _np_random_seed: int | None

    options: Options
    render_mode: str | None

    def _states(self) -> list[tuple[EpisodeState, AttemptResult | None]]:
        """Return the state of each episode and the attempt that has just ended, if one has."""
        if self._np_random_seed is None:
            raise gym.error.ResetNeeded("there is nothing to show yet; call reset()")
        results: list[AttemptResult | None] = [None] * self._episodes.count
        for i, result in enumerate(self._results):
            results[i] = AttemptResult(result.reward, result)
        return [(self._episodes.state(i), ended) for i, ended in enumerate(results)]

    def _texts(self) -> tuple[str, ...]:
        return tuple(frame(state, ended) for state, ended in self._states())

    def _rendered(self) -> tuple[str, ...] | tuple[Pixels, ...] | None:
        """Return one text for each episode with `ansi`, one picture each with `rgb_array`, else None."""
        if self.render_mode == "rgb_array":
            return tuple(picture(state, ended, self.options.slots) for state, ended in self._states())
        return self._texts() if self.render_mode == "ansi" else None

    def _masks(self) -> NDArray[np.bool_]:
        if self._np_random_seed is None:
            raise gym.error.ResetNeeded("there is no mask yet; call reset()")
        return self._episodes.mask() > 0.5

    @property
    def layout(self) -> Layout:
        """Where each feature lies in one task's observation."""
        return self._episodes.observed.layout

    @property
    def bank(self) -> ForecastBank:
        """The bank; of the vector form the one that all tasks share."""
        return self._episodes.banks[0]

    @property
    def items(self) -> Items:
        """The items of the memory as arrays."""
        return self._episodes.items

    def redraw(self, count: int) -> None:
        """Have so many further kernels drawn for every context, for `mean_rewards`; none of them joins the memory."""
        self._episodes.redraws = count

    @property
    def mean_rewards(self) -> NDArray[np.float64]:
        """The rewards of the attempts that ended last, each the mean over the kernels drawn for its context."""
        return self._episodes.mean_rewards

    def possible_requests(self) -> tuple[Actions, Actions, list[ForecastRequest]]:
        """Return what the author would be asked with each legal pick added, or with none, for analysis.

        Returns:
            Episodes, actions and requests, one each; none for episodes that choose a start point or a draft.
        """
        return self._episodes.possible_requests()


class ForecastEnv(_Forecast, gym.Env[dict[str, Vector], np.int64]):
    """
    `KernelSynthesisEnv` without compiler, device and sandbox: the author's decisions are real, verdicts are forecast.

    ## Description
    The author decides as the apprentice does: the same schedule and the same mistakes for the same seed, attempt,
    context and start point. The declared effect of its mistakes says at which gate the kernel ends, a model of measured
    schedules says how long it takes, and the message is one that the verifier gave for the decisive mistake. Texts of
    kernels and memories are written when they are read.

    ## Spaces, rewards, episode end, information
    Those of `KernelSynthesisEnv`. `info["candidates"]` makes a `Candidate` when it is accessed. There is no
    infrastructure, so nothing is truncated. Verdicts name the device `forecast`.

    ## What is simpler
    Experiences and traces of refined kernels are worded as those of drafts. What a kernel with several mistakes shows
    is the sum of what each of them changes. The page on the forecast environment says how far this agrees with live
    verdicts.

    ## Arguments
    | argument | default | meaning |
    |---|---|---|
    | measurements | "ascendc" | the packaged ones, or a file that `kernel-gym forecast renew` wrote |
    | initial_memory | None | a file that an export of a bank wrote: memories of other tasks to begin with |
    | author_options | {"profile": "middle"} | which author; also a sampled one, such as `middle~7` |

    and `suite`, `tasks`, `budget`, `picks`, `pool_factor`, `pool_schedule`, `start_points`, `drafts`, `coverage`,
    `stages` ("both", "draft"), `memory`, `repair`, `pages`, `composition`, `statistics`, `curriculum`, `embedder`,
    `layout`, `seed` and `render_mode` of `KernelSynthesisEnv`.

    ## Version History
    * v0: initial version
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        measurements: str | Path = PACKAGED,
        render_mode: str | None = None,
        initial_memory: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.options = Options.of(options)
        self.render_mode, self._results = known_mode(render_mode, self.metadata), []
        self._episodes = _episodes(measurements, self.options, 1, initial_memory)
        self.observation_space = self.layout.space()
        self.action_space = gym.spaces.Discrete(self.options.slots + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, Any]]:
        """Begin the next task; with a seed, restore bank and curriculum first. `options["task"]` names a task."""
        name, first = reset_option(options, "task"), self._np_random_seed is None
        super().reset(seed=self.options.seed if first and seed is None else seed)
        if first or seed is not None:
            self._episodes.restart(int(self.np_random_seed))
        self._episodes.begin(0, name)
        self._episodes.open_attempts([0])
        self._results = []
        self._show()
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[dict[str, Vector], float, bool, bool, dict[str, Any]]:
        """Make one pick. After the last pick of an attempt the verdict is forecast and the attempt joins the memory."""
        if not self.action_space.contains(action):
            raise gym.error.InvalidAction(f"{action!r} is not an action; they are 0..{self.options.slots}")
        episodes = self._episodes
        if episodes.over[0]:
            raise gym.error.ResetNeeded("the episode is over; call reset()")
        episodes.pick(np.zeros(1, np.int64), np.array([action], np.int64))
        self._results = []
        if episodes.ready[0]:
            self._results = episodes.generate()
        self._show()
        info, reward = self._info(), 0.0
        for attempt in self._results:
            info["attempt"], reward = attempt, attempt.reward
        return self._observation(), reward, bool(episodes.over[0]), False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return True for every legal action, as sb3-contrib's MaskablePPO asks for it."""
        mask: NDArray[np.bool_] = self._masks()[0]
        return mask

    def render(self) -> str | Pixels | None:  # type: ignore[override]
        """Return the state: text with `ansi`, a picture with `rgb_array`.

        With `human`, `reset` and `step` print the text and this returns None.
        """
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode: gymnasium.make(..., render_mode='ansi')")
        rendered = self._rendered()
        return None if rendered is None else rendered[0]

    def _show(self) -> None:
        if self.render_mode == "human":
            print(self._texts()[0], flush=True)

    def _observation(self) -> dict[str, Vector]:
        return {key: value[0] for key, value in self._episodes.observations().items()}

    def _info(self) -> dict[str, Any]:
        return {key: values[0] for key, values in self._episodes.infos().items()}


class ForecastVectorEnv(_Forecast, VectorEnv[dict[str, Vector], Actions, NDArray[Any]]):
    """
    `ForecastEnv` for a batch of tasks that share one bank and move in lock-step, as in `KernelSynthesisVectorEnv`.

    This is the fast form: the time of an attempt falls with `num_envs`, up to a few hundred.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        measurements: str | Path = PACKAGED,
        render_mode: str | None = None,
        initial_memory: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.options = Options.of(options)
        self.num_envs, self.render_mode = num_envs, known_mode(render_mode, self.metadata)
        self._results = []
        self._episodes = _episodes(measurements, self.options, num_envs, initial_memory)
        self.single_observation_space = self.layout.space()
        self.single_action_space = gym.spaces.Discrete(self.options.slots + 1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all = np.ones(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, Any]]:
        """Begin the next task in every sub-environment; with a seed, restore bank and curriculum first."""
        if seed is not None and not isinstance(seed, int | np.integer):
            raise ConfigError("the sub-environments share one memory: give one seed, not a list")
        names, first = reset_option(options, "tasks") or [None] * self.num_envs, self._np_random_seed is None
        if len(names) != self.num_envs:
            raise ConfigError(f"{self.num_envs} sub-environments need as many tasks, not {len(names)}")
        super().reset(seed=self.options.seed if first and seed is None else seed)
        if first or seed is not None:
            self._episodes.restart(int(self.np_random_seed or 0))
        for i, name in zip(range(self.num_envs), names, strict=True):
            self._episodes.begin(i, name)
        self._episodes.open_attempts(range(self.num_envs))
        self._results = []
        self._show()
        return self._episodes.observations(), self._infos([])

    def step(
        self, actions: Actions
    ) -> tuple[dict[str, Vector], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Make one pick in each sub-environment. When all are done, all verdicts are forecast and join the memory."""
        picks = np.asarray(actions, np.int64)
        # As unsigned numbers, those below 0 are the greatest.
        if picks.shape != (self.num_envs,) or picks.view(np.uint64).max() > self.options.slots:
            raise gym.error.InvalidAction(f"actions must be {self.num_envs} numbers in 0..{self.options.slots}")
        episodes = self._episodes
        over = episodes.over
        picking = (~(over | episodes.ready)).nonzero()[0]
        if len(picking):
            episodes.pick(picking, picks[picking])
        if ended := over.nonzero()[0].tolist():
            for i in ended:
                episodes.begin(i)
            episodes.open_attempts(ended)
        results: list[Attempt] = []
        if episodes.ready.all():
            results = episodes.generate()
        self._results = results
        self._show()
        rewards = np.array([attempt.reward for attempt in results]) if results else np.zeros(self.num_envs)
        return episodes.observations(), rewards, episodes.over.copy(), ~self._all, self._infos(results)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return True for every legal action, one row for each sub-environment."""
        return self._masks()

    def render(self) -> tuple[str, ...] | tuple[Pixels, ...] | None:  # type: ignore[override]
        """Return one text for each sub-environment with `ansi`, one picture each with `rgb_array`, else None."""
        return self._rendered()

    def _show(self) -> None:
        if self.render_mode == "human":
            print("\n".join(self._texts()), flush=True)

    def _infos(self, results: list[Attempt]) -> dict[str, Any]:
        columns = self._episodes.infos()
        if results:
            columns["attempt"] = list(results)
        infos: dict[str, Any] = {key: np.fromiter(values, object, self.num_envs) for key, values in columns.items()}
        return infos | {f"_{key}": self._all for key in columns}


def _episodes(
    measurements: str | Path, options: Options, count: int, initial_memory: str | Path | None
) -> BatchedEpisodes:
    if count < 1:
        raise ConfigError(f"num_envs must be at least 1, not {count}")
    plain = Options()
    for name in _FIXED:
        if getattr(options, name) != getattr(plain, name):
            raise ConfigError(f"the forecast environment has no {name}: its verdicts are forecast, not judged")
    if options.stages == "refine":
        raise ConfigError("the forecast environment has no bank to refine from: stages is both or draft")
    if unknown := set(options.author_options) - {"profile"}:
        raise ConfigError(f"the author of the forecast environment takes a profile, not {', '.join(sorted(unknown))}")
    tasks = factories.tasks(options)
    if twice := sorted({task.id for task in tasks if [other.id for other in tasks].count(task.id) > 1}):
        raise ConfigError(f"{', '.join(twice)} would count twice: name each task once")
    profile = options.author_options.get("profile", "middle")
    author = _author(load_profile(profile) if isinstance(profile, str) else profile)
    embedder = factories.embedder(options) if options.embedder_options else options.embedder
    about = descriptions(measurements, embedder)
    initial = NOTHING
    if initial_memory:
        initial = load_initial_memory(Path(initial_memory), about.seeds, {task.id for task in tasks})
    items = Items(tasks, about, options.pages, initial)
    return BatchedEpisodes(items, options, author, count)


@lru_cache(maxsize=64)
def _author(profile: Profile) -> ForecastAuthor:
    """Return the author of a profile, one per process; it keeps the random numbers of its runs."""
    return ForecastAuthor(profile, backend(LANGUAGE), Items.page_slots)

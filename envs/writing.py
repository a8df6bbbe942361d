"""The environment for people who train authors: the action is a kernel's source, the verdict is the reward."""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from kernel_gym.envs import attempt_rules, factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.attempt_rules import Progress
from kernel_gym.envs.curriculum import Curriculum
from kernel_gym.envs.episode import PATIENCE
from kernel_gym.envs.options import Options, reset_option
from kernel_gym.envs.prompt_context import describe
from kernel_gym.envs.rendering import known_mode
from kernel_gym.envs.services import RETRIES
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Unjudged, Verdict

#: The longest text of an action and of every part of an observation.
LENGTH = 65536
#: Options of the environment that chooses memories which mean the same here.
ARGUMENTS = (
    "suite",
    "tasks",
    "device",
    "device_options",
    "verifier",
    "service",
    "cluster",
    "policy",
    "inspection",
    "budget",
    "stages",
    "curriculum",
    "seed",
)

Observation = dict[str, Any]


class KernelWritingEnv(gym.Env[Observation, str]):
    """
    Write kernels. The verifier's verdict is the reward.

    ## Description
    This is the author's side of `KernelSynthesis-v0`: the same tasks, device, verifier, rewards and budget. The action
    is the whole source of a kernel, and there is no memory bank: what an author knows is up to the author. Attempts
    *draft* until a kernel is feasible; then they *refine*: what counts is lower latency.

    ## Action Space
    `Text(max_length=65536, charset=string.printable)`: the source of a kernel in the device's language
    (`env.unwrapped.language`). `kernel_gym.authors.model.answer.kernel_source` finds it in a model's answer.

    ## Observation Space
    `Dict` of texts and numbers; characters that are not printable ASCII are shown as `?`.

    | key | space | meaning |
    |---|---|---|
    | task | Text | name, category, description and source of the task |
    | kernel | Text | the last attempt's source; empty before the first |
    | feedback | Text | the verdicts of the last `history` attempts, newest first, each with its outcome and feedback |
    | best_kernel | Text | the fastest feasible source so far; empty if there is none |
    | stage | Discrete(2) | 0 draft, 1 refine |
    | attempts_left | Discrete(T + 1) | attempts that are left |
    | latency_us | Box(2) | first and best feasible latency in microseconds; 0 while there is none |

    ## Rewards
    As in `KernelSynthesis-v0`: in drafting +1 if the kernel is feasible, else -1; in refining
    `tanh(log b - log latency)` with `b` the best latency before the attempt, and -1 if infeasible.

    ## Episode End
    *Termination*: the budget of `T` attempts is spent; with `stages="draft"` also the first feasible kernel.
    *Truncation*: five infrastructure errors in a row. Such an error is retried twice; then it pays 0 and costs nothing.

    ## Arguments
    `suite`, `tasks`, `device`, `device_options`, `verifier`, `service`, `cluster`, `policy`, `inspection`, `budget`,
    `stages` (`both` or `draft`), `curriculum` and `seed` as in `KernelSynthesis-v0`; `history` (default 1), the number
    of verdicts in the observation; `render_mode`: "ansi" or None.

    ## Version History
    * v0: initial version
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, history: int = 1, **options: Any) -> None:
        """Make the environment.

        Args:
            render_mode: `ansi` or None.
            history: The number of verdicts in the observation.
            **options: The arguments named above, which `Options` declares.

        Raises:
            ConfigError: If an option does not exist or has a value that is not accepted.
        """
        if unknown := sorted(set(options) - set(ARGUMENTS)):
            raise ConfigError(f"KernelWriting has no option {unknown[0]!r}; it has {', '.join(ARGUMENTS)} and history")
        if history < 1:
            raise ConfigError(f"history must be at least 1, not {history}")
        self.options = Options.of({"workers": 1} | options)
        if self.options.stages == "refine":
            raise ConfigError("stages is both or draft: without a memory bank there is no kernel to refine from")
        self.render_mode = known_mode(render_mode, self.metadata)
        self.language = factories.language(self.options) or "ascendc"
        self._curriculum = Curriculum(factories.tasks(self.options), self.options.curriculum)
        self._verifier = self.options.verifier
        self._last: deque[Verdict] = deque(maxlen=history)
        self._task: Task | None = None
        self.action_space = gym.spaces.Text(LENGTH, min_length=0, charset=string.printable)
        self.observation_space = gym.spaces.Dict(
            {
                **{name: _text_space() for name in ("task", "kernel", "feedback", "best_kernel")},
                "stage": gym.spaces.Discrete(2),
                "attempts_left": gym.spaces.Discrete(self.options.budget + 1),
                "latency_us": gym.spaces.Box(0.0, np.inf, (2,), np.float64),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next task.

        Args:
            seed: Restarts the curriculum; None goes on.
            options: `{"task": id}` names the task instead of the curriculum.

        Returns:
            The first observation and its info.
        """
        name = reset_option(options, "task")
        first = self._task is None
        super().reset(seed=self.options.seed if seed is None and first else seed)
        if first or seed is not None:
            self._curriculum.restart(int(self.np_random_seed))
        self._task = self._curriculum.next() if name is None else self._curriculum.named(name)
        self._progress, self._failures = Progress(), 0
        self._kernel = self._best = Kernel("", self.language)
        self._last.clear()
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Judge a kernel.

        Args:
            action: The source of the kernel.

        Returns:
            Observation, reward, terminated, truncated and info. `info["attempt"]` is the finished `Attempt`;
            `info["failure"]` the infrastructure's error.

        Raises:
            gymnasium.error.InvalidAction: The action is not a text of the action space.
            gymnasium.error.ResetNeeded: The episode is over or has not begun.
        """
        if not self.action_space.contains(action):
            raise gym.error.InvalidAction(f"an action is a text of at most {LENGTH} printable ASCII characters")
        if self._task is None or self._over or self._failures >= PATIENCE:
            raise gym.error.ResetNeeded("the episode is over or has not begun; call reset()")
        kernel = Kernel(action, self.language)
        verdict = self._judge(kernel, self._task)
        self._kernel = kernel
        self._last.appendleft(verdict)
        reward, details = self._learn(kernel, verdict)
        return self._observation(), reward, self._over, self._failures >= PATIENCE, self._info() | details

    def _judge(self, kernel: Kernel, task: Task) -> Verdict:
        """Return the verdict; an infrastructure error is retried."""
        if not kernel.source.strip():
            return Uncompilable("there is no source to compile")
        if self._verifier is None:
            self._verifier = factories.verifier(self.options)
        verify: Callable[[Kernel, Task], Verdict] = self._verifier.verify
        verdict: Verdict = Unjudged("not judged yet")
        for _ in range(1 + RETRIES):
            try:
                verdict = verify(kernel, task)
            except InfrastructureError as error:
                verdict = Unjudged(str(error))
            if not isinstance(verdict, Unjudged):
                break
        return verdict

    def _learn(self, kernel: Kernel, verdict: Verdict) -> tuple[float, dict[str, Any]]:
        """Take in a verdict; return the reward and what `info` says about the attempt."""
        assert self._task is not None
        if isinstance(verdict, Unjudged):
            self._failures += 1
            return 0.0, {"failure": verdict.feedback}
        before, self._failures = self._progress, 0
        attempt: Attempt = before.attempt(self.options, self._task, kernel, verdict, (), None, (), ())
        self._progress = before.after(verdict, self.options)
        if verdict.latency_us is not None and verdict.latency_us == self._progress.best_us:
            self._best = kernel
        return attempt.reward, {"attempt": attempt}

    @property
    def _over(self) -> bool:
        return bool(attempt_rules.is_over(self.options, self._progress.used, self._progress.best_us is not None))

    def _observation(self) -> Observation:
        assert self._task is not None
        progress = self._progress
        return {
            "task": shown(describe(self._task)),
            "kernel": shown(self._kernel.source),
            "feedback": shown("\n\n".join(f"{verdict.outcome}: {verdict.feedback}" for verdict in self._last)),
            "best_kernel": shown(self._best.source),
            "stage": np.int64(progress.stage is Stage.REFINE),
            "attempts_left": np.int64(self.options.budget - progress.used),
            "latency_us": np.array([progress.first_us or 0.0, progress.best_us or 0.0]),
        }

    def _info(self) -> dict[str, Any]:
        assert self._task is not None
        return {"task": self._task.id, "category": self._task.category, "language": self.language}

    def render(self) -> str | None:  # type: ignore[override]
        """Return the state as text with `ansi`; None without a render mode."""
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode: gymnasium.make(..., render_mode='ansi')")
            return None
        if self._task is None:
            raise gym.error.ResetNeeded("there is nothing to show yet; call reset()")
        progress = self._progress
        best = "none" if progress.best_us is None else f"{progress.best_us:.2f} us"
        head = f"{self._task.id}  {progress.stage}  attempt {progress.used}/{self.options.budget}  best {best}"
        return "\n".join([head, *(f"  {verdict.outcome}: {verdict.feedback}" for verdict in self._last)])

    def __getstate__(self) -> dict[str, Any]:
        # The default verifier has threads and processes; a copy makes itself another one.
        return self.__dict__ | {"_verifier": self.options.verifier}

    def close(self) -> None:
        """Close the verifier that the environment made; one that was given stays open."""
        if self.options.verifier is None and self._verifier is not None:
            self._verifier.close()  # type: ignore[attr-defined]
            self._verifier = None


def _text_space() -> gym.spaces.Text:
    return gym.spaces.Text(LENGTH, min_length=0, charset=string.printable)


def shown(text: str) -> str:
    """Return a text as the observation space has it: printable ASCII, not longer than allowed."""
    return "".join(letter if letter in string.printable else "?" for letter in text[:LENGTH])

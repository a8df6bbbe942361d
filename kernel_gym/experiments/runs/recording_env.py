"""Wrap a run's environments: every finished attempt is recorded, and no step is made beyond the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.vector import view
from kernel_gym.errors import InfrastructureError
from kernel_gym.experiments.runs.run_recorder import RunRecorder


def finished_attempt(info: Mapping[str, Any]) -> Attempt | None:
    """Return the attempt that a step finished, or None.

    An attempt that failed in the infrastructure, all retries included, stops the run: without it the learning curve
    would differ from the one that resuming gives.
    """
    if "failure" in info:
        raise InfrastructureError(f"{info['failure']}; run the same command again to go on")
    attempt: Attempt | None = info.get("attempt")
    return attempt


def finished_attempts(infos: Mapping[str, Any], num_envs: int) -> Iterator[tuple[int, Attempt]]:
    """Yield the index of each sub-environment that finished an attempt in a step, and the attempt."""
    if infos.keys().isdisjoint(("attempt", "failure")):  # as after most picks
        return
    for i in range(num_envs):
        if (attempt := finished_attempt(view({}, infos, i)[1])) is not None:
            yield i, attempt


class RecordingEnv(gym.Wrapper[Any, Any, Any, Any]):
    """An environment whose attempts are recorded."""

    def __init__(self, env: gym.Env[Any, Any], recorder: RunRecorder) -> None:
        super().__init__(env)
        self._recorder = recorder

    def step(self, action: Any) -> Any:
        """Step, unless the budget is spent."""
        with self._recorder.during_step():
            result = self.env.step(action)
            if (attempt := finished_attempt(result[-1])) is not None:
                self._recorder.record(attempt)
        return result


class RecordingVectorEnv(gym.vector.VectorWrapper):
    """A vector environment whose attempts are recorded. It is always reset with the run's seed."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any], recorder: RunRecorder) -> None:
        super().__init__(envs)
        self._recorder = recorder

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Begin the run; a seed that a library gives is replaced by the run's."""
        with self._recorder.stopping_on_error():
            return self.env.reset(seed=self._recorder.plan.config.seed, options=options)

    def step(self, actions: Any) -> Any:
        """Step, unless the budget is spent."""
        with self._recorder.during_step():
            result = self.env.step(actions)
            for _, attempt in finished_attempts(result[-1], self.num_envs):
                self._recorder.record(attempt)
        return result
